"""Postgres, and everything that knows it: what was admitted, charged and decided.

    database.py     --database-url to a connection pool; Postgres' errors to ours
    embedded/       a PostgreSQL server of our own, as a child process (`embedded:DIR`)
    migrate.py      the schema: migrations/*.sql, applied in order, once
    schema.py       the schema written down: schema.sql, to read and to compare
    queries.sql     every statement the services send, by name
    ledger.py       who holds how many leaf cells, within which limits: the port and its words
    ledger_postgres.py  the ledger in Postgres; charging.py: charges that share a transaction;
                    ledger_rows.py: its rows; memory_ledger.py: its twin in memory, for tests
    usage_cache.py  current usage in memory, followed by LISTEN: no rule waits for Postgres;
                    memory_usage.py: its twin beside memory_ledger.py
    log.py          the decision log: append now, write behind the answer
    records.py      what a row says; journal.py: the rows of one engine's epoch, in its order;
                    candidates.py: candidate nodes as a difference; storable.py: what a row can hold
    decisions.py    the log's rows in Postgres; maintenance.py: its tables, by day
    spool.py        what waits on disk while Postgres is away (spooling, codec, frames, meter)
    history.py      what is known of a gang's run, and how facts merge; runs.py: questions about it
    memory.py       the same in memory, for tests; tests/contract holds both to one contract

No SQL lives outside this folder and no asyncpg error leaves it. Nothing here decides: it stores
what others decided, and tells apart "no" (a value) from "not known" (`BackendError`).
"""

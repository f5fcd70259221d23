"""Postgres, and everything that knows it: what was admitted, charged and decided.

    database.py     --database-url to a connection pool; Postgres' errors to ours
    embedded/       a PostgreSQL server of our own, as a child process (`embedded:DIR`)
    migrate.py      the schema: migrations/*.sql, applied in order, once
    queries.sql     every statement the services send, by name
    log.py          the decision log: append now, write behind the answer
    decisions.py    the log's rows in Postgres; storable.py: what a row can hold
    memory.py       the same in memory, for tests; tests/contract holds both to one contract

No SQL lives outside this folder and no asyncpg error leaves it. Nothing here decides: it stores
what others decided, and tells apart "no" (a value) from "not known" (`BackendError`).
"""

"""Postgres, and everything that knows it: what was admitted, charged and decided.

No SQL lives outside this folder and no asyncpg error leaves it. Nothing here decides: it stores
what others decided, and tells apart "no" (a value) from "not known" (`BackendError`).

    database/    Connections, schema, named SQL, retention.
    embedded/    A PostgreSQL server of our own: `embedded:DIR` instead of a server to install …
    history/     Runs of gangs: what was asked, granted, waited for, run, and how it ended.
    ledger/      Who holds how many leaf cells at which class, and within which limits.
    log/         The decision log: rows, positions, writing behind the answer.
    migrations/  The schema, as the sum of these files; a package only so that they are …
    spool/       What waits on disk while Postgres is unavailable.
"""

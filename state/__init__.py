"""Postgres, and everything that knows it: what was admitted, charged and decided.

No SQL is outside this folder, and no asyncpg error leaves it. Nothing here decides anything. A
value means an answer, also a negative one; `BackendError` means that the answer is not known. May
import `policy` only; the extender, the webhook and the CLI import it.

ledger/      who holds how many leaf cells, within which limits
log/         the decision log
history/     runs of gangs
database/    connections, schema, named SQL, retention
embedded/    a PostgreSQL server as a child process (`embedded:DIR`)
migrations/  the schema, as a sequence of SQL files
"""

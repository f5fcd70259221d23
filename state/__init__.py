"""Everything that is stored in Postgres: charges, decisions, observations and the history of gangs.

All SQL of the product is in this folder, and no asyncpg error leaves it. Nothing here decides about
pods. A returned value is an answer, even a negative one; `BackendError` means that the answer is
unknown. May import `policy` only; `extender`, `webhook` and `cli` import it.

ledger/      leaf cells that gangs are charged, and their limits
log/         the decision log
history/     one row for each run of a gang
past/        what a policy is tried on: admissions and charges of the last day
promises/    starts that were promised to waiting gangs, and their slips
outlook/     when gangs that are submitted now would start
nodes/       nodes that were seen in the last days
database/    connections, schema, named SQL, retention
embedded/    a PostgreSQL server as a child process (`embedded:DIR`)
migrations/  the schema as a sequence of SQL files
"""

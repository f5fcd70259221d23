"""The decision log: one row for each decision and observation, written after the answer.

`log` accepts rows in memory and writes them to a `DecisionStore` in the background. While
Postgres is unavailable, rows wait in `spool/`, on disk and within bounds. Rows of one leadership
term are numbered, so that a replay finds missing ones. Nothing here reads what a row says:
`extender.cluster` and the webhook write and interpret the contents.

log            the log that services append to
records        a row, and a policy document that rows refer to
epoch_journal  numbers the rows of one term and knows which nodes were reported in it
candidates     candidate nodes, stored as a difference to the known nodes
positions      where a page of the log ends
postgres       the store in Postgres
memory         the store in memory, for tests
storable       a record in the form that Postgres gives back
metrics        rows that are waiting, written and lost
spool/         rows that wait on disk while Postgres is unavailable
"""

"""The decision log: one row for each decision and observation, written after the answer.

`log` accepts rows in memory and writes them to a `DecisionStore` in the background. While Postgres
is unavailable, rows wait in `spool/`, on disk and bounded. Nothing here interprets the contents of
a row: `extender.cluster` and `webhook.records` write and read them. `extender`, `webhook` and `cli`
import this package.

The one idea: the rows of one leadership term are numbered without gaps, so that a replay finds
missing rows instead of deciding differently without notice.

log            the log that services append to
records        a row, and a policy document that rows refer to
epoch_journal  numbers the rows of one term and tracks the observed nodes
candidates     candidate nodes, stored as a difference to the known nodes
positions      where a page of the log ends
stretches      which part of the log, and its rows with their documents
codec          rows as bytes
postgres       the store in Postgres
metrics        metrics of pending, written and lost rows
archive/       a stretch of the log as one file
spool/         rows that wait on disk while Postgres is unavailable
"""

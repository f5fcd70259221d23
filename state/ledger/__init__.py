"""The ledger: which gang is charged how many leaf cells, at which class, to which user and group.

`ledger` is the port and `postgres` implements it. Tests have a twin in memory; `tests/contract`
runs one suite on both. Nothing here sets limits: the webhook and the extender pass them.
`extender`, `webhook` and `cli` import this package.

The one idea: a charge and the check of all its limits are one atomic step in the database, so that
concurrent replicas can never admit more than the limits allow.

ledger           the port: charges, limits, answers
postgres         the ledger in Postgres
rows             charges and usage, from and to rows of SQL functions
batches          concurrent requests that share one transaction
usage_cache      current usage in memory, kept up to date by LISTEN and NOTIFY
usage_metrics    metrics of the usage in memory
assumed_charges  charges that only this process counts while Postgres is unavailable
"""

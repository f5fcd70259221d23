"""The ledger: which gang is charged how many leaf cells, at which class, to which user and group.

`ledger` is the port and its types; `postgres` implements it, and `memory` is its twin for tests,
held to the same contract by `tests/contract`. Usage in memory (`usage_cache`) lets rules read
current usage without waiting for Postgres.

ledger           the port: charges, limits, answers
postgres         the ledger in Postgres
rows             charges and usage from and to the functions of the schema
batches          concurrent charges that share one transaction
usage_cache      current usage in memory, refreshed by LISTEN
usage_metrics    age of the usage in memory
assumed_charges  charges that only this process counts while Postgres is unavailable
memory           the ledger in memory, for tests
memory_sums      sums of the ledger in memory
memory_usage     usage in memory beside the ledger in memory, for tests
"""

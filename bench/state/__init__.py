"""Benchmarks of the database: an embedded Postgres of the benchmark's own, commits synced to disk.

history        what the life of a gang costs the extender and Postgres, to record it
ledger         charges per second, and the time of one charge
log            appends, rows per second, and answers of the decision log
log_questions  the usual queries on a database with many rows
log_beside     a process that writes the log while the ledger is measured
"""

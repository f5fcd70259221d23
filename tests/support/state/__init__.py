"""The ledger's and the log's objects, and PostgreSQL servers to keep them in.

charges         `a_charge`, and limits
ledgers         ledgers that wait long for Postgres
records         `a_decision`: rows of the decision log
masked_rows     every row that the product writes in a test is masked, too
histories       stores of runs, and `some_facts`
migrations      `a_migration`
postgres        fixtures: an embedded server for the run, a fresh database for each test
stock_postgres  fixtures: a server that we did not build
embedded_owner  a process that owns an embedded server
pgbouncer       PgBouncer before a server
wire            a connection to a server that a test can cut, hang or slow down
"""

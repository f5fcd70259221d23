"""Connections, schema, named SQL and retention: the parts of `state` that know asyncpg.

All SQL that the services send is in `queries.sql`, by name. `schema.sql` is the sum of the
migrations, written by `python -m state.database.schema` and compared by a test.

database           `--database-url` to a connection pool; errors of Postgres to `BackendError`
deferred_database  a database that may become available after a service has started
migrator           applies `state/migrations` in order, each file once
schema             the schema as text
queries            reads `queries.sql`
column_values      text and JSON values in a form that Postgres can store
maintenance        creates and drops partitions of the tables that grow
retention          how long data is kept
"""

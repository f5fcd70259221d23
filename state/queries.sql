-- Every statement that a running service sends to Postgres: a name, what it is for, the SQL.
-- state/queries.py reads this file; schema changes are in migrations/.

-- name: insert_decisions
-- Append a batch of decisions in its order; rows that an earlier attempt already stored are skipped.
INSERT INTO decisions (
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, latency_seconds, details
)
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, latency_seconds, details
FROM unnest(
    $1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[], $10::float8[], $11::jsonb[]
) WITH ORDINALITY AS batch (
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, latency_seconds, details,
    position
)
ORDER BY position
ON CONFLICT (key, at) DO NOTHING

-- name: recent_decisions
-- Read the newest decisions, newest first.
SELECT key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, latency_seconds, details
FROM decisions
ORDER BY id DESC
LIMIT $1

-- name: recent_decisions_of_subject
-- Read the newest decisions about one subject, newest first.
SELECT key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, latency_seconds, details
FROM decisions
WHERE subject = $2
ORDER BY id DESC
LIMIT $1

-- name: lock_migrations
-- Let one replica at a time look at the schema and change it, until its transaction ends.
SELECT pg_advisory_xact_lock($1)

-- name: has_migrations_table
-- Tell whether any migration was ever applied, without needing the right to create a table.
SELECT to_regclass('schema_migrations') IS NOT NULL

-- name: create_migrations_table
-- Make the record of what was applied; it cannot be a migration itself.
CREATE TABLE schema_migrations (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: applied_migrations
-- Read what was applied.
SELECT name, checksum FROM schema_migrations

-- name: record_migration
-- Remember that a migration was applied.
INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)

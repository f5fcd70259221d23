-- Every statement that a running service sends to Postgres: name, purpose, SQL.
-- state/database/queries.py reads this file; schema changes are in state/migrations/.

-- name: insert_decisions
-- Append rows of one service and epoch in order; returns when a newer epoch began, if there is one.
WITH term AS (
    -- Writes when the term is new, or when a row comes late that was decided before its first.
    INSERT INTO log_terms AS known (service, epoch, began_at)
    SELECT $1, $2::bigint, min(at) FROM unnest($4::timestamptz[]) AS batch (at)
    HAVING $2::bigint IS NOT NULL
    ON CONFLICT (service, epoch) DO UPDATE SET began_at = excluded.began_at
    WHERE known.began_at > excluded.began_at
),
takeover AS (
    SELECT min(began_at) AS at FROM log_terms WHERE service = $1 AND epoch > $2::bigint
),
-- Rows that an earlier attempt already stored are skipped.
stored AS (
    INSERT INTO decisions (
        service, epoch, key, at, kind, subject, pod_uid, outcome, reason, policy_version, sequence,
        latency_seconds, details, inputs
    )
    SELECT
        $1, $2, key, at, kind, subject, pod_uid, outcome, reason, policy_version, sequence,
        latency_seconds, details, inputs
    FROM unnest(
        $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::bigint[], $12::float8[], $13::jsonb[], $14::jsonb[]
    ) WITH ORDINALITY AS batch (
        key, at, kind, subject, pod_uid, outcome, reason, policy_version, sequence,
        latency_seconds, details, inputs, position
    )
    WHERE batch.at < coalesce((SELECT takeover.at FROM takeover), 'infinity')
    ORDER BY position
    ON CONFLICT (at, key) DO NOTHING
)
SELECT at FROM takeover

-- name: insert_documents
-- Store the text of new documents, and the time at which known ones were last seen.
INSERT INTO documents AS known (hash, kind, content, first_seen_at, last_seen_at)
SELECT hash, kind, content, at, at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
    AS batch (hash, kind, content, at)
ON CONFLICT (hash) DO UPDATE SET last_seen_at = excluded.last_seen_at
WHERE known.last_seen_at < excluded.last_seen_at

-- name: document_of_hash
-- Read the text of a document that a row refers to.
SELECT kind, content FROM documents WHERE hash = $1

-- name: record_runs
-- Merge descriptions of runs into the history, by the rules of state/history/facts.py.
SELECT record_runs($1::jsonb)

-- name: recent_decisions
-- Read the newest decisions before a position, newest first; with observations on request.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE at <= $4 AND (at, key) < ($4, $5) AND ($2 OR kind <> ALL ($3::text[]))
ORDER BY at DESC, key DESC
LIMIT $1

-- name: recent_decisions_of_subject
-- Read the newest decisions about one subject, newest first.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE
    subject = $6 AND at <= $4 AND (at, key) < ($4, $5) AND ($2 OR kind <> ALL ($3::text[]))
ORDER BY at DESC, key DESC
LIMIT $1

-- name: decisions_of_kind
-- Read the decisions of one kind about some subjects between two moments, newest first.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE subject = ANY ($2::text[]) AND at BETWEEN $3 AND $4 AND kind = $1
ORDER BY at DESC, key DESC
LIMIT $5

-- name: why_this_pod
-- Read the rows of one pod, newest first.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE pod_uid = $1
ORDER BY at DESC, key DESC
LIMIT $2

-- name: rows_of_epoch
-- Read rows of one epoch in the order of the engine, for a replay.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE service = $1 AND epoch = $2 AND sequence >= $3
ORDER BY sequence
LIMIT $4

-- name: kinds_of_epoch
-- Read rows of some kinds of one epoch, in the order of the engine.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE service = $1 AND epoch = $2 AND sequence BETWEEN $3 AND $4 AND kind = ANY ($5::text[])
ORDER BY sequence
LIMIT $6

-- name: epochs_between
-- Find the epochs of a service that have rows between two moments, and the last of those rows.
WITH RECURSIVE epochs AS (
    -- One step of an index for each epoch, however many rows it has.
    SELECT min(epoch) AS epoch FROM decisions WHERE service = $1 AND epoch IS NOT NULL
    UNION ALL
    SELECT (SELECT min(d.epoch) FROM decisions AS d WHERE d.service = $1 AND d.epoch > e.epoch)
    FROM epochs AS e WHERE e.epoch IS NOT NULL
)
SELECT e.epoch, head.sequence AS first, tail.sequence AS last,
    coalesce(t.began_at, head.at) AS began_at
FROM epochs AS e
CROSS JOIN LATERAL (
    SELECT d.sequence FROM decisions AS d
    WHERE d.service = $1 AND d.epoch = e.epoch AND d.sequence IS NOT NULL
        AND d.at BETWEEN $2 AND $3
    ORDER BY d.sequence DESC LIMIT 1
) AS tail
CROSS JOIN LATERAL (
    SELECT d.sequence, d.at FROM decisions AS d
    WHERE d.service = $1 AND d.epoch = e.epoch AND d.sequence IS NOT NULL
    ORDER BY d.sequence LIMIT 1
) AS head
LEFT JOIN log_terms AS t ON t.service = $1 AND t.epoch = e.epoch
ORDER BY e.epoch

-- name: epochs_of_subject_between
-- Find the epochs of a service with rows about a subject between two moments, and the last of them.
SELECT found.epoch, head.sequence AS first, found.last, coalesce(t.began_at, head.at) AS began_at
FROM (
    SELECT epoch, max(sequence) AS last FROM decisions
    WHERE subject = $4 AND at BETWEEN $2 AND $3 AND service = $1
        AND epoch IS NOT NULL AND sequence IS NOT NULL
    GROUP BY epoch
) AS found
CROSS JOIN LATERAL (
    SELECT d.sequence, d.at FROM decisions AS d
    WHERE d.service = $1 AND d.epoch = found.epoch AND d.sequence IS NOT NULL
    ORDER BY d.sequence LIMIT 1
) AS head
LEFT JOIN log_terms AS t ON t.service = $1 AND t.epoch = found.epoch
ORDER BY found.epoch

-- name: rows_beside_epochs
-- Read rows that are in no epoch of a service, oldest first, after a position.
SELECT
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
FROM decisions
WHERE at BETWEEN $4 AND $2 AND (at, key) > ($4, $5) AND ($3::text IS NULL OR subject = $3)
    AND (service <> $1 OR epoch IS NULL OR sequence IS NULL)
ORDER BY at, key
LIMIT $6

-- name: admissions_between
-- Read what the webhook was asked for and decided, from one moment until before another one.
SELECT key, at, subject, outcome, details, inputs
FROM decisions
WHERE at >= $1 AND at < $2 AND service = 'webhook' AND kind = 'admission'
ORDER BY at, key

-- name: charges_since
-- Read the charges in force at or after a moment; of ended ones without CPU, memory and overflow.
SELECT
    decision, namespace, gang, user_name, group_name, vc, class, is_high, leaf_type, leaf_count,
    charged_at, NULL::timestamptz AS ended_at, rises_to, cpu_millis, memory_bytes
FROM charges
UNION ALL
SELECT
    decision, namespace, gang, user_name, group_name, vc, class, is_high, leaf_type, leaf_count,
    charged_at, ended_at, NULL, NULL, NULL
FROM past_charges
WHERE tstzrange(charged_at, ended_at) && tstzrange($1, NULL)
ORDER BY charged_at, decision

-- name: count_stored
-- Count those of some rows that are stored.
SELECT count(*) FROM decisions AS d
JOIN unnest($1::timestamptz[], $2::uuid[]) AS given (at, key) ON (d.at, d.key) = (given.at, given.key)

-- name: known_terms
-- Read which terms of services the log knows, and when each began.
SELECT service, epoch, began_at FROM log_terms

-- name: has_decisions
-- Tell whether the log has any row.
SELECT EXISTS (SELECT FROM decisions)

-- name: adopt_terms
-- Note terms of another log, into one that has none.
INSERT INTO log_terms (service, epoch, began_at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::timestamptz[])
ON CONFLICT (service, epoch) DO NOTHING

-- name: ensure_decision_days
-- Create the partitions of the coming days; returns how many were missing.
SELECT ensure_decision_days($1, $2)

-- name: drop_decision_day
-- Drop the oldest partition that is too old by the clocks of service and database; returns its name.
SELECT drop_decision_day(least($1::date, (now() AT TIME ZONE 'UTC')::date) - $2::integer)

-- name: forget_past
-- Delete a batch of rows of a table that are too old; returns how many.
SELECT forget_past($1, $2, $3, $4)

-- name: plan_by_values
-- Plan each statement of this transaction for its values: what is NULL then restricts nothing.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true)

-- name: find_runs
-- Read runs, newest first, before a position; what is NULL does not restrict them.
SELECT
    h.*, (
        SELECT count(*)::integer FROM gang_history AS before
        WHERE before.gang = h.gang AND before.workload_uid IS NOT DISTINCT FROM h.workload_uid
            AND (before.asked_at, before.run) <= (h.asked_at, h.run)
    ) AS attempt, (
        SELECT sum(
            holds.leaf_count * extract(epoch FROM coalesce(holds.until, now()) - holds.since)
        )::float8 / 3600
        FROM run_holds(h) AS holds WHERE holds.since < coalesce(holds.until, now())
    ) AS leaf_cell_hours
FROM gang_history AS h
WHERE ($1::text IS NULL OR h.user_name = $1)
    AND ($2::text IS NULL OR h.group_name = $2)
    AND ($3::text IS NULL OR h.vc = $3)
    AND ($4::text IS NULL OR h.gang = $4)
    AND ($5::text IS NULL OR h.outcome = $5)
    AND ($6::boolean IS NULL OR (h.ended_at IS NOT NULL) = $6)
    AND ($7::timestamptz IS NULL OR coalesce(h.ended_at, 'infinity') > $7)
    AND ($8::timestamptz IS NULL OR h.asked_at < $8)
    AND ($9::timestamptz IS NULL OR (h.asked_at, h.run) < ($9, $10))
ORDER BY h.asked_at DESC, h.run DESC
LIMIT $11

-- name: open_runs
-- Read runs that have not ended, by name, after a name.
SELECT * FROM gang_history WHERE ended_at IS NULL AND run > $1 ORDER BY run LIMIT $2

-- name: recorded_pods
-- Which pods are recorded, and whether their runs have ended.
SELECT p.pod_uid, h.ended_at IS NOT NULL AS has_ended, h.extent,
    (h.members -> p.pod_uid ->> 'certainty')::integer AS certainty,
    h.members -> p.pod_uid ->> 'told' AS told
FROM run_pods AS p JOIN gang_history AS h USING (run)
WHERE p.pod_uid = ANY ($1::text[])

-- name: past_runs
-- Read runs that had begun and have ended, the last end first, before a position.
SELECT
    h.run, h.gang, h.user_name, h.vc, h.workload, h.image, h.leaf_count, h.outcome, h.started_at,
    h.ended_at, h.predictions -> 'start' AS start
FROM gang_history AS h
WHERE h.started_at IS NOT NULL AND h.ended_at IS NOT NULL
    AND ($1::timestamptz IS NULL OR (h.ended_at, h.run) < ($1, $2::text))
ORDER BY h.ended_at DESC, h.run DESC
LIMIT $3

-- name: prediction_errors
-- Compare predictions with outcomes between two moments, by kind, key and size.
WITH outcomes AS (
    SELECT
        'runTime' AS kind, p, extract(epoch FROM h.ended_at - h.started_at)::float8 AS actual
    FROM gang_history AS h CROSS JOIN LATERAL (SELECT h.predictions -> 'runTime') AS told (p)
    WHERE h.started_at IS NOT NULL AND h.ended_at >= $1 AND h.ended_at < $2
        AND h.outcome IN ('succeeded', 'failed', 'deleted')
        AND p IS NOT NULL AND ($3::text IS NULL OR h.user_name = $3)
    UNION ALL
    SELECT 'start', p, extract(epoch FROM h.started_at)::float8 - (p ->> 'at')::float8
    FROM gang_history AS h CROSS JOIN LATERAL (SELECT h.predictions -> 'start') AS told (p)
    WHERE h.started_at >= $1 AND h.started_at < $2
        AND p IS NOT NULL AND ($3::text IS NULL OR h.user_name = $3)
), errors AS (
    SELECT
        kind, p ->> 'key' AS key, (p ->> 'size')::integer AS size,
        abs(ln(greatest(actual, 1) / greatest((p ->> 'median')::float8, 1))) AS error,
        -- An interval that nobody was told, for lack of outcomes, promises nothing.
        CASE WHEN p -> 'told' IS DISTINCT FROM 'false'::jsonb
            THEN actual BETWEEN (p ->> 'low')::float8 AND (p ->> 'high')::float8
        END AS is_covered
    FROM outcomes
)
SELECT
    kind, key, size, count(*) AS runs,
    exp(percentile_cont(0.5) WITHIN GROUP (ORDER BY error)) AS median_factor,
    avg((error <= ln(2))::integer)::float8 AS within_twice,
    avg(is_covered::integer)::float8 AS covered
FROM errors
GROUP BY 1, 2, 3
ORDER BY kind, key COLLATE "C", size

-- name: hours_between
-- Sum leaf-cell-hours between two moments, of all or some: whole days from sums, the rest from runs.
WITH asked AS (
    SELECT
        $1::timestamptz AS since, $2::timestamptz AS until,
        -- Midnight after the beginning and before the end.
        date_trunc('day', $1::timestamptz + interval '86399.999999 seconds', 'UTC') AS first,
        date_trunc('day', $2::timestamptz, 'UTC') AS last
), edges AS (
    -- A gang counts once: where it ended, or at the end if it went on then.
    SELECT since, until, since AS found_since, '-infinity'::timestamptz AS ended_after,
        'infinity'::timestamptz AS ended_by
    FROM asked WHERE first >= last
    UNION ALL
    SELECT since, first, since, '-infinity', first FROM asked WHERE first < last
    UNION ALL
    SELECT last, until, least(last, until - interval '1 microsecond'), last, 'infinity'
    FROM asked WHERE first < last
), ended AS (
    SELECT
        h.run, h.user_name, h.group_name, h.vc, h.granted_class AS class, holds.leaf_type,
        edges.ended_after, edges.ended_by, max(holds.until) AS held_until,
        sum(holds.leaf_count * extract(epoch FROM greatest(
            least(holds.until, edges.until) - greatest(holds.since, edges.since), interval '0'
        )) * 1000000) AS micros
    FROM edges
    JOIN gang_history AS h ON h.held && tstzrange(edges.found_since, edges.until)
    CROSS JOIN LATERAL run_holds(h) AS holds
    WHERE coalesce(h.held_from, h.started_at) IS NOT NULL AND h.ended_at IS NOT NULL
        AND ($3::text IS NULL OR h.user_name = $3) AND ($4::text IS NULL OR h.group_name = $4)
        AND holds.since < holds.until
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
    HAVING bool_or(holds.since < $2::timestamptz AND holds.until > $1::timestamptz)
), running AS (
    -- What goes on has no sum yet.
    SELECT
        h.run, h.user_name, h.group_name, h.vc, h.granted_class AS class, holds.leaf_type,
        sum(holds.leaf_count * extract(epoch FROM
            least(holds.until, now(), $2::timestamptz) - greatest(holds.since, $1::timestamptz)
        ) * 1000000) AS micros
    FROM gang_history AS h
    CROSS JOIN LATERAL run_holds(h) AS holds
    WHERE h.ended_at IS NULL
        AND ($3::text IS NULL OR h.user_name = $3) AND ($4::text IS NULL OR h.group_name = $4)
        AND coalesce(h.held_from, h.started_at) < least(now(), $2::timestamptz)
        AND greatest(holds.since, $1::timestamptz) < least(holds.until, now(), $2::timestamptz)
    GROUP BY 1, 2, 3, 4, 5, 6
), parts AS (
    SELECT
        coalesce(user_name, '') AS user_name, coalesce(group_name, '') AS group_name,
        coalesce(vc, '') AS vc, coalesce(class, '') AS class, leaf_type, micros,
        (held_until > ended_after AND held_until <= ended_by)::integer AS gangs
    FROM ended
    UNION ALL
    SELECT user_name, group_name, vc, class, leaf_type, leaf_cell_micros, ended
    FROM gang_days
    WHERE gangs > 0
        AND ($3::text IS NULL OR user_name = $3) AND ($4::text IS NULL OR group_name = $4)
        AND day >= (SELECT (first AT TIME ZONE 'UTC')::date FROM asked)
        AND day < (SELECT (last AT TIME ZONE 'UTC')::date FROM asked)
    UNION ALL
    SELECT
        coalesce(user_name, ''), coalesce(group_name, ''), coalesce(vc, ''), coalesce(class, ''),
        leaf_type, micros, 1
    FROM running
)
SELECT
    nullif(parts.user_name, '') AS user_name, nullif(parts.group_name, '') AS group_name,
    nullif(parts.vc, '') AS vc, nullif(parts.class, '') AS class,
    nullif(parts.leaf_type, '') AS leaf_type,
    sum(micros)::float8 / 3.6e9 AS leaf_cell_hours, sum(gangs)::bigint AS gangs
FROM parts
GROUP BY parts.user_name, parts.group_name, parts.vc, parts.class, parts.leaf_type
HAVING sum(micros) > 0
ORDER BY 1, 2, 3, 4, 5

-- name: lock_migrations
-- Lock the schema for one replica until its transaction ends.
SELECT pg_advisory_xact_lock($1)

-- name: has_migrations_table
-- Check whether a migration was ever applied, without the right to create a table.
SELECT to_regclass('schema_migrations') IS NOT NULL

-- name: create_migrations_table
-- Create the table of applied migrations; it cannot be a migration itself.
CREATE TABLE schema_migrations (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: applied_migrations
-- Read the applied migrations.
SELECT name, checksum FROM schema_migrations

-- name: record_migration
-- Record that a migration was applied.
INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)

-- The ledger. Its writes are SQL functions, so that each is one round trip: see the migrations.

-- name: charge
-- Charge gangs, each within its own limits, in one transaction.
SELECT ledger_charge($1::jsonb, $2, $3)

-- name: confirm
-- Keep the charges of gangs whose pods appeared.
SELECT ledger_confirm($1, $2, $3::jsonb)

-- name: release
-- End the charges of gangs whose last pod has ended.
SELECT ledger_release($1, $2, $3::jsonb, $4)

-- name: expire
-- End charges that were not confirmed in time.
SELECT ledger_expire($1, $2, $3, $4)

-- name: reconcile
-- Make the charges match the gangs that have pods.
SELECT ledger_reconcile($1, $2, $3::jsonb, $4, $5)

-- name: recount
-- Count the CPU and memory of charged gangs by their pods.
SELECT ledger_recount($1, $2, $3::jsonb, $4)

-- name: raise
-- Charge a gang beyond its quotas in a higher class, within the limits.
SELECT ledger_raise($1, $2, $3::jsonb, $4, $5, $6::jsonb, $7)

-- name: note_reclaimed
-- Note since when gangs ask whose pods were ended for others.
SELECT ledger_note_reclaimed($1, $2, $3::jsonb, $4, $5)

-- name: first_asked
-- Read since when gangs ask whose pods were ended for others within some time.
SELECT r.namespace, r.gang, r.first_asked
FROM unnest($1::text[], $2::text[]) AS asked (namespace, gang)
JOIN reclaimed_gangs AS r USING (namespace, gang)
WHERE r.reclaimed_at > coalesce($4::timestamptz, clock_timestamp()) - $3::interval

-- name: find_gang
-- Read the charge of a gang, or how it waits, and what a scope holds, at one moment.
SELECT
    (SELECT to_jsonb(c) FROM charges AS c WHERE c.namespace = $1 AND c.gang = $2) AS live, (
        SELECT q.charge FROM queued_gangs AS q
        WHERE q.namespace = $1 AND q.gang = $2 AND q.expires_at > m.at
    ) AS queued, (
        SELECT ledger_usage(ledger_advance(held, NULL, 0, m.at, m.at))
        FROM holdings AS held WHERE held.user_name = $3 AND held.group_name = $4
    ) AS usage
FROM (SELECT coalesce($5, clock_timestamp()) AS at) AS m

-- name: live_charges
-- Read all live charges.
SELECT to_jsonb(c) FROM charges AS c

-- name: charges_aged
-- Read charges that were made or resized within a range of ages.
SELECT to_jsonb(c)
FROM charges AS c, (SELECT coalesce($3, clock_timestamp()) AS at) AS m
WHERE c.charged_at <= m.at - $1::interval AND c.charged_at > m.at - $2::interval

-- name: usage_of_scope
-- Read what one scope holds, and has used in the current day, week and month.
SELECT ledger_usage(ledger_advance(held, NULL, 0, m.at, m.at))
FROM holdings AS held, (SELECT coalesce($3, clock_timestamp()) AS at) AS m
WHERE held.user_name = $1 AND held.group_name = $2

-- name: holdings_at
-- Sum the leaf cells held now or at a moment, by user, group, VC, class and leaf type.
SELECT user_name, group_name, vc, class, is_high, leaf_type, leaf_count, gang_count
FROM ledger_held($1)

-- name: leaf_time_of_days
-- Sum the leaf-cell-microseconds of each day.
SELECT day, user_name, group_name, vc, class, leaf_type, leaf_micros
FROM ledger_time($1, $2, $3)

-- name: usage_changes
-- Read the usage that may have changed since a version, and the version for the next call.
SELECT
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS version,
    coalesce(
        (
            SELECT jsonb_agg(ledger_usage(held)) FROM holdings AS held
            WHERE held.changed_in >= $1::bigint::text::xid8
        ),
        '[]'
    ) AS usage

-- name: charged_gangs
-- Read which of the given gangs have a live charge.
SELECT c.namespace, c.gang
FROM charges AS c
JOIN unnest($1::text[], $2::text[]) AS asked (namespace, gang)
    ON c.namespace = asked.namespace AND c.gang = asked.gang

-- name: announce_usage
-- Notify the usage caches of all processes of a change.
SELECT pg_notify('cellgate_usage', $1)

-- name: set_for_session
-- Change a setting of this session, or of the session that a pooler provides.
SELECT set_config($1, $2, false)

-- name: backend_pid
-- Read the process id of the server session: behind a pooler it is not the one of the connection.
SELECT pg_backend_pid()

-- name: describe_schema
-- Describe every table, view and function of the schema in a canonical form.
WITH ours AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions
    FROM pg_class AS c
    WHERE c.relnamespace = current_schema()::regnamespace
        AND c.relkind IN ('r', 'p', 'v')
        AND (NOT c.relispartition OR c.relname !~ '_[0-9]{8}$')
), lines AS (
    SELECT a.attrelid AS oid, 1 AS part, a.attname AS name, a.attnum AS position,
        '    ' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
        || coalesce(' COLLATE ' || quote_ident(l.collname), '')
        || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        || CASE WHEN a.attidentity <> '' THEN ' GENERATED AS IDENTITY' ELSE '' END
        || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
    FROM pg_attribute AS a
    JOIN ours ON ours.oid = a.attrelid AND ours.relkind IN ('r', 'p')
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation AND l.collname <> 'default'
    WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT k.conrelid, 2, k.conname, 0,
        '    CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
    FROM pg_constraint AS k JOIN ours ON ours.oid = k.conrelid
    WHERE k.contype <> 'n'  -- as of version 18: said with the column already
), indexes AS (
    SELECT
        i.indrelid AS oid,
        string_agg(E'\n' || pg_get_indexdef(i.indexrelid) || ';', '' ORDER BY x.relname) AS text
    FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
    GROUP BY i.indrelid
)
SELECT definition
FROM (
    SELECT 1 AS part, o.relname AS name,
        'TABLE ' || quote_ident(o.relname) || E' (\n'
        || (
            SELECT string_agg(l.line, E',\n' ORDER BY l.part, l.position, l.name)
            FROM lines AS l WHERE l.oid = o.oid
        )
        || E'\n)' || coalesce(' PARTITION BY ' || pg_get_partkeydef(o.oid), '')
        || coalesce(' WITH (' || array_to_string(o.reloptions, ', ') || ')', '') || ';'
        || coalesce(indexes.text, '') AS definition
    FROM ours AS o LEFT JOIN indexes ON indexes.oid = o.oid
    WHERE o.relkind IN ('r', 'p')
    UNION ALL
    SELECT 2, o.relname, 'VIEW ' || quote_ident(o.relname) || E' AS\n' || pg_get_viewdef(o.oid)
    FROM ours AS o WHERE o.relkind = 'v'
    UNION ALL
    -- Its text is in the migrations, once; here it shows that it changed.
    SELECT 3, p.oid::regprocedure::text,
        'FUNCTION ' || p.oid::regprocedure || ' RETURNS ' || pg_get_function_result(p.oid)
        || CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
        || coalesce(' SET ' || array_to_string(p.proconfig, ' SET '), '')
        || '; -- ' || md5(pg_get_functiondef(p.oid))
    FROM pg_proc AS p WHERE p.pronamespace = current_schema()::regnamespace AND p.prokind = 'f'
) AS all_of_it
ORDER BY part, name COLLATE "C"

-- name: observe_nodes
-- Note nodes that joined or changed, and those that are gone; forget those that are gone for long.
SELECT observe_nodes($1, $2, $3::jsonb, $4::text[], $5, $6)

-- name: retain_nodes
-- Note that all nodes but these are gone.
SELECT retain_nodes($1, $2, $3::text[], $4)

-- name: seen_nodes
-- Count the nodes that were there within some time, by devices and by the labels asked for.
WITH latest AS (
    -- Of the numbers of devices that a node had, the largest.
    SELECT DISTINCT ON (s.name) s.leaf_counts, s.labels, s.cpu, s.memory
    FROM seen_nodes AS s
    WHERE s.left_at IS NULL OR s.left_at > coalesce($3::timestamptz, now()) - $2::interval
    ORDER BY s.name, s.devices DESC, s.left_at DESC NULLS FIRST, s.leaf_counts
)
SELECT l.leaf_counts::text AS leaf_counts, asked.labels AS labels, count(*) AS number,
    CASE WHEN bool_and(l.cpu IS NOT NULL) THEN max(l.cpu) END AS cpu,
    CASE WHEN bool_and(l.memory IS NOT NULL) THEN max(l.memory) END AS memory
FROM latest AS l
CROSS JOIN LATERAL (
    SELECT ARRAY(SELECT l.labels ->> key FROM unnest($1::text[]) AS key) AS labels
) AS asked
GROUP BY l.leaf_counts, asked.labels

-- name: present_nodes
-- Read the nodes that are there, by name.
SELECT s.name, s.leaf_counts::text AS leaf_counts, s.labels::text AS labels, s.cpu, s.memory
FROM seen_nodes AS s
WHERE s.left_at IS NULL
ORDER BY s.name

-- name: seen_nodes_version
-- A number that grows with every change of the nodes; it does not when one is old enough to be forgotten.
SELECT coalesce(max(s.changed), 0) FROM seen_nodes AS s

-- name: save_promises
-- Write promises of starts that were made or have changed; forget those that ended long ago.
SELECT save_promises($1, $2, $3::jsonb, $4, $5)

-- name: promises
-- The promises in force and those that ended lately, youngest first.
SELECT p.namespace, p.gang, p.owner, p.made_at, p.ended_at, p.body::text AS body
FROM promises AS p
WHERE p.ended_at IS NULL OR p.ended_at >= $1
ORDER BY p.ended_at IS NOT NULL, p.made_at DESC
LIMIT $2

-- name: save_outlook
-- Replace the outlook: when gangs that are submitted now would start.
SELECT save_outlook($1, $2, $3, $4::jsonb)

-- name: outlook
-- The last outlook of the leader.
SELECT o.computed_at, o.entries::text AS entries FROM outlook AS o

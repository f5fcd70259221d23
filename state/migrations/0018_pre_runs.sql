-- The history of gangs as the extender's leader records it. A run has the pods that it consists of; of
-- each pod the row says where it ran, from when until when, and how it ended. Leaf-cell-hours are
-- sums over these pods: members of a gang start, end and are replaced at different times.

ALTER TABLE gang_history
    ADD COLUMN workload text COLLATE "C",          -- kind and name of the topmost controller
    ADD COLUMN workload_uid text COLLATE "C",
    ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN image text COLLATE "C",
    ADD COLUMN estimate_seconds bigint,            -- what its owner expects, and its limit
    ADD COLUMN limit_seconds bigint,
    ADD COLUMN admitted_at timestamptz,
    ADD COLUMN released_at timestamptz,
    ADD COLUMN held_from timestamptz,              -- when its first member was bound
    ADD COLUMN running_at timestamptz,             -- when the containers of enough members ran
    ADD COLUMN restarts integer,
    ADD COLUMN members jsonb NOT NULL DEFAULT '{}',  -- by the UID of the pod
    -- Of two descriptions of a run, the one with the greater pair counts: a known end (2), a presumed
    -- end (1), no end (0); then the later observation.
    ADD COLUMN certainty smallint NOT NULL DEFAULT 0,
    ADD COLUMN stamp text COLLATE "C" NOT NULL DEFAULT '';

-- When it had leaf cells; open while it has, empty where two clocks disagree.
ALTER TABLE gang_history ADD COLUMN held tstzrange GENERATED ALWAYS AS (
    CASE
        WHEN ended_at < coalesce(held_from, started_at) THEN 'empty'
        ELSE tstzrange(coalesce(held_from, started_at), ended_at)
    END
) STORED;
DROP INDEX gang_history_ran;
CREATE INDEX gang_history_held ON gang_history USING gist (held)
    WHERE coalesce(held_from, started_at) IS NOT NULL;
DROP INDEX gang_history_running;
CREATE INDEX gang_history_running ON gang_history (coalesce(held_from, started_at))
    WHERE ended_at IS NULL;
CREATE INDEX gang_history_asked ON gang_history (asked_at DESC, run DESC);


-- The run of each pod. Two leaders may name one run differently if the second could not read what
-- the first had recorded: a run is found by its pods.
CREATE TABLE run_pods (
    pod_uid text COLLATE "C" PRIMARY KEY,
    run text COLLATE "C" NOT NULL REFERENCES gang_history ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX run_pods_run ON run_pods (run);


-- Merge what is known of the pods of a run; of two descriptions of a pod the greater pair counts, as
-- for runs. Why Cellgate ended a pod is kept, whichever description says so.
CREATE FUNCTION merge_members(one jsonb, other jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(uid, member || told), '{}')
    FROM (
        SELECT
            uid,
            (array_agg(
                member
                ORDER BY (member->>'certainty')::integer DESC, member->>'stamp' COLLATE "C" DESC
            ))[1] AS member,
            jsonb_strip_nulls(jsonb_build_object('told', max(member->>'told' COLLATE "C"))) AS told
        FROM (SELECT * FROM jsonb_each(one) UNION ALL SELECT * FROM jsonb_each(other))
            AS parts (uid, member)
        GROUP BY uid
    ) AS chosen
$$;


-- Merge two descriptions of one run by the rules of state/history/facts.py.
CREATE FUNCTION merge_runs(one gang_history, other gang_history) RETURNS gang_history
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    merged gang_history := one;
BEGIN
    IF (other.certainty, other.stamp) > (one.certainty, one.stamp) THEN
        merged := other;
    END IF;
    merged.run := one.run;
    merged.asked_at := least(one.asked_at, other.asked_at);
    merged.admitted_at := least(one.admitted_at, other.admitted_at);
    merged.released_at := least(one.released_at, other.released_at);
    merged.held_from := least(one.held_from, other.held_from);
    merged.started_at := least(one.started_at, other.started_at);
    merged.running_at := least(one.running_at, other.running_at);
    merged.nodes := ARRAY(
        SELECT DISTINCT unnest(one.nodes || other.nodes) COLLATE "C" AS node ORDER BY node
    );
    merged.members := merge_members(one.members, other.members);
    RETURN merged;
END $$;


-- Store a description of a run beside what is known of it.
CREATE FUNCTION record_run(told gang_history) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    known gang_history;
BEGIN
    SELECT * INTO known FROM gang_history AS h WHERE h.run = told.run;
    IF NOT FOUND THEN
        INSERT INTO gang_history (
            run, gang, user_name, group_name, vc, requested_class, granted_class, leaf_type,
            leaf_count, member_count, asked_at, started_at, ended_at, nodes, outcome, reason,
            preempted_for, workload, workload_uid, labels, image, estimate_seconds, limit_seconds,
            admitted_at, released_at, held_from, running_at, restarts, members, certainty, stamp
        ) VALUES (
            told.run, told.gang, told.user_name, told.group_name, told.vc, told.requested_class,
            told.granted_class, told.leaf_type, told.leaf_count, told.member_count, told.asked_at,
            told.started_at, told.ended_at, told.nodes, told.outcome, told.reason,
            told.preempted_for, told.workload, told.workload_uid, told.labels, told.image,
            told.estimate_seconds, told.limit_seconds, told.admitted_at, told.released_at,
            told.held_from, told.running_at, told.restarts, told.members, told.certainty, told.stamp
        );
        RETURN;
    END IF;
    told := merge_runs(known, told);
    UPDATE gang_history AS h SET
        gang = told.gang, user_name = told.user_name, group_name = told.group_name, vc = told.vc,
        requested_class = told.requested_class, granted_class = told.granted_class,
        leaf_type = told.leaf_type, leaf_count = told.leaf_count,
        member_count = told.member_count, asked_at = told.asked_at, started_at = told.started_at,
        ended_at = told.ended_at, nodes = told.nodes, outcome = told.outcome,
        reason = told.reason, preempted_for = told.preempted_for, workload = told.workload,
        workload_uid = told.workload_uid, labels = told.labels, image = told.image,
        estimate_seconds = told.estimate_seconds, limit_seconds = told.limit_seconds,
        admitted_at = told.admitted_at, released_at = told.released_at,
        held_from = told.held_from, running_at = told.running_at, restarts = told.restarts,
        members = told.members, certainty = told.certainty, stamp = told.stamp
    WHERE h.run = told.run;
END $$;


-- Store descriptions of runs, each with those of its pods that changed. A description belongs to the
-- run that has one of its pods; runs that turn out to be one run become one.
CREATE FUNCTION record_runs(facts jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    told gang_history;
    found text[];
    twin gang_history;
BEGIN
    -- One writer at a time: another one may be about to store the same run under another name.
    PERFORM pg_advisory_xact_lock(hashtextextended('cellgate gang_history', 0));
    FOR told IN SELECT * FROM jsonb_populate_recordset(NULL::gang_history, facts) LOOP
        SELECT array_agg(DISTINCT p.run ORDER BY p.run) INTO found
        FROM run_pods AS p WHERE p.pod_uid IN (SELECT jsonb_object_keys(told.members));
        told.run := coalesce(found[1], told.run);
        FOR twin IN SELECT * FROM gang_history AS h WHERE h.run = ANY (found[2:]) LOOP
            UPDATE run_pods AS p SET run = told.run WHERE p.run = twin.run;
            DELETE FROM gang_history AS h WHERE h.run = twin.run;
            twin.run := told.run;
            PERFORM record_run(twin);
        END LOOP;
        PERFORM record_run(told);
        INSERT INTO run_pods (pod_uid, run)
        SELECT uid, told.run FROM jsonb_object_keys(told.members) AS uid
        ON CONFLICT (pod_uid) DO NOTHING;
    END LOOP;
END $$;


-- What a run held: leaf cells of one type, from when until when; without an end while it holds them.
-- Runs that were recorded without their pods are counted whole.
CREATE FUNCTION run_holds(run gang_history)
RETURNS TABLE (since timestamptz, until timestamptz, leaf_count integer, leaf_type text)
LANGUAGE sql STABLE AS $$
    SELECT run.started_at, run.ended_at, coalesce(run.leaf_count, 0), coalesce(run.leaf_type, '')
    WHERE run.members = '{}' AND run.started_at IS NOT NULL
    UNION ALL
    SELECT
        (pod->>'bound')::timestamptz, coalesce((pod->>'ended')::timestamptz, run.ended_at),
        (pod->>'leafCells')::integer, coalesce(pod->>'leafType', run.leaf_type, '')
    FROM jsonb_each(run.members) AS members (uid, pod)
    WHERE pod ? 'bound' AND (pod->>'leafCells')::integer > 0
$$;


-- Sums by leaf type, too. What was summed before has none.
ALTER TABLE gang_days ADD COLUMN leaf_type text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE gang_days DROP CONSTRAINT gang_days_pkey;
ALTER TABLE gang_days
    ADD CONSTRAINT gang_days_pkey PRIMARY KEY (day, user_name, group_name, vc, class, leaf_type);


-- Add what runs are now and take away what they were (0005), by pods and leaf types.
CREATE OR REPLACE FUNCTION add_gang_days(now_runs gang_history[], old_runs gang_history[])
RETURNS void
LANGUAGE sql AS $$
    WITH runs AS (
        SELECT 1 AS sign, r AS whole FROM unnest(now_runs) AS r WHERE r.ended_at IS NOT NULL
        UNION ALL
        SELECT -1, r FROM unnest(old_runs) AS r WHERE r.ended_at IS NOT NULL
    ), run_days AS (
        SELECT
            sign, (whole).run, days.day, coalesce((whole).user_name, '') AS user_name,
            coalesce((whole).group_name, '') AS group_name, coalesce((whole).vc, '') AS vc,
            coalesce((whole).granted_class, '') AS class, holds.leaf_type,
            sum(holds.leaf_count * days.micros) AS micros
        FROM runs
        CROSS JOIN LATERAL run_holds(whole) AS holds
        CROSS JOIN LATERAL split_days(holds.since, holds.until) AS days
        WHERE holds.since < holds.until
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
    ), parts AS (
        SELECT *, day = max(day) OVER (PARTITION BY sign, run, leaf_type) AS is_last FROM run_days
    )
    INSERT INTO gang_days AS known (
        day, user_name, group_name, vc, class, leaf_type, gangs, ended, leaf_cell_micros
    )
    SELECT
        day, user_name, group_name, vc, class, leaf_type,
        sum(sign), sum(sign * is_last::integer), sum(sign * micros)
    FROM parts
    GROUP BY 1, 2, 3, 4, 5, 6
    HAVING (sum(sign), sum(sign * is_last::integer), sum(sign * micros)) <> (0, 0, 0)
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (day, user_name, group_name, vc, class, leaf_type) DO UPDATE SET
        gangs = known.gangs + excluded.gangs,
        ended = known.ended + excluded.ended,
        leaf_cell_micros = known.leaf_cell_micros + excluded.leaf_cell_micros
$$;


-- Leaf-cell-hours by user, group, VC, class, leaf type and day (UTC), with those of runs that go on.
CREATE OR REPLACE VIEW leaf_cell_hours AS
SELECT
    day, nullif(user_name, '') AS user_name, nullif(group_name, '') AS group_name,
    nullif(vc, '') AS vc, nullif(class, '') AS class,
    sum(gangs)::bigint AS gangs, sum(leaf_cell_micros)::double precision / 3.6e9 AS leaf_cell_hours,
    nullif(leaf_type, '') AS leaf_type
FROM (
    SELECT day, user_name, group_name, vc, class, leaf_type, gangs, leaf_cell_micros FROM gang_days
    UNION ALL
    SELECT
        days.day, coalesce(h.user_name, ''), coalesce(h.group_name, ''), coalesce(h.vc, ''),
        coalesce(h.granted_class, ''), holds.leaf_type, count(DISTINCT h.run),
        sum(holds.leaf_count * days.micros)
    FROM gang_history AS h
    CROSS JOIN LATERAL run_holds(h) AS holds
    CROSS JOIN LATERAL split_days(holds.since, coalesce(holds.until, now())) AS days
    WHERE h.ended_at IS NULL AND coalesce(h.held_from, h.started_at) < now()
    GROUP BY 1, 2, 3, 4, 5, 6
) AS parts
WHERE gangs > 0
GROUP BY day, user_name, group_name, vc, class, leaf_type;


-- Runs that were preempted: when, for which gang, and what had been used until then.
CREATE OR REPLACE VIEW preemptions AS
SELECT
    (h.ended_at AT TIME ZONE 'UTC')::date AS day, h.ended_at, h.gang, h.user_name, h.group_name,
    h.vc, h.granted_class AS class, h.preempted_for, h.reason,
    (
        SELECT sum(holds.leaf_count * extract(epoch FROM holds.until - holds.since))
        FROM run_holds(h) AS holds WHERE holds.since < holds.until
    )::double precision / 3600 AS leaf_cell_hours_run
FROM gang_history AS h
WHERE h.outcome = 'preempted';


-- Functions that the services call run with the rights of their owner: they look for our tables in
-- our schema and nowhere else.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION record_runs(jsonb) SECURITY DEFINER SET search_path = %I, pg_temp',
        current_schema()
    );
    REVOKE EXECUTE ON FUNCTION record_runs(jsonb), record_run(gang_history) FROM PUBLIC;
END $$;


-- Give the roles that exist their rights, all of them; to be repeated when roles were added. The
-- services record runs, too.
ALTER FUNCTION grant_rights() RENAME TO grant_rights_before_runs;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    PERFORM grant_rights_before_runs();
    FOR role IN
        SELECT rolname FROM pg_roles WHERE rolname IN ('cellgate_webhook', 'cellgate_extender')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION record_runs(jsonb) TO %I', role);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

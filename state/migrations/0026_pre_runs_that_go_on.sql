-- A run may go on after it was recorded as ended: a pod of it that was created before is seen later. A
-- description that knows of a later pod counts, whatever another one says of the end. An older release
-- says nothing about that, and its descriptions are compared as before.

ALTER TABLE gang_history ADD COLUMN extent text COLLATE "C" NOT NULL DEFAULT '';


-- As before (0023), and a description counts that knows of a later pod.
CREATE OR REPLACE FUNCTION merge_runs(one gang_history, other gang_history) RETURNS gang_history
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    merged gang_history := one;
BEGIN
    IF (CASE
        WHEN one.extent <> '' AND other.extent <> '' THEN
            (other.extent, other.certainty, other.stamp) > (one.extent, one.certainty, one.stamp)
        ELSE (other.certainty, other.stamp) > (one.certainty, one.stamp)
    END) THEN
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
    merged.predictions := merge_predictions(one.predictions, other.predictions);
    merged.extent := greatest(one.extent, other.extent);
    RETURN merged;
END $$;


-- As before (0023), with the extent.
CREATE OR REPLACE FUNCTION record_run(told gang_history) RETURNS void
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
            admitted_at, released_at, held_from, running_at, restarts, members, certainty, stamp,
            predictions, extent
        ) VALUES (
            told.run, told.gang, told.user_name, told.group_name, told.vc, told.requested_class,
            told.granted_class, told.leaf_type, told.leaf_count, told.member_count, told.asked_at,
            told.started_at, told.ended_at, told.nodes, told.outcome, told.reason,
            told.preempted_for, told.workload, told.workload_uid, told.labels, told.image,
            told.estimate_seconds, told.limit_seconds, told.admitted_at, told.released_at,
            told.held_from, told.running_at, told.restarts, told.members, told.certainty, told.stamp,
            coalesce(told.predictions, '{}'), coalesce(told.extent, '')
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
        members = told.members, certainty = told.certainty, stamp = told.stamp,
        predictions = told.predictions, extent = told.extent
    WHERE h.run = told.run;
END $$;

-- Predictions about runs, beside what came of them: how long the run takes, and when it starts. Of
-- each kind the first prediction counts, whichever leader made it: it was made before the outcome
-- was known, and a later one knows more. So a run has each prediction exactly once.

ALTER TABLE gang_history ADD COLUMN predictions jsonb NOT NULL DEFAULT '{}';

-- Ended runs that had begun, by their ends: what new predictions are made from.
CREATE INDEX gang_history_ended ON gang_history (ended_at DESC, run DESC)
    WHERE started_at IS NOT NULL AND ended_at IS NOT NULL;


-- Merge predictions: of each kind the one with the least stamp counts. An older release has none.
CREATE FUNCTION merge_predictions(one jsonb, other jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(kind, prediction), '{}')
    FROM (
        SELECT DISTINCT ON (kind) kind, prediction
        FROM (
            SELECT * FROM jsonb_each(coalesce(one, '{}'))
            UNION ALL
            SELECT * FROM jsonb_each(coalesce(other, '{}'))
        ) AS parts (kind, prediction)
        ORDER BY kind, prediction->>'stamp' COLLATE "C"
    ) AS chosen
$$;


-- As before (0018), with predictions.
CREATE OR REPLACE FUNCTION merge_runs(one gang_history, other gang_history) RETURNS gang_history
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
    merged.predictions := merge_predictions(one.predictions, other.predictions);
    RETURN merged;
END $$;


-- As before (0018), with predictions.
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
            predictions
        ) VALUES (
            told.run, told.gang, told.user_name, told.group_name, told.vc, told.requested_class,
            told.granted_class, told.leaf_type, told.leaf_count, told.member_count, told.asked_at,
            told.started_at, told.ended_at, told.nodes, told.outcome, told.reason,
            told.preempted_for, told.workload, told.workload_uid, told.labels, told.image,
            told.estimate_seconds, told.limit_seconds, told.admitted_at, told.released_at,
            told.held_from, told.running_at, told.restarts, told.members, told.certainty, told.stamp,
            coalesce(told.predictions, '{}')
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
        predictions = told.predictions
    WHERE h.run = told.run;
END $$;

-- One row for each run of a gang: what was asked, granted, waited, run, where, how it ended.
-- Several services add what they know, in any order: see state/history.py for the rules. Texts are
-- compared by code point ("C") there and here.
CREATE TABLE gang_history (
    run text COLLATE "C" PRIMARY KEY,
    gang text COLLATE "C" NOT NULL,
    user_name text COLLATE "C",
    group_name text COLLATE "C",
    vc text COLLATE "C",
    requested_class text COLLATE "C",
    granted_class text COLLATE "C",
    leaf_type text COLLATE "C",
    leaf_count integer,
    member_count integer,
    asked_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    nodes text[] COLLATE "C" NOT NULL DEFAULT '{}',
    outcome text COLLATE "C",
    reason text COLLATE "C",
    preempted_for text COLLATE "C",
    -- When it had leaf cells; open while it runs, empty where two clocks disagree.
    ran tstzrange GENERATED ALWAYS AS (
        CASE WHEN ended_at < started_at THEN 'empty' ELSE tstzrange(started_at, ended_at) END
    ) STORED
);

-- "My last jobs", and the runs of one gang.
CREATE INDEX gang_history_user ON gang_history (user_name, asked_at DESC);
CREATE INDEX gang_history_gang ON gang_history (gang, asked_at DESC);

-- "Who ran between then and then": by overlap, since a run may be longer than the time asked about.
CREATE INDEX gang_history_ran ON gang_history USING gist (ran) WHERE started_at IS NOT NULL;
CREATE INDEX gang_history_started ON gang_history (started_at);
CREATE INDEX gang_history_preempted ON gang_history (ended_at) WHERE outcome = 'preempted';

-- Runs that had leaf cells between two moments, and for how many hours of that time. A run that has
-- not ended counts until now, and one that starts in the future not at all.
CREATE FUNCTION runs_between(since timestamptz, until timestamptz)
RETURNS TABLE (
    run text, gang text, user_name text, group_name text, vc text, class text, leaf_type text,
    leaf_count integer, hours double precision
)
LANGUAGE sql STABLE
AS $$
    SELECT
        run, gang, user_name, group_name, vc, granted_class, leaf_type, leaf_count,
        extract(epoch FROM greatest(
            least(coalesce(ended_at, now()), until) - greatest(started_at, since), interval '0'
        ))::double precision / 3600
    FROM gang_history
    WHERE started_at IS NOT NULL AND ran && tstzrange(since, until)
$$;

-- How long gangs waited, by the day on which they started. Those that still wait are not in it.
CREATE VIEW waiting_times AS
SELECT
    (started_at AT TIME ZONE 'UTC')::date AS day, vc, granted_class AS class,
    count(*) AS gangs,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - asked_at))
        AS p50_seconds,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - asked_at))
        AS p90_seconds
FROM gang_history
WHERE started_at >= asked_at
GROUP BY 1, 2, 3;

-- Who had to make room, when, for whom, and what that cost.
CREATE VIEW preemptions AS
SELECT
    (ended_at AT TIME ZONE 'UTC')::date AS day, ended_at, gang, user_name, group_name, vc,
    granted_class AS class, preempted_for, reason,
    leaf_count * extract(epoch FROM ended_at - started_at)::double precision / 3600
        AS leaf_cell_hours_run
FROM gang_history
WHERE outcome = 'preempted';

-- Leaf-cell-hours by day, summed when a run ends: a month of a million runs is a few thousand rows.
-- Runs that have not ended are not in it; those who ask add them.
CREATE TABLE gang_days (
    day date NOT NULL,
    -- What is not known of a run is '' here: a key has no NULL.
    user_name text COLLATE "C" NOT NULL,
    group_name text COLLATE "C" NOT NULL,
    vc text COLLATE "C" NOT NULL,
    class text COLLATE "C" NOT NULL,
    -- Runs that had leaf cells on this day, and those of them that ended on it.
    gangs bigint NOT NULL,
    ended bigint NOT NULL,
    -- Whole microseconds, so that what was added can be taken away again without a trace.
    leaf_cell_micros bigint NOT NULL,
    PRIMARY KEY (day, user_name, group_name, vc, class)
);

CREATE INDEX gang_history_running ON gang_history (started_at)
    WHERE ended_at IS NULL AND started_at IS NOT NULL;

-- Split a stretch of time at midnight (UTC).
CREATE FUNCTION split_days(since timestamptz, until timestamptz)
RETURNS TABLE (day date, micros bigint, is_last boolean)
LANGUAGE sql IMMUTABLE
AS $$
    SELECT
        start::date,
        (extract(epoch FROM
            least(until AT TIME ZONE 'UTC', start + interval '1 day')
            - greatest(since AT TIME ZONE 'UTC', start)
        ) * 1000000)::bigint,
        start + interval '1 day' >= until AT TIME ZONE 'UTC'
    FROM generate_series(
        date_trunc('day', since AT TIME ZONE 'UTC'),
        until AT TIME ZONE 'UTC' - interval '1 microsecond',
        interval '1 day'
    ) AS start
$$;

-- Add what runs are now and take away what they were. In one order, so that writers rarely wait for
-- each other crosswise; where they do, one of them is told to try again.
CREATE FUNCTION add_gang_days(now_runs gang_history[], old_runs gang_history[]) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO gang_days AS known
    SELECT
        day, coalesce(user_name, ''), coalesce(group_name, ''), coalesce(vc, ''),
        coalesce(granted_class, ''), sum(sign), sum(sign * is_last::integer),
        sum(sign * coalesce(leaf_count, 0) * micros)
    FROM (
        SELECT 1 AS sign, * FROM unnest(now_runs)
        UNION ALL
        SELECT -1 AS sign, * FROM unnest(old_runs)
    ) AS runs
    CROSS JOIN LATERAL split_days(started_at, ended_at)
    WHERE started_at < ended_at
    GROUP BY 1, 2, 3, 4, 5
    HAVING (sum(sign), sum(sign * is_last::integer), sum(sign * coalesce(leaf_count, 0) * micros))
        <> (0, 0, 0)
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (day, user_name, group_name, vc, class) DO UPDATE SET
        gangs = known.gangs + excluded.gangs,
        ended = known.ended + excluded.ended,
        leaf_cell_micros = known.leaf_cell_micros + excluded.leaf_cell_micros
$$;

-- Follow every change of the history, by whatever statement: a row that is merged again without any
-- news changes no sum.
CREATE FUNCTION follow_gang_history() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    now_runs gang_history[] := '{}';
    old_runs gang_history[] := '{}';
BEGIN
    IF TG_OP <> 'DELETE' THEN
        now_runs := ARRAY(SELECT ROW(n.*)::gang_history FROM now_rows AS n);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_runs := ARRAY(SELECT ROW(o.*)::gang_history FROM old_rows AS o);
    END IF;
    PERFORM add_gang_days(now_runs, old_runs);
    RETURN NULL;
END
$$;

CREATE TRIGGER gang_history_inserted AFTER INSERT ON gang_history
    REFERENCING NEW TABLE AS now_rows
    FOR EACH STATEMENT EXECUTE FUNCTION follow_gang_history();
CREATE TRIGGER gang_history_updated AFTER UPDATE ON gang_history
    REFERENCING NEW TABLE AS now_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION follow_gang_history();
CREATE TRIGGER gang_history_deleted AFTER DELETE ON gang_history
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION follow_gang_history();

-- Sums are changed by the trigger only, which has the rights of its owner; whoever may add to the
-- history needs none of them.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION follow_gang_history() SECURITY DEFINER SET search_path = %I, pg_temp',
        current_schema()
    );
    REVOKE EXECUTE ON FUNCTION add_gang_days(gang_history[], gang_history[]) FROM PUBLIC;
END $$;

-- Leaf-cell-hours by user, group, VC, class and day (UTC), with those of runs that go on.
CREATE VIEW leaf_cell_hours AS
SELECT
    day, nullif(user_name, '') AS user_name, nullif(group_name, '') AS group_name,
    nullif(vc, '') AS vc, nullif(class, '') AS class,
    sum(gangs)::bigint AS gangs, sum(leaf_cell_micros)::double precision / 3.6e9 AS leaf_cell_hours
FROM (
    SELECT day, user_name, group_name, vc, class, gangs, leaf_cell_micros FROM gang_days
    UNION ALL
    SELECT
        day, coalesce(user_name, ''), coalesce(group_name, ''), coalesce(vc, ''),
        coalesce(granted_class, ''), 1, coalesce(leaf_count, 0) * micros
    FROM gang_history
    CROSS JOIN LATERAL split_days(started_at, now())
    WHERE ended_at IS NULL AND started_at IS NOT NULL
) AS parts
WHERE gangs > 0
GROUP BY 1, 2, 3, 4, 5;

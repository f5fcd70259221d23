-- As before (0009), but only runs that have ended are summed: most changes are of others, and cost
-- nothing then.
CREATE OR REPLACE FUNCTION follow_gang_history() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    now_runs gang_history[] := '{}';
    old_runs gang_history[] := '{}';
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('cellgate.forgets', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        now_runs := ARRAY(
            SELECT ROW(n.*)::gang_history FROM now_rows AS n WHERE n.ended_at IS NOT NULL
        );
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_runs := ARRAY(
            SELECT ROW(o.*)::gang_history FROM old_rows AS o WHERE o.ended_at IS NOT NULL
        );
    END IF;
    IF cardinality(now_runs) > 0 OR cardinality(old_runs) > 0 THEN
        PERFORM add_gang_days(now_runs, old_runs);
    END IF;
    RETURN NULL;
END
$$;


-- What 0009 gives to functions that run with the rights of their owner; a new body loses it.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION follow_gang_history() SECURITY DEFINER SET search_path = %I, pg_temp',
        current_schema()
    );
END $$;

-- Corrections of the ledger, found by attacking it:
--
--   leaf-cell-time has no upper end: a gang of half a billion leaf cells, which costs a user one
--       label, would have stopped its whole group after some hours
--   a charge never waits for the row of another charge: a leader that reconciles holds many
--   a decision that comes again with another request is told what is charged, not what it asks for
--
-- and fewer steps for each charge: sums come back from the statement that changes them, and answers
-- are written as text at once.

-- These are bound to the types of columns; they are made again below.
DROP FUNCTION ledger_usage(holdings), ledger_time(date, date, timestamptz);

ALTER TABLE holdings
    ALTER leaf_micros TYPE numeric(30),
    ALTER day_base TYPE numeric(30),
    ALTER week_base TYPE numeric(30),
    ALTER month_base TYPE numeric(30);
ALTER TABLE leaf_cell_days ALTER leaf_micros TYPE numeric(30);


-- What a scope's row becomes when a charge is added to it (sign 1) or taken from it (sign -1),
-- and the charge counts, or stops to count, from `since` on. Without a charge (sign 0): what it
-- is at a later moment.
--
-- `since` may lie before the row's last count, when clocks differ, a lock was waited for, or an
-- expired charge is taken back altogether: then what was counted since is corrected too.
CREATE OR REPLACE FUNCTION ledger_advance(
    held holdings, charge charges, sign integer, since timestamptz, at timestamptz
) RETURNS holdings
LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz := greatest(held.counted_at, at);
    day timestamptz := date_trunc('day', moment, 'UTC');
    week timestamptz;
    month timestamptz;
    holds numeric := held.leaf_count;
    change bigint := sign * coalesce(charge.leaf_count, 0);
    of_type bigint;
BEGIN
    IF day > held.counted_at OR since < day THEN
        week := date_trunc('week', moment, 'UTC');
        month := date_trunc('month', moment, 'UTC');
        IF day > held.counted_at THEN
            held.day_base := held.leaf_micros + holds * ledger_micros(day - held.counted_at);
        END IF;
        IF week > held.counted_at THEN
            held.week_base := held.leaf_micros + holds * ledger_micros(week - held.counted_at);
        END IF;
        IF month > held.counted_at THEN
            held.month_base := held.leaf_micros + holds * ledger_micros(month - held.counted_at);
        END IF;
        IF since < day THEN
            held.day_base := held.day_base + change::numeric * ledger_micros(day - since);
        END IF;
        IF since < week THEN
            held.week_base := held.week_base + change::numeric * ledger_micros(week - since);
        END IF;
        IF since < month THEN
            held.month_base := held.month_base + change::numeric * ledger_micros(month - since);
        END IF;
    END IF;
    held.leaf_micros := held.leaf_micros + holds * ledger_micros(moment - held.counted_at)
        + change::numeric * ledger_micros(moment - since);
    held.counted_at := moment;
    held.leaf_count := held.leaf_count + change;
    held.gang_count := held.gang_count + sign;
    IF charge.is_high THEN
        held.leaf_count_high := held.leaf_count_high + change;
    END IF;
    IF charge.leaf_type <> '' THEN
        of_type := coalesce((held.by_leaf_type ->> charge.leaf_type)::bigint, 0) + change;
        held.by_leaf_type := CASE of_type
            WHEN 0 THEN held.by_leaf_type - charge.leaf_type
            ELSE held.by_leaf_type || jsonb_build_object(charge.leaf_type, of_type)
        END;
    END IF;
    RETURN held;
END $$;


-- What a scope had used when it was counted last, as the services read it: they know the clock.
CREATE FUNCTION ledger_usage(held holdings) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN json_build_object(
    'user', held.user_name,
    'group', held.group_name,
    'leaf_cells', held.leaf_count,
    'leaf_cells_high', held.leaf_count_high,
    'gangs', held.gang_count,
    'by_leaf_type', held.by_leaf_type,
    'day_micros', held.leaf_micros - held.day_base,
    'week_micros', held.leaf_micros - held.week_base,
    'month_micros', held.leaf_micros - held.month_base,
    'counted_at', held.counted_at,
    'version', held.version
);


-- Answer for a gang that has a live charge already: its own one again, or what there is instead.
DROP FUNCTION ledger_existing(charges, uuid, interval, timestamptz);
CREATE FUNCTION ledger_existing(
    existing charges, asked charges, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
BEGIN
    -- Nobody has expired it yet, though it was time: it is wanted again, so it starts anew. Unless
    -- it is just being confirmed: who holds its row may want the rows that we hold.
    IF existing.expires_at <= at THEN
        UPDATE charges AS c SET expires_at = at + ttl
        FROM (
            SELECT l.decision FROM charges AS l
            WHERE l.decision = existing.decision AND l.expires_at <= at
            FOR UPDATE SKIP LOCKED
        ) AS over
        WHERE c.decision = over.decision;
        IF FOUND THEN
            existing.expires_at := at + ttl;
        END IF;
    END IF;
    RETURN json_build_object(
        'outcome', CASE WHEN
            (existing.decision, existing.user_name, existing.group_name, existing.vc,
                existing.class, existing.is_high, existing.leaf_type, existing.leaf_count)
            = (asked.decision, asked.user_name, asked.group_name, asked.vc,
                asked.class, asked.is_high, asked.leaf_type, asked.leaf_count)
            THEN 'charged' ELSE 'held' END,
        'charge', existing,
        'usage', (
            SELECT json_agg(ledger_usage(ledger_advance(held, NULL, 0, at, at)))
            FROM holdings AS held
            WHERE (held.user_name, held.group_name) IN (
                (existing.user_name, ''),
                (existing.user_name, existing.group_name),
                ('', existing.group_name)
            ) AND (held.user_name <> '' OR held.group_name <> '')
        )
    );
END $$;


-- Charge one gang. Adds first and looks then, because adding takes and reads the rows anyway; what
-- exceeds a limit is taken back at once. The caller holds the rows of its scopes.
--
-- limits: [{"user_name", "group_name", "measure", "leaf_type", "most"}], hours in microseconds.
DROP FUNCTION ledger_charge_one(charges, jsonb, interval, timestamptz);
CREATE FUNCTION ledger_charge_one(
    charge charges, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    usage holdings[];
    exceeded jsonb;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
    IF FOUND THEN
        RETURN ledger_existing(existing, charge, ttl, at);
    END IF;
    charge.charged_at := at;
    charge.expires_at := at + ttl;
    -- As in ledger_bump, which would have to put the rows down and pick them up again.
    WITH bumped AS (
        UPDATE holdings AS held
        SET (
            leaf_count, leaf_count_high, gang_count, by_leaf_type,
            leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
        ) = (
            SELECT
                n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type,
                n.leaf_micros, n.day_base, n.week_base, n.month_base, n.counted_at,
                n.version + 1, pg_current_xact_id()
            FROM ledger_advance(held, charge, 1, at, at) AS n
        )
        WHERE (held.user_name, held.group_name) IN (
            (charge.user_name, ''), (charge.user_name, charge.group_name), ('', charge.group_name)
        ) AND (held.user_name <> '' OR held.group_name <> '')
        RETURNING held
    )
    SELECT array_agg(bumped.held) INTO usage FROM bumped;
    IF limits <> '[]' THEN
        exceeded := ledger_exceeded(charge, usage, limits);
    END IF;
    IF exceeded IS NULL THEN
        INSERT INTO charges VALUES (charge.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN json_build_object(
                'outcome', 'charged',
                'charge', charge,
                'usage', (SELECT json_agg(ledger_usage(held)) FROM unnest(usage) AS held)
            );
        END IF;
    END IF;
    PERFORM ledger_bump(charge, -1, at, at);
    IF exceeded IS NOT NULL THEN
        RETURN json_build_object('outcome', 'refused', 'exceeded', exceeded);
    END IF;
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
    IF FOUND THEN
        RETURN ledger_existing(existing, charge, ttl, at);
    END IF;
    IF NOT EXISTS (SELECT FROM charges AS c WHERE c.decision = charge.decision) THEN
        RAISE EXCEPTION 'the charge of gang %/% ended just now', charge.namespace, charge.gang
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN json_build_object('outcome', 'decision of another gang');
END $$;


-- Charge gangs, each by itself, in one transaction: they share the wait for the disk. One answer
-- for each, in their order, which is that of their gangs ("C"): two transactions that charge the
-- same gangs for different users meet them in one order.
-- asked: [{…the columns of charges…, "limits": […]}]; at: NULL for the clock of the database.
DROP FUNCTION ledger_charge(jsonb, interval, timestamptz);
CREATE FUNCTION ledger_charge(asked jsonb, ttl interval, at timestamptz) RETURNS SETOF json
LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb;
    answer json;
    is_written boolean := false;
BEGIN
    PERFORM ledger_lock(
        array_agg(w ->> 'user_name'), array_agg(w ->> 'group_name'), coalesce(at, clock_timestamp())
    ) FROM jsonb_array_elements(asked) AS given (w);
    FOR wanted IN SELECT w FROM jsonb_array_elements(asked) AS given (w) LOOP
        answer := ledger_charge_one(
            jsonb_populate_record(NULL::charges, wanted),
            wanted -> 'limits', ttl, coalesce(at, clock_timestamp())
        );
        is_written := is_written OR answer ->> 'outcome' = 'charged';
        RETURN NEXT answer;
    END LOOP;
    IF NOT is_written THEN
        -- Nothing that anybody was promised: no reason to wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;


-- Leaf cells × microseconds of an interval, for each UTC day that it touches. Days are counted in
-- hours, because the length of "a day" depends on the time zone of the session.
DROP FUNCTION ledger_days(integer, timestamptz, timestamptz);
CREATE FUNCTION ledger_days(
    leaf_count integer, since timestamptz, until timestamptz
) RETURNS TABLE (day date, leaf_micros numeric)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        (start AT TIME ZONE 'UTC')::date,
        leaf_count::numeric
            * ledger_micros(least(until, start + interval '24 hours') - greatest(since, start))
    FROM generate_series(
        date_trunc('day', since, 'UTC'), until - interval '1 microsecond', interval '24 hours'
    ) AS start;
END;


-- Leaf cells × microseconds by UTC day, from `first` to `last`, of past charges and live ones.
-- What is beyond all measure is told as the greatest number there is.
CREATE FUNCTION ledger_time(first date, last date, at timestamptz) RETURNS TABLE (
    day date, user_name text, group_name text, vc text, class text, leaf_type text,
    leaf_micros bigint
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        t.day, t.user_name, t.group_name, t.vc, t.class, t.leaf_type,
        least(sum(t.leaf_micros), 9223372036854775807)::bigint
    FROM (
        SELECT d.day, d.user_name, d.group_name, d.vc, d.class, d.leaf_type, d.leaf_micros
        FROM leaf_cell_days AS d
        WHERE d.day BETWEEN first AND last
        UNION ALL
        SELECT days.day, c.user_name, c.group_name, c.vc, c.class, c.leaf_type, days.leaf_micros
        FROM charges AS c,
            LATERAL ledger_days(
                c.leaf_count, c.charged_at, greatest(coalesce(at, clock_timestamp()), c.charged_at)
            ) AS days
        WHERE days.day BETWEEN first AND last
    ) AS t
    WHERE t.leaf_micros > 0
    GROUP BY t.day, t.user_name, t.group_name, t.vc, t.class, t.leaf_type
    ORDER BY t.day, t.user_name, t.group_name, t.vc, t.class, t.leaf_type;
END;


-- What was made anew has lost what 0006 gave it; see there.
DO $$
DECLARE
    name text;
BEGIN
    EXECUTE format(
        'ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz) SECURITY DEFINER '
        'SET search_path = %I, pg_temp SET enable_seqscan = off '
        'SET plan_cache_mode = force_generic_plan', current_schema()
    );
    FOR name IN
        SELECT p.oid::regprocedure FROM pg_proc AS p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'ledger\_%'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END $$;

SELECT grant_rights();

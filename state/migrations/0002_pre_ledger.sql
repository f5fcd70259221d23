-- The ledger: who holds how many leaf cells, since when, and against which limits.
--
--   charges       what is held or reserved now, one row per gang
--   past_charges  what was held before, from when to when: usage at any past moment
--   holdings      sums of `charges` per scope, kept in step, so that a limit is one comparison
--   leaf_cell_days  leaf cells × time of past charges, summed per day
--   leaderships   the highest epoch seen: an earlier leader's writes are refused
--
-- The functions are the only writers. A scope is a pair (user_name, group_name) with '' for "any":
-- a user in all groups, a group, or a user in one group.
--
-- Locks: whoever changes a charge first holds the rows of its scopes, always in the order of
-- `ledger_lock`; the charge itself comes last. So writers can wait for each other but not in a ring.

CREATE TABLE leaderships (
    name text PRIMARY KEY,
    epoch bigint NOT NULL
);

CREATE TABLE charges (
    decision uuid PRIMARY KEY,
    namespace text NOT NULL,
    gang text NOT NULL,
    user_name text NOT NULL CHECK (user_name <> ''),
    group_name text NOT NULL,            -- '' for none
    vc text NOT NULL,
    class text NOT NULL,
    is_high boolean NOT NULL,
    leaf_type text NOT NULL,             -- '' for any
    leaf_count integer NOT NULL CHECK (leaf_count >= 0),
    charged_at timestamptz NOT NULL,
    expires_at timestamptz,              -- NULL once its pods were seen
    UNIQUE (namespace, gang)
);

CREATE TABLE past_charges (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    decision uuid NOT NULL,
    namespace text NOT NULL,
    gang text NOT NULL,
    user_name text NOT NULL,
    group_name text NOT NULL,
    vc text NOT NULL,
    class text NOT NULL,
    is_high boolean NOT NULL,
    leaf_type text NOT NULL,
    leaf_count integer NOT NULL,
    charged_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL CHECK (ended_at >= charged_at),
    -- An expired charge never had pods, so its time is not billed.
    ended text NOT NULL CHECK (ended IN ('released', 'expired', 'gone', 'corrected'))
);

CREATE INDEX past_charges_held ON past_charges USING gist (tstzrange(charged_at, ended_at));
CREATE INDEX past_charges_gang ON past_charges (namespace, gang, id DESC);
CREATE INDEX past_charges_user ON past_charges (user_name, id DESC);

-- Small and hot: no index but the key, and room in each page, so that an update stays in its page.
CREATE TABLE holdings (
    user_name text NOT NULL,
    group_name text NOT NULL,
    leaf_count bigint NOT NULL,
    leaf_count_high bigint NOT NULL,
    gang_count bigint NOT NULL,
    by_leaf_type jsonb NOT NULL,
    -- Leaf cells × microseconds up to `counted_at`, since ever and when day, week and month began.
    -- What is held does not change between two counts, so a period's sum is exact at any moment.
    leaf_micros bigint NOT NULL,
    day_base bigint NOT NULL,
    week_base bigint NOT NULL,
    month_base bigint NOT NULL,
    counted_at timestamptz NOT NULL,
    -- Grows by one with each change of this row.
    version bigint NOT NULL,
    -- Who wrote it last. A reader that asks for everything from the oldest transaction that was
    -- still running at its previous look misses nothing, whatever the order of commits.
    changed_in xid8 NOT NULL,
    PRIMARY KEY (user_name, group_name),
    CHECK (leaf_count >= 0 AND leaf_count_high >= 0 AND gang_count >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE leaf_cell_days (
    day date NOT NULL,                   -- UTC
    user_name text NOT NULL,
    group_name text NOT NULL,
    vc text NOT NULL,
    class text NOT NULL,
    leaf_type text NOT NULL,
    leaf_micros bigint NOT NULL,
    PRIMARY KEY (day, user_name, group_name, vc, class, leaf_type)
);
CREATE INDEX leaf_cell_days_user ON leaf_cell_days (user_name, day);


CREATE FUNCTION ledger_micros(length interval) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (extract(epoch FROM length) * 1000000)::bigint;


-- Take (and make, where missing) the rows of all scopes of these users and groups, in one order:
-- users first, groups last, because a group's row is wanted by more writers and should be held
-- for the shorter time.
CREATE FUNCTION ledger_lock(users text[], groups text[], at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdings AS held
    SELECT scope.user_name, scope.group_name, 0, 0, 0, '{}', 0, 0, 0, 0, at, 0, pg_current_xact_id()
    FROM (
        SELECT s.user_name, s.group_name
        FROM unnest(users, groups) AS charge (user_name, group_name),
            LATERAL (VALUES
                (charge.user_name, ''),
                (charge.user_name, charge.group_name),
                ('', charge.group_name)
            ) AS s (user_name, group_name)
        WHERE s.user_name <> '' OR s.group_name <> ''
        GROUP BY s.user_name, s.group_name
    ) AS scope
    ORDER BY scope.user_name = '', scope.user_name, scope.group_name
    -- Locks the row and writes nothing.
    ON CONFLICT (user_name, group_name) DO UPDATE SET version = held.version WHERE false;
END $$;


-- What a scope's row becomes when a charge is added to it (sign 1) or taken from it (sign -1),
-- and the charge counts, or stops to count, from `since` on. Without a charge (sign 0): what it
-- is at a later moment.
--
-- `since` may lie before the row's last count, when clocks differ, a lock was waited for, or an
-- expired charge is taken back altogether: then what was counted since is corrected too.
CREATE FUNCTION ledger_advance(
    held holdings, charge charges, sign integer, since timestamptz, at timestamptz
) RETURNS holdings
LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz := greatest(held.counted_at, at);
    day timestamptz := date_trunc('day', moment, 'UTC');
    week timestamptz := date_trunc('week', moment, 'UTC');
    month timestamptz := date_trunc('month', moment, 'UTC');
    change bigint := sign * coalesce(charge.leaf_count, 0);
    of_type bigint;
BEGIN
    IF day > held.counted_at THEN
        held.day_base := held.leaf_micros + held.leaf_count * ledger_micros(day - held.counted_at);
        IF week > held.counted_at THEN
            held.week_base :=
                held.leaf_micros + held.leaf_count * ledger_micros(week - held.counted_at);
        END IF;
        IF month > held.counted_at THEN
            held.month_base :=
                held.leaf_micros + held.leaf_count * ledger_micros(month - held.counted_at);
        END IF;
    END IF;
    held.leaf_micros :=
        held.leaf_micros + held.leaf_count * ledger_micros(moment - held.counted_at)
        + change * ledger_micros(moment - since);
    IF since < day THEN
        held.day_base := held.day_base + change * ledger_micros(day - since);
    END IF;
    IF since < week THEN
        held.week_base := held.week_base + change * ledger_micros(week - since);
    END IF;
    IF since < month THEN
        held.month_base := held.month_base + change * ledger_micros(month - since);
    END IF;
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


-- Add a charge to its scopes, or take it from them. The caller holds their rows.
CREATE FUNCTION ledger_bump(
    charge charges, sign integer, since timestamptz, at timestamptz
) RETURNS SETOF holdings
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE holdings AS held
    SET (
        leaf_count, leaf_count_high, gang_count, by_leaf_type,
        leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
    ) = (
        SELECT
            n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type,
            n.leaf_micros, n.day_base, n.week_base, n.month_base, n.counted_at,
            n.version + 1, pg_current_xact_id()
        FROM ledger_advance(held, charge, sign, since, at) AS n
    )
    WHERE (held.user_name, held.group_name) IN (
        (charge.user_name, ''), (charge.user_name, charge.group_name), ('', charge.group_name)
    ) AND (held.user_name <> '' OR held.group_name <> '')
    RETURNING held.*;
END $$;


-- What a scope had used when it was counted last, as the services read it.
CREATE FUNCTION ledger_usage(held holdings) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_build_object(
    'user', held.user_name,
    'group', held.group_name,
    'leaf_cells', held.leaf_count,
    'leaf_cells_high', held.leaf_count_high,
    'gangs', held.gang_count,
    'by_leaf_type', held.by_leaf_type,
    'day_micros', held.leaf_micros - held.day_base,
    'week_micros', held.leaf_micros - held.week_base,
    'month_micros', held.leaf_micros - held.month_base,
    'version', held.version
);


-- Answer for a gang that has a live charge already: its own one again, or that of another decision.
CREATE FUNCTION ledger_existing(
    existing charges, new_decision uuid, ttl interval, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    -- Nobody has expired it yet, though it was time: it is wanted again, so it starts anew.
    IF existing.expires_at <= at THEN
        UPDATE charges SET expires_at = at + ttl
        WHERE decision = existing.decision AND expires_at <= at
        RETURNING expires_at INTO existing.expires_at;
    END IF;
    RETURN jsonb_build_object(
        'outcome', CASE existing.decision WHEN new_decision THEN 'charged' ELSE 'held' END,
        'charge', to_jsonb(existing),
        'usage', (
            SELECT jsonb_agg(ledger_usage(ledger_advance(held, NULL, 0, at, at)))
            FROM holdings AS held
            WHERE (held.user_name, held.group_name) IN (
                (existing.user_name, ''),
                (existing.user_name, existing.group_name),
                ('', existing.group_name)
            ) AND (held.user_name <> '' OR held.group_name <> '')
        )
    );
END $$;


-- Which limits a charge exceeds, [{"index", "used"}], given its scopes' rows with it added.
CREATE FUNCTION ledger_exceeded(charge charges, usage holdings[], limits jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object('index', l.index, 'used', l.used - l.asked) ORDER BY l.index)
    INTO found
    FROM (
        SELECT
            given.index,
            given.most,
            given.measure LIKE 'hours%' AS is_hours,
            CASE
                WHEN given.measure LIKE 'hours%' THEN 0
                WHEN given.measure = 'gangs' THEN 1
                ELSE charge.leaf_count
            END AS asked,
            CASE given.measure
                WHEN 'leaf_cells' THEN held.leaf_count
                WHEN 'leaf_cells_high' THEN held.leaf_count_high
                WHEN 'leaf_cells_of_type' THEN (held.by_leaf_type ->> given.leaf_type)::bigint
                WHEN 'gangs' THEN held.gang_count
                WHEN 'hours_day' THEN held.leaf_micros - held.day_base
                WHEN 'hours_week' THEN held.leaf_micros - held.week_base
                WHEN 'hours_month' THEN held.leaf_micros - held.month_base
            END AS used
        FROM jsonb_to_recordset(limits) AS given (
            index integer, user_name text, group_name text, measure text, leaf_type text, most bigint
        )
        JOIN unnest(usage) AS held
            ON held.user_name = given.user_name AND held.group_name = given.group_name
    ) AS l
    -- How long a gang will run is not known: it is refused once no hour is left.
    WHERE l.used > l.most OR (l.is_hours AND l.used = l.most);
    RETURN found;
END $$;


-- Charge one gang. Adds first and looks then, because adding takes and reads the rows anyway; what
-- exceeds a limit is taken back at once. The caller holds the rows of its scopes.
--
-- limits: [{"user_name", "group_name", "measure", "leaf_type", "most"}], hours in microseconds.
CREATE FUNCTION ledger_charge_one(
    charge charges, limits jsonb, ttl interval, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    usage holdings[];
    exceeded jsonb;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
    IF FOUND THEN
        RETURN ledger_existing(existing, charge.decision, ttl, at);
    END IF;
    charge.charged_at := at;
    charge.expires_at := at + ttl;
    usage := ARRAY(SELECT held FROM ledger_bump(charge, 1, at, at) AS held);
    IF limits <> '[]' THEN
        exceeded := ledger_exceeded(charge, usage, limits);
    END IF;
    IF exceeded IS NULL THEN
        INSERT INTO charges VALUES (charge.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN jsonb_build_object(
                'outcome', 'charged',
                'charge', to_jsonb(charge),
                'usage', (SELECT jsonb_agg(ledger_usage(held)) FROM unnest(usage) AS held)
            );
        END IF;
    END IF;
    PERFORM ledger_bump(charge, -1, at, at);
    IF exceeded IS NOT NULL THEN
        RETURN jsonb_build_object('outcome', 'refused', 'exceeded', exceeded);
    END IF;
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
    IF FOUND THEN
        RETURN ledger_existing(existing, charge.decision, ttl, at);
    END IF;
    IF NOT EXISTS (SELECT FROM charges AS c WHERE c.decision = charge.decision) THEN
        RAISE EXCEPTION 'the charge of gang %/% ended just now', charge.namespace, charge.gang
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN jsonb_build_object('outcome', 'decision of another gang');
END $$;


-- Charge gangs, each by itself, in one transaction: they share the wait for the disk. One answer
-- for each, in their order.
-- asked: [{…the columns of charges…, "limits": […]}]; at: NULL for the clock of the database.
CREATE FUNCTION ledger_charge(asked jsonb, ttl interval, at timestamptz) RETURNS SETOF jsonb
LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb;
    answer jsonb;
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


-- Let only the latest leader write. Taking the row makes the leader's writes follow each other.
CREATE FUNCTION ledger_fence(leadership text, term bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    highest bigint;
BEGIN
    INSERT INTO leaderships AS l VALUES (leadership, term)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch WHERE l.epoch < excluded.epoch;
    SELECT epoch INTO highest FROM leaderships WHERE name = leadership;
    IF highest > term THEN
        RAISE EXCEPTION 'epoch % of % is over: epoch % writes now', term, leadership, highest
            USING ERRCODE = 'CG001';
    END IF;
END $$;


-- End charges for a reason; return those that ended. The caller holds the rows of their scopes.
CREATE FUNCTION ledger_end(decisions uuid[], reason text, at timestamptz) RETURNS SETOF charges
LANGUAGE plpgsql AS $$
DECLARE
    charge charges;
    until timestamptz;
BEGIN
    FOR charge IN
        SELECT c.* FROM charges AS c WHERE c.decision = ANY (decisions) ORDER BY c.namespace, c.gang
    LOOP
        DELETE FROM charges AS c
        WHERE c.decision = charge.decision AND (reason <> 'expired' OR c.expires_at <= at);
        CONTINUE WHEN NOT FOUND;
        until := greatest(at, charge.charged_at);
        PERFORM ledger_bump(
            charge, -1, CASE reason WHEN 'expired' THEN charge.charged_at ELSE until END, until
        );
        INSERT INTO past_charges (
            decision, namespace, gang, user_name, group_name, vc, class, is_high, leaf_type,
            leaf_count, charged_at, ended_at, ended
        ) VALUES (
            charge.decision, charge.namespace, charge.gang, charge.user_name, charge.group_name,
            charge.vc, charge.class, charge.is_high, charge.leaf_type,
            charge.leaf_count, charge.charged_at, until, reason
        );
        IF reason <> 'expired' THEN
            PERFORM ledger_add_days(charge, until);
        END IF;
        RETURN NEXT charge;
    END LOOP;
END $$;


-- Leaf cells × microseconds of an interval, for each UTC day that it touches. Days are counted in
-- hours, because the length of "a day" depends on the time zone of the session.
CREATE FUNCTION ledger_days(
    leaf_count integer, since timestamptz, until timestamptz
) RETURNS TABLE (day date, leaf_micros bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        (start AT TIME ZONE 'UTC')::date,
        leaf_count * ledger_micros(least(until, start + interval '24 hours') - greatest(since, start))
    FROM generate_series(
        date_trunc('day', since, 'UTC'), until - interval '1 microsecond', interval '24 hours'
    ) AS start;
END;


CREATE FUNCTION ledger_add_days(charge charges, until timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO leaf_cell_days AS d
    SELECT
        days.day, charge.user_name, charge.group_name, charge.vc, charge.class, charge.leaf_type,
        days.leaf_micros
    FROM ledger_days(charge.leaf_count, charge.charged_at, until) AS days
    ON CONFLICT (day, user_name, group_name, vc, class, leaf_type)
    DO UPDATE SET leaf_micros = d.leaf_micros + excluded.leaf_micros;
END $$;

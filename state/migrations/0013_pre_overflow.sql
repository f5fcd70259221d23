-- Charges beyond the quotas of their group (`over: CLASS`), and how they come back within them.
--
--   rises_to     the class that the quotas kept from a gang. Such a charge is overflow: it is held,
--                so rules count it, but it uses up no limit of its group. NULL: within quota.
--   raised_from  the class of the gang's pods, where the leader has charged it in a higher one since.
--                The class of the charge is then the truth, and the pods are made to agree.
--
-- A scope's row has the sums of all that it holds, as before, and beside them those of its overflow.
-- Leaf-cell-time is only that within quota. Older charges are within quota, as they were counted.
ALTER TABLE charges ADD COLUMN rises_to text, ADD COLUMN raised_from text;
ALTER TABLE holdings ADD COLUMN overflow jsonb;


-- The sums of a scope's overflow when a charge is added (sign 1) or taken away (sign -1); NULL when
-- nothing is left of it.
CREATE FUNCTION ledger_overflow(overflow jsonb, charge charges, sign integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    change bigint := sign * charge.leaf_count;
    gangs bigint := coalesce((overflow ->> 'gangs')::bigint, 0) + sign;
    by_leaf_type jsonb := coalesce(overflow -> 'by_leaf_type', '{}');
    of_type bigint;
BEGIN
    IF gangs = 0 THEN
        RETURN NULL;
    END IF;
    IF charge.leaf_type <> '' THEN
        of_type := coalesce((by_leaf_type ->> charge.leaf_type)::bigint, 0) + change;
        by_leaf_type := CASE of_type
            WHEN 0 THEN by_leaf_type - charge.leaf_type
            ELSE by_leaf_type || jsonb_build_object(charge.leaf_type, of_type)
        END;
    END IF;
    RETURN jsonb_build_object(
        'leaf_cells', coalesce((overflow ->> 'leaf_cells')::bigint, 0) + change,
        'leaf_cells_high', coalesce((overflow ->> 'leaf_cells_high')::bigint, 0)
            + CASE WHEN charge.is_high THEN change ELSE 0 END,
        'gangs', gangs,
        'by_leaf_type', by_leaf_type
    );
END $$;


-- As before (0008), but overflow adds no leaf-cell-time, and is summed beside.
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
    counted numeric := change;
    of_type bigint;
BEGIN
    IF held.overflow IS NOT NULL THEN
        holds := holds - (held.overflow ->> 'leaf_cells')::bigint;
    END IF;
    IF charge.rises_to IS NOT NULL THEN
        counted := 0;
        held.overflow := ledger_overflow(held.overflow, charge, sign);
    END IF;
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
            held.day_base := held.day_base + counted * ledger_micros(day - since);
        END IF;
        IF since < week THEN
            held.week_base := held.week_base + counted * ledger_micros(week - since);
        END IF;
        IF since < month THEN
            held.month_base := held.month_base + counted * ledger_micros(month - since);
        END IF;
    END IF;
    held.leaf_micros := held.leaf_micros + holds * ledger_micros(moment - held.counted_at)
        + counted * ledger_micros(moment - since);
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


-- As before (0002), with the overflow.
CREATE OR REPLACE FUNCTION ledger_bump(
    charge charges, sign integer, since timestamptz, at timestamptz
) RETURNS SETOF holdings
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE holdings AS held
    SET (
        leaf_count, leaf_count_high, gang_count, by_leaf_type, overflow,
        leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
    ) = (
        SELECT
            n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type, n.overflow,
            n.leaf_micros, n.day_base, n.week_base, n.month_base, n.counted_at,
            n.version + 1, pg_current_xact_id()
        FROM ledger_advance(held, charge, sign, since, at) AS n
    )
    WHERE (held.user_name, held.group_name) IN (
        (charge.user_name, ''), (charge.user_name, charge.group_name), ('', charge.group_name)
    ) AND (held.user_name <> '' OR held.group_name <> '')
    RETURNING held.*;
END $$;


-- As before (0008), with the overflow.
CREATE OR REPLACE FUNCTION ledger_usage(held holdings) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN json_build_object(
    'user', held.user_name,
    'group', held.group_name,
    'leaf_cells', held.leaf_count,
    'leaf_cells_high', held.leaf_count_high,
    'gangs', held.gang_count,
    'by_leaf_type', held.by_leaf_type,
    'overflow', held.overflow,
    'day_micros', held.leaf_micros - held.day_base,
    'week_micros', held.leaf_micros - held.week_base,
    'month_micros', held.leaf_micros - held.month_base,
    'counted_at', held.counted_at,
    'version', held.version
);


-- As before (0002), but a limit in a group counts what the group holds within quota. A limit on a
-- user in all groups comes from rules, which count everything.
CREATE OR REPLACE FUNCTION ledger_exceeded(
    charge charges, usage holdings[], limits jsonb
) RETURNS jsonb
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
            END - CASE
                WHEN held.overflow IS NULL OR given.group_name = '' THEN 0
                WHEN given.measure = 'leaf_cells_of_type' THEN
                    coalesce((held.overflow -> 'by_leaf_type' ->> given.leaf_type)::bigint, 0)
                ELSE coalesce((held.overflow ->> given.measure)::bigint, 0)
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


-- As before (0008), with the overflow.
CREATE OR REPLACE FUNCTION ledger_charge_one(
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
            leaf_count, leaf_count_high, gang_count, by_leaf_type, overflow,
            leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
        ) = (
            SELECT
                n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type, n.overflow,
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


-- Put a charge in the place of another one of the same gang and decision, unless a limit is in the
-- way: the limits that it exceeds, or NULL and the sums of its scopes. What it had until now is
-- past, as after a correction. The caller holds the rows of its scopes, and the row of the charge.
CREATE FUNCTION ledger_replace(
    existing charges, charge charges, limits jsonb, OUT exceeded jsonb, OUT usage holdings[]
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_bump(existing, -1, charge.charged_at, charge.charged_at);
    usage := ARRAY(
        SELECT held FROM ledger_bump(charge, 1, charge.charged_at, charge.charged_at) AS held
    );
    IF limits <> '[]' THEN
        exceeded := ledger_exceeded(charge, usage, limits);
    END IF;
    IF exceeded IS NOT NULL THEN
        PERFORM ledger_bump(charge, -1, charge.charged_at, charge.charged_at);
        PERFORM ledger_bump(existing, 1, charge.charged_at, charge.charged_at);
        RETURN;
    END IF;
    INSERT INTO past_charges (
        decision, namespace, gang, user_name, group_name, vc, class, is_high, leaf_type,
        leaf_count, charged_at, ended_at, ended
    ) VALUES (
        existing.decision, existing.namespace, existing.gang, existing.user_name,
        existing.group_name, existing.vc, existing.class, existing.is_high, existing.leaf_type,
        existing.leaf_count, existing.charged_at, charge.charged_at, 'corrected'
    );
    PERFORM ledger_add_days(existing, charge.charged_at);
    UPDATE charges AS c SET
        class = charge.class, is_high = charge.is_high, leaf_count = charge.leaf_count,
        charged_at = charge.charged_at, rises_to = charge.rises_to,
        raised_from = charge.raised_from
    WHERE c.decision = charge.decision;
END $$;


-- As before (0010), but a gang whose class has changed since the caller saw it is left as it is:
-- other limits apply to it. Whether it is within quota is what the ledger has, not what is asked.
CREATE OR REPLACE FUNCTION ledger_grow_one(
    charge charges, seen integer, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    done record;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang AND c.decision = charge.decision
        AND (c.user_name, c.group_name, c.leaf_count) = (charge.user_name, charge.group_name, seen)
        AND c.class = charge.class
    FOR UPDATE SKIP LOCKED;  -- who holds it may want the rows that we hold
    IF NOT FOUND THEN
        SELECT * INTO existing FROM charges AS c
        WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
        RETURN CASE
            -- Like nothing that anybody asked for: whoever saw another one looks again.
            WHEN FOUND THEN ledger_existing(existing, NULL, ttl, at)
            ELSE ledger_charge_one(charge, limits, ttl, at)
        END;
    END IF;
    charge.charged_at := greatest(at, existing.charged_at);
    charge.expires_at := existing.expires_at;
    charge.is_high := existing.is_high;
    charge.leaf_type := existing.leaf_type;
    charge.vc := existing.vc;
    charge.rises_to := existing.rises_to;
    charge.raised_from := existing.raised_from;
    SELECT * INTO done FROM ledger_replace(existing, charge, limits);
    IF done.exceeded IS NOT NULL THEN
        RETURN json_build_object('outcome', 'refused', 'exceeded', done.exceeded);
    END IF;
    RETURN json_build_object(
        'outcome', 'charged',
        'charge', charge,
        'usage', (SELECT json_agg(ledger_usage(held)) FROM unnest(done.usage) AS held)
    );
END $$;


-- As before (0011), but a place of a gang whose class has changed is not taken unseen.
CREATE OR REPLACE FUNCTION ledger_join_one(
    charge charges, joins integer, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    answer json;
BEGIN
    UPDATE charges AS c SET places = c.places - 1
    FROM (
        SELECT l.decision FROM charges AS l
        WHERE l.namespace = charge.namespace AND l.gang = charge.gang
            AND l.decision = charge.decision AND l.places > 0 AND l.class = charge.class
            AND (l.user_name, l.group_name) = (charge.user_name, charge.group_name)
        FOR UPDATE SKIP LOCKED  -- who holds it may want the rows that we hold
    ) AS free
    WHERE c.decision = free.decision
    RETURNING c.* INTO existing;
    IF FOUND THEN
        RETURN ledger_existing(existing, existing, ttl, at);
    END IF;
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang AND c.decision = charge.decision
        AND (c.user_name, c.group_name) = (charge.user_name, charge.group_name);
    IF existing.places > 0 THEN
        RETURN ledger_existing(existing, NULL, ttl, at);  -- whoever asks looks again
    END IF;
    charge.places := 0;
    charge.leaf_count := coalesce(existing.leaf_count + joins, charge.leaf_count);
    answer := ledger_grow_one(charge, charge.leaf_count - joins, limits, ttl, at);
    IF answer ->> 'outcome' = 'refused' THEN
        RETURN json_build_object(
            'outcome', 'refused', 'exceeded', answer -> 'exceeded', 'charge', charge
        );
    END IF;
    RETURN answer;
END $$;


-- Charge a gang beyond its quotas in a higher class, within the limits, if it still has the charge
-- that the leader saw. Only the leader raises: "seen" is that charge, "class" and "is_high" are new.
CREATE FUNCTION ledger_raise(
    leadership text, term bigint, seen jsonb, class text, is_high boolean, limits jsonb,
    at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    wanted charges := jsonb_populate_record(NULL::charges, seen);
    existing charges;
    charge charges;
    done record;
    moment timestamptz;
BEGIN
    PERFORM ledger_fence(leadership, term);
    PERFORM ledger_lock(
        ARRAY[wanted.user_name], ARRAY[wanted.group_name], coalesce(at, clock_timestamp())
    );
    moment := coalesce(at, clock_timestamp());
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = wanted.namespace AND c.gang = wanted.gang AND c.decision = wanted.decision
        AND (c.user_name, c.group_name, c.class, c.leaf_count)
            = (wanted.user_name, wanted.group_name, wanted.class, wanted.leaf_count)
        AND c.rises_to IS NOT NULL
    FOR UPDATE SKIP LOCKED;  -- who holds it may want the rows that we hold
    IF NOT FOUND THEN
        SELECT * INTO existing FROM charges AS c
        WHERE c.namespace = wanted.namespace AND c.gang = wanted.gang;
        RETURN CASE
            WHEN FOUND THEN ledger_existing(existing, NULL, interval '0', moment)
            ELSE json_build_object('outcome', 'gone')
        END;
    END IF;
    charge := existing;
    charge.class := ledger_raise.class;
    charge.is_high := ledger_raise.is_high;
    charge.rises_to := NULL;
    charge.raised_from := existing.class;
    charge.charged_at := greatest(moment, existing.charged_at);
    SELECT * INTO done FROM ledger_replace(existing, charge, limits);
    IF done.exceeded IS NOT NULL THEN
        RETURN json_build_object('outcome', 'refused', 'exceeded', done.exceeded);
    END IF;
    RETURN json_build_object(
        'outcome', 'charged',
        'charge', charge,
        'usage', (SELECT json_agg(ledger_usage(held)) FROM unnest(done.usage) AS held)
    );
END $$;


-- As before (0009), and the leader raises.
CREATE OR REPLACE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    role text;
    target text := quote_ident(current_schema());
BEGIN
    FOR role IN
        SELECT rolname FROM pg_roles
        WHERE rolname IN ('cellgate_webhook', 'cellgate_extender', 'cellgate_reader')
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', target, role);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %I', target, role);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT ON TABLES TO %I',
            target, role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_held(timestamptz), ledger_time(date, date, timestamptz),
            ledger_days(integer, timestamptz, timestamptz), ledger_micros(interval),
            ledger_usage(holdings),
            ledger_advance(holdings, charges, integer, timestamptz, timestamptz) TO %I', role);
        CONTINUE WHEN role = 'cellgate_reader';
        EXECUTE format('GRANT INSERT ON decisions, documents TO %I', role);
        EXECUTE format('GRANT UPDATE (last_seen_at) ON documents TO %I', role);
        EXECUTE format('GRANT INSERT, UPDATE ON gang_history, log_terms, log_epochs TO %I', role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ensure_decision_days(date, integer), drop_decision_day(date),
            forget_past(text, date, integer, integer),
            ledger_charge(jsonb, interval, timestamptz) TO %I', role);
        CONTINUE WHEN role = 'cellgate_webhook';
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_confirm(text, bigint, jsonb),
            ledger_release(text, bigint, jsonb, timestamptz),
            ledger_expire(text, bigint, integer, timestamptz),
            ledger_reconcile(text, bigint, jsonb, interval, timestamptz),
            ledger_raise(text, bigint, jsonb, text, boolean, jsonb, timestamptz) TO %I', role);
    END LOOP;
END $$;


-- What 0006 gives to functions that the services call; see there.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION ledger_raise(text, bigint, jsonb, text, boolean, jsonb, timestamptz) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION
        ledger_raise(text, bigint, jsonb, text, boolean, jsonb, timestamptz),
        ledger_replace(charges, charges, jsonb),
        ledger_overflow(jsonb, charges, integer)
    FROM PUBLIC;
END $$;

SELECT grant_rights();

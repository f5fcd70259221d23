-- CPU and memory of gangs beside their leaf cells, and the leaf-cell-time of all time, for limits.
--
-- Thousandths of a CPU, and bytes. A charge that was made by an earlier version has NULL until the
-- leader has counted its pods.
ALTER TABLE charges ADD COLUMN cpu_millis bigint, ADD COLUMN memory_bytes bigint;
ALTER TABLE holdings
    ADD COLUMN cpu_millis bigint NOT NULL DEFAULT 0,
    ADD COLUMN memory_bytes bigint NOT NULL DEFAULT 0;


-- The amount of a gang that has grown or shrunk from so many leaf cells to so many others.
CREATE FUNCTION ledger_share(amount bigint, leaf_count integer, before integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN before > 0 THEN div(amount::numeric * leaf_count, before)::bigint ELSE amount END;


-- As before (0013), with CPU and memory.
CREATE OR REPLACE FUNCTION ledger_overflow(overflow jsonb, charge charges, sign integer) RETURNS jsonb
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
        'cpu_millis', coalesce((overflow ->> 'cpu_millis')::bigint, 0)
            + sign * coalesce(charge.cpu_millis, 0),
        'memory_bytes', coalesce((overflow ->> 'memory_bytes')::bigint, 0)
            + sign * coalesce(charge.memory_bytes, 0),
        'by_leaf_type', by_leaf_type
    );
END $$;


-- As before (0013), with CPU and memory.
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
    held.cpu_millis := held.cpu_millis + sign * coalesce(charge.cpu_millis, 0);
    held.memory_bytes := held.memory_bytes + sign * coalesce(charge.memory_bytes, 0);
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


-- As before (0013), with CPU and memory.
CREATE OR REPLACE FUNCTION ledger_bump(
    charge charges, sign integer, since timestamptz, at timestamptz
) RETURNS SETOF holdings
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE holdings AS held
    SET (
        leaf_count, leaf_count_high, gang_count, by_leaf_type, overflow, cpu_millis, memory_bytes,
        leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
    ) = (
        SELECT
            n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type, n.overflow,
            n.cpu_millis, n.memory_bytes,
            n.leaf_micros, n.day_base, n.week_base, n.month_base, n.counted_at,
            n.version + 1, pg_current_xact_id()
        FROM ledger_advance(held, charge, sign, since, at) AS n
    )
    WHERE (held.user_name, held.group_name) IN (
        (charge.user_name, ''), (charge.user_name, charge.group_name), ('', charge.group_name)
    ) AND (held.user_name <> '' OR held.group_name <> '')
    RETURNING held.*;
END $$;


-- As before (0013), with CPU, memory and the leaf-cell-time of all time.
CREATE OR REPLACE FUNCTION ledger_usage(held holdings) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN json_build_object(
    'user', held.user_name,
    'group', held.group_name,
    'leaf_cells', held.leaf_count,
    'leaf_cells_high', held.leaf_count_high,
    'gangs', held.gang_count,
    'by_leaf_type', held.by_leaf_type,
    -- Beside: an earlier version knows no other sums of the overflow.
    'overflow', held.overflow - '{cpu_millis,memory_bytes}'::text[],
    'overflow_cpu_millis', (held.overflow ->> 'cpu_millis')::bigint,
    'overflow_memory_bytes', (held.overflow ->> 'memory_bytes')::bigint,
    'day_micros', held.leaf_micros - held.day_base,
    'week_micros', held.leaf_micros - held.week_base,
    'month_micros', held.leaf_micros - held.month_base,
    'total_micros', held.leaf_micros,
    'cpu_millis', held.cpu_millis,
    'memory_bytes', held.memory_bytes,
    'counted_at', held.counted_at,
    'version', held.version
);


-- As before (0017), with CPU, memory and the leaf-cell-time of all time.
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
                WHEN given.measure = 'cpu_millis' THEN coalesce(charge.cpu_millis, 0)
                WHEN given.measure = 'memory_bytes' THEN coalesce(charge.memory_bytes, 0)
                ELSE charge.leaf_count
            END AS asked,
            CASE given.measure
                WHEN 'leaf_cells' THEN held.leaf_count
                WHEN 'leaf_cells_high' THEN held.leaf_count_high
                WHEN 'leaf_cells_low' THEN held.leaf_count - held.leaf_count_high
                WHEN 'leaf_cells_of_type' THEN (held.by_leaf_type ->> given.leaf_type)::bigint
                WHEN 'gangs' THEN held.gang_count
                WHEN 'hours_day' THEN held.leaf_micros - held.day_base
                WHEN 'hours_week' THEN held.leaf_micros - held.week_base
                WHEN 'hours_month' THEN held.leaf_micros - held.month_base
                WHEN 'hours_total' THEN held.leaf_micros
                WHEN 'cpu_millis' THEN held.cpu_millis
                WHEN 'memory_bytes' THEN held.memory_bytes
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


-- As before (0013), with CPU and memory.
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
            leaf_count, leaf_count_high, gang_count, by_leaf_type, overflow, cpu_millis,
            memory_bytes, leaf_micros, day_base, week_base, month_base, counted_at, version, changed_in
        ) = (
            SELECT
                n.leaf_count, n.leaf_count_high, n.gang_count, n.by_leaf_type, n.overflow,
                n.cpu_millis, n.memory_bytes,
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


-- As before (0013), with CPU and memory.
CREATE OR REPLACE FUNCTION ledger_replace(
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
        raised_from = charge.raised_from, cpu_millis = charge.cpu_millis,
        memory_bytes = charge.memory_bytes
    WHERE c.decision = charge.decision;
END $$;


-- As before (0013), and CPU and memory grow with the leaf cells.
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
    -- In proportion, until the leader has counted the pods.
    charge.cpu_millis := ledger_share(existing.cpu_millis, charge.leaf_count, existing.leaf_count);
    charge.memory_bytes := ledger_share(existing.memory_bytes, charge.leaf_count, existing.leaf_count);
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


-- Count the CPU and memory of charged gangs by their pods; return how many charges changed. The leaf
-- cells stay, so no charge ends. Only the leader counts: "counted" are charges as they should be.
CREATE FUNCTION ledger_recount(
    leadership text, term bigint, counted jsonb, at timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    wanted charges;
    before charges;
    changed charges;
    number integer := 0;
BEGIN
    PERFORM ledger_fence(leadership, term);
    PERFORM ledger_lock(
        array_agg(w.user_name), array_agg(w.group_name), coalesce(at, clock_timestamp())
    )
    FROM jsonb_populate_recordset(NULL::charges, counted) AS w;
    moment := coalesce(at, clock_timestamp());
    FOR wanted IN
        SELECT * FROM jsonb_populate_recordset(NULL::charges, counted) AS w
        ORDER BY w.namespace, w.gang
    LOOP
        SELECT * INTO before FROM charges AS c
        WHERE c.namespace = wanted.namespace AND c.gang = wanted.gang
            AND c.decision = wanted.decision AND c.leaf_count = wanted.leaf_count
            AND (c.user_name, c.group_name) = (wanted.user_name, wanted.group_name)
        FOR UPDATE SKIP LOCKED;  -- who holds it may want the rows that we hold
        CONTINUE WHEN NOT FOUND;
        changed := before;
        changed.cpu_millis := wanted.cpu_millis;
        changed.memory_bytes := wanted.memory_bytes;
        UPDATE charges AS c
        SET cpu_millis = changed.cpu_millis, memory_bytes = changed.memory_bytes
        WHERE c.decision = before.decision;
        PERFORM ledger_bump(before, -1, moment, moment);
        PERFORM ledger_bump(changed, 1, moment, moment);
        number := number + 1;
    END LOOP;
    RETURN number;
END $$;


-- As before, and the leader counts.
ALTER FUNCTION grant_rights() RENAME TO grant_rights_before_counts;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_rights_before_counts();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_extender') THEN
        GRANT EXECUTE ON FUNCTION
            ledger_recount(text, bigint, jsonb, timestamptz) TO cellgate_extender;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;


-- What 0006 gives to functions that the services call; see there.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION ledger_recount(text, bigint, jsonb, timestamptz) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION
        ledger_recount(text, bigint, jsonb, timestamptz), ledger_share(bigint, integer, integer)
    FROM PUBLIC;
END $$;

SELECT grant_rights();

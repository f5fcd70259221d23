-- What the first member of a gang requests for each leaf cell, rounded up: members that do not exist
-- yet are assumed to be like it. NULL in charges that the leader or an earlier version has made.
ALTER TABLE charges ADD COLUMN cpu_each bigint, ADD COLUMN memory_each bigint;


-- As before (0022), but a gang grows by members like its first one, not like the average of them.
CREATE OR REPLACE FUNCTION ledger_grow_one(
    charge charges, seen integer, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    done record;
    more bigint;
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
            -- Equal to no request: a caller that saw another charge decides again.
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
    charge.cpu_each := existing.cpu_each;
    charge.memory_each := existing.memory_each;
    more := charge.leaf_count - existing.leaf_count;
    IF more > 0 AND existing.cpu_each IS NOT NULL AND existing.memory_each IS NOT NULL THEN
        charge.cpu_millis := coalesce(existing.cpu_millis, 0) + existing.cpu_each * more;
        charge.memory_bytes := coalesce(existing.memory_bytes, 0) + existing.memory_each * more;
    ELSE
        charge.cpu_millis :=
            ledger_share(existing.cpu_millis, charge.leaf_count, existing.leaf_count);
        charge.memory_bytes :=
            ledger_share(existing.memory_bytes, charge.leaf_count, existing.leaf_count);
    END IF;
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


-- Add CPU and memory to a charged gang, for a member that requests more than the first one. The leaf
-- cells stay, so no charge ends. "charge" is the charge of a gang that has none by now.
CREATE FUNCTION ledger_add_one(
    charge charges, adds_cpu bigint, adds_memory bigint, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    grown charges;
    usage holdings[];
    exceeded jsonb;
    moment timestamptz;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang AND c.decision = charge.decision
        AND (c.user_name, c.group_name) = (charge.user_name, charge.group_name)
        AND c.class = charge.class
    FOR UPDATE SKIP LOCKED;  -- who holds it may want the rows that we hold
    IF NOT FOUND THEN
        SELECT * INTO existing FROM charges AS c
        WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
        RETURN CASE
            WHEN FOUND THEN ledger_existing(existing, NULL, ttl, at)
            ELSE ledger_charge_one(charge, limits, ttl, at)
        END;
    END IF;
    moment := greatest(at, existing.charged_at);
    grown := existing;
    grown.cpu_millis := coalesce(existing.cpu_millis, 0) + adds_cpu;
    grown.memory_bytes := coalesce(existing.memory_bytes, 0) + adds_memory;
    PERFORM ledger_bump(existing, -1, moment, moment);
    usage := ARRAY(SELECT held FROM ledger_bump(grown, 1, moment, moment) AS held);
    IF limits <> '[]' THEN
        exceeded := ledger_exceeded(grown, usage, limits);
    END IF;
    IF exceeded IS NOT NULL THEN
        PERFORM ledger_bump(grown, -1, moment, moment);
        PERFORM ledger_bump(existing, 1, moment, moment);
        RETURN json_build_object('outcome', 'refused', 'exceeded', exceeded, 'charge', grown);
    END IF;
    UPDATE charges AS c
    SET cpu_millis = grown.cpu_millis, memory_bytes = grown.memory_bytes
    WHERE c.decision = existing.decision;
    RETURN json_build_object(
        'outcome', 'charged',
        'charge', grown,
        'usage', (SELECT json_agg(ledger_usage(held)) FROM unnest(usage) AS held)
    );
END $$;


-- As before (0011), and
--   "adds_cpu": 500, "adds_memory": 0   a member requests so much more than the first one.
CREATE OR REPLACE FUNCTION ledger_charge(
    asked jsonb, ttl interval, at timestamptz
) RETURNS SETOF json
LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb;
    answer json;
    charge charges;
    waiting jsonb;
    moment timestamptz;
    is_written boolean := false;
BEGIN
    PERFORM ledger_lock(
        array_agg(w ->> 'user_name'), array_agg(w ->> 'group_name'), coalesce(at, clock_timestamp())
    ) FROM jsonb_array_elements(asked) AS given (w);
    FOR wanted IN SELECT w FROM jsonb_array_elements(asked) AS given (w) LOOP
        moment := coalesce(at, clock_timestamp());
        charge := jsonb_populate_record(NULL::charges, wanted);
        SELECT q.charge INTO waiting FROM queued_gangs AS q
        WHERE q.namespace = charge.namespace AND q.gang = charge.gang AND q.expires_at > moment;
        IF wanted ? 'queues' THEN
            answer := ledger_queue_one(wanted, ttl, moment);
        ELSIF waiting ->> 'decision' <> charge.decision::text AND NOT EXISTS (
            SELECT FROM charges AS c WHERE c.namespace = charge.namespace AND c.gang = charge.gang
        ) THEN
            answer := json_build_object('outcome', 'queued', 'charge', waiting);
        ELSIF wanted ? 'joins' THEN
            answer := ledger_join_one(
                charge, (wanted ->> 'joins')::integer, wanted -> 'limits', ttl, moment
            );
        ELSIF wanted ? 'grows_from' THEN
            answer := ledger_grow_one(
                charge, (wanted ->> 'grows_from')::integer, wanted -> 'limits', ttl, moment
            );
        ELSIF wanted ? 'adds_cpu' THEN
            answer := ledger_add_one(
                charge, (wanted ->> 'adds_cpu')::bigint, (wanted ->> 'adds_memory')::bigint,
                wanted -> 'limits', ttl, moment
            );
        ELSE
            answer := ledger_charge_one(charge, wanted -> 'limits', ttl, moment);
        END IF;
        IF charge.leaf_count < (wanted ->> 'grows_from')::integer THEN
            -- The leader has seen the pods: places would be counted on top of what it saw.
            UPDATE charges AS c SET places = 0 WHERE c.decision = charge.decision AND c.places > 0;
        END IF;
        IF waiting IS NOT NULL AND answer ->> 'outcome' IN ('charged', 'held') THEN
            DELETE FROM queued_gangs AS q
            WHERE q.namespace = charge.namespace AND q.gang = charge.gang;
        END IF;
        is_written := is_written OR answer ->> 'outcome' IN ('charged', 'queued');
        RETURN NEXT answer;
    END LOOP;
    IF NOT is_written THEN
        -- Nothing was granted: no reason to wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;


-- What 0006 and 0011 give to functions; see there. CREATE OR REPLACE takes settings away.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz) SET enable_seqscan = off;
    ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz)
        SET plan_cache_mode = force_generic_plan;
    REVOKE EXECUTE ON FUNCTION
        ledger_add_one(charges, bigint, bigint, jsonb, interval, timestamptz) FROM PUBLIC;
END $$;

-- Gangs that wait for room in their quotas, and gangs of which a member asks for more than the first.
--
--   queued_gangs  what was decided about gangs that are not charged: one decision for all members,
--                 wherever they arrive. A row goes when its gang is charged, or its pods have ended.

CREATE TABLE queued_gangs (
    namespace text NOT NULL,
    gang text NOT NULL,
    charge jsonb NOT NULL,               -- the columns of `charges`, as it will be charged
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, gang)
);
CREATE INDEX queued_gangs_expiry ON queued_gangs (expires_at);


-- Remember that a gang waits, unless it is charged, or waits by another decision. The caller holds
-- the rows of its scopes.
CREATE FUNCTION ledger_queue_one(wanted jsonb, ttl interval, at timestamptz) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    charge charges := jsonb_populate_record(NULL::charges, wanted);
    existing charges;
    kept jsonb;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang;
    IF FOUND THEN
        RETURN ledger_existing(existing, charge, ttl, at);
    END IF;
    INSERT INTO queued_gangs AS q
    VALUES (charge.namespace, charge.gang, wanted - 'limits' - 'queues', at + ttl)
    ON CONFLICT (namespace, gang) DO UPDATE SET
        charge = CASE WHEN q.expires_at <= at THEN excluded.charge ELSE q.charge END,
        expires_at = greatest(q.expires_at, excluded.expires_at)
    RETURNING q.charge INTO kept;
    RETURN json_build_object('outcome', 'queued', 'charge', kept);
END $$;


-- Let a charged gang have more, if it still has what the caller saw, and no limit is in the way.
-- What it had until now is past, as after a correction. The caller holds the rows of its scopes.
CREATE FUNCTION ledger_grow_one(
    charge charges, seen integer, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    usage holdings[];
    exceeded jsonb;
BEGIN
    SELECT * INTO existing FROM charges AS c
    WHERE c.namespace = charge.namespace AND c.gang = charge.gang AND c.decision = charge.decision
        AND (c.user_name, c.group_name, c.leaf_count) = (charge.user_name, charge.group_name, seen)
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
        RETURN json_build_object('outcome', 'refused', 'exceeded', exceeded);
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
    UPDATE charges AS c SET leaf_count = charge.leaf_count, charged_at = charge.charged_at
    WHERE c.decision = charge.decision;
    RETURN json_build_object(
        'outcome', 'charged',
        'charge', charge,
        'usage', (SELECT json_agg(ledger_usage(held)) FROM unnest(usage) AS held)
    );
END $$;


-- As before (0008), and
--   "queues": true        do not charge, but remember that it waits;
--   "grows_from": 4       it was charged with so many leaf cells and is to have more.
-- Who asks for a gang that waits by another decision is told so, and charges nothing.
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
        ELSIF wanted ? 'grows_from' THEN
            answer := ledger_grow_one(
                charge, (wanted ->> 'grows_from')::integer, wanted -> 'limits', ttl, moment
            );
        ELSE
            answer := ledger_charge_one(charge, wanted -> 'limits', ttl, moment);
        END IF;
        IF waiting IS NOT NULL AND answer ->> 'outcome' IN ('charged', 'held') THEN
            DELETE FROM queued_gangs AS q
            WHERE q.namespace = charge.namespace AND q.gang = charge.gang;
        END IF;
        is_written := is_written OR answer ->> 'outcome' IN ('charged', 'queued');
        RETURN NEXT answer;
    END LOOP;
    IF NOT is_written THEN
        -- Nothing that anybody was promised: no reason to wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;


-- As before (0004), for gangs that wait, too: they are remembered for a day after their pods were
-- seen, or until these have ended. A leader that misses the end leaves a row behind, not for ever.
CREATE OR REPLACE FUNCTION ledger_confirm(
    leadership text, term bigint, gangs jsonb
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
BEGIN
    PERFORM ledger_fence(leadership, term);
    WITH seen AS (
        SELECT g ->> 'namespace' AS namespace, g ->> 'gang' AS gang
        FROM jsonb_array_elements(gangs) AS given (g)
    ), confirmed AS (
        UPDATE charges AS c SET expires_at = NULL
        FROM seen
        WHERE c.namespace = seen.namespace AND c.gang = seen.gang AND c.expires_at IS NOT NULL
    ), kept AS (
        UPDATE queued_gangs AS q SET expires_at = clock_timestamp() + interval '24 hours'
        FROM seen
        WHERE q.namespace = seen.namespace AND q.gang = seen.gang
    )
    SELECT jsonb_agg(jsonb_build_object('namespace', c.namespace, 'gang', c.gang)) INTO found
    FROM charges AS c JOIN seen ON c.namespace = seen.namespace AND c.gang = seen.gang;
    RETURN coalesce(found, '[]');
END $$;


CREATE OR REPLACE FUNCTION ledger_release(
    leadership text, term bigint, gangs jsonb, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_fence(leadership, term);
    DELETE FROM queued_gangs AS q
    USING jsonb_array_elements(gangs) AS given (g)
    WHERE q.namespace = g ->> 'namespace' AND q.gang = g ->> 'gang';
    RETURN ledger_lock_and_end(
        ARRAY(
            SELECT c.decision
            FROM jsonb_array_elements(gangs) AS given (g)
            JOIN charges AS c ON c.namespace = g ->> 'namespace' AND c.gang = g ->> 'gang'
        ),
        'released', coalesce(at, clock_timestamp())
    );
END $$;


CREATE OR REPLACE FUNCTION ledger_expire(
    leadership text, term bigint, most integer, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
BEGIN
    PERFORM ledger_fence(leadership, term);
    DELETE FROM queued_gangs AS q WHERE q.expires_at <= moment;
    RETURN ledger_lock_and_end(
        ARRAY(
            SELECT c.decision FROM charges AS c
            WHERE c.expires_at <= moment
            ORDER BY c.expires_at, c.namespace, c.gang
            LIMIT most
        ),
        'expired', moment
    );
END $$;


-- What was made anew has lost what 0006 gave it; see there.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'ledger_charge(jsonb, interval, timestamptz)',
        'ledger_confirm(text, bigint, jsonb)',
        'ledger_release(text, bigint, jsonb, timestamptz)',
        'ledger_expire(text, bigint, integer, timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            name, current_schema());
    END LOOP;
    FOREACH name IN ARRAY ARRAY[
        'ledger_charge(jsonb, interval, timestamptz)',
        'ledger_release(text, bigint, jsonb, timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', name);
        EXECUTE format('ALTER FUNCTION %s SET plan_cache_mode = force_generic_plan', name);
    END LOOP;
    REVOKE EXECUTE ON FUNCTION ledger_queue_one(jsonb, interval, timestamptz) FROM PUBLIC;
    REVOKE EXECUTE ON FUNCTION
        ledger_grow_one(charges, integer, jsonb, interval, timestamptz) FROM PUBLIC;
END $$;

SELECT grant_rights();

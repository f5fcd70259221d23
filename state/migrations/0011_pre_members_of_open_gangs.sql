-- Gangs of which a PodGroup says how many members they need, but not how many they may have.
--
-- A charge covers as many members as are needed. Each member takes one of these places; for one
-- that finds none left, the charge grows, within the limits. Unknown is none: to reckon too much is
-- put right by the leader, to reckon too little would be a way past the limits.
ALTER TABLE charges ADD COLUMN places integer;


-- Give a member its place in a charged gang, or let the charge grow for it by `joins` leaf cells,
-- whatever it is by now: many members come at once. The caller holds the rows of its scopes.
CREATE FUNCTION ledger_join_one(
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
            AND l.decision = charge.decision AND l.places > 0
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
        RETURN ledger_existing(existing, NULL, ttl, at);  -- it was held: whoever asks looks again
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


-- As before (0010), and
--   "joins": 2            it has one more member, of so many leaf cells, with whom it asks for this.
-- What is made smaller has no places left.
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
        ELSE
            answer := ledger_charge_one(charge, wanted -> 'limits', ttl, moment);
        END IF;
        IF charge.leaf_count < (wanted ->> 'grows_from')::integer THEN
            -- The leader knows better: places would be counted on top of what it saw.
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
        -- Nothing that anybody was promised: no reason to wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;


-- As before (0004), but a charge that has changed since the caller read it ("seen_at",
-- "seen_leaf_count", if given), or while the locks were waited for, is left for the next time: it
-- has grown for a member whose pod was not seen yet. What is corrected or made has no places left.
CREATE OR REPLACE FUNCTION ledger_reconcile(
    leadership text, term bigint, existing jsonb, grace interval, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
    gone uuid[];
    wrong charges[];
    missing charges[];
    charge charges;
    released jsonb;
    corrected jsonb;
    created jsonb := '[]';
BEGIN
    PERFORM ledger_fence(leadership, term);
    UPDATE charges AS c SET expires_at = NULL
    FROM jsonb_populate_recordset(NULL::charges, existing) AS e
    WHERE c.namespace = e.namespace AND c.gang = e.gang AND c.expires_at IS NOT NULL;
    SELECT array_agg(c.decision) INTO gone
    FROM charges AS c
    LEFT JOIN jsonb_populate_recordset(NULL::charges, existing) AS e USING (namespace, gang)
    WHERE e.gang IS NULL AND c.expires_at IS NULL AND c.charged_at + grace <= moment;
    SELECT array_agg(c) INTO wrong
    FROM charges AS c, jsonb_array_elements(existing) AS given (g),
        LATERAL jsonb_populate_record(NULL::charges, g) AS e
    WHERE (c.namespace, c.gang) = (e.namespace, e.gang)
        AND (c.user_name, c.group_name, c.vc, c.class, c.is_high, c.leaf_type, c.leaf_count)
            <> (e.user_name, e.group_name, e.vc, e.class, e.is_high, e.leaf_type, e.leaf_count)
        AND (c.charged_at, c.leaf_count) = (
            coalesce((g ->> 'seen_at')::timestamptz, c.charged_at),
            coalesce((g ->> 'seen_leaf_count')::integer, c.leaf_count)
        );
    SELECT array_agg(e ORDER BY e.namespace, e.gang) INTO missing
    FROM jsonb_populate_recordset(NULL::charges, existing) AS e
    LEFT JOIN charges AS c USING (namespace, gang)
    WHERE c.gang IS NULL OR c.decision IN (SELECT w.decision FROM unnest(wrong) AS w);
    PERFORM ledger_lock(array_agg(s.user_name), array_agg(s.group_name), moment)
    FROM (
        SELECT c.user_name, c.group_name FROM charges AS c WHERE c.decision = ANY (gone)
        UNION
        SELECT w.user_name, w.group_name FROM unnest(wrong) AS w
        UNION
        SELECT m.user_name, m.group_name FROM unnest(missing) AS m
    ) AS s;
    SELECT jsonb_agg(to_jsonb(c)) INTO released FROM ledger_end(gone, 'gone', moment) AS c;
    SELECT jsonb_agg(to_jsonb(c)) INTO corrected
    FROM ledger_end(
        ARRAY(
            SELECT c.decision FROM charges AS c JOIN unnest(wrong) AS w USING (decision)
            WHERE (c.charged_at, c.leaf_count) = (w.charged_at, w.leaf_count)
        ),
        'corrected', moment
    ) AS c;
    FOREACH charge IN ARRAY coalesce(missing, '{}') LOOP
        charge.charged_at := moment;
        charge.places := 0;
        INSERT INTO charges VALUES (charge.*) ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        PERFORM ledger_bump(charge, 1, moment, moment);
        created := created || to_jsonb(charge);
    END LOOP;
    RETURN jsonb_build_object(
        'released', coalesce(released, '[]'),
        'corrected', coalesce(corrected, '[]'),
        'created', created
    );
END $$;


-- What was made anew has lost what 0006 gave it; see there.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'ledger_charge(jsonb, interval, timestamptz)',
        'ledger_reconcile(text, bigint, jsonb, interval, timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            name, current_schema());
    END LOOP;
    ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz) SET enable_seqscan = off;
    ALTER FUNCTION ledger_charge(jsonb, interval, timestamptz)
        SET plan_cache_mode = force_generic_plan;
    REVOKE EXECUTE ON FUNCTION
        ledger_join_one(charges, integer, jsonb, interval, timestamptz) FROM PUBLIC;
END $$;

SELECT grant_rights();

-- What only the leader does to the ledger. Each carries its epoch and is refused if there is a
-- later one. `at` is NULL for the clock of the database, in all of them.


-- Their pods were seen: these charges no longer expire. Returns [{"namespace", "gang"}].
CREATE FUNCTION ledger_confirm(leadership text, term bigint, gangs jsonb) RETURNS jsonb
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
    )
    SELECT jsonb_agg(jsonb_build_object('namespace', c.namespace, 'gang', c.gang)) INTO found
    FROM charges AS c JOIN seen ON c.namespace = seen.namespace AND c.gang = seen.gang;
    RETURN coalesce(found, '[]');
END $$;


-- Take the rows of all scopes of some charges, then end these charges. Returns those that ended.
CREATE FUNCTION ledger_lock_and_end(decisions uuid[], reason text, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    ended jsonb;
BEGIN
    PERFORM ledger_lock(array_agg(c.user_name), array_agg(c.group_name), at)
    FROM charges AS c WHERE c.decision = ANY (decisions);
    SELECT jsonb_agg(to_jsonb(c)) INTO ended FROM ledger_end(decisions, reason, at) AS c;
    RETURN coalesce(ended, '[]');
END $$;


-- Their last pods have ended.
CREATE FUNCTION ledger_release(
    leadership text, term bigint, gangs jsonb, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_fence(leadership, term);
    RETURN ledger_lock_and_end(
        ARRAY(
            SELECT c.decision
            FROM jsonb_array_elements(gangs) AS given (g)
            JOIN charges AS c ON c.namespace = g ->> 'namespace' AND c.gang = g ->> 'gang'
        ),
        'released', coalesce(at, clock_timestamp())
    );
END $$;


-- Their pods never came. At most so many at once, the oldest first.
CREATE FUNCTION ledger_expire(
    leadership text, term bigint, most integer, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
BEGIN
    PERFORM ledger_fence(leadership, term);
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


-- Make the ledger say what the pods say. `existing` are the gangs that have pods, as charges.
--
-- A charge without pods is left alone while it can still expire, and while it is younger than
-- `grace`: the pods may be newer than the list. No limit is looked at: what runs, runs.
-- Looks first and locks only what differs, so that charging goes on meanwhile. What the webhook
-- charges in between is left for the next time.
CREATE FUNCTION ledger_reconcile(
    leadership text, term bigint, existing jsonb, grace interval, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
    gone uuid[];
    wrong uuid[];
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
    SELECT
        array_agg(c.decision) FILTER (WHERE e.gang IS NULL),
        array_agg(c.decision) FILTER (WHERE e.gang IS NOT NULL)
    INTO gone, wrong
    FROM charges AS c
    LEFT JOIN jsonb_populate_recordset(NULL::charges, existing) AS e USING (namespace, gang)
    WHERE CASE
        WHEN e.gang IS NULL THEN c.expires_at IS NULL AND c.charged_at + grace <= moment
        ELSE (c.user_name, c.group_name, c.vc, c.class, c.is_high, c.leaf_type, c.leaf_count)
            <> (e.user_name, e.group_name, e.vc, e.class, e.is_high, e.leaf_type, e.leaf_count)
    END;
    SELECT array_agg(e ORDER BY e.namespace, e.gang) INTO missing
    FROM jsonb_populate_recordset(NULL::charges, existing) AS e
    LEFT JOIN charges AS c USING (namespace, gang)
    WHERE c.gang IS NULL OR c.decision = ANY (wrong);
    PERFORM ledger_lock(array_agg(s.user_name), array_agg(s.group_name), moment)
    FROM (
        SELECT c.user_name, c.group_name FROM charges AS c WHERE c.decision = ANY (gone || wrong)
        UNION
        SELECT m.user_name, m.group_name FROM unnest(missing) AS m
    ) AS s;
    SELECT jsonb_agg(to_jsonb(c)) INTO released FROM ledger_end(gone, 'gone', moment) AS c;
    SELECT jsonb_agg(to_jsonb(c)) INTO corrected FROM ledger_end(wrong, 'corrected', moment) AS c;
    FOREACH charge IN ARRAY coalesce(missing, '{}') LOOP
        charge.charged_at := moment;
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


-- What users, groups, VCs and classes held at a moment; NULL for now.
CREATE FUNCTION ledger_held(moment timestamptz) RETURNS TABLE (
    user_name text, group_name text, vc text, class text, is_high boolean, leaf_type text,
    leaf_count bigint, gang_count bigint
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        c.user_name, c.group_name, c.vc, c.class, c.is_high, c.leaf_type,
        sum(c.leaf_count), count(*)
    FROM (
        SELECT
            p.user_name, p.group_name, p.vc, p.class, p.is_high, p.leaf_type, p.leaf_count
        FROM past_charges AS p
        WHERE tstzrange(p.charged_at, p.ended_at) @> moment
        UNION ALL
        SELECT l.user_name, l.group_name, l.vc, l.class, l.is_high, l.leaf_type, l.leaf_count
        FROM charges AS l
        WHERE moment IS NULL OR l.charged_at <= moment
    ) AS c
    GROUP BY c.user_name, c.group_name, c.vc, c.class, c.is_high, c.leaf_type
    ORDER BY c.user_name, c.group_name, c.vc, c.class, c.is_high, c.leaf_type;
END;


-- Leaf cells × microseconds by UTC day, from `first` to `last`, of past charges and live ones.
CREATE FUNCTION ledger_time(first date, last date, at timestamptz) RETURNS TABLE (
    day date, user_name text, group_name text, vc text, class text, leaf_type text,
    leaf_micros bigint
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.day, t.user_name, t.group_name, t.vc, t.class, t.leaf_type, sum(t.leaf_micros)::bigint
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

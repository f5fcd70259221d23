-- As before (0013), but the places of a gang whose members may differ (leaf_count_each is set) are leaf
-- cells: what its members that are created later ask for beyond leaf_count_each. A member that joins
-- takes as many as it asks for beyond that number.
CREATE OR REPLACE FUNCTION ledger_join_one(
    charge charges, joins integer, limits jsonb, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    existing charges;
    answer json;
BEGIN
    UPDATE charges AS c
    SET places = c.places - CASE WHEN c.leaf_count_each IS NULL THEN 1 ELSE joins END
    FROM (
        SELECT l.decision FROM charges AS l
        WHERE l.namespace = charge.namespace AND l.gang = charge.gang
            AND l.decision = charge.decision AND l.class = charge.class
            AND l.places >= CASE WHEN l.leaf_count_each IS NULL THEN 1 ELSE joins END
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
    IF (existing.places >= CASE WHEN existing.leaf_count_each IS NULL THEN 1 ELSE joins END) THEN
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

-- As before (0008), but a charge that has expired starts anew only where a time to live is given: the
-- leader, which raises gangs (0013), gives none, because its question does not show that pods appear.
CREATE OR REPLACE FUNCTION ledger_existing(
    existing charges, asked charges, ttl interval, at timestamptz
) RETURNS json
LANGUAGE plpgsql AS $$
BEGIN
    IF existing.expires_at <= at AND ttl > interval '0' THEN
        UPDATE charges AS c SET expires_at = at + ttl
        FROM (
            SELECT l.decision FROM charges AS l
            WHERE l.decision = existing.decision AND l.expires_at <= at
            FOR UPDATE SKIP LOCKED  -- who holds it may want the rows that we hold
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

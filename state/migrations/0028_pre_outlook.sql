-- The outlook: when a gang that is submitted now would start. The leader replaces it, webhooks read it.

CREATE TABLE outlook (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),   -- there is one row
    computed_at timestamptz NOT NULL,
    entries jsonb NOT NULL               -- by VC, leaf type, class and size of the gang
);


CREATE FUNCTION save_outlook(
    leadership text, term bigint, computed timestamptz, expected jsonb
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_fence(leadership, term);
    INSERT INTO outlook AS o (computed_at, entries) VALUES (computed, expected)
    ON CONFLICT (one) DO UPDATE SET computed_at = excluded.computed_at, entries = excluded.entries;
END $$;


-- It runs with the rights of its owner: it looks for our tables in our schema and nowhere else.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION save_outlook(text, bigint, timestamptz, jsonb) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION save_outlook(text, bigint, timestamptz, jsonb) FROM PUBLIC;
END $$;


-- As before, and the leader writes the outlook; both services read it.
ALTER FUNCTION grant_rights() RENAME TO grant_rights_before_outlook;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_rights_before_outlook();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_extender') THEN
        GRANT EXECUTE ON FUNCTION
            save_outlook(text, bigint, timestamptz, jsonb) TO cellgate_extender;
        GRANT SELECT ON outlook TO cellgate_extender;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_webhook') THEN
        GRANT SELECT ON outlook TO cellgate_webhook;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

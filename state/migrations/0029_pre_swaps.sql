-- The webhook reads for which gangs cells are reserved: these are not swapped in the queue.

-- As before, and the webhook reads promises.
ALTER FUNCTION grant_rights() RENAME TO grant_rights_before_swaps;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_rights_before_swaps();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_webhook') THEN
        GRANT SELECT ON promises TO cellgate_webhook;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

-- The promise ledger: which start was promised to which waiting gang, and each slip with its reason.
-- The next leader reads the promises in force, so that a reservation survives a change of leaders.

CREATE TABLE promises (
    namespace text NOT NULL,
    gang text NOT NULL,
    owner text NOT NULL,                 -- the UID of the gang's workload; empty if it has none
    made_at timestamptz NOT NULL,
    ended_at timestamptz,                -- NULL while the cells are reserved
    body jsonb NOT NULL,                 -- cells, promised starts, slips
    PRIMARY KEY (namespace, gang, owner, made_at)
);
CREATE INDEX promises_ended ON promises (ended_at);


-- Write promises that were made or have changed. One that has ended stays so. Rows that are older
-- than `keep` are deleted.
CREATE FUNCTION save_promises(
    leadership text, term bigint, promised jsonb, keep interval, at timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_fence(leadership, term);
    INSERT INTO promises AS p (namespace, gang, owner, made_at, ended_at, body)
    SELECT n.namespace, n.gang, n.owner, n.made_at, n.ended_at, n.body
    FROM jsonb_to_recordset(promised) AS n (
        namespace text, gang text, owner text, made_at timestamptz, ended_at timestamptz, body jsonb
    )
    ON CONFLICT (namespace, gang, owner, made_at)
    DO UPDATE SET ended_at = excluded.ended_at, body = excluded.body
    WHERE p.ended_at IS NULL;
    DELETE FROM promises AS p WHERE p.ended_at < coalesce(at, now()) - keep;
END $$;


-- It runs with the rights of its owner: it looks for our tables in our schema and nowhere else.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION save_promises(text, bigint, jsonb, interval, timestamptz) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION
        save_promises(text, bigint, jsonb, interval, timestamptz) FROM PUBLIC;
END $$;


-- As before, and the leader writes and reads promises.
ALTER FUNCTION grant_rights() RENAME TO grant_rights_before_promises;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_rights_before_promises();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_extender') THEN
        GRANT EXECUTE ON FUNCTION
            save_promises(text, bigint, jsonb, interval, timestamptz) TO cellgate_extender;
        GRANT SELECT ON promises TO cellgate_extender;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

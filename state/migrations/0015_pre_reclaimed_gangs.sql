-- Since when gangs ask whose pods the leader ended for other gangs. The new pods of such a gang rank
-- by that time, also after a change of leaders. A charge ends with its pods, so this is kept beside
-- the charges, under the same key, for some days after the last reclaim.
CREATE TABLE reclaimed_gangs (
    namespace text NOT NULL,
    gang text NOT NULL,
    first_asked timestamptz NOT NULL,
    reclaimed_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, gang)
);
CREATE INDEX reclaimed_gangs_at ON reclaimed_gangs (reclaimed_at);


-- Note gangs whose pods were ended; the earliest time of each counts. Rows that are older than `keep`
-- are deleted.
CREATE FUNCTION ledger_note_reclaimed(
    leadership text, term bigint, gangs jsonb, keep interval, at timestamptz
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
BEGIN
    PERFORM ledger_fence(leadership, term);
    DELETE FROM reclaimed_gangs AS r WHERE r.reclaimed_at <= moment - keep;
    INSERT INTO reclaimed_gangs AS r (namespace, gang, first_asked, reclaimed_at)
    SELECT g.namespace, g.gang, g.first_asked, moment
    FROM jsonb_to_recordset(gangs) AS g (namespace text, gang text, first_asked timestamptz)
    ORDER BY g.namespace, g.gang
    ON CONFLICT (namespace, gang) DO UPDATE SET
        first_asked = least(r.first_asked, excluded.first_asked),
        reclaimed_at = greatest(r.reclaimed_at, excluded.reclaimed_at);
    RETURN '[]';
END $$;


-- What 0006 gives to functions that the services call; see there.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION ledger_note_reclaimed(text, bigint, jsonb, interval, timestamptz) '
        'SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION
        ledger_note_reclaimed(text, bigint, jsonb, interval, timestamptz) FROM PUBLIC;
END $$;


-- As before (0014), and the leader notes what it reclaims.
CREATE OR REPLACE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_other_rights();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_extender') THEN
        GRANT EXECUTE ON FUNCTION
            observe_nodes(text, bigint, jsonb, text[], interval, timestamptz),
            retain_nodes(text, bigint, text[], timestamptz),
            ledger_note_reclaimed(text, bigint, jsonb, interval, timestamptz) TO cellgate_extender;
    END IF;
END $$;

SELECT grant_rights();

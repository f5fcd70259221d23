-- Which nodes with devices were seen lately. A promise to a VC is compared with them when the
-- Cluster document is changed, and a workload when it is created: a node that fails today does not
-- make either impossible.
--
-- A node has a row for each number of devices that it had. Rows of the past count for some days.

CREATE TABLE seen_nodes (
    name text NOT NULL,
    leaf_counts jsonb NOT NULL,          -- devices by the name of their resource
    labels jsonb NOT NULL,
    left_at timestamptz,                 -- when it was gone, or had other devices; NULL: still there
    PRIMARY KEY (name, leaf_counts)
);
CREATE INDEX seen_nodes_left ON seen_nodes (left_at);


-- Note the nodes that the leader sees: those that joined or changed, and the names of those that are
-- gone. Rows that are older than `keep` are deleted.
CREATE FUNCTION observe_nodes(
    leadership text, term bigint, nodes jsonb, gone text[], keep interval, at timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := coalesce(at, now());
BEGIN
    PERFORM ledger_fence(leadership, term);
    UPDATE seen_nodes AS s SET left_at = moment
    WHERE s.left_at IS NULL AND s.name = ANY (gone);
    UPDATE seen_nodes AS s SET left_at = moment
    FROM jsonb_to_recordset(nodes) AS n (name text, leaf_counts jsonb)
    WHERE s.left_at IS NULL AND s.name = n.name AND s.leaf_counts <> n.leaf_counts;
    INSERT INTO seen_nodes AS s (name, leaf_counts, labels)
    SELECT n.name, n.leaf_counts, n.labels
    FROM jsonb_to_recordset(nodes) AS n (name text, leaf_counts jsonb, labels jsonb)
    ORDER BY n.name
    ON CONFLICT (name, leaf_counts) DO UPDATE SET labels = excluded.labels, left_at = NULL
    WHERE s.labels <> excluded.labels OR s.left_at IS NOT NULL;
    DELETE FROM seen_nodes AS s WHERE s.left_at < moment - keep;
END $$;


-- Note that all other nodes are gone: a leader has listed those that are there.
CREATE FUNCTION retain_nodes(leadership text, term bigint, names text[], at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_fence(leadership, term);
    UPDATE seen_nodes AS s SET left_at = coalesce(at, now())
    WHERE s.left_at IS NULL AND NOT s.name = ANY (names);
END $$;


-- They run with the rights of their owner: they look for our tables in our schema and nowhere else.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'observe_nodes(text, bigint, jsonb, text[], interval, timestamptz)',
        'retain_nodes(text, bigint, text[], timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END $$;


-- Give the roles that exist their rights, all of them; to be repeated when roles were added. The
-- extender notes nodes, too.
ALTER FUNCTION grant_rights() RENAME TO grant_other_rights;
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM grant_other_rights();
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cellgate_extender') THEN
        GRANT EXECUTE ON FUNCTION
            observe_nodes(text, bigint, jsonb, text[], interval, timestamptz),
            retain_nodes(text, bigint, text[], timestamptz) TO cellgate_extender;
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

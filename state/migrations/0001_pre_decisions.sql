-- What the services decided and what the engine was fed, one row each, written behind the answer and
-- never changed. Partitioned by day, so that old rows leave as whole tables: nothing to vacuum.
CREATE TABLE decisions (
    -- Made by the service, and known before the row is written: a repeated write is recognised.
    -- In the layout of UUID version 7: of two rows of one moment, the later one has the greater key.
    key uuid NOT NULL,
    at timestamptz NOT NULL,
    service text NOT NULL,
    -- A decision: admission, ordering, placement, preemption, bind, release …
    -- An observation, fed to the engine: node, pod, document, expiry.
    kind text NOT NULL,
    -- What it is about: a gang (namespace/name), or a node.
    subject text NOT NULL,
    pod_uid text,
    outcome text NOT NULL,
    reason text NOT NULL,
    policy_version text,
    -- The leadership term it was made in, and its number in that term: a gap there is a lost row.
    epoch bigint,
    sequence bigint,
    latency_seconds double precision NOT NULL,
    -- For people, and for a replay.
    details jsonb NOT NULL DEFAULT '{}',
    inputs jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (at, key)
) PARTITION BY RANGE (at);

-- "Why is this gang, or this pod, where it is": the newest rows about it. Ties are sorted by key.
CREATE INDEX decisions_subject ON decisions (subject, at);
CREATE INDEX decisions_pod_uid ON decisions (pod_uid, at) WHERE pod_uid IS NOT NULL;

-- What a replay reads. Not unique: that would need `at` in it, and a key says the same.
CREATE INDEX decisions_sequence ON decisions (service, epoch, sequence) WHERE epoch IS NOT NULL;

-- Holds rows for which no day was made ahead, such as those of a wrong clock. Normally empty.
CREATE TABLE decisions_default PARTITION OF decisions DEFAULT;

-- Make a table for each day from `first` on that has none.
--
-- A new table is attached, which locks neither readers nor writers of other days out; `CREATE TABLE …
-- PARTITION OF` would. Rows of that day that wait in the default partition move over. Whoever holds
-- a lock longer than the timeout makes this fail and not the log: it is tried again later.
-- The owner's rights, so that a service that may not change the schema can still write tomorrow.
CREATE FUNCTION ensure_decision_days(first date, day_count integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '1s'
AS $$
DECLARE
    day date;
    name text;
    made integer := 0;
BEGIN
    -- Replicas take turns.
    PERFORM pg_advisory_xact_lock(hashtext('cellgate decision days'));
    FOR day IN SELECT first + number FROM generate_series(0, day_count - 1) AS number LOOP
        name := 'decisions_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(name) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE decisions INCLUDING ALL)', name);
        LOCK TABLE decisions_default IN ACCESS EXCLUSIVE MODE;
        EXECUTE format(
            'WITH moved AS (
                DELETE FROM decisions_default WHERE at >= %1$L AND at < %2$L RETURNING *
            ) INSERT INTO %3$I SELECT * FROM moved',
            day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC', name
        );
        EXECUTE format(
            'ALTER TABLE decisions ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            name, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'
        );
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

-- Drop the oldest day before `before` and return its table's name; NULL if there is none left.
-- Dropping locks the log out while it waits for readers: for one day at a time, no longer than the
-- timeout. Rows of the default partition are left alone: somebody should look at them.
CREATE FUNCTION drop_decision_day(before date) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '200ms'
AS $$
DECLARE
    name text;
BEGIN
    SELECT child.relname INTO name
    FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
    WHERE inhparent = 'decisions'::regclass
        AND child.relname ~ '^decisions_[0-9]{8}$'
        AND child.relname < 'decisions_' || to_char(before, 'YYYYMMDD')
    ORDER BY child.relname
    LIMIT 1;
    IF name IS NOT NULL THEN
        EXECUTE format('DROP TABLE %I', name);
    END IF;
    RETURN name;
END
$$;

-- The documents that rows refer to by hash, once each.
CREATE TABLE documents (
    hash text PRIMARY KEY,
    kind text NOT NULL,
    content text NOT NULL,
    first_seen_at timestamptz NOT NULL
);

-- The highest epoch that each service has written with: rows of an older one come from a deposed
-- leader, and are refused.
CREATE TABLE log_epochs (
    service text PRIMARY KEY,
    epoch bigint NOT NULL,
    since timestamptz NOT NULL DEFAULT now()
);

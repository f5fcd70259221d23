-- What the services decided, one row each, written behind the answer.
CREATE TABLE decisions (
    -- Order of arrival. Several services write, so it is not the order of `at`.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Made by the service, and known before the row is written: a repeated write is recognised.
    key uuid NOT NULL,
    at timestamptz NOT NULL,
    service text NOT NULL,
    kind text NOT NULL,
    -- What it is about, such as a gang: namespace/name.
    subject text NOT NULL,
    pod_uid text,
    outcome text NOT NULL,
    reason text NOT NULL,
    policy_version text,
    latency_seconds double precision NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'
);

-- With `at`, so that it stays a valid key when the table is partitioned by time.
CREATE UNIQUE INDEX decisions_key ON decisions (key, at);

-- "Why is this gang, or this pod, where it is": the newest decisions about it.
CREATE INDEX decisions_subject ON decisions (subject, id DESC);
CREATE INDEX decisions_pod_uid ON decisions (pod_uid, id DESC) WHERE pod_uid IS NOT NULL;

-- Stretches of time; rows arrive almost in order, so a block range index is small and exact enough.
CREATE INDEX decisions_at ON decisions USING brin (at);

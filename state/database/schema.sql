-- Made by `python -m state.database.schema` from the migrations; do not edit. Tables with their
-- columns, keys, checks and indexes, then views and functions, by name. Partitions made at run time
-- are left out.

TABLE charges (
    decision uuid NOT NULL,
    namespace text NOT NULL,
    gang text NOT NULL,
    user_name text NOT NULL,
    group_name text NOT NULL,
    vc text NOT NULL,
    class text NOT NULL,
    is_high boolean NOT NULL,
    leaf_type text NOT NULL,
    leaf_count integer NOT NULL,
    charged_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    places integer,
    gang_size integer,
    leaf_count_each integer,
    rises_to text,
    raised_from text,
    cpu_millis bigint,
    memory_bytes bigint,
    cpu_each bigint,
    memory_each bigint,
    CONSTRAINT charges_leaf_count_check CHECK ((leaf_count >= 0)),
    CONSTRAINT charges_namespace_gang_key UNIQUE (namespace, gang),
    CONSTRAINT charges_pkey PRIMARY KEY (decision),
    CONSTRAINT charges_user_name_check CHECK ((user_name <> ''::text))
);

TABLE decisions (
    key uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    service text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    pod_uid text,
    outcome text NOT NULL,
    reason text NOT NULL,
    policy_version text,
    epoch bigint,
    sequence bigint,
    latency_seconds double precision NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'::jsonb,
    inputs jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT decisions_pkey PRIMARY KEY (at, key)
) PARTITION BY RANGE (at);
CREATE INDEX decisions_pod_uid ON ONLY public.decisions USING btree (pod_uid, at) WHERE (pod_uid IS NOT NULL);
CREATE INDEX decisions_sequence ON ONLY public.decisions USING btree (service, epoch, sequence) WHERE (epoch IS NOT NULL);
CREATE INDEX decisions_subject ON ONLY public.decisions USING btree (subject, at);

TABLE decisions_default (
    key uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    service text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    pod_uid text,
    outcome text NOT NULL,
    reason text NOT NULL,
    policy_version text,
    epoch bigint,
    sequence bigint,
    latency_seconds double precision NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'::jsonb,
    inputs jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT decisions_default_pkey PRIMARY KEY (at, key)
);
CREATE INDEX decisions_default_pod_uid_at_idx ON public.decisions_default USING btree (pod_uid, at) WHERE (pod_uid IS NOT NULL);
CREATE INDEX decisions_default_service_epoch_sequence_idx ON public.decisions_default USING btree (service, epoch, sequence) WHERE (epoch IS NOT NULL);
CREATE INDEX decisions_default_subject_at_idx ON public.decisions_default USING btree (subject, at);

TABLE documents (
    hash text NOT NULL,
    kind text NOT NULL,
    content text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT documents_pkey PRIMARY KEY (hash)
);

TABLE gang_days (
    day date NOT NULL,
    user_name text COLLATE "C" NOT NULL,
    group_name text COLLATE "C" NOT NULL,
    vc text COLLATE "C" NOT NULL,
    class text COLLATE "C" NOT NULL,
    gangs bigint NOT NULL,
    ended bigint NOT NULL,
    leaf_cell_micros bigint NOT NULL,
    leaf_type text COLLATE "C" NOT NULL DEFAULT ''::text,
    CONSTRAINT gang_days_pkey PRIMARY KEY (day, user_name, group_name, vc, class, leaf_type)
);
CREATE INDEX gang_days_group ON public.gang_days USING btree (group_name, day);
CREATE INDEX gang_days_user ON public.gang_days USING btree (user_name, day);

TABLE gang_history (
    run text COLLATE "C" NOT NULL,
    gang text COLLATE "C" NOT NULL,
    user_name text COLLATE "C",
    group_name text COLLATE "C",
    vc text COLLATE "C",
    requested_class text COLLATE "C",
    granted_class text COLLATE "C",
    leaf_type text COLLATE "C",
    leaf_count integer,
    member_count integer,
    asked_at timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    nodes text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
    outcome text COLLATE "C",
    reason text COLLATE "C",
    preempted_for text COLLATE "C",
    ran tstzrange DEFAULT
CASE
    WHEN (ended_at < started_at) THEN 'empty'::tstzrange
    ELSE tstzrange(started_at, ended_at)
END,
    workload text COLLATE "C",
    workload_uid text COLLATE "C",
    labels jsonb NOT NULL DEFAULT '{}'::jsonb,
    image text COLLATE "C",
    estimate_seconds bigint,
    limit_seconds bigint,
    admitted_at timestamp with time zone,
    released_at timestamp with time zone,
    held_from timestamp with time zone,
    running_at timestamp with time zone,
    restarts integer,
    members jsonb NOT NULL DEFAULT '{}'::jsonb,
    certainty smallint NOT NULL DEFAULT 0,
    stamp text COLLATE "C" NOT NULL DEFAULT ''::text,
    held tstzrange DEFAULT
CASE
    WHEN (ended_at < COALESCE(held_from, started_at)) THEN 'empty'::tstzrange
    ELSE tstzrange(COALESCE(held_from, started_at), ended_at)
END,
    predictions jsonb NOT NULL DEFAULT '{}'::jsonb,
    extent text COLLATE "C" NOT NULL DEFAULT ''::text,
    CONSTRAINT gang_history_pkey PRIMARY KEY (run)
);
CREATE INDEX gang_history_asked ON public.gang_history USING btree (asked_at DESC, run DESC);
CREATE INDEX gang_history_ended ON public.gang_history USING btree (ended_at DESC, run DESC) WHERE ((started_at IS NOT NULL) AND (ended_at IS NOT NULL));
CREATE INDEX gang_history_gang ON public.gang_history USING btree (gang, asked_at DESC);
CREATE INDEX gang_history_group ON public.gang_history USING btree (group_name, asked_at DESC, run DESC);
CREATE INDEX gang_history_held ON public.gang_history USING gist (held) WHERE (COALESCE(held_from, started_at) IS NOT NULL);
CREATE INDEX gang_history_outcome ON public.gang_history USING btree (outcome, asked_at DESC, run DESC) WHERE (outcome <> 'succeeded'::text);
CREATE INDEX gang_history_preempted ON public.gang_history USING btree (ended_at) WHERE (outcome = 'preempted'::text);
CREATE INDEX gang_history_running ON public.gang_history USING btree (COALESCE(held_from, started_at)) WHERE (ended_at IS NULL);
CREATE INDEX gang_history_started ON public.gang_history USING btree (started_at);
CREATE INDEX gang_history_until ON public.gang_history USING btree (COALESCE(ended_at, 'infinity'::timestamp with time zone));
CREATE INDEX gang_history_user ON public.gang_history USING btree (user_name, asked_at DESC);
CREATE INDEX gang_history_vc ON public.gang_history USING btree (vc, asked_at DESC, run DESC);

TABLE holdings (
    user_name text NOT NULL,
    group_name text NOT NULL,
    leaf_count bigint NOT NULL,
    leaf_count_high bigint NOT NULL,
    gang_count bigint NOT NULL,
    by_leaf_type jsonb NOT NULL,
    leaf_micros numeric(30,0) NOT NULL,
    day_base numeric(30,0) NOT NULL,
    week_base numeric(30,0) NOT NULL,
    month_base numeric(30,0) NOT NULL,
    counted_at timestamp with time zone NOT NULL,
    version bigint NOT NULL,
    changed_in xid8 NOT NULL,
    overflow jsonb,
    cpu_millis bigint NOT NULL DEFAULT 0,
    memory_bytes bigint NOT NULL DEFAULT 0,
    CONSTRAINT holdings_check CHECK (((leaf_count >= 0) AND (leaf_count_high >= 0) AND (gang_count >= 0))),
    CONSTRAINT holdings_pkey PRIMARY KEY (user_name, group_name)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);

TABLE leaderships (
    name text NOT NULL,
    epoch bigint NOT NULL,
    CONSTRAINT leaderships_pkey PRIMARY KEY (name)
);

TABLE leaf_cell_days (
    day date NOT NULL,
    user_name text NOT NULL,
    group_name text NOT NULL,
    vc text NOT NULL,
    class text NOT NULL,
    leaf_type text NOT NULL,
    leaf_micros numeric(30,0) NOT NULL,
    CONSTRAINT leaf_cell_days_pkey PRIMARY KEY (day, user_name, group_name, vc, class, leaf_type)
);
CREATE INDEX leaf_cell_days_user ON public.leaf_cell_days USING btree (user_name, day);

TABLE log_epochs (
    service text NOT NULL,
    epoch bigint NOT NULL,
    since timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT log_epochs_pkey PRIMARY KEY (service)
);

TABLE log_terms (
    service text NOT NULL,
    epoch bigint NOT NULL,
    began_at timestamp with time zone NOT NULL,
    CONSTRAINT log_terms_pkey PRIMARY KEY (service, epoch)
);

TABLE outlook (
    one boolean NOT NULL DEFAULT true,
    computed_at timestamp with time zone NOT NULL,
    entries jsonb NOT NULL,
    CONSTRAINT outlook_one_check CHECK (one),
    CONSTRAINT outlook_pkey PRIMARY KEY (one)
);

TABLE past_charges (
    id bigint NOT NULL GENERATED AS IDENTITY,
    decision uuid NOT NULL,
    namespace text NOT NULL,
    gang text NOT NULL,
    user_name text NOT NULL,
    group_name text NOT NULL,
    vc text NOT NULL,
    class text NOT NULL,
    is_high boolean NOT NULL,
    leaf_type text NOT NULL,
    leaf_count integer NOT NULL,
    charged_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    ended text NOT NULL,
    CONSTRAINT past_charges_check CHECK ((ended_at >= charged_at)),
    CONSTRAINT past_charges_ended_check CHECK ((ended = ANY (ARRAY['released'::text, 'expired'::text, 'gone'::text, 'corrected'::text]))),
    CONSTRAINT past_charges_pkey PRIMARY KEY (id)
);
CREATE INDEX past_charges_gang ON public.past_charges USING btree (namespace, gang, id DESC);
CREATE INDEX past_charges_held ON public.past_charges USING gist (tstzrange(charged_at, ended_at));
CREATE INDEX past_charges_user ON public.past_charges USING btree (user_name, id DESC);

TABLE promises (
    namespace text NOT NULL,
    gang text NOT NULL,
    owner text NOT NULL,
    made_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    body jsonb NOT NULL,
    CONSTRAINT promises_pkey PRIMARY KEY (namespace, gang, owner, made_at)
);
CREATE INDEX promises_ended ON public.promises USING btree (ended_at);

TABLE queued_gangs (
    namespace text NOT NULL,
    gang text NOT NULL,
    charge jsonb NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT queued_gangs_pkey PRIMARY KEY (namespace, gang)
);
CREATE INDEX queued_gangs_expiry ON public.queued_gangs USING btree (expires_at);

TABLE reclaimed_gangs (
    namespace text NOT NULL,
    gang text NOT NULL,
    first_asked timestamp with time zone NOT NULL,
    reclaimed_at timestamp with time zone NOT NULL,
    CONSTRAINT reclaimed_gangs_pkey PRIMARY KEY (namespace, gang)
);
CREATE INDEX reclaimed_gangs_at ON public.reclaimed_gangs USING btree (reclaimed_at);

TABLE run_pods (
    pod_uid text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    CONSTRAINT run_pods_pkey PRIMARY KEY (pod_uid),
    CONSTRAINT run_pods_run_fkey FOREIGN KEY (run) REFERENCES gang_history(run) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX run_pods_run ON public.run_pods USING btree (run);

TABLE schema_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (name)
);

TABLE seen_nodes (
    name text NOT NULL,
    leaf_counts jsonb NOT NULL,
    labels jsonb NOT NULL,
    left_at timestamp with time zone,
    devices bigint NOT NULL DEFAULT 0,
    cpu bigint,
    memory bigint,
    changed bigint NOT NULL DEFAULT 0,
    CONSTRAINT seen_nodes_pkey PRIMARY KEY (name, leaf_counts)
);
CREATE INDEX seen_nodes_changed ON public.seen_nodes USING btree (changed);
CREATE INDEX seen_nodes_left ON public.seen_nodes USING btree (left_at);

VIEW leaf_cell_hours AS
 SELECT day,
    NULLIF(user_name, ''::text) AS user_name,
    NULLIF(group_name, ''::text) AS group_name,
    NULLIF(vc, ''::text) AS vc,
    NULLIF(class, ''::text) AS class,
    (sum(gangs))::bigint AS gangs,
    ((sum(leaf_cell_micros))::double precision / ('3600000000'::numeric)::double precision) AS leaf_cell_hours,
    NULLIF(leaf_type, ''::text) AS leaf_type
   FROM ( SELECT gang_days.day,
            gang_days.user_name,
            gang_days.group_name,
            gang_days.vc,
            gang_days.class,
            gang_days.leaf_type,
            gang_days.gangs,
            gang_days.leaf_cell_micros
           FROM gang_days
        UNION ALL
         SELECT days.day,
            COALESCE(h.user_name, ''::text) AS "coalesce",
            COALESCE(h.group_name, ''::text) AS "coalesce",
            COALESCE(h.vc, ''::text) AS "coalesce",
            COALESCE(h.granted_class, ''::text) AS "coalesce",
            holds.leaf_type,
            count(DISTINCT h.run) AS count,
            sum((holds.leaf_count * days.micros)) AS sum
           FROM ((gang_history h
             CROSS JOIN LATERAL run_holds(h.*) holds(since, until, leaf_count, leaf_type))
             CROSS JOIN LATERAL split_days(holds.since, COALESCE(holds.until, now())) days(day, micros, is_last))
          WHERE ((h.ended_at IS NULL) AND (COALESCE(h.held_from, h.started_at) < now()))
          GROUP BY days.day, COALESCE(h.user_name, ''::text), COALESCE(h.group_name, ''::text), COALESCE(h.vc, ''::text), COALESCE(h.granted_class, ''::text), holds.leaf_type) parts
  WHERE (gangs > 0)
  GROUP BY day, user_name, group_name, vc, class, leaf_type;

VIEW preemptions AS
 SELECT ((ended_at AT TIME ZONE 'UTC'::text))::date AS day,
    ended_at,
    gang,
    user_name,
    group_name,
    vc,
    granted_class AS class,
    preempted_for,
    reason,
    ((( SELECT sum(((holds.leaf_count)::numeric * EXTRACT(epoch FROM (holds.until - holds.since)))) AS sum
           FROM run_holds(h.*) holds(since, until, leaf_count, leaf_type)
          WHERE (holds.since < holds.until)))::double precision / (3600)::double precision) AS leaf_cell_hours_run
   FROM gang_history h
  WHERE (outcome = 'preempted'::text);

VIEW waiting_times AS
 SELECT ((started_at AT TIME ZONE 'UTC'::text))::date AS day,
    vc,
    granted_class AS class,
    count(*) AS gangs,
    percentile_cont((0.5)::double precision) WITHIN GROUP (ORDER BY ((EXTRACT(epoch FROM (started_at - asked_at)))::double precision)) AS p50_seconds,
    percentile_cont((0.9)::double precision) WITHIN GROUP (ORDER BY ((EXTRACT(epoch FROM (started_at - asked_at)))::double precision)) AS p90_seconds
   FROM gang_history
  WHERE (started_at >= asked_at)
  GROUP BY (((started_at AT TIME ZONE 'UTC'::text))::date), vc, granted_class;

FUNCTION add_gang_days(gang_history[],gang_history[]) RETURNS void; -- 97df878d8d223002e8912ef6550270c2

FUNCTION drop_decision_day(date) RETURNS text SECURITY DEFINER SET search_path=public, pg_temp SET lock_timeout=200ms; -- 63b4fd4d8a3d4700900c2000dc9f7f3f

FUNCTION ensure_decision_days(date,integer) RETURNS integer SECURITY DEFINER SET search_path=public, pg_temp SET lock_timeout=1s; -- 630eca862457cc4595e864459df14a47

FUNCTION follow_gang_history() RETURNS trigger SECURITY DEFINER SET search_path=public, pg_temp; -- b38509d511a0e28eaef3c5b781e50a63

FUNCTION forget_past(text,date,integer,integer) RETURNS integer SECURITY DEFINER SET search_path=public, pg_temp; -- f2176e24711ff7626a9860cd823d3837

FUNCTION grant_other_rights() RETURNS void; -- be3e6181253def3e84ceabc08fece2f3

FUNCTION grant_rights() RETURNS void; -- d05be34eb8e179827c6070b0089ddfdb

FUNCTION grant_rights_before_counts() RETURNS void; -- 4bbaf83e70e547dcb8a93d95671b00a9

FUNCTION grant_rights_before_outlook() RETURNS void; -- aa4a2f55828cac8ccfa2b27e8dc910dc

FUNCTION grant_rights_before_promises() RETURNS void; -- f3358a18828a9f5e0dd4fc329c79e5d8

FUNCTION grant_rights_before_runs() RETURNS void; -- a56eb9e4ed9bc597a987357b029f49b3

FUNCTION grant_rights_before_swaps() RETURNS void; -- dbae6b0b3457b4fccf2ff102c71dbb24

FUNCTION ledger_add_days(charges,timestamp with time zone) RETURNS void; -- de3bcb2bfe399423b4323e125194b46c

FUNCTION ledger_add_one(charges,bigint,bigint,jsonb,interval,timestamp with time zone) RETURNS json; -- 30a3535a92f9fb7b09a4e03bb5185340

FUNCTION ledger_advance(holdings,charges,integer,timestamp with time zone,timestamp with time zone) RETURNS holdings; -- 8ad51d3bd026f738077c4f76911b6de0

FUNCTION ledger_bump(charges,integer,timestamp with time zone,timestamp with time zone) RETURNS SETOF holdings; -- 46554af86ce873375e67ca66639ed7a7

FUNCTION ledger_charge(jsonb,interval,timestamp with time zone) RETURNS SETOF json SECURITY DEFINER SET search_path=public, pg_temp SET enable_seqscan=off SET plan_cache_mode=force_generic_plan; -- 80a781fea124fde03d483db904c9998a

FUNCTION ledger_charge_one(charges,jsonb,interval,timestamp with time zone) RETURNS json; -- 33ae77af8d5654ca08f929a9d40e5164

FUNCTION ledger_confirm(text,bigint,jsonb) RETURNS jsonb SECURITY DEFINER SET search_path=public, pg_temp; -- 8eed46e075eb8e2351166f7ca58a06ec

FUNCTION ledger_days(integer,timestamp with time zone,timestamp with time zone) RETURNS TABLE(day date, leaf_micros numeric); -- fc133217226ceaf5888b6c54d651aca0

FUNCTION ledger_end(uuid[],text,timestamp with time zone) RETURNS SETOF charges; -- 5a138c111d71884d290d646dbd4b826a

FUNCTION ledger_exceeded(charges,holdings[],jsonb) RETURNS jsonb; -- 9f08bc54ec0492e7ab0dd63406263ec1

FUNCTION ledger_existing(charges,charges,interval,timestamp with time zone) RETURNS json; -- 31192bf8fe8d6a8b54797e7a536b7f99

FUNCTION ledger_expire(text,bigint,integer,timestamp with time zone) RETURNS jsonb SECURITY DEFINER SET search_path=public, pg_temp; -- 5516ce2d3fc4692610355d63231c5742

FUNCTION ledger_fence(text,bigint) RETURNS void; -- bd97c355dc136e2c1d5f0f97c1757ac1

FUNCTION ledger_grow_one(charges,integer,jsonb,interval,timestamp with time zone) RETURNS json; -- 66e186ca25b42f75619a571e3a168030

FUNCTION ledger_held(timestamp with time zone) RETURNS TABLE(user_name text, group_name text, vc text, class text, is_high boolean, leaf_type text, leaf_count bigint, gang_count bigint); -- 94e093ad36d0ea3cd1cb5694b4aa1a9a

FUNCTION ledger_join_one(charges,integer,jsonb,interval,timestamp with time zone) RETURNS json; -- b9333b937f103adf617eceeb7c0c93a7

FUNCTION ledger_lock(text[],text[],timestamp with time zone) RETURNS void; -- 1605e8418b3dc7749c36b21d2dd519fc

FUNCTION ledger_lock_and_end(uuid[],text,timestamp with time zone) RETURNS jsonb; -- 57cb651fcbc94b2aabb93e28b7605a9e

FUNCTION ledger_micros(interval) RETURNS bigint; -- 67009d3819315bb6c2c72d27b34f23b0

FUNCTION ledger_note_reclaimed(text,bigint,jsonb,interval,timestamp with time zone) RETURNS jsonb SECURITY DEFINER SET search_path=public, pg_temp; -- 5de7fd29c4b5735673097d08011bed87

FUNCTION ledger_overflow(jsonb,charges,integer) RETURNS jsonb; -- ea9db076443b40c3f17cffa14828ad02

FUNCTION ledger_queue_one(jsonb,interval,timestamp with time zone) RETURNS json; -- 90a3eafc574d20937ca444bcae34760b

FUNCTION ledger_raise(text,bigint,jsonb,text,boolean,jsonb,timestamp with time zone) RETURNS json SECURITY DEFINER SET search_path=public, pg_temp; -- c06483a6b799f8a284840195eaf9e7db

FUNCTION ledger_reconcile(text,bigint,jsonb,interval,timestamp with time zone) RETURNS jsonb SECURITY DEFINER SET search_path=public, pg_temp; -- 53ad7966c8ef1ae778222c80f2b46981

FUNCTION ledger_recount(text,bigint,jsonb,timestamp with time zone) RETURNS integer SECURITY DEFINER SET search_path=public, pg_temp; -- 7edaf6bfc34a355770f1c63d93bbaeec

FUNCTION ledger_release(text,bigint,jsonb,timestamp with time zone) RETURNS jsonb SECURITY DEFINER SET search_path=public, pg_temp SET enable_seqscan=off SET plan_cache_mode=force_generic_plan; -- 614de525389d4eb35673340045878af7

FUNCTION ledger_replace(charges,charges,jsonb) RETURNS record; -- fbe16f1222ed61ae1a4de6a2dff8ba38

FUNCTION ledger_share(bigint,integer,integer) RETURNS bigint; -- 59010ac3b705383232f46d3959f01f69

FUNCTION ledger_time(date,date,timestamp with time zone) RETURNS TABLE(day date, user_name text, group_name text, vc text, class text, leaf_type text, leaf_micros bigint); -- 2eedcd8b62958a2cf1a393dc532f1778

FUNCTION ledger_usage(holdings) RETURNS json; -- fba9d8740d861c50d6f0f2e0302b6782

FUNCTION merge_members(jsonb,jsonb) RETURNS jsonb; -- 358f5c2d521c5ef8784486230b6a4091

FUNCTION merge_predictions(jsonb,jsonb) RETURNS jsonb; -- 125adf3c671758832b6646be28b72b7b

FUNCTION merge_runs(gang_history,gang_history) RETURNS gang_history; -- e6ff6ee001e33eb682837dcdaf1db46c

FUNCTION observe_nodes(text,bigint,jsonb,text[],interval,timestamp with time zone) RETURNS void SECURITY DEFINER SET search_path=public, pg_temp; -- 8572f4e111755b5d95b9338a94a8476b

FUNCTION record_run(gang_history) RETURNS void; -- df9bfce8c7a149d2f9ac66a594183533

FUNCTION record_runs(jsonb) RETURNS void SECURITY DEFINER SET search_path=public, pg_temp; -- c0805bab5ac4da540b6ead1ceabf3a18

FUNCTION retain_nodes(text,bigint,text[],timestamp with time zone) RETURNS void SECURITY DEFINER SET search_path=public, pg_temp; -- 06a34b8240b6e1aa6d225de3f5f55462

FUNCTION run_holds(gang_history) RETURNS TABLE(since timestamp with time zone, until timestamp with time zone, leaf_count integer, leaf_type text); -- 815fafc1c062a3fed3a1c4be489502bc

FUNCTION runs_between(timestamp with time zone,timestamp with time zone) RETURNS TABLE(run text, gang text, user_name text, group_name text, vc text, class text, leaf_type text, leaf_count integer, hours double precision); -- 6c831e0c26f7e5e395635b9303dd6f56

FUNCTION save_outlook(text,bigint,timestamp with time zone,jsonb) RETURNS void SECURITY DEFINER SET search_path=public, pg_temp; -- b2fb897c5614a8029bf07693ef6ce67f

FUNCTION save_promises(text,bigint,jsonb,interval,timestamp with time zone) RETURNS void SECURITY DEFINER SET search_path=public, pg_temp; -- e64fb0a84a33f61edb153c9d8ae0f88e

FUNCTION split_days(timestamp with time zone,timestamp with time zone) RETURNS TABLE(day date, micros bigint, is_last boolean); -- 5d7b16aa2b95bc938db7646cea4eb539

FUNCTION tell_older_release() RETURNS trigger SECURITY DEFINER SET search_path=public, pg_temp; -- fb0229eba141b3bcab66c6f9955d31aa

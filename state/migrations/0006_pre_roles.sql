-- Who may do what. A service logs in as a user of the admin's choice that is a member of one of
-- these: GRANT cellgate_webhook TO alice_login. The owner of the schema needs none of them.
--
--   cellgate_webhook   charges gangs and reads
--   cellgate_extender  what the leader does to the ledger, too
--   cellgate_reader    reads
--
-- The ledger is only written through its functions, which run with the rights of their owner: a
-- service cannot change a sum, or the past, by itself.

DO $$
DECLARE
    name text;
BEGIN
    -- The functions look for our tables in our schema and nowhere else: no table of a caller's own
    -- making is taken for one of them.
    FOREACH name IN ARRAY ARRAY[
        'ledger_charge(jsonb, interval, timestamptz)',
        'ledger_confirm(text, bigint, jsonb)',
        'ledger_release(text, bigint, jsonb, timestamptz)',
        'ledger_expire(text, bigint, integer, timestamptz)',
        'ledger_reconcile(text, bigint, jsonb, interval, timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            name, current_schema());
    END LOOP;
    -- Plans are made when tables are still small or empty, and are kept: always by index.
    FOREACH name IN ARRAY ARRAY[
        'ledger_charge(jsonb, interval, timestamptz)',
        'ledger_release(text, bigint, jsonb, timestamptz)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', name);
        EXECUTE format('ALTER FUNCTION %s SET plan_cache_mode = force_generic_plan', name);
    END LOOP;
    FOR name IN
        SELECT p.oid::regprocedure FROM pg_proc AS p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'ledger\_%'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END $$;


-- Roles belong to the whole server: they may exist, or come into being at this very moment.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['cellgate_webhook', 'cellgate_extender', 'cellgate_reader'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = role);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role % was not created: % may not create roles. Services that log in '
                    'as the owner of the schema need none; to use it, create it and run '
                    'SELECT grant_rights()', role, current_user;
        END;
    END LOOP;
END $$;


-- Give the roles that exist their rights; to be repeated when roles or tables were added.
CREATE FUNCTION grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    role text;
    target text := quote_ident(current_schema());
BEGIN
    FOR role IN
        SELECT rolname FROM pg_roles
        WHERE rolname IN ('cellgate_webhook', 'cellgate_extender', 'cellgate_reader')
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', target, role);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %I', target, role);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT ON TABLES TO %I',
            target, role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_held(timestamptz), ledger_time(date, date, timestamptz),
            ledger_days(integer, timestamptz, timestamptz), ledger_micros(interval),
            ledger_usage(holdings),
            ledger_advance(holdings, charges, integer, timestamptz, timestamptz) TO %I', role);
        CONTINUE WHEN role = 'cellgate_reader';
        EXECUTE format('GRANT INSERT ON decisions TO %I', role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_charge(jsonb, interval, timestamptz) TO %I', role);
        CONTINUE WHEN role = 'cellgate_webhook';
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_confirm(text, bigint, jsonb),
            ledger_release(text, bigint, jsonb, timestamptz),
            ledger_expire(text, bigint, integer, timestamptz),
            ledger_reconcile(text, bigint, jsonb, interval, timestamptz) TO %I', role);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION grant_rights() FROM PUBLIC;

SELECT grant_rights();

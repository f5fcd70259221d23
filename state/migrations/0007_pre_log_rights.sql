-- What the services may do to the decision log and the history: add, and nothing else. Rows of
-- `decisions` and `documents` are never changed; days come and go only through two functions.

-- They run with the rights of their owner, so they look for our tables in our schema and nowhere
-- else, and not everybody may call them.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'ensure_decision_days(date, integer)', 'drop_decision_day(date)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END $$;


-- Give the roles that exist their rights in the log; to be repeated when roles were added.
CREATE FUNCTION grant_log_rights() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT rolname FROM pg_roles WHERE rolname IN ('cellgate_webhook', 'cellgate_extender')
    LOOP
        EXECUTE format('GRANT INSERT ON decisions, documents TO %I', role);
        -- Merging and fencing are updates.
        EXECUTE format('GRANT INSERT, UPDATE ON gang_history, log_epochs TO %I', role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ensure_decision_days(date, integer), drop_decision_day(date) TO %I', role);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION grant_log_rights() FROM PUBLIC;

SELECT grant_log_rights();

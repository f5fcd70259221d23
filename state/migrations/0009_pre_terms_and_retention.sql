-- Which rows of an older epoch are refused, how long things are kept, and one place for rights.


-- When each leadership term of a service began: when its first row was decided, by the clock of its
-- leader. A row of an older term is refused if it was decided after that moment. What a leader had
-- decided before it was deposed is true, however late it arrives.
CREATE TABLE log_terms (
    service text NOT NULL,
    epoch bigint NOT NULL,
    began_at timestamptz NOT NULL,
    PRIMARY KEY (service, epoch)
);
INSERT INTO log_terms (service, epoch, began_at) SELECT service, epoch, since FROM log_epochs;

-- A process of the release before this one still asks `log_epochs`: it hears of new terms. To be
-- dropped, with this, by a release that no such process can run beside.
CREATE FUNCTION tell_older_release() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log_epochs AS known (service, epoch) VALUES (NEW.service, NEW.epoch)
    ON CONFLICT (service) DO UPDATE SET epoch = excluded.epoch, since = now()
    WHERE known.epoch < excluded.epoch;
    RETURN NULL;
END $$;
CREATE TRIGGER log_terms_told AFTER INSERT ON log_terms
    FOR EACH ROW EXECUTE FUNCTION tell_older_release();


-- A document is seen whenever a row is written that says it is in force: no row that is kept refers
-- to one that was seen longer ago than that row was made.
ALTER TABLE documents ADD COLUMN last_seen_at timestamptz NOT NULL DEFAULT now();


-- Delete rows of one table that are older than so many whole days, at most so many at once; return
-- how many. Old is what is old by both clocks, the caller's and the database's: one that is wrong
-- deletes nothing. Sums by day outlive the runs they are made of.
CREATE FUNCTION forget_past(what text, today date, keep_days integer, most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    first_kept date := least(today, (now() AT TIME ZONE 'UTC')::date) - keep_days;
    before timestamptz := first_kept::timestamp AT TIME ZONE 'UTC';
    forgotten integer;
BEGIN
    PERFORM set_config('cellgate.forgets', 'on', true);
    CASE what
        WHEN 'decisions_default' THEN  -- whole days are dropped; these had none
            DELETE FROM decisions_default WHERE ctid = ANY (ARRAY(
                SELECT d.ctid FROM decisions_default AS d WHERE d.at < before LIMIT most
            ));
        WHEN 'documents' THEN
            DELETE FROM documents WHERE hash = ANY (ARRAY(
                SELECT d.hash FROM documents AS d WHERE d.last_seen_at < before LIMIT most
            ));
        WHEN 'gang_history' THEN  -- what goes on is not past, however long
            DELETE FROM gang_history WHERE run = ANY (
                ARRAY(
                    SELECT h.run FROM gang_history AS h
                    WHERE h.started_at < before AND h.ended_at < before LIMIT most
                ) || ARRAY(
                    SELECT h.run FROM gang_history AS h
                    WHERE h.started_at IS NULL AND coalesce(h.ended_at, h.asked_at) < before
                    LIMIT most
                )
            );
        WHEN 'past_charges' THEN
            DELETE FROM past_charges WHERE id = ANY (ARRAY(
                SELECT p.id FROM past_charges AS p
                WHERE tstzrange(p.charged_at, p.ended_at) << tstzrange(before, NULL)
                    AND p.ended_at < before
                LIMIT most
            ));
        WHEN 'gang_days' THEN
            DELETE FROM gang_days WHERE day < first_kept;
        WHEN 'leaf_cell_days' THEN
            DELETE FROM leaf_cell_days WHERE day < first_kept;
    END CASE;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    PERFORM set_config('cellgate.forgets', 'off', true);
    RETURN forgotten;
END $$;


-- Follow every change of the history but its being forgotten.
CREATE OR REPLACE FUNCTION follow_gang_history() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    now_runs gang_history[] := '{}';
    old_runs gang_history[] := '{}';
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('cellgate.forgets', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        now_runs := ARRAY(SELECT ROW(n.*)::gang_history FROM now_rows AS n);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_runs := ARRAY(SELECT ROW(o.*)::gang_history FROM old_rows AS o);
    END IF;
    PERFORM add_gang_days(now_runs, old_runs);
    RETURN NULL;
END
$$;


-- They run with the rights of their owner: they look for our tables in our schema and nowhere else.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'forget_past(text, date, integer, integer)', 'tell_older_release()', 'follow_gang_history()'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            name, current_schema());
    END LOOP;
    REVOKE EXECUTE ON FUNCTION forget_past(text, date, integer, integer) FROM PUBLIC;
END $$;


-- Give the roles that exist their rights, all of them; to be repeated when roles were added.
--
--   everybody   reads
--   services    add to the log and the history (merging is an update), make and drop their days,
--               forget what is past; charge
--   extender    what the leader does to the ledger, too
CREATE OR REPLACE FUNCTION grant_rights() RETURNS void
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
        EXECUTE format('GRANT INSERT ON decisions, documents TO %I', role);
        EXECUTE format('GRANT UPDATE (last_seen_at) ON documents TO %I', role);
        EXECUTE format('GRANT INSERT, UPDATE ON gang_history, log_terms, log_epochs TO %I', role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ensure_decision_days(date, integer), drop_decision_day(date),
            forget_past(text, date, integer, integer),
            ledger_charge(jsonb, interval, timestamptz) TO %I', role);
        CONTINUE WHEN role = 'cellgate_webhook';
        EXECUTE format('GRANT EXECUTE ON FUNCTION
            ledger_confirm(text, bigint, jsonb),
            ledger_release(text, bigint, jsonb, timestamptz),
            ledger_expire(text, bigint, integer, timestamptz),
            ledger_reconcile(text, bigint, jsonb, interval, timestamptz) TO %I', role);
    END LOOP;
END $$;
DROP FUNCTION grant_log_rights();

SELECT grant_rights();

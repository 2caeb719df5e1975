-- Inside the new database, as a superuser, or as the role that made the database. It may be run again.
CREATE EXTENSION IF NOT EXISTS vector;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO memos_owner;
GRANT USAGE, CREATE ON SCHEMA public TO memos_router;
GRANT USAGE ON SCHEMA public TO memos_app, memos_auditor;
DO $$ BEGIN EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()); END $$;
-- A failed statement may carry what a person wrote: the log names the error, and neither statement nor values. Whoever
-- wants slow statements or all of them in the log has content there, too; `manage.py doctor` says so.
DO $$ BEGIN
  EXECUTE format('ALTER DATABASE %I SET log_error_verbosity = ''terse''', current_database());
  EXECUTE format('ALTER DATABASE %I SET log_min_error_statement = ''panic''', current_database());
  EXECUTE format('ALTER DATABASE %I SET log_statement = ''none''', current_database());
  EXECUTE format('ALTER DATABASE %I SET log_min_duration_statement = -1', current_database());
  EXECUTE format('ALTER DATABASE %I SET log_min_duration_sample = -1', current_database());
  EXECUTE format('ALTER DATABASE %I SET log_transaction_sample_rate = 0', current_database());
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'only a superuser keeps content out of the log here: set log_error_verbosity = terse and log_min_error_statement = panic in the configuration of the server';
END $$;
DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO memos_owner, memos_app, memos_auditor', current_database()); END $$;
-- Functions of PostgreSQL 18 that the migrations call: before it, these stand in. The time of the id is shifted as there
-- (RFC 9562); statistics that were gathered stay until the next ANALYZE.
DO $$ BEGIN
  IF current_setting('server_version_num')::int < 180000 THEN
    CREATE OR REPLACE FUNCTION public.uuidv7(shift interval DEFAULT interval '0') RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE AS $function$
      SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
        substring(int8send((extract(epoch FROM clock_timestamp() + shift) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid
    $function$;
    CREATE OR REPLACE FUNCTION public.pg_clear_attribute_stats(
      schemaname text, relname text, attname text, inherited boolean) RETURNS void
    LANGUAGE sql AS 'SELECT';
  END IF;
END $$;

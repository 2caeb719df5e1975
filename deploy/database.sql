-- Inside the new database, once, as a superuser.
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
END $$;
DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO memos_owner, memos_app, memos_auditor', current_database()); END $$;

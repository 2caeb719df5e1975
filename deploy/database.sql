-- Inside the new database, once, as a superuser.
CREATE EXTENSION IF NOT EXISTS vector;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO memos_owner;
GRANT USAGE, CREATE ON SCHEMA public TO memos_router;
GRANT USAGE ON SCHEMA public TO memos_app, memos_auditor;
DO $$ BEGIN EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()); END $$;
DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO memos_owner, memos_app, memos_auditor', current_database()); END $$;

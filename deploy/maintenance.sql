-- The right to remove purged bytes from tables and the write-ahead log (docs/operations.md).
-- Run inside the database as a superuser, after database.sql; it may be run again. The worker takes on this role for the
-- hourly task alone: it reads no row, and the role that serves has none of its rights by itself.
DO $$ BEGIN
  IF to_regrole('memos_maintainer') IS NULL THEN
    CREATE ROLE memos_maintainer NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
  END IF;
  GRANT memos_maintainer TO memos_app WITH INHERIT FALSE, SET TRUE;
  GRANT USAGE ON SCHEMA public TO memos_maintainer;
  BEGIN
    GRANT pg_checkpoint TO memos_maintainer;
    GRANT EXECUTE ON FUNCTION pg_switch_wal() TO memos_maintainer;
  EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'only a superuser lets memos_maintainer remove purged bytes from the write-ahead log';
  END;
  IF current_setting('server_version_num')::int >= 170000 THEN -- PostgreSQL 16 has no such right
    GRANT MAINTAIN ON ALL TABLES IN SCHEMA public TO memos_maintainer;
    ALTER DEFAULT PRIVILEGES FOR ROLE memos_owner IN SCHEMA public GRANT MAINTAIN ON TABLES TO memos_maintainer;
  END IF;
END $$;

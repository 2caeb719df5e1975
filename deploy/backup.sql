-- The role of `manage.py backup`: it reads every tenant's rows, all of them sealed where they hold content, and writes none.
-- Run inside the database as a superuser, after database.sql; it may be run again.
DO $$ BEGIN
  IF to_regrole('memos_backup') IS NULL THEN
    BEGIN
      CREATE ROLE memos_backup LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE BYPASSRLS;
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE NOTICE 'only a superuser makes memos_backup: back up with the tools of the server''s provider';
      RETURN;
    END;
  END IF;
  GRANT pg_read_all_data TO memos_backup;
  ALTER ROLE memos_backup SET default_transaction_read_only = on;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO memos_backup', current_database());
END $$;

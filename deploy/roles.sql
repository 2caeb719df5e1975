-- The four roles, and the database. Run once as a superuser, with psql-free SQL so that any client can send it.
-- owner migrates · app serves and owns nothing · router owns the few functions that look across tenants · auditor reads the audit log.
-- memos_backup is made by backup.sql: it reads all tenants' rows for backups. A sixth, memos_maintainer, is made by maintenance.sql: it removes purged bytes and reads no row.
CREATE ROLE memos_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
CREATE ROLE memos_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
CREATE ROLE memos_router NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
CREATE ROLE memos_auditor NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
GRANT memos_router TO memos_owner WITH INHERIT FALSE, SET TRUE;
ALTER ROLE memos_app SET statement_timeout = '30s';
ALTER ROLE memos_app SET lock_timeout = '5s';
ALTER ROLE memos_app SET plan_cache_mode = 'force_generic_plan';
ALTER ROLE memos_app SET timezone = 'UTC';
ALTER ROLE memos_app SET idle_in_transaction_session_timeout = '60s';
CREATE DATABASE memos OWNER memos_owner;

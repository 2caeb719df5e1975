#!/bin/bash
# Makes roles, database and passwords on a PostgreSQL, as a superuser or a role with CREATEROLE and CREATEDB. It may be
# run again, and completes a run that was interrupted. The postgres image runs it at its first start; on any other
# server run it by hand, with psql's own variables (PGHOST, PGUSER, …) saying where.
set -euo pipefail
: "${DATABASE_OWNER_PASSWORD:?must be set}" "${DATABASE_APP_PASSWORD:?must be set}"
folder="${DEPLOY_FOLDER:-$(dirname "$0")}"

# send DATABASE [OPTION...]: SQL goes to this database; the first error ends the script.
send() {
	psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

# In the image's start script the superuser's name is POSTGRES_USER.
export PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
ask() {
	psql --no-psqlrc --quiet --tuples-only --no-align --dbname postgres --command "$1"
}
# Each statement of this file is a line of its own.
while IFS= read -r statement; do
	read -r verb kind name _ <<<"$statement"
	case "$verb $kind" in
	"CREATE ROLE") [ -z "$(ask "SELECT 1 FROM pg_roles WHERE rolname = '$name'")" ] || continue ;;
	"CREATE DATABASE")
		# Who is no superuser gives a database only to a role that it belongs to.
		[ "$(ask "SHOW is_superuser")" = on ] || send postgres --command "GRANT memos_owner, memos_router TO CURRENT_USER"
		[ -z "$(ask "SELECT 1 FROM pg_database WHERE datname = '$name'")" ] || continue
		;;
	"-- "* | " ") continue ;;
	esac
	send postgres --command "$statement"
done <"$folder/roles.sql"
send memos --file "$folder/database.sql"
send memos --file "$folder/maintenance.sql"
send memos --file "$folder/backup.sql"
# psql reads the passwords from the environment: on a command line others could see them.
send postgres <<'SQL'
\getenv owner DATABASE_OWNER_PASSWORD
\getenv app DATABASE_APP_PASSWORD
ALTER ROLE memos_owner PASSWORD :'owner';
ALTER ROLE memos_app PASSWORD :'app';
SQL
if [ -n "${DATABASE_BACKUP_PASSWORD:-}" ] && [ -n "$(ask "SELECT 1 FROM pg_roles WHERE rolname = 'memos_backup'")" ]; then
	send postgres <<'SQL'
\getenv backup DATABASE_BACKUP_PASSWORD
ALTER ROLE memos_backup PASSWORD :'backup';
SQL
fi

#!/bin/bash
# Makes roles, database and passwords on an empty PostgreSQL, as a superuser, once. The postgres image runs it at its
# first start; on any other server run it by hand, with psql's own variables (PGHOST, PGUSER, …) saying where.
set -euo pipefail
: "${DATABASE_OWNER_PASSWORD:?must be set}" "${DATABASE_APP_PASSWORD:?must be set}"
folder="${DEPLOY_FOLDER:-$(dirname "$0")}"

# send DATABASE [OPTION...]: SQL goes to this database; the first error ends the script.
send() {
	psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

# In the image's start script the superuser's name is POSTGRES_USER.
export PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
send postgres --file "$folder/roles.sql"
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
if [ -n "${DATABASE_BACKUP_PASSWORD:-}" ]; then
	send postgres <<'SQL'
\getenv backup DATABASE_BACKUP_PASSWORD
ALTER ROLE memos_backup PASSWORD :'backup';
SQL
fi

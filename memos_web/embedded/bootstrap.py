"""Creates roles and database of a new PostgreSQL, from the same SQL files that operators run by hand."""

import re
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DATABASE = "memos"
ALREADY_THERE = (psycopg.errors.DuplicateObject, psycopg.errors.DuplicateDatabase)


def bootstrap(*, server: str, database: str) -> None:
    """Create missing roles and the database. server, database: superuser connections to the server and the new
    database.

    The first two files run once; the next start completes an interrupted run. maintenance.sql and backup.sql run each
    time.
    """
    if not _is_made(server):
        with psycopg.connect(server, autocommit=True) as connection:
            for statement in _statements(DEPLOY / "roles.sql"):
                _run_unless_there(connection, statement)
        with psycopg.connect(database, autocommit=True) as connection:
            # The file is sent as one transaction, so the extension proves that all of it has run.
            connection.execute(_file(DEPLOY / "database.sql"))
    with psycopg.connect(database, autocommit=True) as connection:
        for name in ("maintenance.sql", "backup.sql"):  # also where an older version made the rest
            connection.execute(_file(DEPLOY / name))


def empty_database(database: str) -> None:
    """Remove all tables and functions, and prepare the database as deploy/init-database.sh does."""
    with psycopg.connect(database, autocommit=True) as connection, connection.transaction():
        connection.execute("DROP SCHEMA IF EXISTS maintenance CASCADE")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        for name in ("database.sql", "maintenance.sql", "backup.sql"):
            connection.execute(_file(DEPLOY / name))


def has_tenants(database: str) -> bool:
    """Return whether the migrated database has tenants. database: a superuser's connection string, which sees all
    rows."""
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute("SELECT 1 FROM governance_tenant LIMIT 1").fetchone() is not None


def _is_made(server: str) -> bool:
    with psycopg.connect(server, autocommit=True) as connection:
        row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
    if row is None:
        return False
    inside = psycopg.conninfo.make_conninfo(server, dbname=DATABASE)
    with psycopg.connect(inside, autocommit=True) as connection:
        return connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is not None


def _run_unless_there(connection: psycopg.Connection, statement: sql.SQL) -> None:
    with suppress(*ALREADY_THERE):  # made by an interrupted run
        connection.execute(statement)


def _statements(path: Path) -> list[sql.SQL]:
    text = re.sub(r"^--.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [sql.SQL(part.strip()) for part in re.split(r";\s*$", text, flags=re.MULTILINE) if part.strip()]


def _file(path: Path) -> sql.SQL:
    return sql.SQL(path.read_text(encoding="utf-8"))

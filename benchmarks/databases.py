"""Database connections of benchmarks: as the app role for raw SQL, and as the superuser for work that policies
forbid."""

import subprocess
from typing import Any

import psycopg
from django.conf import settings
from psycopg import sql

from memos_web.embedded import postgres
from memos_web.settings.base import CONFIG


def app_connection() -> psycopg.Connection[Any]:
    """Connect as the server does: the same role, without prepared statements."""
    entry = settings.DATABASES["default"]
    return psycopg.connect(
        host=entry["HOST"],
        port=entry["PORT"] or None,
        dbname=entry["NAME"],
        user=entry["USER"],
        password=entry.get("PASSWORD") or None,
        prepare_threshold=None,
    )


def postgresql_version() -> str:
    """Return the server's version, such as 18.4, without the distribution's suffix."""
    with app_connection() as raw:
        return str(raw.info.parameter_status("server_version")).split()[0]


def embedded_version() -> str:
    """Return the version of the embedded server, which need not run."""
    command = [str(postgres.program_path("postgres")), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[2]


def superuser_conninfo(database: str) -> str | None:
    """Return the connection string of the embedded server's superuser; None if the server is not embedded."""
    server = postgres.of(CONFIG)
    return None if server is None else server.conninfo(database=database)


def product_database() -> str:
    name: str = settings.DATABASES["default"]["NAME"]
    return name


def vacuum_and_analyse() -> bool:
    """Vacuum and analyse the tables, as autovacuum does some minutes after a load. Returns False without the rights."""
    conninfo = superuser_conninfo(product_database())
    if conninfo is None:
        return False
    with psycopg.connect(conninfo, autocommit=True) as superuser:
        for table in ("vault_cube", "vault_cubeversion", "vault_posting", "vault_embedding"):
            superuser.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
    return True

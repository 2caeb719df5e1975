"""Checks at the start: the server must be recent enough, and row-level security must apply to the role."""

from collections.abc import Collection

import psycopg
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from governance.database import no_tenant
from governance.errors import Unavailable
from governance.tenants.role_check import refuse_unbound_role

OURS = frozenset({"governance", "vault"})  # apps whose tables this release must know
OLDEST_SERVER = 16  # the oldest PostgreSQL that the tests run on


def refuse_unsafe_role() -> None:
    """Refuse a superuser, an owner of tables, or a role that can become one. Raises UnsafeRole.

    Raises Unavailable, with the server's own reason, if the connection fails or the server is too old.
    """
    refuse_old_server()
    with no_tenant(), connection.cursor() as cursor:
        refuse_unbound_role(cursor)
    refuse_other_tables()


def refuse_other_tables() -> None:
    """Raise Unavailable if the database has tables of another release: this one would fail at its first write."""
    with no_tenant():
        loader = MigrationLoader(connection)
    applied = {key for key in loader.applied_migrations or () if key[0] in OURS}
    ours = {key for key in loader.graph.nodes if key[0] in OURS}
    if unknown := applied - ours:
        raise Unavailable(f"A newer release has migrated the database ({_last(unknown)}): start that release")
    if missing := ours - applied:
        raise Unavailable(f"The database lacks a migration of this release ({_last(missing)}): run `manage.py migrate`")


def _last(keys: Collection[tuple[str, str]]) -> str:
    return max(f"{app}.{name}" for app, name in keys)


def refuse_old_server() -> None:
    """Connect once without the pool, which would retry for ten seconds and hide the reason of a failure.

    Raises Unavailable without an answer, or for a PostgreSQL older than OLDEST_SERVER.
    """
    try:
        with psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5}) as session:
            version = session.info.server_version // 10_000
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database cannot be reached: {' '.join(str(error).split())}") from error
    if version < OLDEST_SERVER:
        raise Unavailable(f"PostgreSQL {version} is too old: {OLDEST_SERVER} or newer is needed")

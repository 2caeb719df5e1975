"""The product refuses to serve as a role that row-level security does not bind."""

import psycopg
from django.db import connection

from governance.database import no_tenant
from governance.errors import Unavailable

QUESTION = """
SELECT r.rolname,
       r.rolsuper OR r.rolbypassrls,
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relowner = r.oid AND c.relkind IN ('r', 'p', 'v', 'm')),
       pg_has_role(current_user, 'memos_owner', 'MEMBER') OR pg_has_role(current_user, 'memos_router', 'MEMBER')
FROM pg_roles r WHERE r.rolname = current_user
"""


class UnsafeRole(Exception):
    """Served as this role, the database would not keep tenants apart."""


def refuse_unsafe_role() -> None:
    """Raises UnsafeRole when connected as a superuser, an owner of tables, or a role that can become one.

    Raises Unavailable, with the server's own reason, when it cannot connect at all.
    """
    _try_to_connect()
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(QUESTION)
        name, bypasses, owns, can_become = cursor.fetchone()
    if bypasses or owns or can_become:
        raise UnsafeRole(f"the database role {name} is not bound by row-level security; serve as memos_app")


def _try_to_connect() -> None:
    """Once, past the pool, which would try for ten seconds and then not say what was wrong."""
    try:
        psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5}).close()
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database cannot be reached: {' '.join(str(error).split())}") from error

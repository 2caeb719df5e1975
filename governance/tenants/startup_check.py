"""The product refuses to serve as a role that row-level security does not bind."""

import psycopg
from django.db import connection

from governance.database import no_tenant
from governance.errors import Unavailable
from governance.tenants.role_check import refuse_unbound_role


def refuse_unsafe_role() -> None:
    """Raises UnsafeRole when connected as a superuser, an owner of tables, or a role that can become one.

    Raises Unavailable, with the server's own reason, when it cannot connect at all.
    """
    _try_to_connect()
    with no_tenant(), connection.cursor() as cursor:
        refuse_unbound_role(cursor)


def _try_to_connect() -> None:
    """Once, past the pool, which would try for ten seconds and then not say what was wrong."""
    try:
        psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5}).close()
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database cannot be reached: {' '.join(str(error).split())}") from error

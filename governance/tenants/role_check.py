"""Check that row-level security applies to a database role. Without Django, because the supervisor uses it too."""

from typing import Any, Protocol

QUESTION = """
SELECT r.rolname,
       r.rolsuper OR r.rolbypassrls,
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relowner = r.oid AND c.relkind IN ('r', 'p', 'v', 'm')),
       pg_has_role(current_user, 'memos_owner', 'MEMBER') OR pg_has_role(current_user, 'memos_router', 'MEMBER')
FROM pg_roles r WHERE r.rolname = current_user
"""


class Cursor(Protocol):
    """A database cursor, of Django or of psycopg."""

    def execute(self, query: Any, /) -> Any: ...

    def fetchone(self) -> Any: ...


class UnsafeRole(Exception):
    """The database role bypasses row-level security, which keeps tenants apart."""


def refuse_unbound_role(cursor: Cursor) -> None:
    """Refuse a role that bypasses row-level security: a superuser or a table owner. Raises UnsafeRole."""
    cursor.execute(QUESTION)
    name, bypasses, owns, can_become = cursor.fetchone()
    if bypasses or owns or can_become:
        raise UnsafeRole(f"the database role {name} is not bound by row-level security; serve as memos_app")

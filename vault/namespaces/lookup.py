"""The look-up of a namespace that every write begins with, hand-written because the ORM is slower than the query."""

from governance.actor import Actor
from governance.prepared import prepared_cursor
from vault.models import Namespace

COLUMNS = [str(field.column) for field in Namespace._meta.concrete_fields]
BY_PATH = f"SELECT {', '.join(COLUMNS)} FROM vault_namespace WHERE tenant_id = %s AND path = %s"


def namespace_by_path(actor: Actor, path: str) -> Namespace | None:
    """Return the namespace of the actor's tenant at `path`, or None. Checks no permission. Use inside `acting`."""
    with prepared_cursor() as cursor:
        cursor.execute(BY_PATH, [actor.tenant_id, path])
        row = cursor.fetchone()
    names = [field.attname for field in Namespace._meta.concrete_fields]
    return None if row is None else Namespace.from_db("default", names, row)

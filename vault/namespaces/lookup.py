"""The look-up that every write begins with. By hand: the ORM takes longer to compose it than PostgreSQL to answer."""

from governance.actor import Actor
from governance.prepared import prepared_cursor
from vault.models import Namespace

COLUMNS = [str(field.column) for field in Namespace._meta.concrete_fields]
BY_PATH = f"SELECT {', '.join(COLUMNS)} FROM vault_namespace WHERE tenant_id = %s AND path = %s"


def namespace_by_path(actor: Actor, path: str) -> Namespace | None:
    """The namespace of the actor's tenant at `path`, whoever may read it. Inside `acting`."""
    with prepared_cursor() as cursor:
        cursor.execute(BY_PATH, [actor.tenant_id, path])
        row = cursor.fetchone()
    names = [field.attname for field in Namespace._meta.concrete_fields]
    return None if row is None else Namespace.from_db("default", names, row)

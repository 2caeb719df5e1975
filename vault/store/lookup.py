"""Look-up of packs and versions in the actor's own tenant."""

from uuid import UUID

from governance.access.decisions.rules import Target
from governance.actor import Actor
from governance.errors import NotFound
from vault.models import Pack, PackVersion


def pack_target(pack: Pack) -> Target:
    return Target("pack", pack.id, pack.tenant_id)


def pack_locate(actor: Actor, pack_id: UUID) -> Pack:
    """Return the row of one pack. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    found = Pack.objects.filter(tenant_id=actor.tenant_id, id=pack_id).first()
    if found is None:
        raise NotFound
    return found


def version_locate(actor: Actor, version_id: UUID, *, lock: bool = False) -> PackVersion:
    """Return a version with its pack. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    rows = PackVersion.objects.filter(tenant_id=actor.tenant_id, id=version_id).select_related("pack")
    found = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def version_place(row: PackVersion) -> bytes:
    """Return the encryption context of a version's file."""
    return b"pack" + row.id.bytes

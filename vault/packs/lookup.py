"""Finding the pack or version that a call names, in the actor's own tenant."""

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
    """A version with its pack. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    rows = PackVersion.objects.filter(tenant_id=actor.tenant_id, id=version_id).select_related("pack")
    found = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def version_place(row: PackVersion) -> bytes:
    """The place that the file is sealed for."""
    return b"pack" + row.id.bytes

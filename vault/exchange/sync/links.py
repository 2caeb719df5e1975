"""Links between memories here and at a peer, and conflicts between both."""

from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.errors import Invalid
from vault.cubes.lookup import locate_readable
from vault.exchange.item_drafts import CHANGED, SYNC_FORMAT
from vault.exchange.items import ITEM, ORIGIN, ORIGIN_FORMAT, Item
from vault.models import SyncLink, SyncPeer
from vault.reviews.sync_conflicts import Theirs, sync_conflict_propose

NEVER_EQUAL = 0  # as a version: both sides were changed since a last sync that there was none of
WAITS = "other_conflict"


def link_write(peer: SyncPeer, *, cube_id: UUID, version: int, remote_id: UUID, remote_version: int) -> None:
    """Record that a memory here and one at the peer are equal now. Writes: SyncLink; deletes earlier links of both."""
    rows = SyncLink.objects.filter(tenant_id=peer.tenant_id, peer=peer)
    if rows.filter(cube_id=cube_id, remote_id=remote_id).update(version=version, remote_version=remote_version):
        return
    rows.filter(cube_id=cube_id).delete()
    rows.filter(remote_id=remote_id).delete()
    SyncLink.objects.create(
        tenant_id=peer.tenant_id,
        peer=peer,
        cube_id=cube_id,
        version=version,
        remote_id=remote_id,
        remote_version=remote_version,
    )


def conflict_note(actor: Actor, peer: SyncPeer, *, cube_id: UUID, remote_id: UUID, item: Item, number: int) -> str:
    """Ask for a decision between the memory here and `item`, the version `number` at the peer.

    Returns the reason where it is not asked: a conflict with another peer waits, or a policy refuses the other text.
    Writes: Review, SyncLink?.
    """
    locate_readable(actor, cube_id)
    rows = SyncLink.objects.filter(tenant_id=peer.tenant_id, peer=peer, cube_id=cube_id, remote_id=remote_id)
    if not rows.exists():
        link_write(peer, cube_id=cube_id, version=NEVER_EQUAL, remote_id=remote_id, remote_version=NEVER_EQUAL)
    theirs = Theirs(peer.id, peer.name, number, _last_version_values(item, remote_id))
    try:
        return "" if sync_conflict_propose(actor=actor, cube_id=cube_id, theirs=theirs) else WAITS
    except Invalid as refusal:
        return refusal.code


def _last_version_values(item: Item, remote_id: UUID) -> dict[str, Any]:
    """The last version as JSON, as a memory here would have it."""
    last = ITEM.dump_python(item, mode="json")["versions"][-1]
    metadata = {**last["metadata"], ORIGIN: str(remote_id), ORIGIN_FORMAT: SYNC_FORMAT}
    return {name: metadata if name == "metadata" else last[name] for name in CHANGED}

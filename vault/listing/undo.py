"""Undoing what a bulk action did to one memory, as its versions tell it."""

from datetime import datetime

from governance.actor import Actor
from governance.errors import Conflict
from vault.cubes.changing import cube_change_ask, cube_move
from vault.cubes.drafts import CubeChanges
from vault.cubes.services import cube_delete, cube_restore, cube_update
from vault.holds.services import cube_refreeze, cube_unfreeze
from vault.lifecycle.fusion import fusion_undo
from vault.lifecycle.services import cube_promote, cube_transition
from vault.lifecycle.tiers import cube_tier
from vault.listing.bulk import BulkAction
from vault.models import ActionItem, Cube, CubeVersion
from vault.vocabulary import Layer, State, Tier

CHANGED = "The memory was changed once more since then."


def undo_one(actor: Actor, action: BulkAction, item: ActionItem, *, since: datetime) -> None:
    """Take back what `action` did to a memory, as its item names it. Use inside `acting`.

    since: when the action was asked for.

    Raises Conflict where what was changed is not as the action left it; else as the service that changes it back.
    """
    cube_id = item.cube_id
    match action:
        case BulkAction.DELETE:
            cube_restore(actor=actor, cube_id=cube_id)
        case BulkAction.RESTORE:
            cube_delete(actor=actor, cube_id=cube_id)
        case BulkAction.FREEZE:
            cube_unfreeze(actor=actor, cube_id=cube_id, only_own=True)
        case BulkAction.TAG | BulkAction.MOVE | BulkAction.EXPIRE:
            _version_undo(actor, action, cube_change_ask(actor=actor, cube_id=cube_id), item.version)
        case BulkAction.ARCHIVE:
            cube_transition(actor=actor, cube_id=cube_id, to=State.ACTIVATED)
        case BulkAction.COOL:
            cube_tier(actor=actor, cube_id=cube_id, to=Tier.HOT)
        case BulkAction.WARM:
            cube_tier(actor=actor, cube_id=cube_id, to=Tier.COLD)
        case BulkAction.PROMOTE:
            cube_promote(actor=actor, cube_id=cube_id, layer=Layer(item.layer))
        case BulkAction.COPY:
            _copy_undo(actor, item)
        case BulkAction.SPLIT:
            fusion_undo(actor=actor, cube_id=cube_id)
        case BulkAction.ACTIVATE:
            raise Conflict("An activation is not taken back; archive the memory.")
        case BulkAction.UNFREEZE:
            cube_refreeze(actor=actor, cube_id=cube_id, since=since)


def _copy_undo(actor: Actor, item: ActionItem) -> None:
    """Raises Conflict where the copy has words of its own by now."""
    if Cube.objects.filter(id=item.cube_id).exclude(version=item.version).exists():
        raise Conflict(CHANGED)
    cube_delete(actor=actor, cube_id=item.cube_id)


def _version_undo(actor: Actor, action: BulkAction, cube: Cube, number: int) -> None:
    versions = CubeVersion.objects.filter(cube=cube, number__in=[number - 1, number]).select_related("namespace")
    before, after = versions.order_by("number")
    if action is BulkAction.MOVE:
        if cube.namespace_id != after.namespace_id:
            raise Conflict(CHANGED)
        cube_move(actor=actor, cube_id=cube.id, namespace=before.namespace.path)
        return
    if action is BulkAction.EXPIRE and cube.expires_at != after.expires_at:
        raise Conflict(CHANGED)
    added = set(after.tags) - set(before.tags)
    tags = CubeChanges(tags=tuple(tag for tag in cube.tags if tag not in added))
    changes = CubeChanges(expires_at=before.expires_at) if action is BulkAction.EXPIRE else tags
    cube_update(actor=actor, cube_id=cube.id, expected_versions={cube.version}, changes=changes)

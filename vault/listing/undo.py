"""Undo of a bulk action on one memory, from the memory's versions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.bulk_changes import Failures, cubes_change_ask, cubes_update
from vault.cubes.services import cube_delete, cube_restore
from vault.holds.services import cube_refreeze, cube_unfreeze
from vault.lifecycle.fusion import fusion_undo
from vault.lifecycle.services import cube_promote, cube_transition
from vault.lifecycle.tiers import cube_tier
from vault.listing.bulk import BulkAction, BulkOutcome, make_outcome, prepare_action_texts
from vault.models import ActionItem, Cube, CubeVersion, PastDeletion, StateTransition
from vault.vocabulary import Layer, State, Tier

CHANGED = "The memory was changed once more since then."


def undo_one(actor: Actor, action: BulkAction, item: ActionItem, *, since: datetime) -> None:
    """Undo `action` on the memory of this item. Use inside `acting`. since: the time when the action was requested.

    Raises Conflict if the memory was changed since the action; ValueError for the actions in VERSIONED; else as the
    service that undoes the action.
    """
    cube_id = item.cube_id
    match action:
        case BulkAction.DELETE:
            cube_restore(actor=actor, cube_id=cube_id)
        case BulkAction.RESTORE:
            _restoration_undo(actor, cube_id, since)
        case BulkAction.FREEZE:
            cube_unfreeze(actor=actor, cube_id=cube_id, only_own=True)
        case BulkAction.TAG | BulkAction.MOVE | BulkAction.EXPIRE:
            raise ValueError(f"{action} is undone for all at once, by versions_undo")
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


def _restoration_undo(actor: Actor, cube_id: UUID, since: datetime) -> None:
    """Undo a restoration. Raises Conflict for a memory that had expired."""
    if PastDeletion.objects.filter(cube_id=cube_id, created_at__gte=since).exists():
        cube_delete(actor=actor, cube_id=cube_id)
    elif StateTransition.objects.filter(cube_id=cube_id, from_state=State.ARCHIVED, created_at__gte=since).exists():
        cube_transition(actor=actor, cube_id=cube_id, to=State.ARCHIVED)
    else:
        raise Conflict("An expired memory that was brought back does not expire again by this. Set its expiry.")


def _copy_undo(actor: Actor, item: ActionItem) -> None:
    """Undo a copy. Raises Conflict if the copy was edited since."""
    if Cube.objects.filter(id=item.cube_id).exclude(version=item.version).exists():
        raise Conflict(CHANGED)
    cube_delete(actor=actor, cube_id=item.cube_id)


def bulk_undo(*, actor: Actor, action: BulkAction, chosen: Mapping[UUID, int | None]) -> BulkOutcome:
    """Undo one of the actions in VERSIONED, by the version that it made of each memory, in one transaction.

    A field that was changed again since stays, and the memory is skipped. Raises Forbidden; ValueError for another
    action. Writes what `cubes_update` writes.
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    items = [ActionItem(cube_id=cube_id, version=version) for cube_id, version in chosen.items() if version]
    with prepare_action_texts(actor, action, chosen), acting(actor):
        done, failed = versions_undo(actor, action, items)
        return make_outcome(done, failed)


def versions_undo(actor: Actor, action: BulkAction, items: Sequence[ActionItem]) -> tuple[list[UUID], Failures]:
    """Undo one of the actions in VERSIONED on many memories. Returns the memories changed back and the failures.

    Use inside `acting`. Raises Unavailable. Writes what `cubes_update` writes.
    """
    numbers = {item.cube_id: item.version for item in items}
    cubes, failed = cubes_change_ask(actor=actor, chosen=dict.fromkeys(sorted(numbers)))
    wanted = {number for item in items for number in (item.version - 1, item.version)}
    rows = CubeVersion.objects.filter(cube__in=cubes, number__in=wanted).select_related("namespace")
    versions = {(row.cube_id, row.number): row for row in rows}
    changes: dict[UUID, CubeChanges] = {}
    for cube in cubes:
        number = numbers[cube.id]
        try:
            changes[cube.id] = _compose_undo(action, cube, versions[cube.id, number - 1], versions[cube.id, number])
        except Conflict as failure:
            failed[cube.id] = failure
    failed |= cubes_update(actor=actor, cubes=[cube for cube in cubes if cube.id in changes], changes=changes)
    return [cube_id for cube_id in changes if cube_id not in failed], failed


def _compose_undo(action: BulkAction, cube: Cube, before: CubeVersion, after: CubeVersion) -> CubeChanges:
    """Return the changes that undo an action. Raises Conflict if a changed field was changed again."""
    if action is BulkAction.MOVE:
        if cube.namespace_id != after.namespace_id:
            raise Conflict(CHANGED)
        return CubeChanges(namespace=before.namespace.path)
    if action is BulkAction.EXPIRE:
        if cube.expires_at != after.expires_at:
            raise Conflict(CHANGED)
        return CubeChanges(expires_at=before.expires_at)
    added = set(after.tags) - set(before.tags)
    return CubeChanges(tags=tuple(tag for tag in cube.tags if tag not in added))

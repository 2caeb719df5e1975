"""Changes that another installation sends: stored, unless the memory was changed here since the last sync."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Held, Invalid
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.cubes.services import cube_delete, cube_update, cubes_add
from vault.exchange.cube_items import cube_items
from vault.exchange.imported_states import write_states
from vault.exchange.item_drafts import (
    SYNC_FORMAT,
    Present,
    imported_find,
    imports_await,
    item_changes,
    item_draft,
    items_by_origin,
    origin_metadata,
)
from vault.exchange.items import ORIGIN, ORIGIN_FORMAT, Item
from vault.exchange.sync.wire import MOST_AT_ONCE, Applied, Change, Sent, is_equal, shorten_item
from vault.models import Cube
from vault.vocabulary import SyncOutcome

NO_LINKS: Mapping[str, Present] = {}


@dataclass(frozen=True)
class Target:
    """A memory here that a change is about, with its present version as an item."""

    cube: Cube
    item: Item


@with_blobs
def changes_apply(
    *, actor: Actor, namespace: str, changes: Sequence[Change], linked: Mapping[str, Present] = NO_LINKS
) -> list[Applied]:
    """Store the changes, in order; return the outcome of each. Sent twice, they change nothing the second time.

    linked: memories here, by the ids that the sender has for them. A change of a version that is no longer the present
    one is a conflict, and not stored. Raises Forbidden; Invalid for more than MOST_AT_ONCE; QuotaExceeded;
    PiiUnavailable; KeyUnavailable. Writes what `cubes_add`, `cube_update` and `cube_delete` write.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    if len(changes) > MOST_AT_ONCE:
        raise Invalid(errors=[FieldError("changes", f"at most {MOST_AT_ONCE} of one call")])
    with acting(actor):
        imports_await(actor)
        names = {change.sent.item.id for change in changes if change.sent and change.sent.item}
        names |= {
            origin.id for change in changes if change.sent and change.sent.item for origin in change.sent.item.made_from
        }
        synced = imported_find(actor, names, form=SYNC_FORMAT, namespace=namespace)
        known = {**_find_own_memories(actor, names), **synced, **linked}
        targets = _lock_targets(actor, [_target_id(actor, change, known) for change in changes])
        new = [change for change, found in zip(changes, targets, strict=True) if _is_new(change, found)]
        made = _add_new_memories(actor, namespace, new, known)
        return [
            made[change.sent.item.id]
            if change.sent and change.sent.item and _is_new(change, found)
            else _apply_change(actor, change, found)
            for change, found in zip(changes, targets, strict=True)
        ]


def _is_new(change: Change, target: Target | None) -> bool:
    return change.sent is not None and change.target is None and target is None


def _target_id(actor: Actor, change: Change, known: Mapping[str, Present]) -> UUID | None:
    """The id of the local memory that a change is about: its target, an earlier copy, or the original of a copy."""
    if change.target is not None or change.sent is None or change.sent.item is None:
        return change.target
    found = known.get(change.sent.item.id) or _find_own_memories(actor, {change.sent.origin}).get(change.sent.origin)
    return found.id if found else None


def _find_own_memories(actor: Actor, ids: set[str]) -> dict[str, Present]:
    """The readable local memories among these ids. One query, none where no id is a UUID."""
    wanted = [UUID(text) for text in ids if _is_uuid(text)]
    if not wanted:
        return {}
    rows = Cube.objects.visible_to(actor).filter(id__in=wanted).values_list("id", "version", "content_hash")
    return {str(cube_id): Present(cube_id, version, bytes(digest)) for cube_id, version, digest in rows}


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _lock_targets(actor: Actor, ids: Sequence[UUID | None]) -> list[Target | None]:
    """Lock the memories with these ids; in order, None where the actor may not read one."""
    wanted = [cube_id for cube_id in ids if cube_id is not None]
    locked = Cube.objects.select_for_update(of=("self",)).filter(tenant_id=actor.tenant_id, id__in=wanted)
    list(locked.order_by("id").values_list("id", flat=True))
    present = cube_items(actor, wanted, dict.fromkeys(wanted, 2**31), verb=Verb.MEMORY_READ)
    found = {cube.id: Target(cube, item) for cube, item in present}
    return [found.get(cube_id) if cube_id else None for cube_id in ids]


def _add_new_memories(
    actor: Actor, namespace: str, changes: Sequence[Change], known: Mapping[str, Present]
) -> dict[str, Applied]:
    """The outcome of each new memory, by its item's id."""
    items = [change.sent.item for change in changes if change.sent and change.sent.item]
    outcomes: dict[str, Applied] = {}
    present = dict(known)
    for ready in items_by_origin(items):
        for item, applied in zip(ready, _add_items(actor, namespace, ready, present), strict=True):
            outcomes[item.id] = applied
            if applied.id is not None and applied.version is not None:
                present[item.id] = Present(applied.id, applied.version, b"")
    return outcomes


def _add_items(actor: Actor, namespace: str, items: Sequence[Item], present: Mapping[str, Present]) -> list[Applied]:
    """Store new memories in one call, or one by one if any of them is refused."""
    try:
        with transaction.atomic():
            return _add_all(actor, namespace, items, present)
    except Invalid as refusal:
        if len(items) == 1:
            return [Applied(SyncOutcome.REFUSED, reason=refusal.code)]
    return [applied for item in items for applied in _add_items(actor, namespace, [item], present)]


def _add_all(actor: Actor, namespace: str, items: Sequence[Item], present: Mapping[str, Present]) -> list[Applied]:
    drafts = [
        item_draft(actor, item, form=SYNC_FORMAT, namespace=namespace, persona=None, present=present) for item in items
    ]
    applied, stored = [], dict[UUID, Item]()
    for item, added in zip(items, cubes_add(actor=actor, drafts=drafts), strict=True):
        version = added.cube.version
        if len(item.versions) > 1 and not added.cube.is_quarantined:
            later = replace(item, versions=item.versions[1:])
            version = _write_versions(
                actor, added.cube.id, version, later, origin_metadata(actor, item.id, SYNC_FORMAT)
            )
        applied.append(Applied(SyncOutcome.STORED, added.cube.id, version))
        stored[added.cube.id] = item
    write_states(actor, stored)
    return applied


def _apply_change(actor: Actor, change: Change, target: Target | None) -> Applied:
    """The outcome of a change of a memory that is there, or was."""
    sent = change.sent
    if target is None:
        return Applied(SyncOutcome.DELETED) if sent is None else Applied(SyncOutcome.REFUSED, reason="gone")
    cube = target.cube
    try:
        with transaction.atomic():
            if sent is None or sent.item is None:
                return _remove_memory(actor, change, target)
            if is_equal(target.item.versions[-1], sent.item.versions[-1]):
                return Applied(SyncOutcome.PRESENT, cube.id, cube.version)
            if change.base != cube.version:
                return _report_conflict(target)
            return _update_memory(actor, sent, target)
    except Held:
        return Applied(SyncOutcome.REFUSED, cube.id, cube.version, reason="held")
    except Invalid as refusal:
        return Applied(SyncOutcome.REFUSED, cube.id, cube.version, reason=refusal.code)


def _remove_memory(actor: Actor, change: Change, target: Target) -> Applied:
    cube = target.cube
    if change.base != cube.version:
        return _report_conflict(target)
    cube_delete(actor=actor, cube_id=cube.id, expected_versions={cube.version})
    return Applied(SyncOutcome.DELETED, cube.id, cube.version)


def _update_memory(actor: Actor, sent: Sent, target: Target) -> Applied:
    assert sent.item is not None
    there = target.item.versions[-1].metadata
    origin = {name: there[name] for name in (ORIGIN, ORIGIN_FORMAT) if name in there}
    version = _write_versions(actor, target.cube.id, target.cube.version, sent.item, origin)
    return Applied(SyncOutcome.UPDATED, target.cube.id, version)


def _write_versions(actor: Actor, cube_id: UUID, version: int, item: Item, origin: Mapping[str, Any]) -> int:
    """Give a memory the item's versions; returns the number of the last."""
    for number, item_version in enumerate(item.versions):
        changes = item_changes(item_version, origin)
        expected = {version + number}
        cube_update(
            actor=actor, cube_id=cube_id, expected_versions=expected, changes=changes, reason=item_version.reason
        )
    return version + len(item.versions)


def _report_conflict(target: Target) -> Applied:
    cube = target.cube
    return Applied(SyncOutcome.CONFLICT, cube.id, cube.version, theirs=shorten_item(target.item))

"""One action on several memories: memories that may not be changed are skipped, each with the reason."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import Conflict, DomainError, FieldError, Forbidden, Invalid
from governance.versions import version_check
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.bulk_changes import Failures, cubes_change_ask, cubes_delete, cubes_update
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.holds.services import LONGEST_REASON, cube_freeze, cube_refreeze, cube_unfreeze
from vault.lifecycle.fusion import MOST_PARTS, cube_split, split_propose
from vault.lifecycle.renewal import cube_bring_back
from vault.lifecycle.services import cube_copy, cube_promote, cube_transition
from vault.lifecycle.tiers import cube_tier
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.namespaces.rules import PathError, check_path
from vault.screening.screen import EVERYWHERE
from vault.vocabulary import Layer, PiiField, State, Tier

Change = Callable[[UUID], object]
Chosen = Mapping[UUID, int | None]
"""Memories, each with the version that was read; None: whatever it is now."""
MOST_CHOSEN = 200  # memories of one call


class BulkAction(StrEnum):
    TAG = "tag"
    MOVE = "move"
    EXPIRE = "expire"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    DELETE = "delete"
    RESTORE = "restore"
    ARCHIVE = "archive"
    ACTIVATE = "activate"
    COOL = "cool"
    WARM = "warm"
    PROMOTE = "promote"
    COPY = "copy"
    SPLIT = "split"


@dataclass(frozen=True)
class BulkArguments:
    """Arguments of a bulk action.

    tags: the tags to add; namespace: the target path of a move or copy; expires_at: None removes the expiry; of a
    restoration, the new expiry of expired memories; reason: of a
    freeze; layer: of a promotion; since: in place of a reason, freeze again what the actor unfroze after this time.
    """

    tags: tuple[str, ...] = ()
    namespace: str = ""
    expires_at: datetime | None = None
    reason: str = field(default="", repr=False)
    since: datetime | None = None
    layer: Layer | None = None


@dataclass(frozen=True)
class BulkOutcome:
    """The outcome of a bulk action, also of a rehearsal. done: changed memory → new version; skipped: (memory,
    error)."""

    done: Mapping[UUID, int]
    skipped: tuple[tuple[UUID, DomainError], ...]

    @property
    def denials(self) -> list[Forbidden]:
        return [failure for _, failure in self.skipped if isinstance(failure, Forbidden)]


PERMISSIONS = {
    BulkAction.DELETE: Permission.MEMORY_DELETE,
    BulkAction.RESTORE: Permission.MEMORY_DELETE,
    BulkAction.FREEZE: Permission.MEMORY_FREEZE,
    BulkAction.UNFREEZE: Permission.MEMORY_FREEZE,
}
VERSIONED = frozenset({BulkAction.TAG, BulkAction.MOVE, BulkAction.EXPIRE})  # each makes a new version
TOGETHER = VERSIONED | {BulkAction.DELETE}
TIERS = {BulkAction.COOL: Tier.COLD, BulkAction.WARM: Tier.HOT}
TRANSITIONS = {BulkAction.ARCHIVE: State.ARCHIVED, BulkAction.ACTIVATE: State.ACTIVATED}
READING = frozenset(  # actions that write words into an index
    {
        BulkAction.MOVE,
        BulkAction.RESTORE,
        BulkAction.ARCHIVE,
        BulkAction.ACTIVATE,
        BulkAction.PROMOTE,
        BulkAction.COPY,
    }
)


def bulk_rehearse(*, actor: Actor, action: BulkAction, chosen: Chosen, arguments: BulkArguments) -> BulkOutcome:
    """Run `bulk_apply` and roll back. Raises Forbidden; Invalid. Writes nothing."""
    authorize(actor, PERMISSIONS.get(action, Permission.MEMORY_UPDATE))
    with prepare_action_texts(actor, action, chosen), acting(actor):
        outcome = _apply_action(actor, action, chosen, arguments)
        transaction.set_rollback(True)
    return outcome


def bulk_apply(*, actor: Actor, action: BulkAction, chosen: Chosen, arguments: BulkArguments) -> BulkOutcome:
    """Apply `action` to each memory that allows it and still has the version that was read, in one transaction.

    Raises Forbidden; Invalid (arguments, more than MOST_CHOSEN). Writes: what the action writes for each memory.
    """
    authorize(actor, PERMISSIONS.get(action, Permission.MEMORY_UPDATE))
    with prepare_action_texts(actor, action, chosen), acting(actor):
        return _apply_action(actor, action, chosen, arguments)


def _apply_action(actor: Actor, action: BulkAction, versions: Chosen, arguments: BulkArguments) -> BulkOutcome:
    if not 1 <= len(versions) <= MOST_CHOSEN:
        raise Invalid(errors=[FieldError("ids", f"1 to {MOST_CHOSEN} are needed")])
    if action in TOGETHER:
        bulk_check(action, arguments)
        done, failed = change_together(actor=actor, action=action, chosen=versions, arguments=arguments)
    else:
        done, failed = _apply_singly(actor, action, versions, arguments)
    for failure in failed.values():
        if isinstance(failure, Invalid):
            raise failure  # the arguments are the same for all
    return make_outcome(done, failed)


def make_outcome(done: Collection[UUID], failed: Failures) -> BulkOutcome:
    """Return the outcome for memories that were changed and those that were not. Use inside `acting`."""
    return BulkOutcome(_load_versions(Cube.objects.filter(id__in=done).order_by("id")), tuple(failed.items()))


def _apply_singly(
    actor: Actor, action: BulkAction, versions: Chosen, arguments: BulkArguments
) -> tuple[list[UUID], Failures]:
    chosen = sorted(versions)  # sorted, so that concurrent calls lock in the same order
    change = make_change(actor, action, arguments)
    present = _load_versions(Cube.objects.filter(id__in=chosen).order_by("id").select_for_update())
    done: list[UUID] = []
    failed: Failures = {}
    for cube_id in chosen:
        try:
            with transaction.atomic():
                change(cube_id)
                if (read := versions[cube_id]) is not None:  # after the permission check, which must come first
                    version_check("memory", present[cube_id], {read})
            done.append(cube_id)
        except DomainError as failure:
            failed[cube_id] = failure
    return done, failed


def change_together(
    *, actor: Actor, action: BulkAction, chosen: Chosen, arguments: BulkArguments
) -> tuple[list[UUID], Failures]:
    """Apply one of the actions in TOGETHER to many memories at once. Returns the changed memories and the failures.

    Use inside `acting`. Raises Unavailable. Writes what `cubes_delete` or `cubes_update` writes.
    """
    authorize(actor, PERMISSIONS.get(action, Permission.MEMORY_UPDATE))
    if action is BulkAction.DELETE:
        return cubes_delete(actor=actor, chosen=chosen)
    cubes, failed = cubes_change_ask(actor=actor, chosen=chosen)
    wanted = {cube.id: _compose_changes(action, cube, arguments) for cube in cubes}
    changes = {cube_id: change for cube_id, change in wanted.items() if change is not None}
    failed |= cubes_update(actor=actor, cubes=[cube for cube in cubes if cube.id in changes], changes=changes)
    return [cube_id for cube_id in wanted if cube_id not in failed], failed


def _load_versions(cubes: CubeQuerySet) -> dict[UUID, int]:
    return dict(cubes.values_list("id", "version"))


@contextmanager
def prepare_action_texts(actor: Actor, action: BulkAction, ids: Collection[UUID]) -> Iterator[None]:
    """Read the texts that versions and restorations need, so that the transaction locks the memories only briefly."""
    if action in READING and len(ids) <= MOST_CHOSEN:
        moved = EVERYWHERE if action is BulkAction.MOVE else frozenset[PiiField]()
        with prepare_stored_texts(actor=actor, cube_ids=ids, screened=moved):
            yield
    else:
        yield


def bulk_check(action: BulkAction, arguments: BulkArguments) -> None:
    """Check the arguments of an action. Raises Invalid if no memory could take them."""
    if action is BulkAction.TAG:
        _check_tags(arguments.tags)
    if action is BulkAction.PROMOTE:
        _require_layer(arguments)
    if action in {BulkAction.MOVE, BulkAction.COPY}:
        try:
            check_path(arguments.namespace)
        except PathError as fault:
            raise Invalid(errors=[FieldError("namespace", fault.message)]) from fault
    if (
        action in {BulkAction.EXPIRE, BulkAction.RESTORE}
        and arguments.expires_at
        and arguments.expires_at <= database_now()
    ):
        raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
    if action is BulkAction.FREEZE and not arguments.since and not 1 <= len(arguments.reason) <= LONGEST_REASON:
        raise Invalid(errors=[FieldError("reason", f"1 to {LONGEST_REASON} characters")])


def make_change(actor: Actor, action: BulkAction, arguments: BulkArguments, job: UUID | None = None) -> Change:
    """Return the function that applies `action` to one memory by its id. job: the id of the job that does it.

    Raises ValueError for the actions in TOGETHER.
    """
    match action:
        case BulkAction.RESTORE:
            return lambda cube_id: cube_bring_back(actor=actor, cube_id=cube_id, expires_at=arguments.expires_at)
        case BulkAction.FREEZE if (since := arguments.since) is not None:
            return lambda cube_id: cube_refreeze(actor=actor, cube_id=cube_id, since=since)
        case BulkAction.FREEZE:
            return lambda cube_id: cube_freeze(actor=actor, cube_id=cube_id, reason=arguments.reason)
        case BulkAction.UNFREEZE:
            return lambda cube_id: cube_unfreeze(actor=actor, cube_id=cube_id, only_own=True)
        case BulkAction.ARCHIVE | BulkAction.ACTIVATE:
            to = TRANSITIONS[action]
            reason = arguments.reason
            return lambda cube_id: cube_transition(actor=actor, cube_id=cube_id, to=to, reason=reason, job_id=job)
        case BulkAction.COOL | BulkAction.WARM:
            return lambda cube_id: cube_tier(actor=actor, cube_id=cube_id, to=TIERS[action], job_id=job)
        case BulkAction.PROMOTE | BulkAction.COPY | BulkAction.SPLIT:
            return _make_operation(actor, action, arguments)
        case BulkAction.DELETE | BulkAction.TAG | BulkAction.MOVE | BulkAction.EXPIRE:
            raise ValueError(f"{action} is done to all at once, by change_together")


def _make_operation(actor: Actor, action: BulkAction, arguments: BulkArguments) -> Change:
    """Return the function that applies an operation to a memory. A copy returns the new memory, which an undo
    deletes."""
    if action is BulkAction.PROMOTE:
        layer = _require_layer(arguments)
        return lambda cube_id: cube_promote(actor=actor, cube_id=cube_id, layer=layer)
    if action is BulkAction.COPY:
        return lambda cube_id: cube_copy(actor=actor, cube_id=cube_id, namespace=arguments.namespace)
    return lambda cube_id: _split_memory(actor, cube_id, arguments.reason)


def _compose_changes(action: BulkAction, cube: Cube, arguments: BulkArguments) -> CubeChanges | None:
    """Return the changes that an action makes to a memory, or None if there is nothing to change."""
    if action is BulkAction.MOVE:
        return CubeChanges(namespace=arguments.namespace)
    if action is BulkAction.EXPIRE:
        return CubeChanges(expires_at=arguments.expires_at) if cube.expires_at != arguments.expires_at else None
    return CubeChanges(tags=(*cube.tags, *arguments.tags)) if not set(arguments.tags) <= set(cube.tags) else None


def _require_layer(arguments: BulkArguments) -> Layer:
    """Return the layer of the arguments. Raises Invalid if there is none."""
    if arguments.layer is None:
        raise Invalid(errors=[FieldError("layer", f"one of {', '.join(Layer)}")])
    return arguments.layer


def _split_memory(actor: Actor, cube_id: UUID, reason: str) -> None:
    """Split a memory at the proposed parts. Raises Conflict if it has one part, or more than MOST_PARTS."""
    parts = split_propose(actor=actor, cube_id=cube_id)
    if not 2 <= len(parts) <= MOST_PARTS:
        raise Conflict(f"This memory has {len(parts)} parts; 2 to {MOST_PARTS} are needed.")
    cube_split(actor=actor, cube_id=cube_id, parts=parts, reason=reason)


def _check_tags(tags: Sequence[str]) -> None:
    if not tags or not all(0 < len(tag) <= 100 and tag.isprintable() for tag in tags):
        raise Invalid(errors=[FieldError("tags", "tags of 1 to 100 printable characters are needed")])

"""Contradictions: if two memories state opposite things about the same time, a review asks a person which one holds.

The rules of links judge the texts. A contradiction linked on writing is proposed at once; a job compares stored
memories. Nothing changes before a person decides.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Permission, Topic
from vault.content.drafts import CubeChanges
from vault.cubes.jobs import ids_of
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import cube_update
from vault.lifecycle.pairs import (
    Pair,
    comparable_cubes,
    fields_in_common,
    find_reviewed_pairs,
    near_candidates,
    pairs_preview,
    pairs_propose,
    pairs_step,
    pairs_waiting,
    select_contradicting,
)
from vault.models import Cube, CubeLink, CubeSource
from vault.models.cube import CubeQuerySet
from vault.vocabulary import Layer, LinkKind, ReviewKind, SourceKind

LATER_HOLDS = "A person decided that the later statement holds."


@dataclass(frozen=True)
class ContradictionSettings:
    """Settings of the job. threshold: the cosine similarity from which the texts of two memories are compared."""

    threshold: Annotated[float, Field(ge=0.5, le=1)] = 0.8


SETTINGS = TypeAdapter(ContradictionSettings)


def conflicts_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the earlier memories of the contradictions that a run would propose first. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    return pairs_preview(actor, partial(_find_pairs, threshold=SETTINGS.validate_python(dict(chosen)).threshold))


@handler(Topic.CONFLICTS_PROPOSE, settings=ContradictionSettings, preview=conflicts_preview, default_cron="30 4 * * *")
def conflicts_propose(run: JobRun) -> Callable[[], Step]:
    """Propose the contradictions of the next memories for review. Concurrent runs propose each contradiction once.
    Writes: Review …."""
    threshold = SETTINGS.validate_python(dict(run.settings)).threshold
    return pairs_step(run, ReviewKind.CONFLICT, partial(_find_pairs, threshold=threshold))


def linked_conflicts_propose(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Propose the contradictions that the links of the written cubes name. Must run after `cubes_link`.
    Writes: Review …."""

    def write() -> None:
        linked = _find_linked_pairs(ids_of(payloads))
        if linked:
            pairs_propose(actor, ReviewKind.CONFLICT, _select_overlapping(actor, linked))

    return write


def contradiction_settle(*, actor: Actor, cube_id: UUID, later_id: UUID) -> None:
    """End the validity of the earlier of two statements when the later one begins, and make the later its successor.

    Raises NotFound; Forbidden; Held; Conflict if the validity ended before, or begins no earlier than the later one.
    Writes: Cube, CubeVersion, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        cube, later = locate(actor, cube_id, lock=True), locate(actor, later_id)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        validity_end(actor=actor, cube=cube, successor=later, until=validity_start(later), reason=LATER_HOLDS)


def validity_end(*, actor: Actor, cube: Cube, successor: Cube, until: datetime, reason: str) -> None:
    """End the validity of a locked memory, and set its successor. Raises and writes as `contradiction_settle`."""
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    with acting(actor):
        if cube.valid_to is not None and cube.valid_to <= until:
            raise Conflict("The validity of the earlier statement has ended already.")
        if cube.valid_from is not None and cube.valid_from >= until:
            raise Conflict("The earlier statement does not begin before the later one. Edit the validity of one.")
        changes = CubeChanges(valid_to=until)
        cube_update(actor=actor, cube_id=cube.id, expected_versions={cube.version}, changes=changes, reason=reason)
        Cube.objects.filter(id=cube.id).update(superseded_by=successor.id)


def _find_pairs(actor: Actor, ids: Sequence[UUID], threshold: float) -> list[Pair]:
    near = {_order_pair(cube_id, other) for cube_id, other, _ in near_candidates(actor, ids, threshold)}
    linked = _find_linked_pairs(ids)
    return _select_overlapping(actor, linked | select_contradicting(near - linked))


def _find_linked_pairs(ids: Sequence[UUID]) -> set[Pair]:
    rows = CubeLink.objects.filter(kind=LinkKind.CONTRADICTS).filter(Q(source__in=ids) | Q(target__in=ids))
    return {_order_pair(cube_id, other) for cube_id, other in rows.values_list("source_id", "target_id")}


def _select_overlapping(actor: Actor, candidates: Iterable[Pair]) -> list[Pair]:
    """Return the pairs without a review whose validity overlaps, the earlier statement first.

    A statement is the earlier one in at most one open review; of several later statements, the latest is taken.
    """
    pairs = [frozenset(pair) for pair in candidates]
    named = {cube_id for pair in pairs for cube_id in pair}
    cubes = {cube.id: cube for cube in _outside_pages(comparable_cubes(actor)).free().filter(id__in=named)}
    asked = find_reviewed_pairs(named, {ReviewKind.CONFLICT})
    taken = {earlier for earlier, _ in pairs_waiting(named, ReviewKind.CONFLICT)}
    chosen: list[Pair] = []
    possible = [sorted((cubes[cube_id] for cube_id in pair), key=_sort_key) for pair in pairs if pair <= cubes.keys()]
    for earlier, later in sorted(possible, key=lambda pair: _sort_key(pair[1]), reverse=True):
        is_new = frozenset((earlier.id, later.id)) not in asked and earlier.id not in taken
        is_pair = fields_in_common(earlier) == fields_in_common(later)
        if is_new and is_pair and _overlaps(earlier, later):
            chosen.append((earlier.id, later.id))
            taken.add(earlier.id)
    return chosen


def _outside_pages(rows: CubeQuerySet) -> CubeQuerySet:
    """Leave out conversation pages and their extracts, because distillation ends their validity itself."""
    pages = Cube.objects.exclude(layer=Layer.LONG_TERM).filter(id=OuterRef("source_id"))
    extracts = CubeSource.objects.filter(Exists(pages), cube_id=OuterRef("pk"), kind=SourceKind.EXTRACT)
    return rows.filter(Q(has_sources=False) | ~Exists(extracts), layer=Layer.LONG_TERM)


def _overlaps(earlier: Cube, later: Cube) -> bool:
    return earlier.valid_to is None or earlier.valid_to > validity_start(later)


def validity_start(cube: Cube) -> datetime:
    """Return the time from which a statement holds: its stated time, else when it was said or stored. The time of its
    event may lie before or after."""
    return cube.valid_from or cube.stated_at


def _sort_key(cube: Cube) -> tuple[datetime, UUID]:
    return validity_start(cube), cube.id


def _order_pair(first: UUID, other: UUID) -> Pair:
    return (first, other) if first > other else (other, first)

"""Duplicates: memories with equal content or near vectors are proposed for fusion in the review inbox.

A person decides each proposal; a decided one is not made again. Texts that contradict each other are no duplicates,
however near their vectors are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from django.db import connection
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic
from vault.lifecycle.pairs import (
    NEAREST,
    Candidate,
    Pair,
    comparable_cubes,
    fields_in_common,
    find_reviewed_pairs,
    near_candidates,
    pairs_preview,
    pairs_step,
    pairs_waiting,
    select_contradicting,
)
from vault.vocabulary import ReviewKind

ASKED_ALREADY = frozenset({ReviewKind.FUSION, ReviewKind.CONFLICT})
# OFFSET 0 makes the planner look the content up in its index. Otherwise it reads older memories by id until it finds
# ten equal ones.
EQUAL = """
SELECT one.id, other.id, 1.0::float8 FROM vault_cube AS one CROSS JOIN LATERAL (
  SELECT equal.id FROM (
    SELECT cube.id FROM vault_cube AS cube
    WHERE cube.tenant_id = %(tenant)s AND cube.namespace_id = one.namespace_id AND cube.content_hash = one.content_hash
      AND cube.is_indexed AND cube.id < one.id
    OFFSET 0
  ) AS equal
  ORDER BY equal.id DESC LIMIT %(nearest)s
) AS other
WHERE one.tenant_id = %(tenant)s AND one.id = ANY(%(ids)s::uuid[])
"""


@dataclass(frozen=True)
class DuplicateSettings:
    """Settings of the job. threshold: the cosine similarity from which two memories are near-duplicates."""

    threshold: Annotated[float, Field(ge=0.5, le=1)] = 0.95


SETTINGS = TypeAdapter(DuplicateSettings)


def fusions_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the later memories of the fusions that a run would propose first. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    return pairs_preview(actor, partial(_find_pairs, threshold=SETTINGS.validate_python(dict(chosen)).threshold))


@handler(Topic.FUSIONS_PROPOSE, settings=DuplicateSettings, preview=fusions_preview, default_cron="0 5 * * *")
def fusions_propose(run: JobRun) -> Callable[[], Step]:
    """Propose fusions for the duplicates of the next memories. Concurrent runs propose each fusion once.
    Writes: Review …."""
    threshold = SETTINGS.validate_python(dict(run.settings)).threshold
    return pairs_step(run, ReviewKind.FUSION, partial(_find_pairs, threshold=threshold))


def _find_pairs(actor: Actor, ids: Sequence[UUID], threshold: float) -> list[Pair]:
    """Return new pairs to propose, the most similar first; each memory is in at most one open proposal.

    The memory that was stored later comes first in its pair.
    """
    found = [*_find_equal(actor, ids), *near_candidates(actor, ids, threshold)]
    named = {cube_id for first, other, _ in found for cube_id in (first, other)}
    common = {cube.id: fields_in_common(cube) for cube in comparable_cubes(actor).free().filter(id__in=named)}
    asked = find_reviewed_pairs(named, ASKED_ALREADY)
    ordered = [
        (max(first, other), min(first, other))
        for first, other, _ in sorted(found, key=lambda each: (-each[2], each[0], each[1]))
        if first in common and common[first] == common.get(other) and frozenset((first, other)) not in asked
    ]
    opposed = select_contradicting(dict.fromkeys(ordered))
    taken = {cube_id for pair in pairs_waiting(named, ReviewKind.FUSION) for cube_id in pair}
    pairs: list[Pair] = []
    for pair in ordered:
        if pair not in opposed and taken.isdisjoint(pair):
            pairs.append(pair)
            taken.update(pair)
    return pairs


def _find_equal(actor: Actor, ids: Sequence[UUID]) -> list[Candidate]:
    """Return the pairs of memories with equal content, found by an index on its keyed hash."""
    with connection.cursor() as cursor:
        cursor.execute(EQUAL, {"tenant": actor.tenant_id, "ids": list(ids), "nearest": NEAREST})
        return [(first, other, similarity) for first, other, similarity in cursor.fetchall()]

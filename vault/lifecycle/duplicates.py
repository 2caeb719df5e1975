"""Duplicates: of memories with equal content or near vectors, fusions are proposed to the review inbox.

Both memories have one namespace, owner, persona, subject, access level and layer. A person decides each proposal; one
that was decided is not made again. Vectors that are stored already are compared: no text is opened, and no model asked.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic
from vault.cubes.embeddings.vector_index import nearest_by_index
from vault.cubes.embeddings.vectors import active_model, answering
from vault.cubes.index.eligibility import SEARCHABLE
from vault.models import Cube, CubeVersion, Embedding, LayerEntry, Review
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranking import EF_SEARCH, FEW
from vault.retrieval.sql import NEAREST_BY_SCAN
from vault.retrieval.statements import PLANS_AS_BEFORE, STEADY_PLANS
from vault.vocabulary import MemoryType, Modality, ReviewKind, ReviewStatus, SemanticType

FIRST = UUID(int=0)
LOOKED_AT = 500  # memories of one step
MOST_PREVIEWED = 2_000  # memories that a preview looks at
MOST_NAMED = 100  # ids in a preview
NEAREST = 10  # memories that one is compared with
FUSABLE: Mapping[str, Any] = {"state__in": SEARCHABLE, "deleted_at": None}
SAME = ("namespace_id", "owner_id", "persona_id", "subject_id", "access_level", "layer")
EQUAL = """
SELECT one.id, other.id, 1.0::float8 FROM vault_cube AS one CROSS JOIN LATERAL (
  SELECT cube.id FROM vault_cube AS cube
  WHERE cube.tenant_id = %(tenant)s AND cube.namespace_id = one.namespace_id AND cube.content_hash = one.content_hash
    AND cube.is_indexed AND cube.id < one.id
  ORDER BY cube.id DESC LIMIT %(nearest)s
) AS other
WHERE one.tenant_id = %(tenant)s AND one.id = ANY(%(ids)s::uuid[])
"""
NEAR = """
SELECT one.cube_id, other.cube_id, 1 - other.distance FROM vault_embedding AS one CROSS JOIN LATERAL (
  SELECT embedding.cube_id, {distance} AS distance FROM vault_embedding AS embedding
  WHERE embedding.tenant_id = %(tenant)s AND embedding.model = %(model)s AND embedding.namespace_id = %(namespace)s
  ORDER BY {distance} LIMIT %(nearest)s + 1
) AS other
WHERE one.tenant_id = %(tenant)s AND one.model = %(model)s AND one.cube_id = ANY(%(ids)s::uuid[])
  AND other.cube_id <> one.cube_id AND 1 - other.distance >= %(threshold)s
"""

Pair = tuple[UUID, UUID]  # the memory that was stored later comes first
Candidate = tuple[UUID, UUID, float]  # two memories and their similarity


@dataclass(frozen=True)
class DuplicateSettings:
    """threshold: the cosine similarity from which two memories are near-duplicates."""

    threshold: Annotated[float, Field(ge=0.5, le=1)] = 0.95


SETTINGS = TypeAdapter(DuplicateSettings)


def fusions_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """The later memories of what a run would propose for the first MOST_PREVIEWED memories. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    threshold = SETTINGS.validate_python(dict(chosen)).threshold
    with acting(actor):
        pairs = _pairs(actor, _next_ids(actor, FIRST, MOST_PREVIEWED), threshold)
    return Preview(len(pairs), tuple(later for later, _ in pairs[:MOST_NAMED]))


@handler(Topic.FUSIONS_PROPOSE, settings=DuplicateSettings, preview=fusions_preview)
def fusions_propose(run: JobRun) -> Callable[[], Step]:
    """Look for duplicates of the next LOOKED_AT memories. done: memories looked at.

    Twice, or two at once, it proposes each fusion once. Writes: Review ….
    """
    threshold = SETTINGS.validate_python(dict(run.settings)).threshold
    with acting(run.system):
        ids = _next_ids(run.system, UUID(run.state.get("after", str(FIRST))), LOOKED_AT)
        pairs = _pairs(run.system, ids, threshold)
        total = _eligible(run.system).count() if run.total is None else run.total

    def write() -> Step:
        with acting(run.system):
            proposed = _propose(run.system, pairs)
        done = run.done + len(ids)
        state = {"after": str(ids[-1])} if len(ids) == LOOKED_AT else None
        result = {"proposed": run.result.get("proposed", 0) + proposed}
        return Step(state=state, done=done, total=max(total, done), result=result)

    return write


def _eligible(actor: Actor) -> CubeQuerySet:
    """Searchable texts, but for turns of conversations and what a persona's queues have, which reconcile themselves."""
    queued = LayerEntry.objects.filter(cube_id=OuterRef("pk"), left_at=None)
    rows = Cube.objects.readable().filter(
        tenant_id=actor.tenant_id,
        state__in=SEARCHABLE,
        is_indexed=True,
        type=MemoryType.PLAINTEXT,
        modality=Modality.TEXT,
    )
    return rows.exclude(semantic_type=SemanticType.DIALOGUE).exclude(Exists(queued))


def _next_ids(actor: Actor, after: UUID, most: int) -> list[UUID]:
    rows = _eligible(actor).filter(id__gt=after).order_by("id")
    return list(rows.values_list("id", flat=True)[:most])


def _pairs(actor: Actor, ids: Sequence[UUID], threshold: float) -> list[Pair]:
    """New proposals for some memories, the most similar first; each memory is in one open proposal at most."""
    found = [*_equal(actor, ids), *_near(actor, ids, threshold)]
    named = {cube_id for one, other, _ in found for cube_id in (one, other)}
    rows = _eligible(actor).free().filter(id__in=named)
    described = {cube_id: same for cube_id, *same in rows.values_list("id", *SAME)}
    known, taken = _proposals(named)
    pairs: list[Pair] = []
    for one, other, _ in sorted(found, key=lambda each: (-each[2], each[0], each[1])):
        pair = (max(one, other), min(one, other))
        is_legal = one in described and described[one] == described.get(other)
        if is_legal and pair not in known and not taken & {one, other}:
            pairs.append(pair)
            taken |= {one, other}
    return pairs


def _proposals(cube_ids: set[UUID]) -> tuple[set[Pair], set[UUID]]:
    """All pairs that were proposed; the memories of those that can still be accepted."""
    rows = Review.objects.filter(kind=ReviewKind.FUSION).filter(Q(cube__in=cube_ids) | Q(other__in=cube_ids))
    fusable = {f"{name}__{field}": value for name in ("cube", "other") for field, value in FUSABLE.items()}
    open_ones = rows.filter(status=ReviewStatus.OPEN, **fusable).values_list("cube_id", "other_id")
    return set(rows.values_list("cube_id", "other_id")), {one for pair in open_ones for one in pair}


def _equal(actor: Actor, ids: Sequence[UUID]) -> list[Candidate]:
    """By the keyed hash of the content, which has an index."""
    with connection.cursor() as cursor:
        cursor.execute(EQUAL, {"tenant": actor.tenant_id, "ids": list(ids), "nearest": NEAREST})
        return [(one, other, similarity) for one, other, similarity in cursor.fetchall()]


def _near(actor: Actor, ids: Sequence[UUID], threshold: float) -> list[Candidate]:
    """By the vectors of the model that answers questions. Two queries for each namespace, and one more."""
    model = answering(active_model(actor)).name
    places: dict[UUID, list[UUID]] = defaultdict(list)
    for cube_id, place in Embedding.objects.filter(cube_id__in=ids, model=model).values_list("cube_id", "namespace_id"):
        places[place].append(cube_id)
    values = {"tenant": actor.tenant_id, "model": model, "threshold": threshold, "nearest": NEAREST}
    return [
        candidate
        for place, inside in places.items()
        for candidate in _near_inside(model, {**values, "namespace": place, "ids": inside})
    ]


def _near_inside(model: str, values: Mapping[str, Any]) -> list[Candidate]:
    """Up to FEW vectors of a namespace are compared one by one; of more, the vector index finds the nearest."""
    rows = Embedding.objects.filter(namespace_id=values["namespace"], model=model)
    is_large = rows[: FEW + 1].count() > FEW
    index = nearest_by_index(model, len(rows.values_list("vector", flat=True)[0])) if is_large else None
    distance = (index or NEAREST_BY_SCAN).replace("%(vector)s", "one.vector")
    with connection.cursor() as cursor:
        if index:
            cursor.execute(STEADY_PLANS, [str(EF_SEARCH)])
        cursor.execute(NEAR.format(distance=distance), values)
        found = [(one, other, similarity) for one, other, similarity in cursor.fetchall()]
        if index:
            cursor.execute(PLANS_AS_BEFORE)
    return found


def _propose(actor: Actor, pairs: Sequence[Pair]) -> int:
    """A review of each pair that has none, about the version that the later memory has now; how many were new."""
    later = [one for one, _ in pairs]
    versions = CubeVersion.objects.filter(cube_id__in=later, number=F("cube__version"))
    present = dict(versions.exclude(sealed=b"").values_list("cube_id", "id"))
    known, _ = _proposals(set(later))
    new = [
        Review(
            tenant_id=actor.tenant_id,
            kind=ReviewKind.FUSION,
            cube_id=one,
            other_id=other,
            version_id=present[one],
            status=ReviewStatus.OPEN,
        )
        for one, other in pairs
        if one in present and (one, other) not in known
    ]
    Review.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)

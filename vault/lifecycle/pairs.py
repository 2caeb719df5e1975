"""Pairs of memories for review: selects the memories to compare, and opens reviews of the pairs.

Both memories of a pair have one namespace, owner, persona, subject, access level and layer. Stored vectors are
compared; no model is called.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet

from governance.actor import Actor
from governance.database import acting
from governance.jobs.kinds import JobRun, Preview, Step
from vault.cubes.eligibility import SEARCHABLE
from vault.embeddings.vector_index import nearest_by_index
from vault.embeddings.vectors import active_model, question_embedder
from vault.graph.neighbours import open_words
from vault.graph.rules import contradict
from vault.models import Cube, CubeVersion, Embedding, LayerEntry, Review
from vault.models.cube import CubeQuerySet
from vault.models.index import WHOLE
from vault.retrieval.sql import NEAREST_BY_SCAN
from vault.retrieval.statements import FEW, use_steady_plans
from vault.vocabulary import MemoryType, Modality, ReviewKind, ReviewStatus, SemanticType

FIRST = UUID(int=0)
LOOKED_AT = 500  # memories of one step
MOST_PREVIEWED = 2_000  # memories that a preview looks at
MOST_NAMED = 100  # ids in a preview
NEAREST = 10  # memories with which a memory is compared
OPEN_STATES: Mapping[str, Any] = {"state__in": SEARCHABLE, "deleted_at": None}
NEAR = """
SELECT one.cube_id, other.cube_id, 1 - other.distance FROM vault_embedding AS one CROSS JOIN LATERAL (
  SELECT embedding.cube_id, {distance} AS distance FROM vault_embedding AS embedding
  WHERE embedding.tenant_id = %(tenant)s AND embedding.model = %(model)s AND embedding.namespace_id = %(namespace)s
    AND embedding.part = 0
  ORDER BY {distance} LIMIT %(nearest)s + 1
) AS other
WHERE one.tenant_id = %(tenant)s AND one.model = %(model)s AND one.part = 0 AND one.cube_id = ANY(%(ids)s::uuid[])
  AND other.cube_id <> one.cube_id AND 1 - other.distance >= %(threshold)s
"""

Pair = tuple[UUID, UUID]  # the memory that the review is about comes first
Candidate = tuple[UUID, UUID, float]  # two memories and their similarity
Finder = Callable[[Actor, Sequence[UUID]], list[Pair]]  # returns the new pairs of these memories


def pairs_preview(actor: Actor, find: Finder) -> Preview:
    """Return the first memories of the pairs that a run would propose among the first MOST_PREVIEWED memories."""
    with acting(actor):
        pairs = find(actor, _next_ids(actor, FIRST, MOST_PREVIEWED))
    return Preview(len(pairs), tuple(cube_id for cube_id, _ in pairs[:MOST_NAMED]))


def pairs_step(run: JobRun, kind: ReviewKind, find: Finder) -> Callable[[], Step]:
    """Propose the pairs of the next LOOKED_AT memories. done: memories processed. Writes: Review …."""
    with acting(run.system):
        ids = _next_ids(run.system, UUID(run.state.get("after", str(FIRST))), LOOKED_AT)
        pairs = find(run.system, ids)
        total = comparable_cubes(run.system).count() if run.total is None else run.total

    def write() -> Step:
        with acting(run.system):
            proposed = pairs_propose(run.system, kind, pairs)
        done = run.done + len(ids)
        state = {"after": str(ids[-1])} if len(ids) == LOOKED_AT else None
        result = {"proposed": run.result.get("proposed", 0) + proposed}
        return Step(state=state, done=done, total=max(total, done), result=result)

    return write


def pairs_propose(actor: Actor, kind: ReviewKind, pairs: Sequence[Pair]) -> int:
    """Open a review for each pair that has none, about the present version of its first memory. Returns the number
    opened."""
    about = [cube_id for cube_id, _ in pairs]
    versions = CubeVersion.objects.filter(cube_id__in=about, number=F("cube__version"))
    present = dict(versions.exclude(sealed=b"").values_list("cube_id", "id"))
    asked = find_reviewed_pairs(about, {kind})
    new = [
        Review(
            tenant_id=actor.tenant_id,
            kind=kind,
            cube_id=cube_id,
            other_id=other,
            version_id=present[cube_id],
            status=ReviewStatus.OPEN,
        )
        for cube_id, other in pairs
        if cube_id in present and frozenset((cube_id, other)) not in asked
    ]
    Review.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)


def comparable_cubes(actor: Actor) -> CubeQuerySet:
    """Return the searchable memories that may form a pair.

    Turns of conversations and the queues of a persona are left out, because the layers reconcile them.
    """
    queued = LayerEntry.objects.filter(cube_id=OuterRef("pk"), left_at=None)
    rows = Cube.objects.readable().filter(
        tenant_id=actor.tenant_id,
        state__in=SEARCHABLE,
        is_indexed=True,
        type=MemoryType.PLAINTEXT,
        modality=Modality.TEXT,
    )
    return rows.exclude(semantic_type=SemanticType.DIALOGUE).exclude(Exists(queued))


def fields_in_common(cube: Cube) -> tuple[object, ...]:
    """Return the key that two memories must share to form a pair."""
    return (cube.namespace_id, cube.owner_id, cube.persona_id, cube.subject_id, cube.access_level, cube.layer)


def find_reviewed_pairs(cube_ids: Collection[UUID], kinds: Collection[ReviewKind]) -> set[frozenset[UUID]]:
    """Return the pairs with one of these memories that have or had a review of these kinds."""
    return {frozenset(pair) for pair in _pairs_with(cube_ids, Review.objects.filter(kind__in=kinds))}


def pairs_waiting(cube_ids: Collection[UUID], kind: ReviewKind) -> list[Pair]:
    """Return the pairs with one of these memories whose review is open and can still be accepted. Three queries."""
    pairs = _pairs_with(cube_ids, Review.objects.filter(kind=kind, status=ReviewStatus.OPEN))
    named = {cube_id for pair in pairs for cube_id in pair}
    possible = set(Cube.objects.filter(id__in=named, **OPEN_STATES).values_list("id", flat=True))
    return [pair for pair in pairs if possible.issuperset(pair)]


def _pairs_with(cube_ids: Collection[UUID], rows: QuerySet[Review]) -> set[Pair]:
    """Return the pairs of these reviews that contain one of the memories.

    Runs two queries, each by its index; a single query with OR would read every review of the kind.
    """
    pairs = rows.exclude(other=None).values_list("cube_id", "other_id")
    found = [*pairs.filter(cube__in=cube_ids), *pairs.filter(other__in=cube_ids)]
    return {(first, other) for first, other in found if other is not None}


def select_contradicting(pairs: Iterable[Pair]) -> set[Pair]:
    """Return the pairs whose present texts contradict each other by the rules of links. Raises KeyUnavailable."""
    asked = list(pairs)
    words = open_words(Cube.objects.filter(id__in={cube_id for pair in asked for cube_id in pair}))
    opened = [(first, other) for first, other in asked if first in words and other in words]
    return {(first, other) for first, other in opened if contradict(words[first].content, words[other].content)}


def near_candidates(actor: Actor, cube_ids: Sequence[UUID], threshold: float) -> list[Candidate]:
    """Return the pairs of memories with near vectors of the active model. Two queries for each namespace, and one
    more."""
    model = question_embedder(active_model(actor)).name
    rows = Embedding.objects.filter(cube_id__in=cube_ids, model=model, part=WHOLE)
    places: dict[UUID, list[UUID]] = defaultdict(list)
    for cube_id, place in rows.values_list("cube_id", "namespace_id"):
        places[place].append(cube_id)
    values = {"tenant": actor.tenant_id, "model": model, "threshold": threshold, "nearest": NEAREST}
    return [
        candidate
        for place, inside in places.items()
        for candidate in _near_inside(model, {**values, "namespace": place, "ids": inside})
    ]


def _near_inside(model: str, values: Mapping[str, Any]) -> list[Candidate]:
    """Return the near pairs within one namespace. Up to FEW vectors are compared one by one; beyond that, by the vector
    index."""
    rows = Embedding.objects.filter(namespace_id=values["namespace"], model=model, part=WHOLE)
    is_large = rows[: FEW + 1].count() > FEW
    index = nearest_by_index(model, len(rows.values_list("vector", flat=True)[0])) if is_large else None
    distance = (index or NEAREST_BY_SCAN).replace("%(vector)s", "one.vector")
    with use_steady_plans() if index else nullcontext(), connection.cursor() as cursor:
        cursor.execute(NEAR.format(distance=distance), values)
        return [(first, other, similarity) for first, other, similarity in cursor.fetchall()]


def _next_ids(actor: Actor, after: UUID, most: int) -> list[UUID]:
    rows = comparable_cubes(actor).filter(id__gt=after).order_by("id")
    return list(rows.values_list("id", flat=True)[:most])

"""The job that compares a pack's memories with the organisation's own, and opens reviews for a person to decide.

Two nearly equal texts contradict each other if a number or a negation differs, otherwise the pack confirms the memory.
A contradicting statement that holds from a later time supersedes the memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from pgvector import HalfVector
from pgvector.django import CosineDistance

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, tenant_transaction
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic
from vault.embeddings.calibration import to_cosine
from vault.embeddings.vectors import active_model, question_embedder
from vault.graph.neighbours import open_words
from vault.lexicon.tokens import language_of
from vault.lifecycle.contradictions import validity_start
from vault.lifecycle.knowledge import KNOWLEDGE, find_relation
from vault.lifecycle.pairs import Pair, comparable_cubes, find_reviewed_pairs, pairs_propose
from vault.models import Cube, Embedding, PackMemory, PackVersion, Publication, Review, Subscription
from vault.models.cube import CubeQuerySet
from vault.models.index import WHOLE
from vault.providers.ports import Matrix
from vault.vocabulary import ContractState, ReviewKind, ReviewStatus, Source

PART = 25  # memories of the pack in one step
NEAREST = 10  # own memories that each is compared with
LEAST_SIMILAR = 0.5  # calibrated cosine; rules compare the words of what is nearer
FIRST = UUID(int=0)


@dataclass(frozen=True)
class Official:
    """A memory of the pack. since: the time from which it holds; without dates, the time when the version was made."""

    cube_id: UUID
    since: datetime
    text: str = field(repr=False)


@handler(Topic.PACK_COMPARE, permission=Permission.STORE_MANAGE)
def pack_compare(run: JobRun) -> Callable[[], Step]:
    """Compare the next PART memories of a subscription. done: memories of the pack. Writes: Review ….

    An own memory has at most one open proposal. A decided pair is not proposed again.
    """
    authorize(run.system, Permission.STORE_MANAGE)
    after = UUID(run.state.get("after", str(FIRST)))
    with acting(run.system):
        row = Subscription.objects.get(tenant_id=run.system.tenant_id, id=UUID(run.settings["subscription"]))
        rows = PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row)
        total = rows.count() if row.state == ContractState.ACTIVE else 0
        ids = list(rows.filter(cube_id__gt=after).order_by("cube_id").values_list("cube_id", flat=True)[:PART])
        model = question_embedder(active_model(run.system))
    ids = ids if total else []
    edition = _edition_made_at(row)
    with acting(run.system):
        officials = _read_pack_statements(ids, edition)
    vectors = model.embed([official.text for official in officials]) if officials else None
    with acting(run.system):
        proposals = _find_proposals(run.system, officials, vectors, model.name) if vectors is not None else {}

    def write() -> Step:
        counts = dict(run.result)
        with acting(run.system):
            for kind, pairs in proposals.items():
                counts[kind] = counts.get(kind, 0) + pairs_propose(run.system, kind, pairs)
        state = {"after": str(ids[-1])} if len(ids) == PART else None
        return Step(state=state, done=run.done + len(ids), total=total, result=counts)

    return write


def _edition_made_at(row: Subscription) -> datetime | None:
    """Return the time when the publisher made the installed version, read in a transaction of the publisher."""
    with tenant_transaction(row.publisher_id):
        publications = Publication.objects.filter(id=row.publication_id)
        versions = PackVersion.objects.filter(pack__in=publications.values("pack_id"), number=row.number)
        return versions.values_list("created_at", flat=True).first()


def _read_pack_statements(ids: Sequence[UUID], edition: datetime | None) -> list[Official]:
    cubes = {cube.id: cube for cube in Cube.objects.filter(id__in=ids)}
    words = open_words(cubes.values())
    return [
        Official(cube_id, cube.valid_from or cube.event_time or edition or cube.created_at, words[cube_id].content)
        for cube_id in ids
        if (cube := cubes.get(cube_id)) is not None and cube_id in words
    ]


def _find_proposals(
    actor: Actor, officials: Sequence[Official], vectors: Matrix, model: str
) -> Mapping[ReviewKind, Sequence[Pair]]:
    """Return new pairs of an own memory and a similar one of the pack, nearest first. Five queries for each
    official."""
    found: dict[ReviewKind, list[Pair]] = {kind: [] for kind in KNOWLEDGE}
    taken: set[UUID] = set()
    for official, vector in zip(officials, vectors, strict=True):
        near = _find_similar_memories(actor, model, HalfVector(vector), language_of(official.text))
        words = open_words(near)
        asked = find_reviewed_pairs([official.cube_id], KNOWLEDGE)
        waiting = _find_proposed_ids(near)
        for own in near:
            if own.id not in words or own.id in taken | waiting or frozenset((own.id, official.cube_id)) in asked:
                continue
            kind = find_relation(official.text, words[own.id].content, is_newer=official.since > validity_start(own))
            if kind is not None:
                found[kind].append((own.id, official.cube_id))
                taken.add(own.id)
    return found


def _find_similar_memories(actor: Actor, model: str, vector: HalfVector, language: str) -> list[Cube]:
    """Return the own memories, of any owner, that are nearest to the vector of a text, valid and not held."""
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, model=model, part=WHOLE, cube__in=_own_memories(actor))
    nearest = rows.annotate(distance=CosineDistance("vector", vector)).order_by("distance")
    near = nearest.filter(distance__lte=1 - to_cosine(LEAST_SIMILAR, model, language))
    ids = list(near.values_list("cube_id", flat=True)[:NEAREST])
    cubes = {cube.id: cube for cube in Cube.objects.filter(id__in=ids).free()}
    return [cubes[cube_id] for cube_id in ids if cube_id in cubes]


def _own_memories(actor: Actor) -> CubeQuerySet:
    rows = comparable_cubes(actor).exclude(source=Source.PACK)
    return rows.filter(Q(valid_to=None) | Q(valid_to__gt=Now()))


def _find_proposed_ids(cubes: Sequence[Cube]) -> set[UUID]:
    """Return the ids of those memories that an open review proposes to change."""
    rows = Review.objects.filter(kind__in=KNOWLEDGE, status=ReviewStatus.OPEN, cube__in=[cube.id for cube in cubes])
    return set(rows.values_list("cube_id", flat=True))

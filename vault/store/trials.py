"""Trial of a pack before a subscription: the best memories for some questions, without and with the pack."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from django.db import connection

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting, tenant_transaction
from governance.errors import FieldError, Invalid, Unavailable
from governance.ids import uuid7
from governance.outbox.services import emit, is_asked
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.selectors import cubes_view
from vault.cubes.visibility import visible_ids
from vault.models import Listing, PackTrial, PackVersion, Turn
from vault.providers.ports import Matrix
from vault.providers.registry import embedder
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search
from vault.store.catalogue import listing_get
from vault.store.excerpts import TrialIndex, round_vectors, share_of, trial_open

MOST_QUESTIONS = 5
SHOWN = 3  # memories of an answer
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('pack trial ' || %s || %s, 0))"
WAIT_SECONDS = 60  # before a trial whose index is being made is asked again


@dataclass(frozen=True)
class TriedMemory:
    """A memory of a trial. text: only an extract for a pack's memory; score: cosine with the question, -1..1."""

    text: str = field(repr=False)
    score: float
    is_of_pack: bool


@dataclass(frozen=True)
class TriedQuestion:
    """A question, with the best memories without the pack and with it."""

    question: str = field(repr=False)
    without: tuple[TriedMemory, ...]
    with_pack: tuple[TriedMemory, ...]

    @property
    def pack_count(self) -> int:
        """The number of the pack's memories among the best."""
        return sum(memory.is_of_pack for memory in self.with_pack)


@dataclass(frozen=True)
class Trial:
    """Answers of a trial. shown: memories of the pack that the organisation was shown in all trials, of `limit`."""

    questions: tuple[TriedQuestion, ...]
    shown: int
    limit: int


def publication_try(*, actor: Actor, publication_id: UUID, questions: Sequence[str] = ()) -> Trial:
    """Answer 1 to MOST_QUESTIONS questions side by side; none given: the actor's own last ones in the chat.

    Both sides are ranked by one scale, the cosine with the question. Nothing is installed, and no read is counted.
    Of the pack an organisation is shown a bounded share in all its trials; beyond it, only what it was shown before.
    Raises NotFound; Forbidden; Invalid; Unavailable while the index of the version is made; ProviderUnavailable;
    KeyUnavailable. Writes: AuditEntry …, PackTrial …, OutboxEvent?.
    """
    authorize(actor, Permission.STORE_MANAGE)
    listing = listing_get(actor=actor, publication_id=publication_id)
    if len(questions) > MOST_QUESTIONS:
        raise Invalid(errors=[FieldError("queries", f"at most {MOST_QUESTIONS}")])
    asked = list(questions) or questions_last(actor=actor)
    with acting(actor):
        record(actor=actor, verb=Verb.PUBLICATION_READ, object_type="publication", object_ids=[listing.id])
    index = _open_index(listing, request_id=actor.request_id)
    found = [_search_own(actor, question) for question in asked]
    limit = share_of(len(index.keys))
    with acting(actor):
        shown = _lock_shown(actor, listing.id)
        before = frozenset(shown)
        tried = tuple(_answer_question(actor, own, index, shown, limit) for own in found)
        PackTrial.objects.bulk_create(
            PackTrial(id=uuid7(), tenant_id=actor.tenant_id, publication_id=listing.id, key=key)
            for key in sorted(shown - before)
        )
    return Trial(tried, len(shown), limit)


def _open_index(listing: Listing, *, request_id: str) -> TrialIndex:
    """Return the index of the published version. Raises Unavailable, and asks for it, if there is none."""
    with tenant_transaction(listing.publisher_id):
        version = PackVersion.objects.defer(None).defer("sealed", "wordings", "preview").get(id=listing.version_id)
        index = trial_open(version)
    if index is None:
        _request_index(listing, request_id=request_id)
        raise Unavailable("The trial of this pack is being prepared. Try again in a minute.", retry_after=WAIT_SECONDS)
    return index


def _request_index(listing: Listing, *, request_id: str) -> None:
    """Ask the publisher's worker for the index, unless it is asked already. Writes: OutboxEvent?."""
    publisher = system_actor(tenant_id=listing.publisher_id, request_id=request_id)
    with acting(publisher):
        if not is_asked(actor=publisher, topic=Topic.LISTINGS_WRITTEN, seconds=0):
            emit(actor=publisher, topic=Topic.LISTINGS_WRITTEN, payload={"listing": str(listing.id)})


def questions_last(*, actor: Actor) -> list[str]:
    """Return the actor's own last distinct questions in chats, newest first. Raises Forbidden. Writes: AuditEntry?."""
    authorize(actor, Permission.MEMORY_READ)
    if actor.member_id is None:
        return []
    with acting(actor):
        rows = Turn.objects.filter(tenant_id=actor.tenant_id, conversation__member_id=actor.member_id)
        newest = rows.filter(conversation__deleted_at=None, question__isnull=False).order_by("-id")
        ids = list(newest.values_list("question_id", flat=True)[: 4 * MOST_QUESTIONS])
        readable = visible_ids(actor, ids)
        views = cubes_view(actor=actor, cube_ids=[cube_id for cube_id in ids if cube_id in readable])
        if views:
            shown = [view.cube.id for view in views]
            record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=shown)
    return list(dict.fromkeys(view.words.content for view in views))[:MOST_QUESTIONS]


@dataclass(frozen=True)
class OwnAnswer:
    """A question, its vector, and the best memories without the pack."""

    question: str = field(repr=False)
    vector: Matrix
    memories: tuple[TriedMemory, ...]


def _search_own(actor: Actor, question: str) -> OwnAnswer:
    own = memories_search(actor=actor, search=SearchQuery(question, top_k=SHOWN, is_use=False))
    vector = embedder().embed([question])[0]
    return OwnAnswer(question, vector, tuple(_score_own_memories(own, vector)))


def _lock_shown(actor: Actor, publication_id: UUID) -> set[UUID]:
    """Return the memories of the pack that the organisation was shown; trials of it wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [str(actor.tenant_id), str(publication_id)])
    rows = PackTrial.objects.filter(tenant_id=actor.tenant_id, publication_id=publication_id)
    return set(rows.values_list("key", flat=True))


def _answer_question(actor: Actor, own: OwnAnswer, index: TrialIndex, shown: set[UUID], limit: int) -> TriedQuestion:
    """Put the pack's best memories among the own ones. `shown` grows by them, up to `limit`."""
    scores = index.vectors @ own.vector
    waiting, together = [*own.memories], list[TriedMemory]()
    for place in np.argsort(-scores):
        while waiting and waiting[0].score >= scores[place]:
            together.append(waiting.pop(0))
        if len(together) >= SHOWN:
            break
        key = index.keys[place]
        if key in shown or len(shown) < limit:
            shown.add(key)
            extract = index.extract(int(place), actor.tenant_id)
            together.append(TriedMemory(extract, round(float(scores[place]), 4), True))
    return TriedQuestion(own.question, own.memories, tuple([*together, *waiting][:SHOWN]))


def _score_own_memories(hits: Sequence[Hit], asked: Matrix) -> list[TriedMemory]:
    texts = [hit.view.words.content for hit in hits if hit.score > 0]
    if not texts:
        return []
    scores = round_vectors(embedder().embed(texts)) @ asked
    pairs = [TriedMemory(text, round(float(score), 4), False) for text, score in zip(texts, scores, strict=True)]
    return sorted(pairs, key=lambda memory: -memory.score)

"""Search by layers, as in MemoryOS: the queue, the pages of the best segments, and the persona's own queues."""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.conf import settings
from django.db.models import Case, FloatField, Q, QuerySet, When
from pgvector import HalfVector
from pgvector.django import CosineDistance

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.outbox.services import emit
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.embeddings.vectors import active_model, answering
from vault.cubes.rules import approximate_tokens
from vault.cubes.selectors import cubes_read
from vault.layers.constants import constants_in_force
from vault.layers.reading import keyword_marks
from vault.layers.rules import Constants, fit, fscore, select_pages, select_segments
from vault.layers.services import persona_of_member
from vault.models import Cube, Embedding, LayerEntry, Page, Segment, Stream
from vault.retrieval.queries import SearchQuery, narrowing, states, within_asked
from vault.retrieval.ranking import NO_PARTS
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import EntryQueue, PageLayer, SearchMode

FREE = 10  # memories beside the layers that a context may have
DEFAULT_TOKENS = 2_000


@dataclass(frozen=True)
class ContextItem:
    """A memory in a context. line: as it stands there, a JSON object; tokens: of that line."""

    hit: Hit
    line: str = field(repr=False)
    tokens: int


@dataclass(frozen=True)
class Context:
    """What a model may be given for a question, as data; never more tokens than were asked for."""

    items: tuple[ContextItem, ...]

    @property
    def text(self) -> str:
        return "\n".join(item.line for item in self.items)

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)


@dataclass(frozen=True)
class _Question:
    vector: HalfVector = field(repr=False)
    model: str
    keywords: frozenset[int]


def layers_search(
    *, actor: Actor, search: SearchQuery, within: Callable[[Sequence[Hit]], None] = lambda hits: None
) -> list[Hit]:
    """The memories of a persona that a question needs: its queue, the best pages of its best segments, its profile,
    and the best of its queues. The persona is the one that the search names, else the caller's own.

    score: of a page its cosine with the question, of an entry likewise; 0..1, and `top_k` cuts the whole. Each segment
    with a page over the gate counts as visited, once. Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable.
    Writes: AuditEntry naming the ids, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_READ)
    question = _asked(actor, search.query)
    with acting(actor):
        persona_id = _persona(actor, search)
        scores, visited = _scored(actor, persona_id, search, question)
        hits = _opened(actor, search, scores, visited)
        within(hits)
    return hits


def context_assemble(*, actor: Actor, search: SearchQuery, token_budget: int = DEFAULT_TOKENS) -> Context:
    """What a model may be given for a question: the layers first, then other memories that answer it.

    token_budget: at least 1. Each memory is one JSON object in a line of its own, labelled with its id and quoted as
    data. Raises as `layers_search`. Writes: AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_READ)
    hits = memories_search(actor=actor, search=replace(search, mode=SearchMode.HYBRID, top_k=FREE))
    named = replace(search, mode=SearchMode.MEMORYOS, top_k=settings.MAX_TOP_K)
    own = layers_search(actor=actor, search=named) if _has_persona(actor, search) else []
    shown = {hit.view.cube.id for hit in own}
    items = [_item(hit) for hit in [*own, *(hit for hit in hits if hit.view.cube.id not in shown)]]
    return Context(tuple(fit(items, lambda item: item.tokens, token_budget)))


def _has_persona(actor: Actor, search: SearchQuery) -> bool:
    with acting(actor):
        return bool(search.personas) or persona_of_member(actor) is not None


def _asked(actor: Actor, text: str) -> _Question:
    with acting(actor):
        active = active_model(actor)
        maker = token_maker(actor.tenant_id)
    model = answering(active)
    vector = HalfVector(model.embed([text])[0])
    return _Question(vector, model.name, frozenset(keyword_marks(maker, text)))


def _persona(actor: Actor, search: SearchQuery) -> UUID:
    if len(search.personas) > 1:
        raise Invalid(errors=[FieldError("personas", "name one: the layers are one persona's")])
    if search.personas:
        return persona_get(actor=actor, reference=search.personas[0], field="personas").id
    found = persona_of_member(actor)
    if found is None:
        raise Invalid(errors=[FieldError("personas", "name the persona whose layers are searched")])
    return found


def _scored(
    actor: Actor, persona_id: UUID, search: SearchQuery, question: _Question
) -> tuple[dict[UUID, float], tuple[UUID, ...]]:
    """Memories by their score, and the segments that were visited. Six queries at most."""
    constants = constants_in_force(persona_id)
    scores: dict[UUID, float] = {}
    for page, near in _near_pages(_queue(persona_id, actor, search), question):
        _score_sides(scores, page, near)
    segments = select_segments(_segment_scores(persona_id, question), constants)
    pages: dict[Hashable, tuple[Page, float]] = {}
    pages |= {page.id: (page, near) for page, near in _near_pages(Page.objects.filter(segment__in=segments), question)}
    by_segment: dict[UUID, dict[Hashable, float]] = {}
    for page, near in pages.values():
        if page.segment_id:
            by_segment.setdefault(page.segment_id, {})[page.id] = near
    found = select_pages(segments, by_segment, constants)
    for page_id, near in found.pages:
        _score_sides(scores, pages[page_id][0], near)
    for cube_id, near in _entry_scores(persona_id, question, constants):
        scores[cube_id] = max(near, scores.get(cube_id, 0.0))
    return scores, tuple(UUID(str(one)) for one in found.visited)


def _queue(persona_id: UUID, actor: Actor, search: SearchQuery) -> QuerySet[Page]:
    """The short-term pages of the session that is asked about, else of the stream that was written last."""
    streams = Stream.objects.filter(persona_id=persona_id)
    if search.session_id:
        token = token_maker(actor.tenant_id).token("stream", search.session_id)
        streams = streams.filter(session_token=token)
    newest = streams.order_by("-updated_at").values("id")[:1]
    return Page.objects.filter(stream_id__in=newest, layer=PageLayer.SHORT_TERM)


def _near_pages(rows: QuerySet[Page], question: _Question) -> list[tuple[Page, float]]:
    """Pages with their cosine to the question; 0 for one that has no vector of the question's model yet."""
    of_model = Q(model=question.model, vector__isnull=False)
    cosine = 1.0 - CosineDistance("vector", question.vector)
    near = Case(When(of_model, then=cosine), default=0.0, output_field=FloatField())
    return [(page, page.near) for page in rows.defer("vector", "gist", "keywords").annotate(near=near)]


def _segment_scores(persona_id: UUID, question: _Question) -> dict[UUID, float]:
    rows = Segment.objects.filter(persona_id=persona_id, evicted_at=None, model=question.model).exclude(vector=None)
    near = rows.values_list("id", "keywords", 1.0 - CosineDistance("vector", question.vector))
    return {one: fscore(cosine, {int(mark) for mark in marks}, question.keywords) for one, marks, cosine in near}


def _entry_scores(persona_id: UUID, question: _Question, constants: Constants) -> list[tuple[UUID, float]]:
    """The whole profile, and the best of each queue."""
    rows = LayerEntry.objects.filter(persona_id=persona_id, left_at=None).values_list("queue", "cube_id")
    queues: dict[str, list[UUID]] = {}
    for queue, cube_id in rows:
        queues.setdefault(queue, []).append(cube_id)
    ids = [one for some in queues.values() for one in some]
    vectors = Embedding.objects.filter(cube_id__in=ids, model=question.model)
    near = dict(vectors.values_list("cube_id", 1.0 - CosineDistance("vector", question.vector)))
    found: list[tuple[UUID, float]] = []
    for queue, some in queues.items():
        ranked = sorted(((one, near.get(one, 0.0)) for one in some), key=lambda pair: -pair[1])
        found += ranked if queue == EntryQueue.PROFILE else ranked[: constants.top_entries]
    return found


def _score_sides(scores: dict[UUID, float], page: Page, near: float) -> None:
    for cube_id in (page.query_id, page.response_id):
        if cube_id is not None:
            scores[cube_id] = max(near, scores.get(cube_id, 0.0))


def _opened(actor: Actor, search: SearchQuery, scores: dict[UUID, float], visited: Sequence[UUID]) -> list[Hit]:
    """Those that the reader may see and that the search's filters leave, best first."""
    condition = states(search) & narrowing(token_maker(actor.tenant_id), replace(search, personas=(), session_id=""))
    visible = within_asked(Cube.objects.visible_to(actor).filter(condition), search)
    shown = set(visible.filter(id__in=list(scores)).values_list("id", flat=True))
    ranked = sorted(shown, key=lambda one: (-scores[one], str(one)))
    chosen = [one for one in ranked if _clamped(scores[one]) >= search.min_score][: search.top_k]
    views = cubes_read(actor=actor, cube_ids=chosen, verb=Verb.MEMORY_SEARCHED, is_use=False)
    if search.is_use:
        payload = {"ids": [str(one) for one in chosen], "segments": [str(one) for one in visited]}
        emit(actor=actor, topic=Topic.CUBES_READ, payload=payload)
    return [
        Hit(view, score, replace(NO_PARTS, dense=score)) for view in views for score in [_clamped(scores[view.cube.id])]
    ]


def _clamped(score: float) -> float:
    return min(max(score, 0.0), 1.0)


def _item(hit: Hit) -> ContextItem:
    cube, words = hit.view.cube, hit.view.words
    moment = cube.event_time or cube.created_at
    quoted = {
        "id": str(cube.id),
        "layer": cube.layer,
        "said_by": words.speaker,
        "date": moment.date().isoformat(),
        "text": words.content,
    }
    line = json.dumps(quoted, ensure_ascii=False)
    return ContextItem(hit, line, approximate_tokens(line))

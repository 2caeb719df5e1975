"""Search by layers, as in MemoryOS: the queue, the pages of the best segments, and the persona's own queues."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import Any
from uuid import UUID

from django.conf import settings
from pgvector import HalfVector

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.outbox.services import emit
from governance.personas.selectors import persona_get
from governance.prepared import prepared_cursor, send_together, sql_array
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.rules import approximate_tokens
from vault.cubes.selectors import CubeView, cubes_read
from vault.embeddings.vectors import active_model, question_embedder
from vault.layers.constants import constants_in_force
from vault.layers.page_texts import keyword_marks
from vault.layers.persona_scope import scope_to_search
from vault.layers.rules import Constants, Key, Selection, fit, select_pages, select_segments
from vault.layers.scores import SegmentQuery
from vault.layers.services import persona_of_member
from vault.layers.working_set import preloaded_list, stable_ids
from vault.lexicon.tokens import language_of
from vault.providers.registry import embedder
from vault.retrieval.fusion import NO_PARTS
from vault.retrieval.queries import SearchQuery
from vault.retrieval.scope import resolve_scope_without_mounts
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import EntryQueue, SearchMode

OPENED = 5  # memories of a context that are opened together, at least
SHORTEST_LINE = 28  # tokens of a line beside its memory's text, at least
PRELOADED_SHARE = 0.1  # of a context's budget, for the working set of its session
FREE = 10  # memories beside the layers that a context may have
DEFAULT_TOKENS = 2_000
# 0 for a page without a vector of the question's model.
NEAR = (
    "CASE WHEN {0}.model = %(model)s AND {0}.vector IS NOT NULL "
    "THEN 1 - ({0}.vector <=> %(vector)s::halfvec) ELSE 0 END"
)
# The short-term pages of the given session, else of the stream that was written last.
QUEUE = f"""
SELECT page.query_id, page.response_id, {NEAR.format("page")}
FROM vault_page AS page
WHERE page.tenant_id = %(tenant)s AND page.layer = 'short_term' AND page.stream_id = (
  SELECT id FROM vault_stream WHERE tenant_id = %(tenant)s AND persona_id = %(persona)s
    AND (%(session)s::bigint IS NULL OR session_token = %(session)s)
  ORDER BY updated_at DESC LIMIT 1)
"""
ENTRIES = """
SELECT entry.queue, entry.cube_id, coalesce(1 - (embedding.vector <=> %(vector)s::halfvec), 0)
FROM vault_layerentry AS entry LEFT JOIN vault_embedding AS embedding
  ON embedding.tenant_id = entry.tenant_id AND embedding.cube_id = entry.cube_id AND embedding.model = %(model)s
  AND embedding.part = 0
WHERE entry.tenant_id = %(tenant)s AND entry.persona_id = %(persona)s AND entry.left_at IS NULL
"""
PAGES = f"""
SELECT chosen.id, page.id, page.query_id, page.response_id, page.near
FROM unnest(%(segments)s::uuid[]) AS chosen (id) CROSS JOIN LATERAL (
  SELECT one.id, one.query_id, one.response_id, {NEAR.format("one")} AS near
  FROM vault_page AS one WHERE one.tenant_id = %(tenant)s AND one.segment_id = chosen.id
  ORDER BY near DESC, one.id LIMIT %(pages)s
) AS page
"""
# Prefix of a statement over cubes: restricts it to these, each looked up by key, however many the tenant has.
NAMED = """
WITH vault_cube AS MATERIALIZED (
  SELECT cube.* FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT * FROM vault_cube AS one WHERE one.id = wanted.id AND one.tenant_id = %(tenant)s OFFSET 0
  ) AS cube
)
"""


class Origin(StrEnum):
    """QUESTION: a result of the search for the question; PRELOADED: of the working set; LAYER: of the persona's layers;
    NEAR: of the other results."""

    QUESTION = "question"
    PRELOADED = "preloaded"
    LAYER = "layer"
    NEAR = "near"


class ContextOrder(StrEnum):
    """RELEVANCE: what answers the question first; STABLE: profile and pinned memories first, then what was preloaded.

    A prompt that begins with a context in stable order has the same head in the next turn.
    """

    RELEVANCE = "relevance"
    STABLE = "stable"


@dataclass(frozen=True)
class ContextItem:
    """A memory in a context. origin: why it is there; line: its JSON object in the context; tokens: of that line."""

    hit: Hit
    origin: Origin
    line: str = field(repr=False)
    tokens: int


@dataclass(frozen=True)
class Context:
    """The memories that a model may get for a question, as data; never more tokens than requested."""

    items: tuple[ContextItem, ...]

    @property
    def text(self) -> str:
        return "\n".join(item.line for item in self.items)

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)


@dataclass(frozen=True)
class _Question:
    """A question to search the layers for. vector: by `model`."""

    text: str = field(repr=False)
    vector: HalfVector = field(repr=False)
    model: str


@dataclass(frozen=True)
class _Rest:
    """The remaining budget of a context. taken: memories that are in it already; budget: remaining tokens."""

    taken: frozenset[UUID]
    budget: int


class _OtherModel(Exception):
    """The tenant's vectors and the vector of the question are of different models."""

    def __init__(self, active: str) -> None:
        super().__init__(active)
        self.active = active


def layers_search(
    *, actor: Actor, search: SearchQuery, within: Callable[[Sequence[Hit]], None] = lambda hits: None
) -> list[Hit]:
    """Return the memories of a persona for a question: its queue, the best pages of its best segments, its profile, and
    the best of its queues. The persona is the one in the search, else the caller's own.

    score: the cosine with the question, 0..1; `top_k` limits the whole result. Each segment with a page over the gate
    counts as visited, once.
    Raises Forbidden; Invalid; UnknownPersona; ProviderUnavailable; KeyUnavailable. Writes: AuditEntry naming the ids,
    OutboxEvent.
    Queries: nine, one more if a memory has parents, and the audit.
    """
    authorize(actor, Permission.MEMORY_READ)
    actor = scope_to_search(actor, search)

    def read(question: _Question) -> list[Hit]:
        with acting(actor):
            persona_id = _find_persona(actor, search)
            hits = _find_hits(actor, persona_id, search, question) if persona_id else []
            within(hits)
        return hits

    return _search_with_question(search.query, read)


def context_assemble(
    *,
    actor: Actor,
    search: SearchQuery,
    token_budget: int = DEFAULT_TOKENS,
    order: ContextOrder = ContextOrder.RELEVANCE,
) -> Context:
    """Assemble the memories for a question: first the results of a search for it, then, if the search names a session,
    those of its working set, at most PRELOADED_SHARE of the budget, then the layers, then others.

    token_budget: at least 1; memories that cannot fit are not decrypted. Each memory is one JSON object on its own
    line, labelled with its id and quoted as data. All is read in one transaction.

    Raises the errors of `layers_search`. Writes: AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_READ)
    actor = scope_to_search(actor, search)
    free = replace(search, mode=SearchMode.HYBRID, top_k=FREE, with_messages=True)
    named = replace(
        search, mode=SearchMode.MEMORYOS, top_k=settings.MAX_TOP_K, namespaces=search.restricting_namespaces
    )

    origins: dict[UUID, Origin] = {}
    stable: list[UUID] = []

    def read(question: _Question) -> list[Hit]:
        first: list[Hit] = []
        preloaded: list[Hit] = []
        own: list[Hit] = []

        def layers(hits: Sequence[Hit]) -> None:
            first.extend(fit([hit for hit in hits if hit.score], lambda hit: _count_tokens(hit.view), token_budget))
            left = token_budget - sum(_count_tokens(hit.view) for hit in first)
            with acting(actor):
                persona_id = _find_persona(actor, named)
                if persona_id is not None:
                    taken = frozenset(hit.view.cube.id for hit in first)
                    share = min(int(token_budget * PRELOADED_SHARE), left)
                    preloaded.extend(_find_preloaded(actor, persona_id, named, _Rest(taken, share)))
                    left -= sum(_count_tokens(hit.view) for hit in preloaded)
                    rest = _Rest(taken.union(hit.view.cube.id for hit in preloaded), left)
                    own.extend(_find_hits(actor, persona_id, named, question, rest))
                    stable.extend(stable_ids(actor, persona_id) if order is ContextOrder.STABLE else ())

        hits = memories_search(actor=actor, search=free, within=layers)
        origins.update({hit.view.cube.id: Origin.LAYER for hit in own})
        origins.update({hit.view.cube.id: Origin.PRELOADED for hit in preloaded})
        origins.update({hit.view.cube.id: Origin.QUESTION for hit in first})
        return [*first, *preloaded, *own, *(hit for hit in hits if hit.view.cube.id not in origins)]

    items = [_make_context_item(hit, origins) for hit in _search_with_question(search.query, read)]
    chosen = fit(items, lambda item: item.tokens, token_budget)
    if order is ContextOrder.STABLE:
        places = {cube_id: at for at, cube_id in enumerate(stable)}
        chosen.sort(
            key=lambda item: (
                places.get(item.hit.view.cube.id, len(places)),
                item.origin is not Origin.PRELOADED,
            )
        )
    context = Context(tuple(chosen))
    _record_context(actor, context, token_budget)
    return context


def _record_context(actor: Actor, context: Context, token_budget: int) -> None:
    """Record what a model received, in order, so that a person can see it. Writes: AuditEntry."""
    items = [f"{item.origin}:{item.hit.view.cube.layer}:{item.tokens}" for item in context.items]
    detail: dict[str, str | int] = {"tokens": context.tokens, "budget": token_budget, "items": " ".join(items)}
    with acting(actor):
        ids = [item.hit.view.cube.id for item in context.items]
        record(actor=actor, verb=Verb.CONTEXT_READ, object_type="memory", object_ids=ids, detail=detail)


def _search_with_question(text: str, read: Callable[[_Question], list[Hit]]) -> list[Hit]:
    """Return the results of `read`; if the tenant's vectors are of another model, repeat it with such a vector."""
    model = embedder()
    while True:
        try:
            return read(_Question(text, HalfVector(model.embed([text])[0]), model.name))
        except _OtherModel as other:
            model = question_embedder(other.active)


def _find_persona(actor: Actor, search: SearchQuery) -> UUID | None:
    """Return the persona whose layers are searched; None if none is named and the caller has none."""
    if len(search.personas) > 1:
        raise Invalid(errors=[FieldError("personas", "name one: the layers are one persona's")])
    if search.personas:
        return persona_get(actor=actor, reference=search.personas[0], field="personas").id
    return persona_of_member(actor)


def _find_hits(
    actor: Actor, persona_id: UUID, search: SearchQuery, question: _Question, rest: _Rest | None = None
) -> list[Hit]:
    """Search the memories of the layers. Raises _OtherModel."""
    active = active_model(actor)
    if active is not None and active != question.model and question_embedder(active).name != question.model:
        raise _OtherModel(active)
    scores, visited = _score_memories(actor, persona_id, search, question)
    ranked, sizes = _rank_memories(actor, search, scores)
    if rest is None:
        views = cubes_read(actor=actor, cube_ids=ranked, verb=Verb.MEMORY_SEARCHED, is_use=False, as_of=search.as_of)
    else:
        views = _open_within_budget(
            actor, [cube_id for cube_id in ranked if cube_id not in rest.taken], sizes, rest.budget, search.as_of
        )
    _count_use(actor, search, views, visited)
    return [_make_hit(view, scores[view.cube.id]) for view in views]


def _find_preloaded(actor: Actor, persona_id: UUID, search: SearchQuery, rest: _Rest) -> list[Hit]:
    """Return the best of a session's working set that the search's filters allow, in the order of the set."""
    if not search.session_id or search.as_of is not None:
        return []
    rows = preloaded_list(actor, persona_id, search.session_id)
    scores = {row.memory_id: row.score for row in rows if row.memory_id not in rest.taken}
    if not scores:
        return []
    ranked, sizes = _rank_memories(actor, search, scores)
    views = _open_within_budget(actor, ranked, sizes, rest.budget, None)
    found = {view.cube.id: _make_hit(view, scores[view.cube.id]) for view in views}
    return [found[cube_id] for cube_id in scores if cube_id in found]


def _score_memories(
    actor: Actor, persona_id: UUID, search: SearchQuery, question: _Question
) -> tuple[dict[UUID, float], tuple[UUID, ...]]:
    """Return memories with their scores, and the visited segments. Five queries, three of them sent together."""
    constants = constants_in_force(persona_id)
    maker = token_maker(actor.tenant_id)
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "persona": persona_id,
        "session": maker.token("stream", search.session_id) if search.session_id else None,
        "vector": question.vector,
        "model": question.model,
    }
    keywords = frozenset(keyword_marks(maker, question.text))
    wanted = SegmentQuery(
        actor.tenant_id, persona_id, question.vector, question.model, keywords, language_of(question.text)
    )
    with prepared_cursor() as queue, prepared_cursor() as entries, prepared_cursor() as resident:
        with send_together():
            queue.execute(QUEUE, values)
            entries.execute(ENTRIES, values)
            wanted.send(resident)
        scores: dict[UUID, float] = {}
        for query_id, response_id, near in queue.fetchall():
            _score_sides(scores, (query_id, response_id), near)
        of_entries = best_entries(entries.fetchall(), constants)
        segments = select_segments(wanted.scores(resident.fetchall()), constants)
    found, sides = _best_pages(values, segments, constants)
    for page_id, near in found.pages:
        _score_sides(scores, sides[page_id], near)
    for cube_id, near in of_entries:
        scores[cube_id] = max(near, scores.get(cube_id, 0.0))
    return scores, tuple(UUID(str(segment_id)) for segment_id in found.visited)


def _best_pages(
    values: Mapping[str, Any], segments: Sequence[UUID], constants: Constants
) -> tuple[Selection, dict[Hashable, tuple[UUID | None, UUID | None]]]:
    """Return the pages of the selected segments that answer, and the two memories of each."""
    if not segments:
        return Selection((), ()), {}
    with prepared_cursor() as cursor:
        cursor.execute(PAGES, {**values, "segments": sql_array(segments), "pages": constants.top_pages})
        rows = cursor.fetchall()
    near: dict[UUID, dict[Hashable, float]] = {}
    sides: dict[Hashable, tuple[UUID | None, UUID | None]] = {}
    for segment_id, page_id, query_id, response_id, score in rows:
        near.setdefault(segment_id, {})[page_id] = score
        sides[page_id] = (query_id, response_id)
    return select_pages(segments, near, constants), sides


def best_entries(rows: Sequence[tuple[str, Key, float]], constants: Constants) -> list[tuple[Key, float]]:
    """Return the whole profile, and the best entries of each queue."""
    queues: dict[str, list[tuple[Key, float]]] = {}
    for queue, cube_id, near in rows:
        queues.setdefault(queue, []).append((cube_id, near))
    found: list[tuple[Key, float]] = []
    for queue, some in queues.items():
        ranked = sorted(some, key=lambda pair: -pair[1])
        found += ranked if queue == EntryQueue.PROFILE else ranked[: constants.top_entries]
    return found


def _score_sides(scores: dict[UUID, float], sides: tuple[UUID | None, UUID | None], near: float) -> None:
    for cube_id in sides:
        if cube_id is not None:
            scores[cube_id] = max(near, scores.get(cube_id, 0.0))


def _rank_memories(
    actor: Actor, search: SearchQuery, scores: Mapping[UUID, float]
) -> tuple[list[UUID], dict[UUID, int]]:
    """Return the visible memories that match the search's filters, best first, and the tokens of each."""
    sizes = _find_visible(actor, search, list(scores))
    ranked = sorted(sizes, key=lambda cube_id: (-scores[cube_id], str(cube_id)))
    return [cube_id for cube_id in ranked if _clamp_score(scores[cube_id]) >= search.min_score][: search.top_k], sizes


def _open_within_budget(
    actor: Actor, ranked: Sequence[UUID], sizes: Mapping[UUID, int], budget: int, as_of: datetime | None
) -> list[CubeView]:
    """Decrypt memories for a context in batches that could fit, until no further one fits its budget."""
    found: list[CubeView] = []
    left, waiting = budget, list(ranked)
    while waiting := [cube_id for cube_id in waiting if sizes[cube_id] + SHORTEST_LINE <= left]:
        count = max(OPENED, _count_within_budget([sizes[cube_id] + SHORTEST_LINE for cube_id in waiting], left))
        named, waiting = waiting[:count], waiting[count:]
        views = cubes_read(actor=actor, cube_ids=named, verb=Verb.MEMORY_SEARCHED, is_use=False, as_of=as_of)
        taken = fit(views, _count_tokens, left)
        left -= sum(_count_tokens(view) for view in taken)
        found += taken
    return found


def _count_within_budget(sizes: Sequence[int], budget: int) -> int:
    """Return the number of first sizes whose sum is within a budget."""
    return sum(total <= budget for total in accumulate(sizes))


def _count_use(actor: Actor, search: SearchQuery, views: Sequence[CubeView], visited: Sequence[UUID]) -> None:
    if search.is_use:
        ids = [str(view.cube.id) for view in views]
        emit(
            actor=actor,
            topic=Topic.CUBES_READ,
            payload={"ids": ids, "segments": [str(segment_id) for segment_id in visited]},
        )


def _make_hit(view: CubeView, score: float) -> Hit:
    return Hit(view, _clamp_score(score), replace(NO_PARTS, dense=_clamp_score(score)))


def _find_visible(actor: Actor, search: SearchQuery, cube_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return those of the given memories that the actor may read and that match the filters, with their tokens. One
    query.
    """
    search = replace(search, personas=(), session_id="", with_messages=True)
    rows = resolve_scope_without_mounts(actor, search).compose_statement_with_chats("layered", ("id", "token_count"))
    with prepared_cursor() as cursor:
        cursor.execute(
            NAMED + rows.statement, {**rows.parameters, "tenant": actor.tenant_id, "ids": sql_array(cube_ids)}
        )
        return dict(cursor.fetchall())


def _clamp_score(score: float) -> float:
    return min(max(score, 0.0), 1.0)


def _make_context_item(hit: Hit, origins: Mapping[UUID, Origin]) -> ContextItem:
    line = context_line(hit.view)
    return ContextItem(hit, origins.get(hit.view.cube.id, Origin.NEAR), line, approximate_tokens(line))


def _count_tokens(view: CubeView) -> int:
    return approximate_tokens(context_line(view))


def context_line(view: CubeView) -> str:
    """Return a memory as a context gives it to a model: one JSON object in one line, quoted as data."""
    cube, words = view.cube, view.words
    moment = cube.stated_at
    quoted = {
        "id": str(cube.id),
        "layer": cube.layer,
        "said_by": words.speaker,
        "date": moment.date().isoformat(),
        "text": words.content,
    }
    return json.dumps(quoted, ensure_ascii=False)

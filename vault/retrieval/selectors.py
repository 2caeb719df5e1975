"""Search of memories: words, context, vectors, speakers and times, fused into one score; permissions apply in the
queries.

A search returns min(top_k, visible) rows, however small the tenant is. docs/architecture.md says how its cost grows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from django.db import connection
from pgvector import HalfVector

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.cubes.fingerprints import question_payload
from vault.cubes.pack_reads import list_refused_paths
from vault.cubes.selectors import CubeView, cubes_read, cubes_view
from vault.embeddings.vectors import active_model, question_embedder
from vault.index.terms import searchable_text
from vault.models import Cube
from vault.providers.ports import Reranker
from vault.providers.registry import embedder, reranker
from vault.providers.reranker import RERANKED, blend_scores
from vault.retrieval.external_index import find_nearest
from vault.retrieval.fusion import NO_PARTS, Parts, Ranked, is_relevant, order_by_score
from vault.retrieval.graph import rank_by_graph
from vault.retrieval.queries import SearchQuery
from vault.retrieval.question import (
    LONGEST_READ,
    NearestNeeded,
    OtherModel,
    Question,
    QuestionVector,
    check_model,
    read_question,
)
from vault.retrieval.ranker import fill_results, list_newest, rank
from vault.retrieval.scope import Scope, resolve_scope
from vault.retrieval.tags import rank_by_tag
from vault.vocabulary import Refusal, SearchMode, Source

RANKINGS: Mapping[SearchMode, Callable[[Scope, Question, int], list[Ranked]]] = {
    SearchMode.GRAPH: rank_by_graph,
    SearchMode.TAG: rank_by_tag,
}


@dataclass(frozen=True)
class Hit:
    """A found memory. score: 0..1, comparable within one search."""

    view: CubeView
    score: float
    parts: Parts


Result = TypeVar("Result")
Within = Callable[[Sequence[Hit]], None]
Refused = Callable[[Sequence[tuple[str, Refusal]]], None]


@dataclass(frozen=True)
class Opening:
    """The rules for opening the results of a search. within, refused: callbacks in the transaction that opens them."""

    permission: Permission = Permission.MEMORY_READ
    within: Within = lambda hits: None
    refused: Refused = lambda paths: None


def memories_search(
    *,
    actor: Actor,
    search: SearchQuery,
    permission: Permission = Permission.MEMORY_READ,
    within: Within = lambda hits: None,
    refused: Refused = lambda paths: None,
) -> list[Hit]:
    """Return the memories that the actor may read and that match the question best, best first.

    `permission`: a chat searches by the right to chat. The question is embedded before the transaction; a
    reranker is asked between two, and the second, which opens and records what is returned, looks again at what may be
    shown. `within` runs in the transaction that read what is returned, and so does `refused`, with path and
    reason of packs that their contracts close.
    Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable. Writes: AuditEntry naming the ids, OutboxEvent.
    Queries: five, one or two more in a persona, session, conversation or task, one more where expert namespaces are
    mounted or named, one more where the question names who or when, one more where vectors can change the answer, two
    more for a walk, one more when few rows are found, and the audit; with a reranker two more.
    Queries before a question to a vector index outside PostgreSQL run again with its answer.
    """
    authorize(actor, permission)
    if search.mode is SearchMode.MEMORYOS:
        message = "memoryos searches the layers of a persona (vault/layers/search.py), which is above this room"
        raise Invalid(errors=[FieldError("mode", message)])
    opening = Opening(permission, within, refused)
    may_ask = not connection.in_atomic_block  # no network inside a transaction
    vector = replace(_embed_question(search, embedder().name), may_ask=may_ask)
    while True:
        try:
            return _search_once(actor, search, vector, opening)
        except OtherModel as other:
            vector = replace(_embed_question(search, other.active), may_ask=may_ask)
        except NearestNeeded as needed:
            vector = replace(vector, nearest=find_nearest(actor.tenant_id, vector, needed))


def memories_compare(
    *, actor: Actor, searches: Sequence[SearchQuery], within: Callable[[list[list[Hit]]], Result]
) -> Result:
    """Run several searches and return the result of `within` for their lists of hits.

    All run in one transaction, unless a reranker is configured. Raises and writes as `memories_search`.
    """
    authorize(actor, Permission.MEMORY_READ)
    if reranker() is not None:
        return within([memories_search(actor=actor, search=search) for search in searches])
    active = embedder().name
    while True:
        vectors = [_embed_question(search, active) for search in searches]
        try:
            with acting(actor):
                pairs = zip(searches, vectors, strict=True)
                return within([_search_once(actor, search, vector, Opening()) for search, vector in pairs])
        except OtherModel as other:
            active = other.active


def rank_memories(scope: Scope, vector: QuestionVector, limit: int) -> list[Ranked]:
    """Return the best `limit` memories of a scope, not opened, in the caller's transaction. Raises OtherModel."""
    question = read_question(scope, vector)
    if not question.statistics.namespaces and not scope.exceptions.granted:
        return []
    found = RANKINGS.get(scope.search.mode, rank)(scope, question, limit)
    return fill_results(scope, question, found, limit)


def _embed_question(search: SearchQuery, active: str) -> QuestionVector:
    """Return the vector of the question, by the model that serves the vectors of `active`. Raises
    ProviderUnavailable."""
    if not search.part_weights.dense:
        return QuestionVector(active, active, None)
    model = question_embedder(active)
    return QuestionVector(active, model.name, HalfVector(model.embed([search.query[:LONGEST_READ]])[0]))


@with_blobs
def _search_once(actor: Actor, search: SearchQuery, vector: QuestionVector, opening: Opening) -> list[Hit]:
    scorer = reranker() if search.mode is SearchMode.HYBRID else None
    with acting(actor):
        scope = resolve_scope(actor, search)
        found = _rank_with_model_check(scope, vector, search.top_k if scorer is None else max(search.top_k, RERANKED))
        if scorer is None:
            return open_hits(scope, vector, found, opening)
        # Results with the score 0 only fill up the list, those of chats last: the reranker does not read them.
        scored = [row.cube_id for row in found[:RERANKED] if row.score]
        best = cubes_view(actor=actor, cube_ids=scored, is_shown=False)
    found = _rerank(scorer, search.query, found, best)
    with acting(actor):
        return open_hits(scope, vector, _keep_visible(scope, found), opening)


def _rank_with_model_check(scope: Scope, vector: QuestionVector, limit: int) -> list[Ranked]:
    """Rank the memories, then check that the vector still belongs to the tenant's model. Raises OtherModel."""
    found = rank_memories(scope, vector, limit)
    if vector.model != embedder().name:
        # A model change deletes the former model's vectors: check that they existed until now.
        check_model(active_model(scope.actor), vector)
    return found


def _rerank(scorer: Reranker, query: str, candidates: Sequence[Ranked], best: Sequence[CubeView]) -> list[Ranked]:
    """Return the candidates with the reranker's scores blended in. Asks the model outside transactions.

    Raises ProviderUnavailable.
    """
    scores = scorer.score(query, [searchable_text(view.words) for view in best]) if best else []
    relevance = {view.cube.id: score for view, score in zip(best, scores, strict=True)}
    rescored = [replace(row, score=blend_scores(row.score, relevance.get(row.cube_id, 0.0))) for row in candidates]
    return order_by_score(rescored)


def _keep_visible(scope: Scope, found: Sequence[Ranked]) -> list[Ranked]:
    """Return the first `top_k` results that are still visible: memories may have changed during the rerank."""
    visible, top_k = scope.select_with_chats(), scope.search.top_k
    shown = set(visible.filter(id__in=[row.cube_id for row in found]).values_list("id", flat=True))
    rows = [row for row in found if row.cube_id in shown][:top_k]
    return rows + list_newest(visible, rows, top_k - len(rows))


def open_hits(scope: Scope, vector: QuestionVector, found: Sequence[Ranked], opening: Opening) -> list[Hit]:
    """Open the results, and record the audit entry that names them."""
    search, places = scope.search, scope.places
    rows = {row.cube_id: row for row in found if row.score >= search.min_score}
    for cube_id in _find_pack_fillers(scope, found, opening.permission):
        rows.pop(cube_id, None)
    scored = [row.cube_id for row in rows.values() if row.score]
    views = cubes_read(
        actor=scope.actor,
        cube_ids=list(rows),
        verb=Verb.MEMORY_SEARCHED,
        permission=opening.permission,
        is_use=search.is_use,
        as_of=search.as_of,
        read_event=question_payload(vector.model, vector.vector, scored) if vector.vector is not None else None,
    )
    hits = [Hit(view=view, score=rows[view.cube.id].score, parts=rows[view.cube.id].parts) for view in views]
    hits = _put_sentences_last(hits if search.as_of else _put_successors_first(hits), search.min_score)
    opening.within(hits)
    if places.mounted or places.is_named:
        opening.refused(list_refused_paths(scope.actor, places.closed))
    return hits


def _find_pack_fillers(scope: Scope, found: Sequence[Ranked], permission: Permission) -> list[UUID]:
    """Return the ids of results from mounted packs with the score 0, for a chat also of those that are not about its
    question and that no answer uses: opening them would cost a read of the contract."""
    is_chat = permission is Permission.CONVERSATION_USE
    unused = [row.cube_id for row in found if not row.score or (is_chat and not is_relevant(row.parts))]
    filling = unused if scope.places.mounted else []
    if not filling:
        return []
    rows = Cube.objects.filter(tenant_id=scope.actor.tenant_id, id__in=filling, source=Source.PACK)
    return list(rows.values_list("id", flat=True))


def _put_successors_first(hits: Sequence[Hit]) -> list[Hit]:
    """Move what a later statement has replaced behind that statement, with its score, where both are found."""
    ordered = list(hits)
    for hit in [hit for hit in hits if hit.view.cube.superseded_by]:
        here = ordered.index(hit)
        successors = [at for at, other in enumerate(ordered) if other.view.cube.id == hit.view.cube.superseded_by]
        if successors and here < successors[0]:
            there = successors[0]
            ordered[here : there + 1] = [*ordered[here + 1 : there + 1], replace(hit, score=ordered[there].score)]
    return ordered


def _put_sentences_last(hits: Sequence[Hit], min_score: float) -> list[Hit]:
    """Move the lower of two hits last, with the score 0, if one is a message and the other a sentence of that message.

    With `min_score` such hits are left out, because a search with `min_score` is not filled.
    """
    first: list[Hit] = []
    second: list[Hit] = []
    for hit in hits:
        is_second = any(_is_sentence_of(hit, other) or _is_sentence_of(other, hit) for other in first)
        (second if is_second else first).append(hit)
    filling = [replace(hit, score=0.0, parts=NO_PARTS) for hit in second]
    return first if min_score > 0 else first + filling


def _is_sentence_of(hit: Hit, other: Hit) -> bool:
    return other.view.cube.id in hit.view.parents and hit.view.words.content in other.view.words.content

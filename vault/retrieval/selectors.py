"""MemOperator's search: words, what was said around them, vectors, speakers and times, fused; permission inside it.

A search returns min(top_k, visible) rows however small the tenant. docs/architecture.md says how its cost grows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from pgvector import HalfVector

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.blobs import with_blobs
from vault.cubes.embeddings.vectors import active_model, answering
from vault.cubes.filters import persona_ids
from vault.cubes.fingerprints import question_payload
from vault.cubes.pack_reads import namespaces_closed, paths_refused
from vault.cubes.rules import searchable
from vault.cubes.selectors import CubeView, cubes_read, cubes_view
from vault.models import Cube, Namespace
from vault.namespaces.mounts import MountPlaces, mounted_ids
from vault.providers.ports import Reranker
from vault.providers.registry import embedder, reranker
from vault.providers.reranker import RERANKED, blend_scores
from vault.retrieval.finding import Asked, OtherModel, check_model, find, newest
from vault.retrieval.queries import SearchQuery, narrowing, returnable, within_asked
from vault.retrieval.ranking import DENSE, GRAPH, HYBRID, LEXICAL, NO_PARTS, Parts, Weights
from vault.retrieval.scoring import Ranked
from vault.vocabulary import NamespaceKind, SearchMode, Source

MODES = {
    SearchMode.LEXICAL: LEXICAL,
    SearchMode.DENSE: DENSE,
    SearchMode.GRAPH: GRAPH,
    SearchMode.TAG: LEXICAL,  # has no use for weights
}


@dataclass(frozen=True)
class Hit:
    """A found memory. score: 0..1, comparable within one search."""

    view: CubeView
    score: float
    parts: Parts


Shown = TypeVar("Shown")
Within = Callable[[Sequence[Hit]], None]
Refused = Callable[[Sequence[str]], None]


def memories_search(
    *,
    actor: Actor,
    search: SearchQuery,
    permission: Permission = Permission.MEMORY_READ,
    within: Within = lambda hits: None,
    refused: Refused = lambda paths: None,
) -> list[Hit]:
    """The best rows for a question among those the actor may read, best first.

    `permission`: a chat searches by the right to chat. The question is embedded before the transaction; a
    reranker is asked between two, and the second, which opens and records what is returned, looks again at what may be
    shown. `within` runs in the transaction that read what is returned, and so does `refused`, with the paths of packs
    that were left out, since their contracts allow no more reads.
    Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable. Writes: AuditEntry naming the ids, OutboxEvent.
    Queries: five, one or two more in a persona, session, conversation or task, one more where expert namespaces are
    mounted or named, one more where the question names who or when, one more where vectors can change the answer, two
    more for a walk, one more when few rows are found, and the audit; with a reranker two more.
    """
    authorize(actor, permission)
    if search.mode is SearchMode.MEMORYOS:
        message = "memoryos searches the layers of a persona (vault/layers/search.py), which is above this room"
        raise Invalid(errors=[FieldError("mode", message)])
    search = _without_closed(actor, _with_mounts(actor, search))
    asked = _asked(search, embedder().name)
    while True:
        try:
            return _searched(actor, search, asked, permission, within, refused)
        except OtherModel as other:
            asked = _asked(search, other.active)


def _with_mounts(actor: Actor, search: SearchQuery) -> SearchQuery:
    """The search with the namespaces that are mounted where it is asked; one that names namespaces needs none."""
    spoken = {actor.persona_id, actor.binding.persona_id if actor.binding else None} - {None}
    session = str(search.conversation_id or search.session_id or actor.context.session)
    task = search.task_id or actor.context.task
    if search.names_place or not (spoken or search.personas or session or task):
        return search
    with acting(actor):
        personas = frozenset(one for one in [*spoken, *persona_ids(search.personas)] if one is not None)
        return replace(search, mounted=mounted_ids(actor, MountPlaces(personas, session, task)))


def _without_closed(actor: Actor, search: SearchQuery) -> SearchQuery:
    """The search without the packs that a contract closes; no query where no namespace is mounted or named."""
    if actor.is_system or not (search.mounted or search.namespaces):
        return search
    with acting(actor):
        places = search.mounted
        if search.namespaces:
            rows = Namespace.objects.filter(tenant_id=actor.tenant_id, kind=NamespaceKind.EXPERT, read_only=True)
            places = tuple(rows.filter(path__in=search.namespaces).values_list("id", flat=True))
        closed = namespaces_closed(actor, places)
    return replace(search, left_out=tuple(sorted(closed))) if closed else search


def memories_compare(
    *, actor: Actor, searches: Sequence[SearchQuery], within: Callable[[list[list[Hit]]], Shown]
) -> Shown:
    """Return the hits of several searches side by side, as `within` shows them.

    All is one transaction, unless a reranker is asked between two. Raises and writes as `memories_search`.
    """
    authorize(actor, Permission.MEMORY_READ)
    if reranker() is not None:
        return within([memories_search(actor=actor, search=search) for search in searches])
    active = embedder().name
    while True:
        asked = [_asked(search, active) for search in searches]
        try:
            with acting(actor):
                pairs = zip(searches, asked, strict=True)
                return within([_searched(actor, one, each, Permission.MEMORY_READ) for one, each in pairs])
        except OtherModel as other:
            active = other.active


def weights_present() -> Weights:
    """The weights of a hybrid search, as the operator set them."""
    return replace(HYBRID, **settings.MEMOS_SEARCH_WEIGHTS)


def _weights(search: SearchQuery) -> Weights:
    """The weights of the search if it has its own, otherwise those of its mode."""
    return search.weights or MODES.get(search.mode) or weights_present()


def _asked(search: SearchQuery, active: str) -> Asked:
    if not _weights(search).dense:
        return Asked(active, active, None)
    model = answering(active)
    return Asked(active, model.name, HalfVector(model.embed([search.query])[0]))


@with_blobs
def _searched(
    actor: Actor,
    search: SearchQuery,
    asked: Asked,
    permission: Permission,
    within: Within = lambda hits: None,
    refused: Refused = lambda paths: None,
) -> list[Hit]:
    scorer = reranker() if search.mode is SearchMode.HYBRID else None
    if scorer is None:
        with acting(actor):
            found = _ranked(actor, search, asked, search.top_k)
            return _read(actor, search, asked, found, permission, within, refused)
    with acting(actor):
        candidates = _ranked(actor, search, asked, max(search.top_k, RERANKED))
        # What nothing speaks for only fills the answer, and what was said in chats comes last of it.
        scored = [row.cube_id for row in candidates[:RERANKED] if row.score]
        best = cubes_view(actor=actor, cube_ids=scored, is_shown=False)
    found = _reranked(scorer, search.query, candidates, best)
    with acting(actor):
        shown = _still_visible(actor, search, found)
        return _read(actor, search, asked, shown, permission, within, refused)


def _reranked(scorer: Reranker, query: str, candidates: Sequence[Ranked], best: Sequence[CubeView]) -> list[Ranked]:
    """The candidates with their scores blended. Asks the model outside any transaction. Raises ProviderUnavailable."""
    scores = scorer.score(query, [searchable(view.words) for view in best]) if best else []
    relevance = {view.cube.id: score for view, score in zip(best, scores, strict=True)}
    rescored = [replace(row, score=blend_scores(row.score, relevance.get(row.cube_id, 0.0))) for row in candidates]
    return sorted(rescored, key=lambda row: -row.score)


def _still_visible(actor: Actor, search: SearchQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """The first `top_k` that are still visible: a memory may have been changed or deleted during the rerank."""
    condition = returnable(search) & narrowing(token_maker(actor.tenant_id), search)
    visible = within_asked(Cube.objects.visible_to(actor).filter(condition), search)
    shown = set(visible.filter(id__in=[row.cube_id for row in found]).values_list("id", flat=True))
    kept = [row for row in found if row.cube_id in shown][: search.top_k]
    return kept + newest(visible, kept, search.top_k - len(kept))


def _read(
    actor: Actor,
    search: SearchQuery,
    asked: Asked,
    found: Sequence[Ranked],
    permission: Permission,
    within: Within,
    refused: Refused,
) -> list[Hit]:
    """Open the results, and nothing else, under the audit entry that names them."""
    rows = {row.cube_id: row for row in found if row.score >= search.min_score}
    for one in _packs_filling(actor, search, found):
        rows.pop(one, None)
    scored = [row.cube_id for row in rows.values() if row.score]
    views = cubes_read(
        actor=actor,
        cube_ids=list(rows),
        verb=Verb.MEMORY_SEARCHED,
        permission=permission,
        is_use=search.is_use,
        read_event=question_payload(asked.model, asked.vector, scored) if asked.vector is not None else None,
    )
    hits = [Hit(view=view, score=rows[view.cube.id].score, parts=rows[view.cube.id].parts) for view in views]
    hits = _sentences_last(hits, search.min_score)
    within(hits)
    if search.mounted or search.names_place:
        refused(paths_refused(actor, search.left_out))
    return hits


def _packs_filling(actor: Actor, search: SearchQuery, found: Sequence[Ranked]) -> list[UUID]:
    """Memories of mounted packs that nothing in the question speaks for: to fill an answer they cost a read."""
    filling = [row.cube_id for row in found if not row.score] if search.mounted else []
    if not filling:
        return []
    rows = Cube.objects.filter(tenant_id=actor.tenant_id, id__in=filling, source=Source.PACK)
    return list(rows.values_list("id", flat=True))


def _sentences_last(hits: Sequence[Hit], min_score: float) -> list[Hit]:
    """Put second hits last: of a message and a sentence of it, the lower one fills the answer with a score of 0.

    A search with `min_score` is not filled.
    """
    first: list[Hit] = []
    second: list[Hit] = []
    for hit in hits:
        said_twice = any(_is_sentence_of(hit, one) or _is_sentence_of(one, hit) for one in first)
        (second if said_twice else first).append(hit)
    filling = [replace(hit, score=0.0, parts=NO_PARTS) for hit in second]
    return first if min_score > 0 else first + filling


def _is_sentence_of(one: Hit, other: Hit) -> bool:
    return other.view.cube.id in one.view.parents and one.view.words.content in other.view.words.content


def _ranked(actor: Actor, search: SearchQuery, asked: Asked, limit: int) -> list[Ranked]:
    """The best `limit` rows. Raises OtherModel if the question's vector is another model's than the stored ones."""
    found = find(actor, search, asked, _weights(search), limit)
    if asked.model != embedder().name:
        # A former model's vectors go once it is switched: were they there until now?
        check_model(active_model(actor), asked)
    return found

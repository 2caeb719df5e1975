"""MemOperator's search: words, what was said around them, vectors, speakers and times, fused; permission inside it.

A search returns min(top_k, visible) rows however small the tenant. docs/architecture.md says how its cost grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.embedding import active_model, answering
from vault.cubes.exceptions import Exceptions, exceptions_of
from vault.cubes.rules import searchable
from vault.cubes.selectors import CubeView, cubes_read, cubes_view
from vault.graph.walks import Among
from vault.lexicon.moments import spans_of
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.providers.ports import Reranker
from vault.providers.registry import embedder, reranker
from vault.providers.reranking import RERANKED, blended
from vault.retrieval.queries import SearchQuery, narrowing, seen_namespaces, states
from vault.retrieval.ranker import MOST_TERMS, Ranked, question_of, rank, survey
from vault.retrieval.ranking import DENSE, HYBRID, LEXICAL, Parts
from vault.retrieval.walking import NO_PARTS, asked_marks, by_walk, walked, with_walk
from vault.vocabulary import SearchMode

MODES = {
    SearchMode.HYBRID: HYBRID,
    SearchMode.LEXICAL: LEXICAL,
    SearchMode.DENSE: DENSE,
    SearchMode.GRAPH: LEXICAL,  # where its walks begin
}
WALKED_AMONG = 100  # best hits that a walk is fused with


@dataclass(frozen=True)
class Hit:
    """A found memory. score: 0..1, comparable within one search."""

    view: CubeView
    score: float
    parts: Parts


@dataclass(frozen=True)
class _Asked:
    """A question for vectors of `model`, made when `active` was thought to be the tenant's model."""

    active: str
    model: str
    vector: list[float] | None = field(repr=False)


class _OtherModel(Exception):
    """The tenant's vectors are of another model than the question's."""

    def __init__(self, active: str) -> None:
        super().__init__(active)
        self.active = active


def memories_search(*, actor: Actor, search: SearchQuery, permission: Permission = Permission.MEMORY_READ) -> list[Hit]:
    """The best rows for a question among those the actor may read, best first.

    `permission`: a chat searches by the right to chat. The question is embedded before the transaction; a
    reranker is asked between two, and the second, which opens and records what is returned, looks again at what may be
    shown.
    Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable. Writes: AuditEntry naming the ids, OutboxEvent.
    Queries: four, two more for a walk, one more when few rows are found, and the audit; with a reranker two more.
    """
    authorize(actor, permission)
    if search.mode is SearchMode.MEMORYOS:
        message = "memoryos comes with the layers, which are not built yet; use hybrid, dense, lexical, tag or graph"
        raise Invalid(errors=[FieldError("mode", message)])
    asked = _asked(search, embedder().name)
    while True:
        try:
            return _searched(actor, search, asked, permission)
        except _OtherModel as other:
            asked = _asked(search, other.active)


def _asked(search: SearchQuery, active: str) -> _Asked:
    if search.mode not in MODES or not MODES[search.mode].dense:
        return _Asked(active, active, None)
    model = answering(active)
    return _Asked(active, model.name, model.embed([search.query])[0].tolist())


def _check_model(actor: Actor, asked: _Asked) -> None:
    active = active_model(actor) if asked.vector is not None else None
    if active not in {None, asked.active}:
        raise _OtherModel(active)


def _searched(actor: Actor, search: SearchQuery, asked: _Asked, permission: Permission) -> list[Hit]:
    scorer = reranker() if search.mode is SearchMode.HYBRID else None
    if scorer is None:
        with acting(actor):
            return _read(actor, search, _ranked(actor, search, asked, search.top_k), permission)
    with acting(actor):
        candidates = _ranked(actor, search, asked, max(search.top_k, RERANKED))
        best = cubes_view(actor=actor, cube_ids=[row.cube_id for row in candidates[:RERANKED]])
    found = _reranked(scorer, search.query, candidates, best)
    with acting(actor):
        return _read(actor, search, _still_visible(actor, search, found), permission)


def _reranked(scorer: Reranker, query: str, candidates: Sequence[Ranked], best: Sequence[CubeView]) -> list[Ranked]:
    """All candidates by their blended scores. Asks the model: outside any transaction. Raises ProviderUnavailable."""
    scores = scorer.score(query, [searchable(view.words) for view in best])
    relevance = {view.cube.id: score for view, score in zip(best, scores, strict=True)}
    rescored = [replace(row, score=blended(row.score, relevance.get(row.cube_id, 0.0))) for row in candidates]
    return sorted(rescored, key=lambda row: -row.score)


def _still_visible(actor: Actor, search: SearchQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """The first `top_k` that may be shown: a memory may have been changed, hidden or deleted while it was reranked."""
    condition = states(search) & narrowing(token_maker(actor.tenant_id), search)
    visible = Cube.objects.visible_to(actor).filter(condition).exclude(search.excluded)
    visible = visible.filter(namespace__path__in=search.namespaces) if search.namespaces else visible
    shown = set(visible.filter(id__in=[row.cube_id for row in found]).values_list("id", flat=True))
    kept = [row for row in found if row.cube_id in shown][: search.top_k]
    return kept + _newest(visible, kept, search.top_k - len(kept))


def _read(actor: Actor, search: SearchQuery, found: Sequence[Ranked], permission: Permission) -> list[Hit]:
    """Open what is returned, and nothing else, under the audit row that names it."""
    rows = {row.cube_id: row for row in found if row.score >= search.min_score}
    views = cubes_read(actor=actor, cube_ids=list(rows), verb=Verb.MEMORY_SEARCHED, permission=permission)
    return [Hit(view=view, score=rows[view.cube.id].score, parts=rows[view.cube.id].parts) for view in views]


def _ranked(actor: Actor, search: SearchQuery, asked: _Asked, limit: int) -> list[Ranked]:
    """The best `limit` rows. Raises _OtherModel where the question's vector is another model's than those stored."""
    _check_model(actor, asked)
    found = _found(actor, search, asked, limit)
    if asked.model != embedder().name:
        _check_model(actor, asked)  # a former model's vectors go once it is switched: were they there until now?
    return found


def _found(actor: Actor, search: SearchQuery, asked: _Asked, limit: int) -> list[Ranked]:
    maker = token_maker(actor.tenant_id)
    condition = narrowing(maker, search)
    question = question_of(maker, search.query)
    seen = seen_namespaces(actor, search)
    excepted = exceptions_of(actor, seen, among=search.namespaces)
    surveyed = survey(actor, question, seen, excepted)
    if not surveyed.namespaces and not excepted.granted:
        return []
    visible = _visible(actor, search, surveyed.namespaces, excepted).filter(condition).exclude(search.excluded)
    if search.mode is SearchMode.TAG:
        found = _by_tag(visible, search)
    else:
        weights = MODES[search.mode]
        walks = search.mode is SearchMode.GRAPH or weights.graph > 0
        found = rank(
            actor,
            question=question,
            spans=spans_of(search.query, surveyed.now),
            surveyed=surveyed,
            excepted=excepted,
            visible=visible,
            narrowed=bool(condition),
            vector=asked.vector,
            model=asked.model,
            weights=weights,
            limit=max(limit, WALKED_AMONG) if walks else limit,
        )
        if walks:
            marks = asked_marks(maker, search.query)
            among = Among(surveyed.namespaces, excepted)
            scores = walked(actor, entity_marks=marks, hits=found, among=among, visible=visible)
            alone = search.mode is SearchMode.GRAPH
            found = by_walk(scores, found, limit) if alone else with_walk(found, scores, weights, limit)
        found += _newest(visible, found, limit - len(found))
    return found


def _visible(actor: Actor, search: SearchQuery, namespaces: Sequence[UUID], excepted: Exceptions) -> CubeQuerySet:
    """What may be shown. A memory that is granted by itself may lie in any namespace that was asked for."""
    visible = Cube.objects.visible_to(actor).filter(states(search))
    if not excepted.granted:
        return visible.filter(namespace_id__in=namespaces)
    return visible.filter(namespace__path__in=search.namespaces) if search.namespaces else visible


def _newest(visible: CubeQuerySet, found: list[Ranked], missing: int) -> list[Ranked]:
    """What nothing speaks for, the newest first, so that a search returns as many rows as there are."""
    if missing <= 0:
        return []
    shown: list[UUID] = [row.cube_id for row in found]
    rest = visible.exclude(id__in=shown).order_by("-id").values_list("id", flat=True)[:missing]
    return [Ranked(cube_id, 0.0, NO_PARTS) for cube_id in rest]


def _by_tag(visible: CubeQuerySet, search: SearchQuery) -> list[Ranked]:
    """Cubes that bear a tag which the query names; score: the share of the query's words that are tags of the cube."""
    words = list(dict.fromkeys([search.query.strip(), *search.query.split()]))[:MOST_TERMS]
    rows = visible.filter(tags__overlap=words).order_by("-id").values_list("id", "tags")
    asked = max(1, len(search.query.split()))
    found = [(cube_id, min(1.0, len(set(tags) & set(words)) / asked)) for cube_id, tags in rows]
    found.sort(key=lambda row: -row[1])
    return [Ranked(cube_id, score, NO_PARTS) for cube_id, score in found[: search.top_k]]

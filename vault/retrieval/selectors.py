"""MemOperator's search: words, what was said around them, vectors, speakers and times, fused; permission inside it.

A search returns min(top_k, visible) rows however small the tenant. docs/architecture.md says how its cost grows.
"""

from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.lexicon.moments import spans_of
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.providers.registry import embedder
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


def memories_search(*, actor: Actor, search: SearchQuery, permission: Permission = Permission.MEMORY_READ) -> list[Hit]:
    """The best rows for a question among those the actor may read, best first.

    `permission`: a chat searches by the right to chat. The question is embedded before the transaction.
    Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable.
    Writes: AuditEntry naming the ids, OutboxEvent. Queries: three, two more for a walk, one
    more when few rows are found, and the audit.
    """
    authorize(actor, permission)
    if search.mode is SearchMode.MEMORYOS:
        message = "memoryos comes with the layers, which are not built yet; use hybrid, dense, lexical, tag or graph"
        raise Invalid(errors=[FieldError("mode", message)])
    vector = _vector(search)
    with acting(actor):
        ranked = _ranked(actor, search, vector)
        ids = [row.cube_id for row in ranked]
        views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_SEARCHED, permission=permission)
    by_id = {view.cube.id: view for view in views}
    found = (row for row in ranked if row.cube_id in by_id)
    return [Hit(view=by_id[row.cube_id], score=row.score, parts=row.parts) for row in found]


def _vector(search: SearchQuery) -> list[float] | None:
    if search.mode in MODES and MODES[search.mode].dense:
        vector: list[float] = embedder().embed([search.query])[0].tolist()
        return vector
    return None


def _ranked(actor: Actor, search: SearchQuery, vector: list[float] | None) -> list[Ranked]:
    maker = token_maker(actor.tenant_id)
    condition = narrowing(maker, search)
    question = question_of(maker, search.query)
    surveyed = survey(actor, question, seen_namespaces(actor, search))
    if not surveyed.namespaces:
        return []
    visible = Cube.objects.visible_to(actor).filter(states(search), namespace_id__in=surveyed.namespaces)
    visible = visible.filter(condition).exclude(search.excluded)
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
            visible=visible,
            narrowed=bool(condition),
            vector=vector,
            model=embedder().name,
            weights=weights,
            limit=max(search.top_k, WALKED_AMONG) if walks else search.top_k,
        )
        if walks:
            marks = asked_marks(maker, search.query)
            scores = walked(actor, entity_marks=marks, hits=found, namespaces=surveyed.namespaces, visible=visible)
            alone = search.mode is SearchMode.GRAPH
            found = by_walk(scores, found, search.top_k) if alone else with_walk(found, scores, weights, search.top_k)
        found += _newest(visible, found, search.top_k - len(found))
    return [row for row in found if row.score >= search.min_score]


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

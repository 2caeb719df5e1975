"""From a search to ranked rows: the scope, the ranking, heat and trust. Opens no memory."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from uuid import UUID

from django.db.models import Q
from pgvector import HalfVector

from governance.actor import Actor
from governance.keys.services import TokenMaker, token_maker
from vault.cubes.index import marks
from vault.cubes.visibility import Exceptions, exceptions_of
from vault.graph.walks import Among
from vault.lexicon.entities import asked_entities
from vault.lexicon.temporal_expressions import time_ranges_of
from vault.models import Cube, Namespace
from vault.models.cube import CubeQuerySet
from vault.retrieval.composing import Composed, cached, compose, composed, visibility_number
from vault.retrieval.facets import Asked as FacetsAsked
from vault.retrieval.facets import facets_asked
from vault.retrieval.heat_and_trust import heat_and_trust_of, weigh_heat_and_trust
from vault.retrieval.queries import SearchQuery, narrowing, returnable, visible_namespaces, within_asked
from vault.retrieval.question import question_of
from vault.retrieval.ranker import COLUMNS, Scope, Vectors, rank
from vault.retrieval.ranking import NO_PARTS, Weights
from vault.retrieval.scoring import Ranked
from vault.retrieval.sources import SOURCES, Graph, Lexical
from vault.retrieval.statistics import index_statistics
from vault.retrieval.tagging import by_tag
from vault.vocabulary import SearchMode

WEIGHED_AMONG = 100  # best hits that are weighed again after the ranking
PREFERRED = 0.3  # weight of trust in a search that prefers official or personal statements


@dataclass(frozen=True)
class Asked:
    """A question and its vector by `model`, made while `active` was taken for the tenant's model."""

    active: str
    model: str
    vector: HalfVector | None = field(repr=False)


class OtherModel(Exception):
    """The tenant's vectors belong to another model than the vector of the question."""

    def __init__(self, active: str) -> None:
        super().__init__(active)
        self.active = active


def find(actor: Actor, search: SearchQuery, asked: Asked, weights: Weights, limit: int) -> list[Ranked]:
    """The best `limit` memories that the actor may read, in the caller's transaction.

    Raises Invalid for a bad filter; OtherModel.
    """
    if search.prefer is not None:
        weights = replace(weights, trust=max(weights.trust, PREFERRED))
    maker = token_maker(actor.tenant_id)
    condition = narrowing(maker, search)
    question = question_of(maker, search.query)
    named = (search.is_open, search.namespaces, search.names_place, search.mounted, search.left_out)
    visibility = (visibility_number(actor), named, search.include_archived, search.asks_for_messages)
    inside = partial(visible_namespaces, actor, search)
    excepted = cached("exceptions", lambda: exceptions_of(actor, inside, among=search.namespaces), key=visibility)
    seen = composed("seen", lambda: visible_namespaces(actor, search).values("id"), key=visibility)
    statistics = index_statistics(actor, question, seen, excepted)
    if not statistics.namespaces and not excepted.granted:
        return []
    check_model(statistics.model, asked)

    @cache
    def visible() -> CubeQuerySet:
        return _visible(actor, search, statistics.namespaces, excepted).filter(condition)

    if search.mode is SearchMode.TAG:
        return _filled(actor, search, condition, visible, by_tag(visible(), search.query, limit), limit)
    if search.mode is SearchMode.GRAPH:
        among = Among(statistics.namespaces, excepted)
        graph = Graph(actor, [marks.entity(maker, name) for name in asked_entities(search.query)], among, visible())
    found = rank(
        actor,
        question,
        time_ranges_of(question.text, statistics.now, question.spelled(statistics.speakers)),
        scope=Scope(
            statistics=statistics,
            visible=_columns(visible, None if condition else (visibility, tuple(statistics.namespaces))),
            excepted=excepted,
            narrowed=bool(condition),
            asked=_facets(maker, search),
            archived=search.include_archived,
        ),
        vectors=Vectors(asked.model, asked.vector),
        weights=weights,
        limit=max(limit, WEIGHED_AMONG) if weights.of_behaviour else limit,
        sources=(Lexical(), graph) if search.mode is SearchMode.GRAPH else SOURCES,
    )
    if weights.of_behaviour:
        stands = heat_and_trust_of(visible(), found, asked.model, asked.vector, search.prefer)
        found = weigh_heat_and_trust(found, stands, weights, limit)
    return _filled(actor, search, condition, visible, found, limit)


def _filled(
    actor: Actor,
    search: SearchQuery,
    condition: Q,
    visible: Callable[[], CubeQuerySet],
    found: list[Ranked],
    limit: int,
) -> list[Ranked]:
    """The results, filled up to `limit` with the newest visible memories; an open search is filled from chats last.

    A search with `min_score` is not filled, because the memories added would score 0.
    """
    if search.min_score > 0:
        return found
    if len(found) < limit:
        found = found + newest(visible(), found, limit - len(found))
    if search.is_open and len(found) < limit:
        anywhere = within_asked(Cube.objects.visible_to(actor).filter(returnable(search)), search).filter(condition)
        found = found + newest(anywhere, found, limit - len(found))
    return found


def _visible(actor: Actor, search: SearchQuery, namespaces: Sequence[UUID], excepted: Exceptions) -> CubeQuerySet:
    """The visible memories. A memory that is granted by itself may lie in any namespace of the search."""
    visible = Cube.objects.visible_to(actor).filter(returnable(search))
    if not excepted.granted:
        return visible.filter(namespace_id__in=namespaces)
    visible = within_asked(visible, search)
    return visible.exclude(namespace_id__in=Namespace.objects.chats().values("id")) if search.is_open else visible


def _facets(maker: TokenMaker, search: SearchQuery) -> FacetsAsked:
    """Memories of mounted namespaces pass persona, session and task, so these are no columns to look up then."""
    if not (search.mounted and search.is_scoped):
        return facets_asked(maker, search)
    return replace(facets_asked(maker, replace(search, personas=(), session_id="", task_id="")), covered=False)


def _columns(visible: Callable[[], CubeQuerySet], key: Hashable | None) -> Composed:
    """Return the columns of the visible rows to rank. Without a key they are composed anew, because filters vary
    without bound.
    """

    if key is None:
        return compose("visible", visible().values(*COLUMNS))
    return composed("visible", lambda: visible().values(*COLUMNS), key=key)


def check_model(active: str | None, asked: Asked) -> None:
    if asked.vector is not None and active is not None and active != asked.active:
        raise OtherModel(active)


def newest(visible: CubeQuerySet, found: Sequence[Ranked], missing: int) -> list[Ranked]:
    """The newest other memories with a score of 0, so that a search returns as many rows as exist."""
    if missing <= 0:
        return []
    shown: list[UUID] = [row.cube_id for row in found]
    rest = visible.exclude(id__in=shown).order_by("-id").values_list("id", flat=True)[:missing]
    return [Ranked(cube_id, 0.0, NO_PARTS) for cube_id in rest]

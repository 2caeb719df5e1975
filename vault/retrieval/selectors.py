"""MemOperator's search: BM25 over keyed postings, the neighbours of a message in its session, and vectors, fused.

Every visible row takes part, so that a search returns min(top_k, visible) rows however small the tenant. The cost grows
with the actor's visible rows; docs/architecture.md says when that gives way to an index.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import TokenMaker, token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes import marks
from vault.cubes.rules import WORD_KIND
from vault.cubes.selectors import CubeView, cubes_read
from vault.lexicon.tokens import query_terms
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.providers.registry import embedder
from vault.retrieval.filters import filter_read, mark_condition, persona_condition
from vault.retrieval.ranking import DENSE, HYBRID, LEXICAL, Weights
from vault.retrieval.sql import RANK
from vault.vocabulary import Layer, MemoryType, SearchMode, State

MODES = {SearchMode.HYBRID: HYBRID, SearchMode.LEXICAL: LEXICAL, SearchMode.DENSE: DENSE}
MOST_TERMS = 64  # of one query: a pasted page is searched by its first words


@dataclass(frozen=True)
class SearchQuery:
    """What to look for. top_k: 1..MAX_TOP_K; min_score: 0..1; as_of: only what was true at that time."""

    query: str = field(repr=False)
    top_k: int = 10
    mode: SearchMode = SearchMode.HYBRID
    namespaces: tuple[str, ...] = ()
    personas: tuple[str, ...] = ()
    session_id: str = ""
    task_id: str = ""
    layers: tuple[Layer, ...] = ()
    types: tuple[MemoryType, ...] = ()
    filters: Mapping[str, Any] | None = None
    as_of: datetime | None = None
    min_score: float = 0.0
    include_archived: bool = False
    excluded: Q = field(default_factory=Q)


@dataclass(frozen=True)
class ScoreParts:
    """What a score is made of, each part in 0..1."""

    lexical: float
    context: float
    dense: float


@dataclass(frozen=True)
class Hit:
    view: CubeView
    score: float
    parts: ScoreParts


@dataclass(frozen=True)
class _Ranked:
    cube_id: UUID
    score: float
    parts: ScoreParts


def memories_search(*, actor: Actor, search: SearchQuery) -> list[Hit]:
    """The best rows for a question among those the actor may read, best first.

    The question is embedded before the transaction. Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable.
    Writes: AuditEntry naming the ids, OutboxEvent. Queries: three and the audit.
    """
    authorize(actor, Permission.MEMORY_READ)
    if search.mode not in MODES and search.mode is not SearchMode.TAG:
        raise Invalid(errors=[FieldError("mode", f"{search.mode} is not built yet; use hybrid, dense, lexical or tag")])
    maker = token_maker(actor.tenant_id)
    terms = [maker.token(WORD_KIND, term) for term in dict.fromkeys(query_terms(search.query))][:MOST_TERMS]
    weights = MODES.get(search.mode, LEXICAL)
    vector = embedder().embed([search.query])[0].tolist() if weights.dense else None
    with acting(actor):
        visible = Cube.objects.visible_to(actor).filter(_condition(maker, search)).exclude(search.excluded)
        if search.mode is SearchMode.TAG:
            ranked = _by_tag(visible, search)
        else:
            ranked = _rank(actor, visible, terms, vector, weights, search)
        views = cubes_read(actor=actor, cube_ids=[row.cube_id for row in ranked], verb=Verb.MEMORY_SEARCHED)
    return [Hit(view=view, score=row.score, parts=row.parts) for row, view in zip(ranked, views, strict=True)]


def _condition(maker: TokenMaker, search: SearchQuery) -> Q:
    states = [State.GENERATED, State.ACTIVATED, *([State.ARCHIVED] if search.include_archived else [])]
    condition = Q(state__in=states)
    if search.namespaces:
        condition &= Q(namespace__path__in=search.namespaces)
    if search.personas:
        condition &= persona_condition(search.personas)
    if search.layers:
        condition &= Q(layer__in=search.layers)
    if search.types:
        condition &= Q(type__in=search.types)
    for name in ("session_id", "task_id"):
        if value := getattr(search, name):
            condition &= mark_condition(marks.same(maker, name, value))
    if search.as_of is not None:
        condition &= Q(valid_from=None) | Q(valid_from__lte=search.as_of)
        condition &= Q(valid_to=None) | Q(valid_to__gt=search.as_of)
    return condition & filter_read(maker, search.filters) if search.filters else condition


def _rank(
    actor: Actor,
    visible: CubeQuerySet,
    terms: Sequence[int],
    vector: Sequence[float] | None,
    weights: Weights,
    search: SearchQuery,
) -> list[_Ranked]:
    compiled, parameters = (
        visible.order_by().values("id", "version", "session_token", "position", "term_count").query.sql_with_params()
    )
    text = json.dumps(list(vector)) if vector is not None else None
    with connection.cursor() as cursor, _hash_joins(cursor):
        cursor.execute(
            RANK.format(visible=compiled),
            [
                *parameters,
                actor.tenant_id,
                list(terms),
                text,
                actor.tenant_id,
                embedder().name,
                weights.lexical,
                weights.context,
                weights.dense,
                search.top_k,
            ],
        )
        rows = cursor.fetchall()
    return [
        _Ranked(cube_id=row[0], score=row[1], parts=ScoreParts(lexical=row[2], context=row[3], dense=row[4]))
        for row in rows
        if row[1] >= search.min_score
    ]


@contextmanager
def _hash_joins(cursor: CursorWrapper) -> Iterator[None]:
    """The planner cannot know how many rows `visible` has; a nested loop over it is quadratic, a hash join never."""
    cursor.execute("SET LOCAL enable_nestloop = off")
    yield
    cursor.execute("SET LOCAL enable_nestloop = on")


def _by_tag(visible: CubeQuerySet, search: SearchQuery) -> list[_Ranked]:
    """Cubes that bear a tag which the query names; score: the share of the query's words that are tags of the cube."""
    words = list(dict.fromkeys([search.query.strip(), *search.query.split()]))[:MOST_TERMS]
    rows = visible.filter(tags__overlap=words).order_by("-id").values_list("id", "tags")
    asked = max(1, len(search.query.split()))
    found = [(cube_id, min(1.0, len(set(tags) & set(words)) / asked)) for cube_id, tags in rows]
    found.sort(key=lambda row: -row[1])
    none = ScoreParts(lexical=0.0, context=0.0, dense=0.0)
    return [_Ranked(*row, parts=none) for row in found[: search.top_k] if row[1] >= search.min_score]

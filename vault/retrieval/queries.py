"""What a search is asked for, and the condition that follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from governance.actor import Actor
from governance.keys.services import TokenMaker
from vault.cubes.filters import filter_read, mark_condition, persona_condition
from vault.cubes.index import marks
from vault.models import Namespace
from vault.models.cube import CubeQuerySet
from vault.models.namespace import NamespaceQuerySet
from vault.retrieval.ranking import Weights
from vault.vocabulary import Layer, MemoryType, SearchMode, State

SHOWN = (State.GENERATED, State.ACTIVATED)


@dataclass(frozen=True)
class SearchQuery:
    """What to look for. top_k: 1..MAX_TOP_K; min_score: 0..1; as_of: only what was true at that time.

    is_use: whether what is found counts as used; not so while a person types. weights: tried instead of the mode's.
    """

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
    is_use: bool = True
    weights: Weights | None = None

    @property
    def is_open(self) -> bool:
        """Whether it asks for what is known, and not for a place, a session, a task or a filter."""
        return not (self.namespaces or self.session_id or self.task_id or self.filters)


def visible_namespaces(actor: Actor, search: SearchQuery) -> NamespaceQuerySet:
    """The namespaces that the actor may read, of those that it asks for.

    What was merely asked and answered in chats is no evidence: who wants it names its session or its place.
    """
    seen = Namespace.objects.visible_to(actor)
    if search.is_open:
        return seen.without_chats()
    return seen.filter(path__in=search.namespaces) if search.namespaces else seen


def within_asked(rows: CubeQuerySet, search: SearchQuery) -> CubeQuerySet:
    """Of cubes, those that lie where is asked for; with those of chats."""
    return rows.filter(namespace__path__in=search.namespaces) if search.namespaces else rows


def narrowing(maker: TokenMaker, search: SearchQuery) -> Q:
    """What is asked beyond namespace and state; an empty condition when nothing is. Raises Invalid."""
    condition = Q()
    if search.personas:
        condition &= persona_condition(search.personas)
    if search.layers:
        condition &= Q(layer__in=search.layers)
    if search.types:
        condition &= Q(type__in=search.types)
    for name in ("session_id", "task_id"):
        if value := getattr(search, name):
            condition &= mark_condition(marks.same(maker, name, value), archived=search.include_archived)
    if search.as_of is not None:
        condition &= Q(valid_from=None) | Q(valid_from__lte=search.as_of)
        condition &= Q(valid_to=None) | Q(valid_to__gt=search.as_of)
    return (
        condition & filter_read(maker, search.filters, archived=search.include_archived)
        if search.filters
        else condition
    )


def states(search: SearchQuery) -> Q:
    """Archived memories on request only; merged and expired ones never (vault/cubes/index/eligibility.py)."""
    return Q(state__in=[*SHOWN, *([State.ARCHIVED] if search.include_archived else [])])

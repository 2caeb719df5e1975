"""A search request, and its condition on rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.keys.services import TokenMaker
from vault.cubes.filters import asks_for_messages, filter_read, mark_condition, persona_condition
from vault.cubes.index import marks
from vault.models import Namespace
from vault.models.cube import CubeQuerySet
from vault.models.namespace import NamespaceQuerySet
from vault.retrieval.ranking import Weights
from vault.vocabulary import Layer, MemoryType, Preference, SearchMode, State

SHOWN = (State.GENERATED, State.ACTIVATED)


@dataclass(frozen=True)
class SearchQuery:
    """A search request. top_k: 1..MAX_TOP_K; min_score: 0..1; as_of: only memories valid at that time.

    is_use: whether what is found counts as used; not so while a person types. weights: tried instead of the mode's.
    conversation_id: where it is asked; mounted: the namespaces that are mounted there, whose memories pass persona,
    session and task. left_out: namespaces that a contract closes. prefer: what goes first among statements that fit.
    with_messages: those that state nothing too, such as "At the market" after a question.
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
    conversation_id: UUID | None = None
    mounted: tuple[UUID, ...] = ()
    left_out: tuple[UUID, ...] = ()
    prefer: Preference | None = None
    with_messages: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether the search has no place, session, task or filter."""
        return not (self.namespaces or self.session_id or self.task_id or self.filters)

    @property
    def names_place(self) -> bool:
        """Return whether the search names namespaces, directly or in its filters."""
        return bool(self.namespaces) or _mentions(self.filters, "namespace")

    @property
    def asks_for_messages(self) -> bool:
        """Return whether messages that state nothing are among what it may return."""
        return self.with_messages or asks_for_messages(self.filters)

    @property
    def is_scoped(self) -> bool:
        """Return whether the search names a persona, a session or a task."""
        return bool(self.personas or self.session_id or self.task_id)


def visible_namespaces(actor: Actor, search: SearchQuery) -> NamespaceQuerySet:
    """The namespaces that the actor may read, of those that it asks for.

    What was merely asked and answered in chats is no evidence: who wants it names its session or its place.
    """
    seen = Namespace.objects.visible_to(actor)
    if search.left_out:
        seen = seen.exclude(id__in=search.left_out)
    if search.namespaces:
        return seen.filter(path__in=search.namespaces)
    if not search.names_place:
        seen = seen.searchable_unnamed(search.mounted)
    return seen.without_chats() if search.is_open else seen


def within_asked(rows: CubeQuerySet, search: SearchQuery) -> CubeQuerySet:
    """Return the cubes in the requested places, with those of chats."""
    if search.left_out:
        rows = rows.exclude(namespace_id__in=search.left_out)
    if search.namespaces:
        return rows.filter(namespace__path__in=search.namespaces)
    if search.names_place:
        return rows
    return rows.filter(namespace_id__in=Namespace.objects.all().searchable_unnamed(search.mounted).values("id"))


def narrowing(maker: TokenMaker, search: SearchQuery) -> Q:
    """Return the condition beyond namespace and state; empty if there is none. Raises Invalid."""
    condition = _scope(maker, search)
    if condition and search.mounted:
        condition |= Q(namespace_id__in=search.mounted)
    if search.layers:
        condition &= Q(layer__in=search.layers)
    if search.types:
        condition &= Q(type__in=search.types)
    if search.as_of is not None:
        condition &= Q(valid_from=None) | Q(valid_from__lte=search.as_of)
        condition &= Q(valid_to=None) | Q(valid_to__gt=search.as_of)
    return (
        condition & filter_read(maker, search.filters, archived=search.include_archived)
        if search.filters
        else condition
    )


def _scope(maker: TokenMaker, search: SearchQuery) -> Q:
    """Persona, session and task."""
    condition = persona_condition(search.personas) if search.personas else Q()
    for name in ("session_id", "task_id"):
        if value := getattr(search, name):
            condition &= mark_condition(marks.same(maker, name, value), archived=search.include_archived)
    return condition


def _mentions(body: Any, field: str) -> bool:
    """Return whether a filter has a leaf of this name."""
    if isinstance(body, Mapping):
        return any(name == field or _mentions(value, field) for name, value in body.items())
    return isinstance(body, list) and any(_mentions(one, field) for one in body)


def returnable(search: SearchQuery) -> Q:
    """Archived memories, and messages that state nothing, on request only; merged and expired memories never
    (vault/cubes/index/eligibility.py).
    """
    states = Q(state__in=[*SHOWN, *([State.ARCHIVED] if search.include_archived else [])])
    return states if search.asks_for_messages else states & Q(is_dialogue_only=False)

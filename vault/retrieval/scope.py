"""The scope of a search: the memories that it may return, computed once per transaction."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.keys.services import TokenMaker, token_maker
from vault.cubes.as_of import as_of_condition
from vault.cubes.filters import filter_read, mark_condition, persona_ids, read_moment_or_date
from vault.cubes.pack_reads import find_closed_namespaces
from vault.cubes.visibility import (
    ComposedQuery,
    Exceptions,
    cache_result,
    compose_once,
    exceptions_of,
    filter_cubes,
    visibility_number,
)
from vault.index import marks
from vault.index.facets import NO_FACETS, Facets
from vault.models import Cube, Namespace
from vault.models.cube import CubeQuerySet
from vault.models.namespace import NOTHING, NamespaceQuerySet
from vault.namespaces.mounts import MountPlaces, mounted_ids
from vault.retrieval.queries import SHOWN, SearchQuery
from vault.vocabulary import Layer, MemoryType, NamespaceKind, State

SIDES = {"gt": ("since",), "gte": ("since",), "lt": ("until",), "lte": ("until",), "eq": ("since", "until")}

Leaf = tuple[str, str, Any]  # field, operator, value


@dataclass(frozen=True)
class Places:
    """The namespaces that a search covers.

    paths: the paths that it names; is_named: it names namespaces here or in its filters; is_open: no namespace,
    session, task or filter restricts it. mounted: ids of mounted namespaces; added: ids of namespaces that it names
    beside personas; closed: ids of namespaces whose contract allows no reads.
    """

    paths: tuple[str, ...]
    is_named: bool
    is_open: bool
    mounted: tuple[UUID, ...] = ()
    added: tuple[UUID, ...] = ()
    closed: tuple[UUID, ...] = ()

    def namespaces(self, actor: Actor) -> NamespaceQuerySet:
        """Return the namespaces of the search that the actor may read.

        An open search leaves out chats, because a question or answer there is no evidence. Naming a session or a
        namespace includes them.
        """
        rows = Namespace.objects.visible_to(actor)
        if self.closed:
            rows = rows.exclude(id__in=self.closed)
        if self.paths:
            return rows.filter(path__in=self.paths)
        if not self.is_named:
            rows = rows.searchable_unnamed((*self.mounted, *self.added))
        return rows.without_chats(self.added) if self.is_open else rows

    def filter_cubes(self, rows: CubeQuerySet) -> CubeQuerySet:
        """Return the cubes in these places, including those of chats."""
        if self.closed:
            rows = rows.exclude(namespace_id__in=self.closed)
        if self.paths:
            return rows.filter(namespace__path__in=self.paths)
        if self.is_named:
            return rows
        places = Namespace.objects.all().searchable_unnamed((*self.mounted, *self.added))
        return rows.filter(namespace_id__in=places.values("id"))


@dataclass(frozen=True)
class IndexFilter:
    """The filters of a search that the index can look up.

    facets: filters on columns of the index; is_whole: the index covers all filters; marks: every memory passing the
    other filters has one of them; empty: no such filter.
    """

    facets: Facets = NO_FACETS
    is_whole: bool = True
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scope:
    """The memories that a search may return.

    condition: the filters on memories, empty without filters; index: the part that the index looks up. namespaces: the
    statement that selects the visible namespaces; exceptions: single memories with another visibility than their
    namespace. key: the cache key of the statements, which covers everything but the filters.
    """

    actor: Actor
    search: SearchQuery
    maker: TokenMaker
    places: Places
    condition: Q
    index: IndexFilter
    namespaces: ComposedQuery
    exceptions: Exceptions
    key: Hashable

    def select_cubes(self, namespaces: Sequence[UUID]) -> CubeQuerySet:
        """Return the visible memories that pass the filters. namespaces: the ids of the scope's namespaces."""
        return self._select_unfiltered(namespaces).filter(self.condition)

    def select_with_chats(self) -> CubeQuerySet:
        """Return the visible memories that pass the filters, including those of chats."""
        return self.places.filter_cubes(self._select_returnable()).filter(self.condition)

    def compose_statement(self, name: str, columns: Sequence[str], namespaces: Sequence[UUID]) -> ComposedQuery:
        """Compose the SQL of `select_cubes` for these columns; `name` is the prefix of its parameters."""
        rows = compose_once(
            name, lambda: self._select_unfiltered(namespaces).values(*columns), key=(self.key, tuple(namespaces))
        )
        return filter_cubes(rows, self.condition) if self.condition else rows

    def compose_statement_with_chats(self, name: str, columns: Sequence[str]) -> ComposedQuery:
        """Compose the SQL of `select_with_chats` for these columns; `name` is the prefix of its parameters."""
        rows = compose_once(
            name, lambda: self.places.filter_cubes(self._select_returnable()).values(*columns), key=self.key
        )
        return filter_cubes(rows, self.condition) if self.condition else rows

    def _select_returnable(self) -> CubeQuerySet:
        """Return the visible memories in a state that this search returns.

        Archived memories, messages that state nothing, caches and adapters are included on request only; merged and
        expired memories never (vault/cubes/eligibility.py).
        """
        states = Q(state__in=[*SHOWN, *([State.ARCHIVED] if self.search.include_archived else [])])
        rows = Cube.objects.visible_to(self.actor).filter(states)
        rows = rows if self.search.names_type else rows.filter(type=MemoryType.PLAINTEXT)
        return rows if self.search.asks_for_messages else rows.filter(is_dialogue_only=False)

    def _select_unfiltered(self, namespaces: Sequence[UUID]) -> CubeQuerySet:
        """Return the visible memories in `namespaces`. A memory that is granted singly may lie in any namespace of the
        search."""
        if not self.exceptions.granted:
            return self._select_returnable().filter(namespace_id__in=namespaces)
        rows = self.places.filter_cubes(self._select_returnable())
        if not self.places.is_open:
            return rows
        return rows.exclude(namespace_id__in=Namespace.objects.chats().exclude(id__in=self.places.added).values("id"))


def resolve_scope(actor: Actor, search: SearchQuery) -> Scope:
    """Compute the scope of a search, in the caller's transaction. Raises Invalid for a bad filter.

    Queries: one for the actor's grants; one for names of personas; one or two for mounts of a persona, session,
    conversation or task; one if expert namespaces are mounted or named; one for namespaces named beside personas.
    """
    personas = persona_ids(search.personas)
    mounted = _find_mounted_namespaces(actor, search, personas)
    added = namespace_ids(actor, search.added_namespaces)
    closed = _find_closed_packs(actor, search, (*mounted, *added))
    return _make_scope(actor, search, personas, mounted, added, closed)


def resolve_scope_without_mounts(actor: Actor, search: SearchQuery) -> Scope:
    """Compute the scope without mounts and contracts. Runs one or two queries fewer than `resolve_scope`."""
    return _make_scope(actor, search, persona_ids(search.personas), (), (), ())


def _make_scope(
    actor: Actor,
    search: SearchQuery,
    personas: Sequence[UUID],
    mounted: tuple[UUID, ...],
    added: tuple[UUID, ...],
    closed: tuple[UUID, ...],
) -> Scope:
    maker = token_maker(actor.tenant_id)
    places = Places(search.restricting_namespaces, search.has_namespaces, search.is_open, mounted, added, closed)
    key = (visibility_number(actor), places, search.include_archived, search.asks_for_messages, search.names_type)
    inside = partial(places.namespaces, actor)
    return Scope(
        actor,
        search,
        maker,
        places,
        condition=_filter_condition(maker, search, personas, mounted, added),
        index=_index_filter(actor, maker, search, personas, is_scoped=not (mounted or added)),
        namespaces=compose_once("seen", lambda: inside().values("id"), key=key),
        exceptions=cache_result("exceptions", lambda: exceptions_of(actor, inside, among=places.paths), key=key),
        key=key,
    )


def _find_mounted_namespaces(actor: Actor, search: SearchQuery, personas: Sequence[UUID]) -> tuple[UUID, ...]:
    """Return the ids of the namespaces mounted for this search; empty if the search names namespaces.

    Those of the actor's persona scope are known already, unless the search names a task.
    """
    if actor.persona_scope is not None and not (search.has_namespaces or search.task_id):
        return tuple(sorted(actor.persona_scope.namespace_ids))
    speakers = {actor.persona_id, actor.binding.persona_id if actor.binding else None, *personas} - {None}
    session = str(search.conversation_id or search.session_id or actor.context.session)
    task = search.task_id or actor.context.task
    if search.has_namespaces or not (speakers or session or task):
        return ()
    return mounted_ids(actor, MountPlaces(frozenset(filter(None, speakers)), session, task))


def _find_closed_packs(actor: Actor, search: SearchQuery, mounted: tuple[UUID, ...]) -> tuple[UUID, ...]:
    """Return the ids of the packs that a contract closes to the actor. Runs no query if no namespace is mounted or
    named."""
    if actor.is_system or not (mounted or search.restricting_namespaces):
        return ()
    packs = mounted
    if search.restricting_namespaces:
        rows = Namespace.objects.filter(tenant_id=actor.tenant_id, kind=NamespaceKind.EXPERT, read_only=True)
        packs = tuple(rows.filter(path__in=search.restricting_namespaces).values_list("id", flat=True))
    return tuple(sorted(find_closed_namespaces(actor, packs)))


def namespace_ids(actor: Actor, paths: Sequence[str]) -> tuple[UUID, ...]:
    """Return the ids of the actor's visible namespaces with these paths. Runs no query without paths."""
    if not paths:
        return ()
    return tuple(sorted(Namespace.objects.visible_to(actor).filter(path__in=paths).values_list("id", flat=True)))


def _filter_condition(
    maker: TokenMaker, search: SearchQuery, personas: Sequence[UUID], mounted: Sequence[UUID], added: Sequence[UUID]
) -> Q:
    """Return the condition of all filters but namespace and state; empty without filters. Raises Invalid."""
    condition = Q()
    if search.personas:
        condition = Q(persona_id__in=personas) if personas else NOTHING
        if added:
            condition |= Q(namespace_id__in=added)
    for name in ("session_id", "task_id"):
        if value := getattr(search, name):
            condition &= mark_condition(*marks.value_marks(maker, name, value), archived=search.include_archived)
    if condition and mounted:  # mounted memories pass persona, session and task
        condition |= Q(namespace_id__in=mounted)
    if search.layers:
        condition &= Q(layer__in=search.layers)
    if search.types:
        condition &= Q(type__in=search.types)
    if search.as_of is not None:
        condition &= as_of_condition(search.as_of)
    if search.filters:
        condition &= filter_read(maker, search.filters, archived=search.include_archived)
    return condition


def _index_filter(
    actor: Actor, maker: TokenMaker, search: SearchQuery, personas: Sequence[UUID], *, is_scoped: bool
) -> IndexFilter:
    """Return the part of the filters that the index looks up. Runs one query if they name personas.

    Filters within AND are looked up; OR, NOT and other operators are not. Persona, session and task are not looked up
    if namespaces are mounted or added (not `is_scoped`), because their memories pass these filters.
    """
    leaves, is_whole = _read_leaves(search.filters or {})
    leaves += [(name, "in", values) for name in ("layer", "type") if (values := getattr(search, f"{name}s"))]
    scope: list[Leaf] = [("persona", "in", list(map(str, personas)))] if search.personas else []
    scope += [(name, "eq", value) for name in ("session_id", "task_id") if (value := getattr(search, name))]
    if is_scoped:
        leaves += scope
    facets, wanted = Facets(scope=actor.persona_scope), list[int]()
    is_whole &= search.as_of is None and (is_scoped or not scope)
    for name, operator, value in leaves:
        narrowed = _add_facet(facets, name, operator, value)
        is_whole &= narrowed is not None
        facets = narrowed or facets
        if operator == "eq" and (name in marks.KEYED_FIELDS or name.startswith("metadata.")):
            wanted = marks.value_marks(maker, name, value)
    return IndexFilter(facets, is_whole, tuple(wanted))


def _read_leaves(body: Mapping[str, Any]) -> tuple[list[Leaf], bool]:
    """Return the leaves joined by AND, and whether the filter consists of nothing else."""
    found, is_whole = list[Leaf](), True
    for name, value in body.items():
        if name == "AND":
            for leaves, is_covered in map(_read_leaves, value):
                found += leaves
                is_whole &= is_covered
        elif name in {"OR", "NOT"}:
            is_whole = False
        else:
            operators = value if isinstance(value, Mapping) else {"eq": value}
            found += [(name, str(operator), operand) for operator, operand in operators.items()]
    return found, is_whole


def _add_facet(facets: Facets, name: str, operator: str, value: Any) -> Facets | None:
    """Return the facets with one more leaf, or None if the leaf is no column of the index."""
    if name == "event_time" and operator in SIDES:
        return _add_time(facets, operator, read_moment_or_date(value, name))
    if operator not in {"eq", "in"}:
        return None
    values = list(value) if operator == "in" else [value]
    if name == "layer":
        return replace(facets, layers=_intersect(facets.layers, map(Layer, values)))
    if name == "type":
        return replace(facets, types=_intersect(facets.types, map(MemoryType, values)))
    if name == "persona":
        return replace(facets, personas=_intersect(facets.personas, persona_ids(values)))
    return None


def _intersect(before: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    return frozenset(values) if before is None else before & frozenset(values)


def _add_time(facets: Facets, operator: str, at: datetime) -> Facets:
    since, until = facets.since, facets.until
    if "since" in SIDES[operator]:
        since = at if since is None else max(since, at)
    if "until" in SIDES[operator]:
        until = at if until is None else min(until, at)
    return replace(facets, since=since, until=until)

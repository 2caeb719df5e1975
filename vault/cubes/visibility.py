"""Visibility in SQL of searches and graph walks: statements of the ORM as text, and exceptions by memory.

An actor sees the memories in its visible namespaces. Exceptions are a grant or denial of one memory, a policy that
binds memories to a purpose, and a key that is bound to a persona. They are two sets of ids: `granted` memories are
visible outside of those namespaces, `denied` ones are invisible inside them and change no score. Without exceptions
the statements have no such parts.

The ORM needs as long to compose the statement of a visibility as PostgreSQL for a whole search. The text depends only
on the actor, its grants, the purposes in its tenant's policies and the requested namespaces, so it is cached.
"""

import re
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.access.decisions.principal_grants import principal_grants
from governance.access.decisions.rules import sees_private
from governance.actor import Actor, CallContext
from governance.policies.active import policies_active
from governance.policies.purposes import denied_by_purpose, namespaces_denied_by_purpose
from governance.prepared import prepared_cursor, sql_array
from governance.vocabulary import Effect
from vault.models import Cube, CubeSource
from vault.models.cube import OBJECT_TYPE, cubes_granted
from vault.models.namespace import NamespaceQuerySet
from vault.vocabulary import SourceKind

PLACEHOLDER = re.compile(r"(?<!%)%s")
MOST_CACHED = 2_000
IDS_OF_CUBES = 'SELECT "vault_cube"."id" AS "id" '  # as the ORM begins a statement for ids


@dataclass(frozen=True)
class ComposedQuery:
    """A statement and its parameters by name."""

    statement: str
    parameters: dict[str, Any]


Result = TypeVar("Result")
_cache: dict[Hashable, Any] = {}
_visibilities: dict[Hashable, int] = {}
_numbers = count()


@dataclass(frozen=True)
class Exceptions:
    """Statements for the ids of memories that are exceptions.

    granted: visible outside of the namespaces; empty: none. denied: invisible inside them. parameters: by name.
    """

    granted: str = ""
    denied: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.granted or self.denied)

    @property
    def parts(self) -> dict[str, str]:
        """Return the parts of search statements that apply the exceptions, by name."""
        return {
            "granted": f"granted (id) AS NOT MATERIALIZED ({self.granted})," if self.granted else "",
            "denied": "".join(f" UNION ALL ({statement})" for statement in self.denied),
            "beyond": "OR cube_id IN (SELECT id FROM granted)" if self.granted else "",
            # Where few are asked about, each by its key: a table of all that is granted would cost more than it saves.
            "beyond_one": "OR EXISTS (SELECT 1 FROM granted WHERE granted.id = cube_id OFFSET 0)"
            if self.granted
            else "",
            "not_denied": "AND cube_id NOT IN (SELECT id FROM excluded)" if self.denied else "",
        }


NO_EXCEPTIONS = Exceptions()


def exceptions_of(
    actor: Actor, namespaces: Callable[[], NamespaceQuerySet], *, among: Sequence[str] = ()
) -> Exceptions:
    """Compose the exceptions for `actor`, who sees `namespaces`. among: the requested paths; empty: all."""
    if actor.is_system:
        return NO_EXCEPTIONS
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for index, rows in enumerate(_denied_rows(actor, namespaces)):
        statement, values = name_parameters(rows, f"denied_{index}")
        statements.append(statement)
        parameters |= values
    granted = ""
    if principal_grants(actor).has(OBJECT_TYPE, Effect.ALLOW) and not sees_private(actor):
        granted, values = name_parameters(_granted_rows(actor, among), "granted")
        parameters |= values
    return Exceptions(granted, tuple(statements), parameters)


def name_parameters(rows: QuerySet[Any], prefix: str) -> tuple[str, dict[str, Any]]:
    """Compile a queryset to a statement with named parameters, for use inside another statement."""
    compiled, values = rows.order_by().query.sql_with_params()
    names = [f"{prefix}_{index}" for index in range(len(values))]
    remaining = iter(names)
    statement = PLACEHOLDER.sub(lambda _: f"%({next(remaining)})s", compiled)
    return statement, dict(zip(names, values, strict=True))


def visibility_number(actor: Actor) -> int:
    """Return a number for the visibility of `actor`: the same for actors whose statements are equal, never reused."""
    standing = principal_grants(actor)
    # Statements use only the purpose of the call's context; `met` has the results of conditions on the rest.
    reader = replace(actor, request_id="", context=CallContext(actor.context.channel, actor.context.purpose))
    met = tuple(sorted(standing.met.items()))
    visibility = (reader, standing.groups, standing.present, met, policies_active(actor).purpose)
    number = _visibilities.get(visibility)
    if number is None:
        if len(_visibilities) >= MOST_CACHED:
            _visibilities.clear()
        number = _visibilities.setdefault(visibility, next(_numbers))
    return number


def compose(name: str, rows: QuerySet[Any]) -> ComposedQuery:
    """Compose the statement of `rows`. name: prefix of its parameters."""
    return ComposedQuery(*name_parameters(rows, name))


def compose_once(name: str, rows: Callable[[], QuerySet[Any]], *, key: Hashable) -> ComposedQuery:
    """Compose the statement of `rows` unless it is cached by `name` and `key`."""
    return cache_result(name, lambda: compose(name, rows()), key=key)


def cache_result(name: str, make: Callable[[], Result], *, key: Hashable) -> Result:
    """Return the result of `make`, cached by `name` and `key`."""
    cached: Result | None = _cache.get((name, key))
    if cached is None:
        cached = make()
        if len(_cache) >= MOST_CACHED:
            _cache.clear()
        _cache[name, key] = cached
    return cached


def filter_cubes(rows: ComposedQuery, condition: Q) -> ComposedQuery:
    """Restrict the statement `rows` to cubes that meet `condition`, by a CTE named `vault_cube`.

    Filters vary without bound, so they are composed each time; the statement around them is cached.
    """
    matching = compose("filter", Cube.objects.filter(condition).values("id"))
    assert matching.statement.startswith(IDS_OF_CUBES)
    cubes = f"SELECT vault_cube.* {matching.statement.removeprefix(IDS_OF_CUBES)}"
    statement = f"SELECT * FROM (WITH vault_cube AS NOT MATERIALIZED ({cubes}) {rows.statement}) AS filtered"
    return ComposedQuery(statement, {**rows.parameters, **matching.parameters})


def visible_ids(actor: Actor, cube_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids that the actor may read now, in the caller's transaction. One query, by key."""
    rows = compose_once("visible", lambda: Cube.objects.visible_to(actor).values("id"), key=visibility_number(actor))
    statement = f"SELECT seen.id FROM ({rows.statement}) AS seen WHERE seen.id = ANY(%(ids)s::uuid[])"
    with prepared_cursor() as cursor:
        cursor.execute(statement, {**rows.parameters, "ids": sql_array(cube_ids)})
        return {cube_id for (cube_id,) in cursor.fetchall()}


def _denied_rows(actor: Actor, namespaces: Callable[[], NamespaceQuerySet]) -> list[QuerySet[Any]]:
    denied: list[QuerySet[Any]] = []
    if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
        denied.append(cubes_granted(actor, Effect.DENY).values("content_object_id"))
    by_purpose = denied_by_purpose(actor)
    if by_purpose is not None and namespaces_denied_by_purpose(actor) is None:
        denied.append(_cubes_inside(actor, namespaces).filter(by_purpose).values("id"))
    if actor.binding is not None and actor.binding.persona_id is not None:
        others = ~Q(persona_id=actor.binding.persona_id) | Q(persona_id=None)
        denied.append(_cubes_inside(actor, namespaces).filter(others).values("id"))
    derived = CubeSource.objects.exclude(kind=SourceKind.QUOTE)
    return [*denied, *(derived.filter(source_id__in=rows).values("cube_id") for rows in denied)]


def _cubes_inside(actor: Actor, namespaces: Callable[[], NamespaceQuerySet]) -> QuerySet[Cube]:
    return Cube.objects.filter(tenant_id=actor.tenant_id, namespace__in=namespaces().values("id"))


def _granted_rows(actor: Actor, among: Sequence[str]) -> QuerySet[Any]:
    """Select the ids of granted memories from the grants alone, unless a denial may apply to one of them."""
    ids = cubes_granted(actor, Effect.ALLOW).values("content_object_id")
    if (
        not among
        and actor.binding is None
        and denied_by_purpose(actor) is None
        and not principal_grants(actor).has("namespace", Effect.DENY)
    ):
        return ids
    rows = Cube.objects.visible_to(actor).filter(pk__in=ids)
    return (rows.filter(namespace__path__in=among) if among else rows).values("id")

"""Visibility by single grants and bindings, as exceptions to the rule of namespaces, in statements that rank and walk.

Those statements go by namespaces: what an actor sees is what lies in the ones that it sees. Where that is not all (a
memory is granted or denied by itself, a policy binds some to a purpose, a key is bound to a persona), the exceptions
stand beside it as two sets of ids: `granted`, outside those namespaces and yet seen, and `hidden`, inside and yet not;
so that what is hidden leaves no trace in a score, and what is granted is found. Without exceptions the statements are
the same as if there were none.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from governance.access.decisions.principal_grants import principal_grants
from governance.access.decisions.rules import sees_private
from governance.actor import Actor
from governance.policies.purposes import denied_by_purpose, namespaces_denied_by_purpose
from governance.vocabulary import Effect
from vault.models import Cube, CubeSource
from vault.models.cube import OBJECT_TYPE, cubes_granted
from vault.models.namespace import NamespaceQuerySet
from vault.vocabulary import SourceKind

PLACEHOLDER = re.compile(r"(?<!%)%s")


@dataclass(frozen=True)
class Exceptions:
    """granted: the statement for the ids of what is seen beyond the namespaces; empty: nothing is. hidden: statements
    for the ids of what is not seen within them. parameters: of both, by name."""

    granted: str = ""
    hidden: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.granted or self.hidden)

    @property
    def parts(self) -> dict[str, str]:
        """The places that the statements have for them."""
        return {
            "granted": f"granted (id) AS NOT MATERIALIZED ({self.granted})," if self.granted else "",
            "hidden": "".join(f" UNION ALL ({one})" for one in self.hidden),
            "beyond": "OR cube_id IN (SELECT id FROM granted)" if self.granted else "",
            # Where few are asked about, each by its key: a table of all that is granted would cost more than it saves.
            "beyond_one": "OR EXISTS (SELECT 1 FROM granted WHERE granted.id = cube_id OFFSET 0)"
            if self.granted
            else "",
            "unhidden": "AND cube_id NOT IN (SELECT id FROM gone)" if self.hidden else "",
        }


NO_EXCEPTIONS = Exceptions()


def exceptions_of(actor: Actor, seen: Callable[[], NamespaceQuerySet], *, among: Sequence[str] = ()) -> Exceptions:
    """The exceptions for `actor`, who sees what `seen` finds. among: paths that it asks for; empty: anywhere."""
    if actor.is_system:
        return NO_EXCEPTIONS
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for index, hidden in enumerate(_excluded(actor, seen)):
        statement, values = named(hidden, f"hidden_{index}")
        statements.append(statement)
        parameters |= values
    granted = ""
    if principal_grants(actor).has(OBJECT_TYPE, Effect.ALLOW) and not sees_private(actor):
        granted, values = named(_granted(actor, among), "granted")
        parameters |= values
    return Exceptions(granted, tuple(statements), parameters)


def named(rows: QuerySet[Any], prefix: str) -> tuple[str, dict[str, Any]]:
    """The ORM's statement with named parameters, to stand inside another."""
    compiled, values = rows.order_by().query.sql_with_params()
    names = [f"{prefix}_{index}" for index in range(len(values))]
    remaining = iter(names)
    statement = PLACEHOLDER.sub(lambda _: f"%({next(remaining)})s", compiled)
    return statement, dict(zip(names, values, strict=True))


def _excluded(actor: Actor, seen: Callable[[], NamespaceQuerySet]) -> list[QuerySet[Any]]:
    hidden: list[QuerySet[Any]] = []
    if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
        hidden.append(cubes_granted(actor, Effect.DENY).values("content_object_id"))
    denied = denied_by_purpose(actor)
    if denied is not None and namespaces_denied_by_purpose(actor) is None:
        hidden.append(_inside(actor, seen).filter(denied).values("id"))
    if actor.binding is not None and actor.binding.persona_id is not None:
        others = ~Q(persona_id=actor.binding.persona_id) | Q(persona_id=None)
        hidden.append(_inside(actor, seen).filter(others).values("id"))
    derived = CubeSource.objects.exclude(kind=SourceKind.QUOTE)
    return [*hidden, *(derived.filter(source_id__in=rows).values("cube_id") for rows in hidden)]


def _inside(actor: Actor, seen: Callable[[], NamespaceQuerySet]) -> QuerySet[Cube]:
    return Cube.objects.filter(tenant_id=actor.tenant_id, namespace__in=seen().values("id"))


def _granted(actor: Actor, among: Sequence[str]) -> QuerySet[Any]:
    """Straight from the grants, unless something may stand against one of them."""
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

"""Visibility by single grants and bindings, as exceptions to the rule of namespaces, in statements that rank and walk.

An actor sees the memories in its visible namespaces. Exceptions are a grant or denial of one memory, a policy that
binds memories to a purpose, and a key that is bound to a persona. They are two sets of ids: `granted` memories are
visible outside of those namespaces, `denied` ones are invisible inside them and change no score. Without exceptions
the statements are the plain ones.
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
        """The places that the statements have for them."""
        return {
            "granted": f"granted (id) AS NOT MATERIALIZED ({self.granted})," if self.granted else "",
            "denied": "".join(f" UNION ALL ({one})" for one in self.denied),
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
    """The exceptions for `actor`, who sees what `seen` finds. among: paths that it asks for; empty: anywhere."""
    if actor.is_system:
        return NO_EXCEPTIONS
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for index, rows in enumerate(_denied(actor, namespaces)):
        statement, values = named(rows, f"denied_{index}")
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


def _denied(actor: Actor, namespaces: Callable[[], NamespaceQuerySet]) -> list[QuerySet[Any]]:
    denied: list[QuerySet[Any]] = []
    if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
        denied.append(cubes_granted(actor, Effect.DENY).values("content_object_id"))
    by_purpose = denied_by_purpose(actor)
    if by_purpose is not None and namespaces_denied_by_purpose(actor) is None:
        denied.append(_inside(actor, namespaces).filter(by_purpose).values("id"))
    if actor.binding is not None and actor.binding.persona_id is not None:
        others = ~Q(persona_id=actor.binding.persona_id) | Q(persona_id=None)
        denied.append(_inside(actor, namespaces).filter(others).values("id"))
    derived = CubeSource.objects.exclude(kind=SourceKind.QUOTE)
    return [*denied, *(derived.filter(source_id__in=rows).values("cube_id") for rows in denied)]


def _inside(actor: Actor, namespaces: Callable[[], NamespaceQuerySet]) -> QuerySet[Cube]:
    return Cube.objects.filter(tenant_id=actor.tenant_id, namespace__in=namespaces().values("id"))


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

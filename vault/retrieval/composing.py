"""The ORM's statements for what an actor sees, as text to stand inside ours; each composed once.

To compose them takes the ORM as long as PostgreSQL needs for the whole search, and they depend on nothing but the
actor, its grants, the purposes that its tenant's policies name, and the place that is asked for.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar

from django.db.models import QuerySet

from governance.access.decisions.principal_grants import principal_grants
from governance.actor import Actor, CallContext
from governance.policies.active import policies_active
from vault.cubes.visibility import named

MOST_KEPT = 2_000


@dataclass(frozen=True)
class Composed:
    """A statement, and its values by name."""

    statement: str
    parameters: dict[str, Any]


Made = TypeVar("Made")
_kept: dict[Hashable, Any] = {}
_visibilities: dict[Hashable, int] = {}
_numbers = count()


def visibility_number(actor: Actor) -> int:
    """A number for everything that `visible_to` depends on for `actor`. Actors with the same visibility have the same
    number, and compose equal statements. No number is given twice."""
    standing = principal_grants(actor)
    # Of a call's context only the purpose is asked in a statement; what conditions ask of it is in `met`.
    asker = replace(actor, request_id="", context=CallContext(actor.context.channel, actor.context.purpose))
    met = tuple(sorted(standing.met.items()))
    visibility = (asker, standing.groups, standing.present, met, policies_active(actor).purpose)
    number = _visibilities.get(visibility)
    if number is None:
        if len(_visibilities) >= MOST_KEPT:
            _visibilities.clear()
        number = _visibilities.setdefault(visibility, next(_numbers))
    return number


def composed(name: str, rows: Callable[[], QuerySet[Any]], *, key: Hashable) -> Composed:
    """The statement of `rows`, cached. `name` is the prefix of its parameters."""
    return cached(name, lambda: compose(name, rows()), key=key)


def cached(name: str, make: Callable[[], Made], *, key: Hashable) -> Made:
    """The result of `make`, cached by `name` and `key`."""
    found: Made | None = _kept.get((name, key))
    if found is None:
        found = make()
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[name, key] = found
    return found


def compose(name: str, rows: QuerySet[Any]) -> Composed:
    return Composed(*named(rows, name))

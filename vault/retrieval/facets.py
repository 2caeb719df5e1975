"""Filters of a search on columns of the index."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from governance.keys.services import TokenMaker
from vault.cubes.filters import moment_or_date, persona_ids
from vault.cubes.index import marks
from vault.cubes.index.facets import NO_FACETS, Facets
from vault.retrieval.queries import SearchQuery
from vault.vocabulary import Layer, MemoryType

SIDES = {"gt": ("since",), "gte": ("since",), "lt": ("until",), "lte": ("until",), "eq": ("since", "until")}

Leaf = tuple[str, str, Any]  # field, operator, value


@dataclass(frozen=True)
class Asked:
    """The filters of a search. facets: those on columns of the index; covered: there are no others; mark: a mark that
    all memories have which pass the others, if there is one.
    """

    facets: Facets
    covered: bool
    mark: int | None = None


def facets_asked(maker: TokenMaker, search: SearchQuery) -> Asked:
    """Return the look-up of the filters of a checked search. One query if the search names personas.

    Filters within AND are looked up. Those within OR and NOT, and other operators, are left to the whole condition.
    """
    leaves, covered = _leaves(search.filters or {})
    for name, values in (("layer", search.layers), ("type", search.types), ("persona", search.personas)):
        leaves += [(name, "in", values)] if values else []
    for name in ("session_id", "task_id"):
        leaves += [(name, "eq", value)] if (value := getattr(search, name)) else []
    facets, borne = NO_FACETS, list[int]()
    for leaf in leaves:
        narrowed = _narrowed(facets, *leaf)
        borne += _marks(maker, *leaf)
        covered &= narrowed is not None
        facets = narrowed or facets
    return Asked(facets, covered and search.as_of is None, borne[-1] if borne else None)


def _leaves(body: Mapping[str, Any]) -> tuple[list[Leaf], bool]:
    """The leaves that must all hold, and whether there is nothing else."""
    found, covered = list[Leaf](), True
    for name, value in body.items():
        if name == "AND":
            for leaves, whole in map(_leaves, value):
                found += leaves
                covered &= whole
        elif name in {"OR", "NOT"}:
            covered = False
        else:
            operators = value if isinstance(value, Mapping) else {"eq": value}
            found += [(name, str(operator), one) for operator, one in operators.items()]
    return found, covered


def _narrowed(facets: Facets, name: str, operator: str, value: Any) -> Facets | None:
    """The facets with one more leaf, or None if the leaf is no column of the index."""
    if name == "event_time" and operator in SIDES:
        return _within(facets, operator, moment_or_date(value, name))
    if operator not in {"eq", "in"}:
        return None
    values = list(value) if operator == "in" else [value]
    if name == "layer":
        return replace(facets, layers=_both(facets.layers, map(Layer, values)))
    if name == "type":
        return replace(facets, types=_both(facets.types, map(MemoryType, values)))
    if name == "persona":
        return replace(facets, personas=_both(facets.personas, persona_ids(values)))
    return None


def _marks(maker: TokenMaker, name: str, operator: str, value: Any) -> list[int]:
    is_keyed = name in marks.KEYED_FIELDS or name.startswith("metadata.")
    return [marks.same(maker, name, value)] if is_keyed and operator == "eq" else []


def _both(before: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    found = frozenset(values)
    return found if before is None else before & found


def _within(facets: Facets, operator: str, at: datetime) -> Facets:
    since, until = facets.since, facets.until
    if "since" in SIDES[operator]:
        since = at if since is None else max(since, at)
    if "until" in SIDES[operator]:
        until = at if until is None else min(until, at)
    return replace(facets, since=since, until=until)

"""Facets and chips of the list in the reader's language, with the chosen values."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from vault.listing.endings import EndingKind
from vault.listing.facets import Facets, FacetValue
from vault.listing.queries import MemoryQuery
from vault.vocabulary import Layer, SemanticType, Sensitivity, Source, State
from vault.web.labels import ENDINGS, LAYERS, SEMANTIC_TYPES, SENSITIVITIES, SOURCES, STATES

NAMES: dict[str, Promise] = {
    "namespace": _("Namespace"),
    "persona": _("Persona"),
    "layer": _("Layer"),
    "state": _("State"),
    "semantic_type": _("Type"),
    "tags": _("Tag"),
    "sensitivity": _("Sensitivity"),
    "source": _("Source"),
    "speaker": _("Speaker"),
    "session_id": _("Session"),
}
WORDS: Mapping[str, Mapping[str, Promise]] = {
    "layer": {layer: LAYERS[layer] for layer in Layer},
    "state": {**{state: STATES[state] for state in State}, EndingKind.DELETED: ENDINGS[EndingKind.DELETED]},
    "semantic_type": {kind: SEMANTIC_TYPES[kind] for kind in SemanticType},
    "sensitivity": {level: SENSITIVITIES[level] for level in Sensitivity},
    "source": {source: SOURCES[source] for source in Source},
}
OPEN = ("namespace", "persona", "layer", "state", "semantic_type")  # from the beginning
TYPED = ("speaker", "session_id")  # sealed fields, typed in because they cannot be counted
BARS, BAR_HEIGHT = 12, 30


@dataclass(frozen=True)
class Option:
    value: str
    label: str | Promise
    count: str
    is_chosen: bool


@dataclass(frozen=True)
class Facet:
    """A facet of the list. typed: the value of its text field; None if it has options instead."""

    name: str
    label: Promise
    options: tuple[Option, ...] = ()
    typed: str | None = None
    is_open: bool = False


@dataclass(frozen=True)
class Month:
    """One bar of the histogram, in a box of 100 by 32 units."""

    name: str
    count: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class FacetList:
    facets: tuple[Facet, ...]
    months: tuple[Month, ...]
    total: str


@dataclass(frozen=True)
class Chip:
    """An active filter. address: of the list without this filter."""

    label: str | Promise
    words: str | Promise
    address: str


def facets_make(counted: Facets, query: MemoryQuery, names: Mapping[str, str]) -> FacetList:
    """Return the facets with the numbers of memories. names: of personas that the filter names by id."""
    total = counted["total"][0].count_text if counted["total"] else "0"
    return FacetList(tuple(_make_facets(counted, query, names)), tuple(_make_months(counted.get("month", []))), total)


def chips_make(query: MemoryQuery, address_of: Callable[[MemoryQuery], str], names: Mapping[str, str]) -> list[Chip]:
    """Return the active filters, each with the address of the list without this filter."""
    return [
        Chip(NAMES[name], WORDS.get(name, names).get(value, value), address_of(_remove_value(query, name, value)))
        for name, values in query.chosen.items()
        for value in values
    ]


def _remove_value(query: MemoryQuery, name: str, value: str) -> MemoryQuery:
    left = tuple(other for other in query.chosen[name] if other != value)
    return replace(query, chosen={**query.chosen, name: left})


def _make_facets(counted: Facets, query: MemoryQuery, names: Mapping[str, str]) -> Iterator[Facet]:
    for name, label in NAMES.items():
        chosen = tuple(names.get(value, value) for value in query.chosen.get(name, ()))
        if name in TYPED:
            yield Facet(name, label, typed=chosen[0] if chosen else "", is_open=bool(chosen))
            continue
        options = tuple(_make_options(name, counted.get(name, []), chosen))
        if options:
            yield Facet(name, label, options, is_open=name in OPEN or bool(chosen))


def _make_options(name: str, values: list[FacetValue], chosen: tuple[str, ...]) -> Iterator[Option]:
    words = WORDS.get(name, {})
    for counted_value in values:
        yield Option(
            counted_value.value,
            words.get(counted_value.value, counted_value.value),
            counted_value.count_text,
            counted_value.value in chosen,
        )
    for value in set(chosen) - {value.value for value in values}:
        yield Option(value, words.get(value, value), "0", is_chosen=True)


def _make_months(values: list[FacetValue]) -> Iterator[Month]:
    """Yield the bars of the last months with memories, oldest first."""
    last = sorted(values, key=lambda month: month.value)[-BARS:]
    most = max((month.count or 0 for month in last), default=0)
    step = 100 / BARS
    for index, month in enumerate(last):
        height = round(max((month.count or 0) / most * BAR_HEIGHT, 1.0), 1)
        x = round((BARS - len(last) + index) * step + 1, 1)
        yield Month(month.value, month.count_text, x, round(32 - height, 1), round(step - 2.5, 1), height)

"""Facets of the list: counts of memories for each value of a filter. Only the newest matches are counted, to bound
cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.vocabulary import Permission, Verb
from vault.cubes.pack_reads import find_closed_namespaces, pack_namespaces
from vault.cubes.selectors import CubeView
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import ordered_walk, select_ended, select_rows
from vault.models import Namespace
from vault.vocabulary import Layer, ListedState, SemanticType, Sensitivity, Source

COUNTED = 2_000  # the newest rows that are counted
MOST = 1_000  # a larger count is shown as 1,000+
MOST_VALUES = 20  # of one facet
ENDED_INDEX = -1  # of the statements that count what is not active
TOTAL = "total"
CLOSED: Mapping[str, Sequence[str]] = {
    "layer": [*Layer],
    "state": [*ListedState],
    "semantic_type": [*SemanticType],
    "sensitivity": [*Sensitivity],
    "source": [*Source],
}
# facet → (SQL of its value, SQL of the join that it needs). Each facet reads at most COUNTED rows.
VALUES = {
    TOTAL: ("''", ""),
    "layer": ("layer", ""),
    "state": (
        "CASE WHEN found.deleted_at IS NOT NULL THEN 'deleted'"
        " WHEN found.expires_at <= transaction_timestamp() THEN 'expired' ELSE found.state END",
        "",
    ),
    "semantic_type": ("semantic_type", ""),
    "sensitivity": ("sensitivity", ""),
    "source": ("source", ""),
    "namespace": ("path", " JOIN vault_namespace AS place ON place.id = found.namespace_id"),
    "persona": ("name", " JOIN governance_persona AS persona ON persona.id = found.persona_id"),
    "tags": ("tag", " CROSS JOIN LATERAL unnest(found.tags) AS tag"),
    "month": ("to_char(found.created_at, 'YYYY-MM')", ""),
}
COLUMNS = (
    *("id", "namespace_id", "persona_id", "layer", "state", "semantic_type", "sensitivity", "source", "tags"),
    *("created_at", "deleted_at", "expires_at"),
)


@dataclass(frozen=True)
class FacetValue:
    """A value of a filter with its number of memories. capped: the true number may be higher; count None: not
    counted."""

    value: str
    count: int | None
    capped: bool

    @property
    def count_text(self) -> str:
        if self.count is None:
            return ""
        return f"{self.count:,}+" if self.capped else f"{self.count:,}"


Facets = dict[str, list[FacetValue]]


def facets_count(*, actor: Actor, query: MemoryQuery) -> Facets:
    """Count the memories of each value of every filter; the counts of a filter ignore the filter itself.

    Raises Forbidden; Invalid. Writes: AuditEntry. Queries: one for all filters, one for namespaces, two for plans.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        counted = _query_facets(actor, query)
        record(actor=actor, verb=Verb.MEMORY_LISTED, object_type="memory", object_ids=[], detail={"counted": True})
        places = Namespace.objects.visible_to(actor).without_deleted().order_by("path").values_list("path", flat=True)
        return _complete_facets(counted, list(places[:MOST_VALUES]))


def count_facets(views: Sequence[CubeView]) -> Facets:
    """Count the facets of loaded views, such as the results of a search."""
    return {
        name: _rank_values(Counter(_iterate_values(views, name)), cut=False) for name in VALUES if name != TOTAL
    } | {TOTAL: [FacetValue("", len(views), capped=False)]}


def _iterate_values(views: Sequence[CubeView], name: str) -> Iterator[str]:
    for view in views:
        cube = view.cube
        if name == "tags":
            yield from cube.tags
        elif name == "namespace":
            yield cube.namespace.path
        elif name == "persona":
            yield from [cube.persona.name] if cube.persona else []
        elif name == "month":
            yield f"{cube.created_at:%Y-%m}"
        else:
            yield str(getattr(cube, name))


def _query_facets(actor: Actor, query: MemoryQuery) -> Facets:
    """Query the counts under all filters and, for each set filter, without that filter, in one statement."""
    # Types and states are always counted separately: without a choice the list leaves messages, merged and archived
    # memories out, and their counts show that they are there.
    by_itself = [name for name in VALUES if query.chosen.get(name) or name in {"semantic_type", "state"}]
    closed = find_closed_namespaces(actor, list(pack_namespaces(actor).values_list("namespace_id", flat=True)))
    counts = {"": [name for name in VALUES if name not in by_itself]}
    counts |= {name: [name, TOTAL] for name in by_itself}
    found, parts, parameters = [], [], []
    for index, (without, names) in enumerate(counts.items()):
        rows = (
            select_rows(actor, query, without=without)
            .exclude(namespace_id__in=closed)
            .order_by("-id")
            .values(*COLUMNS)[:COUNTED]
        )
        inner, values = rows.query.sql_with_params()
        found.append(f"found_{index} AS MATERIALIZED ({inner})")
        parts += [_facet_statement(index, name) for name in names]
        parameters += values
    ended = {} if query.inactive else select_ended(actor, query)
    for name, rows in ended.items():
        inner, values = rows.exclude(namespace_id__in=closed).values("id")[:COUNTED].query.sql_with_params()
        found.append(f"{name} AS MATERIALIZED ({inner})")
        parts.append(f"SELECT {ENDED_INDEX}, 'state', '{name}', count(*) FROM {name}")
        parameters += values
    counters: dict[str, dict[str, Counter[str]]] = {
        without: {name: Counter() for name in names} for without, names in counts.items()
    }
    with ordered_walk(), connection.cursor() as cursor:
        cursor.execute(f"WITH {', '.join(found)} {' UNION ALL '.join(parts)}", parameters)
        for index, name, value, count in cursor.fetchall():
            without = "state" if index == ENDED_INDEX else [*counts][index]
            counters[without][name][value] = count
    facets: Facets = {}
    for without, counted in counters.items():
        cut = counted[TOTAL][""] >= COUNTED
        facets |= {name: _rank_values(counted[name], cut=cut) for name in ([without] if without else counted)}
    return {name: facets[name] for name in VALUES}


def _facet_statement(index: int, name: str) -> str:
    value, joined = VALUES[name]
    return f"SELECT {index}, '{name}', {value}::text, count(*) FROM found_{index} AS found{joined} GROUP BY 3"


def _rank_values(counted: Mapping[str, int], *, cut: bool) -> list[FacetValue]:
    """Return the values with their counts, the most frequent first. cut: there are more rows than were counted."""
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return [FacetValue(value, min(count, MOST), capped=cut or count > MOST) for value, count in ranked]


def _complete_facets(counted: Facets, places: Sequence[str]) -> Facets:
    """Add missing values with the count 0: closed sets in their own order, and the namespaces; MOST_VALUES each at
    most."""
    cut = bool(counted[TOTAL]) and counted[TOTAL][0].capped
    known: dict[str, Sequence[str]] = {**CLOSED, "namespace": places}
    complete: Facets = {}
    for name, values in counted.items():
        missing = FacetValue("", None if cut else 0, capped=False)
        present = {value.value: value for value in values}
        if name in CLOSED:
            listed = [present.get(value, _make_value(missing, value)) for value in known[name]]
            complete[name] = [value for value in listed if value.count != 0]
        else:
            beside = [_make_value(missing, value) for value in known.get(name, ()) if value not in present]
            complete[name] = [*values, *beside][:MOST_VALUES]
    return complete


def _make_value(missing: FacetValue, value: str) -> FacetValue:
    return FacetValue(value, missing.count, missing.capped)


def facets_json(facets: Facets) -> dict[str, Any]:
    """Return the facets as JSON: `{field: [{value, count, capped}]}`."""
    return {
        name: [
            {"value": value.value, "count": value.count or 0, "capped": value.capped or value.count is None}
            for value in values
        ]
        for name, values in facets.items()
        if name != TOTAL
    }

"""The columns of a memory that every index copies, and conditions of a search on them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.actor import PersonaScope
from vault.models import Cube
from vault.vocabulary import Layer, MemoryType

# Stored: a number never changes its meaning.
LAYERS = {Layer.SHORT_TERM: 1, Layer.MID_TERM: 2, Layer.LONG_TERM: 3}
TYPES = {MemoryType.PLAINTEXT: 1, MemoryType.ACTIVATION: 2, MemoryType.PARAMETER: 3}

INDEXED_FIELDS = ("namespace_id", "layer", "type", "persona_id", "happened_at")


def indexed_fields(cube: Cube) -> dict[str, Any]:
    """Return the values of INDEXED_FIELDS for a cube."""
    return {
        "namespace_id": cube.namespace_id,
        "layer": LAYERS[Layer(cube.layer)],
        "type": TYPES[MemoryType(cube.type)],
        "persona_id": cube.persona_id,
        "happened_at": cube.event_time or cube.created_at,
    }


@dataclass(frozen=True)
class Facets:
    """Conditions of a search on the columns of the index; None: no condition. since, until: both inclusive.

    scope: of the actor; most memories pass, so it does not count in `bool`. A memory that passes the whole filter also
    passes its facets. The reverse is not true for some filters on `event_time`.
    """

    layers: frozenset[Layer] | None = None
    types: frozenset[MemoryType] | None = None
    personas: frozenset[UUID] | None = None
    since: datetime | None = None
    until: datetime | None = None
    scope: PersonaScope | None = None

    def __bool__(self) -> bool:
        return any(value is not None for name, value in vars(self).items() if name != "scope")

    def conditions(self, table: str) -> str:
        """Return the SQL conditions (`AND …`) on an index table with the alias `table`."""
        tests = (f" AND {table}.{column} {test}" for column, test in self._tests(INDEX_COLUMNS))
        return "".join(tests) + self._scope_condition(table)

    def conditions_on_cubes(self, table: str) -> str:
        """Return the SQL conditions (`AND …`) on vault_cube with the alias `table`."""
        tests = (f" AND {column.format(table=table)} {test}" for column, test in self._tests(CUBE_COLUMNS))
        return "".join(tests) + self._scope_condition(table)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of all conditions by name."""
        return {
            "facet_layers": [LAYERS[layer] for layer in self.layers or ()],
            "facet_types": [TYPES[kind] for kind in self.types or ()],
            "facet_layer_names": [str(layer) for layer in self.layers or ()],
            "facet_type_names": [str(kind) for kind in self.types or ()],
            "facet_personas": list(self.personas or ()),
            "facet_since": self.since,
            "facet_until": self.until,
            "scope_personas": list(self.scope.persona_ids) if self.scope else [],
            "scope_namespaces": list(self.scope.namespace_ids) if self.scope else [],
        }

    def _scope_condition(self, table: str) -> str:
        """Return `persona_condition` of vault/models/cube.py for an actor's persona scope, as SQL."""
        return _SCOPE.format(table=table) if self.scope else ""

    def _tests(self, columns: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for name, value in vars(self).items():
            if name in columns and value is not None:
                yield columns[name]


_PERSONAS = "= ANY(%(facet_personas)s::uuid[])"
_SCOPE = (
    " AND ({table}.persona_id IS NULL OR {table}.persona_id = ANY(%(scope_personas)s::uuid[])"
    " OR {table}.namespace_id = ANY(%(scope_namespaces)s::uuid[]))"
)
_HAPPENED_AT = "(CASE WHEN {table}.event_time IS NULL THEN {table}.created_at ELSE {table}.event_time END)"
INDEX_COLUMNS = {
    "layers": ("layer", "= ANY(%(facet_layers)s::smallint[])"),
    "types": ("type", "= ANY(%(facet_types)s::smallint[])"),
    "personas": ("persona_id", _PERSONAS),
    "since": ("happened_at", ">= %(facet_since)s::timestamptz"),
    "until": ("happened_at", "<= %(facet_until)s::timestamptz"),
}
CUBE_COLUMNS = {
    "layers": ("{table}.layer", "= ANY(%(facet_layer_names)s::text[])"),
    "types": ("{table}.type", "= ANY(%(facet_type_names)s::text[])"),
    "personas": ("{table}.persona_id", _PERSONAS),
    "since": (_HAPPENED_AT, ">= %(facet_since)s::timestamptz"),
    "until": (_HAPPENED_AT, "<= %(facet_until)s::timestamptz"),
}
NO_FACETS = Facets()

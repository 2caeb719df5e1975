"""The one statement that reads cubes with all that belongs to them.

It is written by hand, and built once: the ORM takes several times as long to compose it as PostgreSQL to answer it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model

from governance.models import DataSubject, Persona
from governance.prepared import prepared_cursor
from vault.models import Cube, Namespace
from vault.vocabulary import LinkKind

Row = TypeVar("Row", bound=Model)
JOINED: tuple[tuple[str, type[Model]], ...] = (
    ("cube", Cube),
    ("namespace", Namespace),
    ("persona", Persona),
    ("subject", DataSubject),
)


@dataclass(frozen=True)
class CubeRow:
    """A cube with its namespace, persona and subject attached, and what stands in other tables."""

    cube: Cube
    sealed: bytes
    access_count: int
    last_accessed_at: datetime | None
    heat: float
    embedded: bool
    held: bool
    parents: tuple[UUID, ...]


def cube_rows(*, tenant_id: UUID, cube_ids: Sequence[UUID], model: str) -> dict[UUID, CubeRow]:
    """The rows with these ids. One query. `model` says what counts as embedded until the tenant has an active model."""
    with prepared_cursor() as cursor:
        cursor.execute(READ, [LinkKind.DERIVED, list(cube_ids), tenant_id, tenant_id, model])
        known: dict[UUID, Model] = {}
        return {row.cube.id: row for row in (_row(values, known) for values in cursor.fetchall())}


@cache
def _names(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def _columns() -> Iterator[str]:
    for alias, model in JOINED:
        yield from (f"{alias}.{field.column}" for field in model._meta.concrete_fields)


# OFFSET 0 keeps each look-up a look-up: joined freely, a planner that has not yet counted a new tenant walks all of it.
READ = f"""
SELECT {", ".join(_columns())},
  version.sealed, coalesce(used.access_count, 0), used.last_accessed_at, coalesce(used.heat, 0),
  embedding.version IS NOT NULL,
  EXISTS (SELECT 1 FROM vault_holdcube AS covered WHERE covered.tenant_id = cube.tenant_id
    AND covered.cube_id = cube.id AND vault_hold_stands(covered.tenant_id, covered.hold_id)),
  ARRAY(SELECT link.target_id FROM vault_cubelink AS link WHERE link.tenant_id = cube.tenant_id
    AND link.source_id = cube.id AND link.kind = %s ORDER BY link.id)
FROM unnest(%s::uuid[]) AS wanted (id)
  CROSS JOIN LATERAL (
    SELECT * FROM vault_cube AS one WHERE one.id = wanted.id AND one.tenant_id = %s OFFSET 0
  ) AS cube
  CROSS JOIN LATERAL (
    SELECT one.sealed FROM vault_cubeversion AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.number = cube.version OFFSET 0
  ) AS version
  LEFT JOIN LATERAL (
    SELECT one.access_count, one.last_accessed_at, one.heat FROM vault_cubeuse AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id OFFSET 0
  ) AS used ON true
  LEFT JOIN LATERAL (
    SELECT one.version FROM vault_embedding AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.version = cube.version
      AND one.model = coalesce(
        (SELECT active.model FROM vault_embeddingmodel AS active WHERE active.tenant_id = %s), %s)
    OFFSET 0
  ) AS embedding ON true
  CROSS JOIN LATERAL (
    SELECT * FROM vault_namespace AS one WHERE one.id = cube.namespace_id AND one.tenant_id = cube.tenant_id OFFSET 0
  ) AS namespace
  LEFT JOIN LATERAL (
    SELECT * FROM governance_persona AS one WHERE one.id = cube.persona_id AND one.tenant_id = cube.tenant_id OFFSET 0
  ) AS persona ON true
  LEFT JOIN LATERAL (
    SELECT * FROM governance_datasubject AS one
    WHERE one.id = cube.subject_id AND one.tenant_id = cube.tenant_id OFFSET 0
  ) AS subject ON true
"""


def _row(values: Sequence[Any], known: dict[UUID, Model]) -> CubeRow:
    """`known`: the objects of earlier rows; many cubes share a namespace."""
    start, made = 0, dict[str, Model | None]()
    for alias, model in JOINED:
        names = _names(model)
        part = values[start : start + len(names)]
        if part[0] is not None and part[0] not in known:
            known[part[0]] = model.from_db("default", names, part)
        made[alias] = known.get(part[0])
        start += len(names)
    cube = made["cube"]
    assert isinstance(cube, Cube)
    for alias in ("namespace", "persona", "subject"):
        setattr(cube, alias, made[alias])
    sealed, reads, read_at, heat, embedded, held, parents = values[start:]
    return CubeRow(cube, bytes(sealed), reads, read_at, heat, embedded, held, tuple(parents))

"""The statement that reads cubes with the related rows.

It is written by hand and built once: the ORM needs several times as long to compose it as PostgreSQL to answer it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model
from django.db.models.base import ModelState

from governance.models import DataSubject, Persona
from governance.prepared import prepared_cursor, sql_array
from vault.models import Cube, Namespace
from vault.vocabulary import LinkKind

# Columns for representations and access decisions. Django loads another on first use, within the tenant's transaction.
JOINED: tuple[tuple[str, type[Model], tuple[str, ...]], ...] = (
    (
        "cube",
        Cube,
        (
            "id", "tenant_id", "created_at", "updated_at", "deleted_at", "expires_at", "event_time", "valid_from",
            "valid_to", "namespace_id", "persona_id", "subject_id", "owner_id", "access_level", "semantic_type",
            "sensitivity", "tags", "importance", "priority", "type", "layer", "modality", "language", "state", "source",
            "trust", "position", "said_at", "superseded_by", "reader", "suspended_expiry", "expiry_policy",
            "retention_class", "token_count", "version", "has_sources", "is_cold", "is_indexed", "is_quarantined",
            "is_dialogue_only",
        ),
    ),
    ("namespace", Namespace, ("id", "tenant_id", "path", "kind", "read_only", "ended_at", "owner_id")),
    ("persona", Persona, ("id", "tenant_id", "name")),
    ("subject", DataSubject, ("id", "tenant_id", "sealed_reference")),
)  # fmt: skip


@dataclass(frozen=True)
class CubeRow:
    """A cube with its namespace, persona and subject attached, and values of other tables."""

    cube: Cube
    sealed: bytes
    access_count: int
    last_accessed_at: datetime | None
    heat: float
    questions: int
    embedded: bool
    held: bool
    parents: tuple[UUID, ...]
    repeats: tuple[datetime, ...]  # when its words were said again
    packs: tuple[UUID, ...]  # namespaces of the packs whose words it has


def cube_rows(*, tenant_id: UUID, cube_ids: Sequence[UUID], model: str) -> dict[UUID, CubeRow]:
    """Read the cubes with these ids. model: the embedding model of a tenant without an active one. One query."""
    with prepared_cursor() as cursor:
        cursor.execute(READ, [LinkKind.DERIVED, sql_array(cube_ids), tenant_id, tenant_id, model])
        known: dict[UUID, Model] = {}
        return {row.cube.id: row for row in (_make_row(values, known) for values in cursor.fetchall())}


def _columns() -> Iterator[str]:
    for alias, model, names in JOINED:
        columns = {field.attname: field.column for field in model._meta.concrete_fields}
        yield from (f"{alias}.{columns[name]}" for name in names)


# OFFSET 0 keeps each look-up a look-up: joined freely, a planner that has not yet counted a new tenant walks all of it.
READ = f"""
SELECT {", ".join(_columns())},
  version.sealed, coalesce(used.access_count, 0), used.last_accessed_at, coalesce(used.heat, 0),
  coalesce(used.fingerprint_count, 0),
  embedding.version IS NOT NULL OR cube.is_cold,
  EXISTS (SELECT 1 FROM vault_holdcube AS covered WHERE covered.tenant_id = cube.tenant_id
    AND covered.cube_id = cube.id AND vault_hold_stands(covered.tenant_id, covered.hold_id)),
  ARRAY(SELECT link.target_id FROM vault_cubelink AS link WHERE link.tenant_id = cube.tenant_id
    AND link.source_id = cube.id AND link.kind = %s ORDER BY link.id),
  ARRAY(SELECT coalesce(said.said_at, said.created_at) FROM vault_cubesource AS again
    CROSS JOIN LATERAL (
      SELECT * FROM vault_cube AS one WHERE one.tenant_id = again.tenant_id AND one.id = again.cube_id OFFSET 0
    ) AS said
    WHERE again.tenant_id = cube.tenant_id AND again.source_id = cube.id AND said.is_dialogue_only
      AND said.deleted_at IS NULL AND said.content_hash = cube.content_hash ORDER BY 1),
  CASE WHEN cube.source = 'pack' OR cube.has_sources THEN ARRAY(
    SELECT DISTINCT origin.namespace_id FROM (
      SELECT cube.id AS source_id UNION ALL SELECT one.source_id FROM vault_cubesource AS one
      WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.kind <> 'quote'
    ) AS words CROSS JOIN LATERAL (
      SELECT one.namespace_id FROM vault_cube AS one
      WHERE one.tenant_id = cube.tenant_id AND one.id = words.source_id AND one.source = 'pack' OFFSET 0
    ) AS origin
    WHERE EXISTS (SELECT FROM vault_subscription AS agreed
      WHERE agreed.tenant_id = cube.tenant_id AND agreed.namespace_id = origin.namespace_id)
  ) ELSE '{{}}' END
FROM unnest(%s::uuid[]) AS wanted (id)
  CROSS JOIN LATERAL (
    SELECT * FROM vault_cube AS one WHERE one.id = wanted.id AND one.tenant_id = %s OFFSET 0
  ) AS cube
  CROSS JOIN LATERAL (
    SELECT one.sealed FROM vault_cubeversion AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.number = cube.version OFFSET 0
  ) AS version
  LEFT JOIN LATERAL (
    SELECT one.access_count, one.last_accessed_at, one.heat, one.fingerprint_count
    FROM vault_cubeuse AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id OFFSET 0
  ) AS used ON true
  LEFT JOIN LATERAL (
    SELECT one.version FROM vault_embedding AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.version = cube.version AND one.part = 0
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


def _make_row(values: Sequence[Any], known: dict[UUID, Model]) -> CubeRow:
    """Make a row from columns. known: related objects by id, which rows share."""
    (_, model, names), *joined = JOINED
    start = len(names)
    cube = _make_model(model, names, values[:start])
    assert isinstance(cube, Cube)
    for alias, model, names in joined:
        other = None
        if (id := values[start]) is not None:
            other = known.get(id) or known.setdefault(id, _make_model(model, names, values[start : start + len(names)]))
        cube._state.fields_cache[alias] = other
        start += len(names)
    sealed, reads, read_at, heat, questions, embedded, held, parents, repeats, packs = values[start:]
    return CubeRow(
        cube,
        bytes(sealed),
        reads,
        read_at,
        heat,
        questions,
        embedded,
        held,
        tuple(parents),
        tuple(repeats),
        tuple(packs),
    )


def _make_model(model: type[Model], names: Sequence[str], values: Sequence[Any]) -> Model:
    """Make a model object as `Model.from_db` does, without signals and checks, which take ten times as long."""
    made = model.__new__(model)
    made.__dict__ |= zip(names, values, strict=True)
    made._state = ModelState()
    made._state.adding, made._state.db = False, DEFAULT_DB_ALIAS
    return made

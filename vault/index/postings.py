"""Postings: rows of the inverted index of keyed tokens, written and deleted in the transaction of their cube."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, repeat
from typing import Any, Protocol
from uuid import UUID

from django.db import connection

from governance.prepared import prepared_cursor, sql_array
from vault.index.facets import LAYERS, TYPES
from vault.index.terms import IndexEntries
from vault.models import ArchivedPosting, Cube, CubeVersion, Posting
from vault.vocabulary import Layer, MemoryType

INSERT = """
INSERT INTO {table} (tenant_id, term, cube_id, namespace_id, frequency, length, session_token, position,
  layer, type, persona_id, happened_at)
SELECT %s::uuid, entry.term, cube.id, cube.namespace_id, entry.frequency, cube.length, cube.session_token,
  cube.position, cube.layer, cube.type, cube.persona_id, cube.happened_at
FROM unnest(%s::bigint[], %s::smallint[], %s::integer[]) AS entry (term, frequency, number)
  JOIN unnest(%s::uuid[], %s::uuid[], %s::smallint[], %s::bigint[], %s::integer[], %s::smallint[], %s::smallint[],
    %s::uuid[], %s::timestamptz[]) WITH ORDINALITY
    AS cube (id, namespace_id, length, session_token, position, layer, type, persona_id, happened_at, number)
    USING (number)
ORDER BY entry.term, cube.id
"""
# Of memories that leave all indexes: their words stay in the database, and are looked up there.
DELETE_PRESENT = """
DELETE FROM {table} AS posting USING (
  SELECT version.cube_id, unnest(version.terms) AS term FROM unnest(%(cubes)s::uuid[]) AS named (id)
    JOIN vault_cube AS cube ON cube.tenant_id = %(tenant)s AND cube.id = named.id
    JOIN vault_cubeversion AS version
      ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id AND version.number = cube.version
) AS entry
WHERE posting.tenant_id = %(tenant)s AND posting.term = entry.term AND posting.cube_id = entry.cube_id
"""
DELETE = """
DELETE FROM {table} AS posting USING unnest(%s::bigint[], %s::uuid[]) AS entry (term, cube_id)
WHERE posting.tenant_id = %s AND posting.term = entry.term AND posting.cube_id = entry.cube_id
"""
MOVE = """
WITH moved AS (
  UPDATE vault_cube SET layer = %(layer)s WHERE tenant_id = %(tenant)s AND layer = %(before)s AND id IN (
    SELECT id FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY(%(cubes)s::uuid[]) ORDER BY id FOR UPDATE)
  RETURNING id, version
), entry AS (
  SELECT one.cube_id, unnest(one.terms) AS term FROM vault_cubeversion AS one
  JOIN moved ON moved.id = one.cube_id AND moved.version = one.number WHERE one.tenant_id = %(tenant)s
), found AS (
  UPDATE vault_posting AS one SET layer = %(number)s FROM entry
  WHERE one.tenant_id = %(tenant)s AND one.term = entry.term AND one.cube_id = entry.cube_id
), archived AS (
  UPDATE vault_archivedposting AS one SET layer = %(number)s FROM entry
  WHERE one.tenant_id = %(tenant)s AND one.term = entry.term AND one.cube_id = entry.cube_id
)
UPDATE vault_embedding AS one SET layer = %(number)s FROM moved
WHERE one.tenant_id = %(tenant)s AND one.cube_id = moved.id
"""
INSERT_SEARCHABLE = INSERT.format(table="vault_posting")
INSERT_ARCHIVED = INSERT.format(table="vault_archivedposting")


class IndexedCube(Protocol):
    """A cube and its index entries, not yet written."""

    @property
    def cube(self) -> Cube: ...
    @property
    def indexed(self) -> IndexEntries: ...


def postings_insert(built: Sequence[IndexedCube], *, archived: bool = False) -> None:
    """Insert the postings of cubes of one tenant in one statement."""
    with prepared_cursor() as cursor:
        cursor.execute(INSERT_ARCHIVED if archived else INSERT_SEARCHABLE, postings_parameters(built))


def postings_parameters(built: Sequence[IndexedCube]) -> list[Any]:
    """Return the parameters of the INSERT statements, which write in key order, so that few index pages change."""
    entries = [row.indexed.entries for row in built]
    numbers = [repeat(number, len(words)) for number, words in enumerate(entries, 1)]
    cubes = [
        (
            row.cube.id,
            row.cube.namespace_id,
            row.indexed.length,
            row.cube.session_token,
            row.cube.position,
            LAYERS[Layer(row.cube.layer)],
            TYPES[MemoryType(row.cube.type)],
            row.cube.persona_id,
            f'"{row.cube.event_time or row.cube.created_at}"',
        )
        for row in built
    ]
    return [
        built[0].cube.tenant_id,
        sql_array(chain.from_iterable(entries)),
        sql_array(chain.from_iterable(words.values() for words in entries)),
        sql_array(chain.from_iterable(numbers)),
        *(sql_array(column) for column in zip(*cubes, strict=True)),
    ]


def postings_delete_many(versions: Sequence[CubeVersion]) -> None:
    """Delete the postings of versions of one tenant by key, with one statement for each index."""
    terms = [term for version in versions for term in version.terms]
    cubes = [version.cube_id for version in versions for _ in version.terms]
    with prepared_cursor() as cursor:
        for model in (Posting, ArchivedPosting):
            parameters: list[Any] = [sql_array(terms), sql_array(cubes), versions[0].tenant_id]
            cursor.execute(DELETE.format(table=model._meta.db_table), parameters)


def postings_delete_present(tenant_id: UUID, cube_ids: Collection[UUID]) -> None:
    """Delete the postings of the present versions of memories, with one statement for each index."""
    with prepared_cursor() as cursor:
        for model in (Posting, ArchivedPosting):
            statement = DELETE_PRESENT.format(table=model._meta.db_table)
            cursor.execute(statement, {"cubes": sql_array(cube_ids), "tenant": tenant_id})


def postings_delete(cube_id: UUID, terms: Sequence[int]) -> None:
    """Delete the postings of one version by key."""
    for model in (Posting, ArchivedPosting):
        model.objects.filter(cube_id=cube_id, term__in=terms).delete()


def layer_move(tenant_id: UUID, cube_ids: Iterable[UUID], *, before: Layer, after: Layer) -> None:
    """Move those memories that are in one layer to another, in all indexes. One statement."""
    cubes = sql_array(sorted(cube_ids))
    values: dict[str, Any] = {
        "tenant": tenant_id,
        "cubes": cubes,
        "before": before,
        "layer": after,
        "number": LAYERS[after],
    }
    with connection.cursor() as cursor:
        cursor.execute(MOVE, values)

"""Visibility of single memories, by a statement that is composed and planned once."""

from collections.abc import Collection
from uuid import UUID

from governance.actor import Actor
from governance.prepared import prepared_cursor, sql_array
from vault.models import Cube
from vault.retrieval.composing import Composed, composed, visibility_number


def visible_ids(actor: Actor, cube_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids that the actor may read now, in the caller's transaction. One query."""
    made = composed("visible", lambda: Cube.objects.visible_to(actor).values("id"), key=visibility_number(actor))
    return among(made, cube_ids)


def among(rows: Composed, cube_ids: Collection[UUID]) -> set[UUID]:
    """Return those of the ids that `rows`, a statement for ids of cubes, yields. One query, by key."""
    with prepared_cursor() as cursor:
        statement = f"SELECT seen.id FROM ({rows.statement}) AS seen WHERE seen.id = ANY(%(ids)s::uuid[])"
        cursor.execute(statement, {**rows.parameters, "ids": sql_array(cube_ids)})
        return {row[0] for row in cursor.fetchall()}

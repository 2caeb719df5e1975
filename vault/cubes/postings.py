"""Rows of the keyed token index. They are derived: written and deleted with their cube, in its transaction."""

from collections.abc import Sequence
from uuid import UUID

import psycopg
from django.db import connection

from vault.cubes.building import Built
from vault.models import Posting

INSERT = """
INSERT INTO vault_posting (tenant_id, term, cube_id, namespace_id, frequency, length, session_token, position)
SELECT %s::uuid, entry.*
FROM unnest(%s::bigint[], %s::uuid[], %s::uuid[], %s::smallint[], %s::smallint[], %s::bigint[], %s::integer[])
     AS entry (term, cube_id, namespace_id, frequency, length, session_token, position)
ORDER BY entry.term, entry.cube_id
"""


def postings_insert(built: Sequence[Built]) -> None:
    """All postings of some cubes of one tenant in one statement, in key order so that the index pages are kept warm."""
    rows = [
        (
            entry.term,
            one.cube.id,
            one.cube.namespace_id,
            entry.frequency,
            one.indexed.length,
            one.cube.session_token,
            one.cube.position,
        )
        for one in built
        for entry in one.indexed.entries
    ]
    if not rows:
        return
    columns = [list(column) for column in zip(*rows, strict=True)]
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(INSERT, [built[0].cube.tenant_id, *columns])


def postings_delete(cube_id: UUID, terms: Sequence[int]) -> None:
    """The postings of one version, by key."""
    Posting.objects.filter(cube_id=cube_id, term__in=terms).delete()

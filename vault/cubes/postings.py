"""Rows of the keyed token index. They are derived: written and deleted with their cube, in its transaction."""

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any
from uuid import UUID

from governance.prepared import prepared_cursor, sql_array
from vault.cubes.building import Built
from vault.models import Posting

INSERT = """
INSERT INTO vault_posting (tenant_id, term, cube_id, namespace_id, frequency, length, session_token, position)
SELECT %s::uuid, entry.term, cube.id, cube.namespace_id, entry.frequency, cube.length, cube.session_token, cube.position
FROM unnest(%s::bigint[], %s::smallint[], %s::integer[]) AS entry (term, frequency, number)
  JOIN unnest(%s::uuid[], %s::uuid[], %s::smallint[], %s::bigint[], %s::integer[]) WITH ORDINALITY
    AS cube (id, namespace_id, length, session_token, position, number) USING (number)
ORDER BY entry.term, cube.id
"""


def postings_insert(built: Sequence[Built]) -> None:
    """All postings of some cubes of one tenant in one statement."""
    with prepared_cursor() as cursor:
        cursor.execute(INSERT, postings_sent(built))


def postings_sent(built: Sequence[Built]) -> list[Any]:
    """The parameters of INSERT, which writes in key order so that the index pages are kept warm."""
    entries = [one.indexed.entries for one in built]
    numbers = [repeat(number, len(words)) for number, words in enumerate(entries, 1)]
    cubes = [
        (one.cube.id, one.cube.namespace_id, one.indexed.length, one.cube.session_token, one.cube.position)
        for one in built
    ]
    return [
        built[0].cube.tenant_id,
        sql_array(chain.from_iterable(entries)),
        sql_array(chain.from_iterable(words.values() for words in entries)),
        sql_array(chain.from_iterable(numbers)),
        *(sql_array(column) for column in zip(*cubes, strict=True)),
    ]


def postings_delete(cube_id: UUID, terms: Sequence[int]) -> None:
    """The postings of one version, by key."""
    Posting.objects.filter(cube_id=cube_id, term__in=terms).delete()

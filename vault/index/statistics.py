"""Numbers of cubes and words of a namespace, as a search needs them.

An add changes no size: writers would wait for each other. The job behind it counts the namespace. Whatever changes or
takes away a cube that was counted corrects the size in its own transaction (the triggers of
vault/migrations/0003_functions.py), so that a size is at any time that of the cubes for which COUNTED holds. Both
hold the size's row first and look then: of two, the later one sees what the other did.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit_later
from governance.vocabulary import Topic

CHEAP_TO_COUNT = 5_000  # cubes; a larger namespace is not counted again within FRESH_SECONDS
FRESH_SECONDS = 2.0

# Whether a `cube` is of what the `size` of its namespace says.
COUNTED = """cube.created_at < size.refreshed_at AND cube.deleted_at IS NULL AND cube.is_indexed
    AND (cube.expires_at IS NULL OR cube.expires_at > size.refreshed_at)"""
FRESH = """
SELECT namespace_id FROM vault_namespacesize
WHERE namespace_id = ANY(%s) AND cubes > %s AND refreshed_at > clock_timestamp() - make_interval(secs => %s)
"""
# A size that is not there yet counts nothing.
HOLD = """
INSERT INTO vault_namespacesize (tenant_id, namespace_id, cubes, words, refreshed_at)
SELECT tenant_id, id, 0, 0, timestamptz 'epoch' FROM vault_namespace WHERE id = ANY(%s) ORDER BY id
ON CONFLICT (tenant_id, namespace_id) DO UPDATE SET cubes = vault_namespacesize.cubes WHERE false
"""
MEASURE = f"""
UPDATE vault_namespacesize AS former
SET cubes = counted.cubes, words = counted.words, refreshed_at = counted.refreshed_at
FROM (SELECT wanted.id, statement_timestamp() AS refreshed_at FROM unnest(%s::uuid[]) AS wanted (id)) AS size
CROSS JOIN LATERAL (
  SELECT count(*) AS cubes, coalesce(sum(cube.term_count), 0) AS words, size.refreshed_at
  FROM vault_cube AS cube WHERE cube.namespace_id = size.id AND {COUNTED}
) AS counted
WHERE former.namespace_id = size.id
"""


def statistics_count(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count the namespaces that some events name anew. One that is large and was counted a moment ago is left to a
    later job, so that what came last is counted, too.

    What it locks it locks last: whoever holds a cube may wait for a size, and nobody for a cube who holds a size.
    """
    namespaces = _namespaces_of(payloads)

    def write() -> None:
        fresh = _measure(namespaces)
        if fresh:
            names = [str(namespace_id) for namespace_id in fresh]
            emit_later(actor=actor, topic=Topic.SIZES_DUE, payload={"namespaces": names}, seconds=FRESH_SECONDS)

    return write


def _namespaces_of(payloads: Sequence[Payload]) -> list[UUID]:
    found: set[UUID] = set()
    for payload in payloads:
        namespaces = payload["namespaces"]
        assert isinstance(namespaces, list)
        found |= {UUID(namespace_id) for namespace_id in namespaces}
    return sorted(found)


def _measure(namespaces: Collection[UUID]) -> list[UUID]:
    """Returns those that were not counted."""
    with connection.cursor() as cursor:
        cursor.execute(FRESH, [list(namespaces), CHEAP_TO_COUNT, FRESH_SECONDS])
        fresh = sorted(namespace_id for (namespace_id,) in cursor.fetchall())
    namespaces_measure([namespace_id for namespace_id in namespaces if namespace_id not in fresh])
    return fresh


def namespaces_measure(namespaces: Sequence[UUID]) -> None:
    """Count the searchable memories of `namespaces`, sorted, and their words. Writes: NamespaceSize …."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [list(namespaces)])
        cursor.execute(MEASURE, [list(namespaces)])

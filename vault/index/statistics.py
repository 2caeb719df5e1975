"""The number of searchable cubes and of their words in each namespace.

Adding cubes does not change these sizes, since writers would wait for each other; a later job counts the namespace.
Changes and deletions of counted cubes correct the size in their own transaction (triggers of
vault/migrations/0003_functions.py). So a size always equals the number of cubes for which COUNTED is true. The job and
the triggers lock the size's row before they read, so that the later one sees the work of the earlier one.
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

# True for a `cube` that is part of the `size` of its namespace.
COUNTED = """cube.created_at < size.refreshed_at AND cube.deleted_at IS NULL AND cube.is_indexed
    AND (cube.expires_at IS NULL OR cube.expires_at > size.refreshed_at)"""
FRESH = """
SELECT namespace_id FROM vault_namespacesize
WHERE namespace_id = ANY(%s) AND cubes > %s AND refreshed_at > clock_timestamp() - make_interval(secs => %s)
"""
# A new size counts no cubes.
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
    """Count the namespaces of these events again. A large namespace that was just counted is left to a later job.

    Sizes are locked last: a transaction that holds a cube may wait for a size, but never the reverse.
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
    """Count the namespaces, except those with a fresh count, and return the skipped ones."""
    with connection.cursor() as cursor:
        cursor.execute(FRESH, [list(namespaces), CHEAP_TO_COUNT, FRESH_SECONDS])
        fresh = sorted(namespace_id for (namespace_id,) in cursor.fetchall())
    namespaces_measure([namespace_id for namespace_id in namespaces if namespace_id not in fresh])
    return fresh


def namespaces_measure(namespaces: Sequence[UUID]) -> None:
    """Count the searchable memories of `namespaces` (sorted) and their words. Writes: NamespaceSize …."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [list(namespaces)])
        cursor.execute(MEASURE, [list(namespaces)])

"""Which words many memories of a namespace contain, counted anew as a tenant grows.

A search that knows them need not read all that contain such a word (vault/retrieval/ranking.py, `set_aside`). Counting
reads all postings of the tenant once, so it is done each time the tenant has grown or shrunk by a fourth: in all, each
posting is read a few times. It is a job of its own, which may take long and fail without harm to what is indexed.
"""

from collections.abc import Sequence

from django.db import connection

from governance.actor import Actor
from governance.outbox.services import Payload, Write

COMMON_FROM = 1_000  # cubes of a namespace that contain a word
GROWTH = 1.25
IS_DUE = """
SELECT greatest(present.cubes, former.cubes) >= %s
  AND greatest(present.cubes, former.cubes) > %s::float8 * least(present.cubes, former.cubes)
FROM (SELECT coalesce(sum(cubes), 0) AS cubes FROM vault_namespacesize WHERE tenant_id = %s) AS present,
  (SELECT coalesce(sum(cubes), 0) AS cubes FROM vault_commonwordscount WHERE tenant_id = %s) AS former
"""
ALONE = "SELECT pg_try_advisory_xact_lock(hashtextextended('common words ' || %s, 0))"
PATIENTLY = "SET LOCAL statement_timeout = '10min'"
FORGET_UNUSED = """
DELETE FROM vault_commonword AS word WHERE word.term = ANY(%s::bigint[]) AND NOT EXISTS (
  SELECT 1 FROM vault_posting AS posting WHERE posting.tenant_id = word.tenant_id AND posting.term = word.term)
"""
FORGET = "DELETE FROM vault_commonword WHERE tenant_id = %s"
COUNT = """
INSERT INTO vault_commonword (tenant_id, term, namespace_id, cubes)
SELECT tenant_id, term, namespace_id, count(*) FROM vault_posting
WHERE tenant_id = %s AND frequency > 0
GROUP BY tenant_id, term, namespace_id HAVING count(*) >= %s
"""
NOTE = """
INSERT INTO vault_commonwordscount (tenant_id, cubes)
SELECT %s, coalesce(sum(cubes), 0) FROM vault_namespacesize WHERE tenant_id = %s
ON CONFLICT (tenant_id) DO UPDATE SET cubes = excluded.cubes, counted_at = transaction_timestamp()
"""


def common_words_are_due(actor: Actor) -> bool:
    """In the caller's transaction. One query."""
    with connection.cursor() as cursor:
        cursor.execute(IS_DUE, [COMMON_FROM, GROWTH, actor.tenant_id, actor.tenant_id])
        due: bool = cursor.fetchone()[0]
        return due


def common_words_count(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count the tenant's common words where that is still due and no other job is at it."""

    def write() -> None:
        if not common_words_are_due(actor):
            return
        tenant = actor.tenant_id
        with connection.cursor() as cursor:
            cursor.execute(ALONE, [str(tenant)])
            if not cursor.fetchone()[0]:
                return
            cursor.execute(PATIENTLY)
            cursor.execute(FORGET, [tenant])
            cursor.execute(COUNT, [tenant, COMMON_FROM])
            cursor.execute(NOTE, [tenant, tenant])

    return write


def common_words_forget(terms: Sequence[int]) -> None:
    """Those of `terms` that no cube contains any more: an erasure leaves no token. In the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET_UNUSED, [list(terms)])

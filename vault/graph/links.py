"""Rows of links, written in one statement. A link is deleted with either of its cubes."""

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from governance.ids import uuid7
from vault.graph.rules import Link

INSERT = """
INSERT INTO vault_cubelink (id, tenant_id, source_id, target_id, kind)
SELECT entry.id, %s, entry.source_id, entry.target_id, entry.kind
FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[]) AS entry (id, source_id, target_id, kind)
ON CONFLICT DO NOTHING
"""


def links_insert(tenant_id: UUID, links: Iterable[Link]) -> None:
    """Insert the links that do not exist yet. Use inside the caller's transaction."""
    rows = list(links)
    if not rows:
        return
    ids, kinds = [uuid7() for _ in rows], [str(link.kind) for link in rows]
    sources, targets = [link.source for link in rows], [link.target for link in rows]
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [tenant_id, ids, sources, targets, kinds])

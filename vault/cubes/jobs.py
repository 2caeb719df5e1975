"""Handlers of events after a write or read: vectors, and counts of use."""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Verb
from vault.cubes.eligibility import unindex_expired_cubes
from vault.cubes.fingerprints import fingerprints_write
from vault.cubes.lookup import keep_cubes
from vault.embeddings.vectors import (
    active_model,
    active_model_hold,
    embeddings_renew,
    embeddings_write,
    find_current_vectors,
    make_all_embeddings,
    texts_of,
)

COUNT_READS = """
INSERT INTO vault_cubeuse (tenant_id, cube_id, access_count, last_accessed_at, heat)
SELECT cube.tenant_id, cube.id, entry.reads, transaction_timestamp(), 0
FROM unnest(%s::uuid[], %s::integer[]) AS entry (id, reads) JOIN vault_cube AS cube ON cube.id = entry.id
ORDER BY cube.id
ON CONFLICT (tenant_id, cube_id) DO UPDATE
SET access_count = vault_cubeuse.access_count + excluded.access_count, last_accessed_at = excluded.last_accessed_at
"""


def cubes_index(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Embed the current texts of written cubes. The models are called outside any transaction.

    While a tenant changes its model, each cube gets a vector of both models (see vault.embeddings.vectors).
    """
    with acting(actor):
        texts = texts_of(ids_of(payloads))
        active = active_model(actor)
        current = find_current_vectors(actor, active, texts)  # tags or metadata changed, and no text
    rows = make_all_embeddings(actor, active, [text for text in texts if text.cube_id not in current])

    def write() -> None:
        if rows or current:
            active_model_hold(actor, expected=active, first=rows[0].model if rows else str(active))
        ids = [*embeddings_renew(actor, texts, current), *embeddings_write(rows)]
        record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)

    return write


def cubes_count_reads(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count each cube once for each request that returned it, and add the question to its fingerprint.

    Also removes expired cubes from the index.
    """
    reads: dict[UUID, int] = {}
    for payload in payloads:
        for cube_id in ids_of([payload]):
            reads[cube_id] = reads.get(cube_id, 0) + 1

    def write() -> None:
        keep_cubes(reads)
        with connection.cursor() as cursor:
            cursor.execute(COUNT_READS, [sorted(reads), [reads[cube_id] for cube_id in sorted(reads)]])
        fingerprints_write(actor, payloads)
        unindex_expired_cubes(actor)

    return write


def ids_of(payloads: Sequence[Payload]) -> list[UUID]:
    """Return the ids of the cubes that the events name, without duplicates, in order."""
    named: list[UUID] = []
    for payload in payloads:
        ids = payload["ids"]
        assert isinstance(ids, list)
        named += [UUID(cube_id) for cube_id in ids]
    return list(dict.fromkeys(named))

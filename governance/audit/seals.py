"""Sealing: soon after its commit, each audit entry gets the next number in the hash chain of its tenant.

Sealing within the writing transaction would make all writes of a tenant wait for each other (206 a second). A trigger
puts each new entry into a queue, as entries newer than the last seal would not include transactions that commit late.
"""

from datetime import datetime
from uuid import UUID

from django.db import connection

from governance.audit.lines import IN_UTC, LINE
from governance.audit.verifier import GENESIS, chain_hash, entry_hash
from governance.database import no_tenant, tenant_transaction
from governance.ids import uuid7

BATCH = 2_000
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
LAST = "SELECT seq, encode(chain_hash, 'hex') FROM governance_auditseal ORDER BY seq DESC LIMIT 1"
UNSEALED = f"""
SELECT entry.id, {LINE}
FROM (SELECT id FROM governance_auditunsealed ORDER BY id LIMIT %s) AS queued
  JOIN governance_auditentry AS entry ON entry.id = queued.id
WHERE NOT EXISTS (SELECT 1 FROM governance_auditseal AS seal WHERE seal.entry_id = entry.id)
ORDER BY entry.id
"""
INSERT = """
INSERT INTO governance_auditseal (id, tenant_id, seq, entry_id, entry_hash, previous_hash, chain_hash)
SELECT id, %s, seq, entry_id, decode(entry_hash, 'hex'), decode(previous_hash, 'hex'), decode(chain_hash, 'hex')
FROM unnest(%s::uuid[], %s::bigint[], %s::uuid[], %s::text[], %s::text[], %s::text[])
  AS seal (id, seq, entry_id, entry_hash, previous_hash, chain_hash)
"""
DONE = """
DELETE FROM governance_auditunsealed AS queued
WHERE queued.id IN (SELECT id FROM governance_auditunsealed ORDER BY id LIMIT %s)
  AND EXISTS (SELECT 1 FROM governance_auditseal AS seal WHERE seal.entry_id = queued.id)
"""
SEALED_BEFORE = "SELECT coalesce(min(created_at), transaction_timestamp()) FROM governance_auditunsealed"


def find_tenants_with_unsealed() -> list[UUID]:
    """Return up to 1,000 tenants that have unsealed entries."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id FROM governance_audit_unsealed(%s)", [1000])
        return [row[0] for row in cursor.fetchall()]


def entries_seal(tenant_id: UUID, *, batch: int = BATCH) -> int:
    """Seal up to `batch` entries in one transaction and return their number. Waits while another process seals."""
    with tenant_transaction(tenant_id):
        chain_lock(tenant_id)
        with connection.cursor() as cursor:
            cursor.execute(IN_UTC)
            cursor.execute(UNSEALED, [batch])
            entries = [(row[0], row[1].encode()) for row in cursor.fetchall()]
            if entries:
                cursor.execute(LAST)
                seq, previous = cursor.fetchone() or (0, GENESIS.decode())
                cursor.execute(INSERT, [tenant_id, *_compute_seals(entries, seq, previous.encode())])
            cursor.execute(DONE, [batch])
    return len(entries)


def chain_lock(tenant_id: UUID) -> None:
    """Lock the tenant's chain until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [f"audit chain {tenant_id}"])


def find_sealed_time() -> datetime:
    """Return the time before which all committed entries of the transaction's tenant are sealed."""
    with connection.cursor() as cursor:
        cursor.execute(SEALED_BEFORE)
        moment: datetime = cursor.fetchone()[0]
    return moment


def _compute_seals(entries: list[tuple[UUID, bytes]], seq: int, previous: bytes) -> list[list[object]]:
    """Return the columns of the seals of `entries`. The last seal before them has number `seq` and hash `previous`."""
    rows = []
    for entry_id, line in entries:
        seq += 1
        sealed = entry_hash(line)
        chained = chain_hash(seq, str(entry_id).encode(), sealed, previous)
        rows.append((uuid7(), seq, entry_id, sealed.decode(), previous.decode(), chained.decode()))
        previous = chained
    return [list(column) for column in zip(*rows, strict=True)]

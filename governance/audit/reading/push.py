"""Forwarding of the sealed audit log to its sinks, in the order of the seals, each entry at least once.

A sink's cursor moves only after the receiver has accepted the entries; after a failure it stays, and the pause grows.
While entries are sent, no transaction is open, and the sink is leased, so that no other process sends them.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.db.models import F
from django.db.models.functions import Least, Now

from governance.audit.lines import IN_UTC, LINE
from governance.audit.reading.sinks import secret_context
from governance.audit.reading.transports import Pushed, deliver
from governance.database import hold_free_lock, no_tenant, tenant_transaction
from governance.errors import KeyUnavailable
from governance.keys.services import open_sealed
from governance.models import AuditSink
from governance.outbound import Refused, Undelivered
from governance.vocabulary import SinkKind

BATCH = 500
BATCHES_AT_ONCE = 20  # then the next sink has its turn
PASSES = 2  # that deliver at once: a slow sink holds one of them for as long as an exchange may last
SECONDS_OF_TENANT = 20.0  # of one pass
LEASE = timedelta(seconds=60)  # longer than one batch can take
LONGEST_PAUSE = timedelta(minutes=10)
ROWS = f"""
SELECT seal.seq, encode(seal.chain_hash, 'hex'), (entry.at AT TIME ZONE 'UTC')::text,
  CASE WHEN entry.id IS NOT NULL THEN {LINE} END
FROM governance_auditseal AS seal
  LEFT JOIN governance_auditentry AS entry ON entry.tenant_id = seal.tenant_id AND entry.id = seal.entry_id
WHERE seal.seq > %s AND seal.seq <= %s ORDER BY seal.seq
"""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leased:
    """A sink that only this process delivers to, for the time of LEASE."""

    kind: SinkKind
    address: str
    after: int
    secret: bytes = field(repr=False)


def push_due() -> int:
    """Deliver waiting entries to the sinks, tenants in turn. Return the number of rows that were processed.

    At most PASSES calls run at once, for any number of workers. After SECONDS_OF_TENANT the next tenant is served.
    """
    with hold_free_lock([f"audit push/{number}" for number in range(PASSES)]) as held:
        if held is None:
            return 0
        with no_tenant(), connection.cursor() as cursor:
            cursor.execute("SELECT id, tenant_id FROM governance_audit_sinks_due(%s)", [1000])
            due: list[tuple[UUID, UUID]] = cursor.fetchall()
        return _push_due_sinks(due)


def _push_due_sinks(due: Sequence[tuple[UUID, UUID]]) -> int:
    taken = 0
    spent: defaultdict[UUID, float] = defaultdict(float)
    for sink_id, tenant_id in interleave_tenants(due):
        if spent[tenant_id] >= SECONDS_OF_TENANT:
            continue
        begun = time.monotonic()
        taken += _push(sink_id, tenant_id)
        spent[tenant_id] += time.monotonic() - begun
    return taken


def interleave_tenants(due: Sequence[tuple[UUID, UUID]]) -> list[tuple[UUID, UUID]]:
    """Return the first sink of each tenant, then the second of each, and so on."""
    before: defaultdict[UUID, int] = defaultdict(int)
    ranked = []
    for sink_id, tenant_id in due:
        ranked.append((before[tenant_id], sink_id, tenant_id))
        before[tenant_id] += 1
    return [(sink_id, tenant_id) for _, sink_id, tenant_id in sorted(ranked, key=lambda entry: entry[0])]


def _push(sink_id: UUID, tenant_id: UUID) -> int:
    taken = 0
    for _ in range(BATCHES_AT_ONCE):
        count = _push_batch(sink_id, tenant_id)
        taken += count
        if count < BATCH:
            break
    return taken


def _push_batch(sink_id: UUID, tenant_id: UUID) -> int:
    """Lease the sink, read, send, then move the cursor. Return the number of rows that were processed."""
    try:
        leased = _lease(sink_id, tenant_id)
        rows = _rows(tenant_id, leased.after) if leased else []
        if leased is None or not rows:
            return 0
        deliver(leased.kind, leased.address, leased.secret, rows)
    except (Refused, Undelivered, KeyUnavailable) as error:
        logger.warning("audit sink: tenant=%s sink=%s %s", tenant_id, sink_id, type(error).__name__)
        _pause(sink_id, tenant_id, str(error))
        return 0
    _advance_cursor(sink_id, tenant_id, leased.after, rows[-1].seq)
    return len(rows)


def _lease(sink_id: UUID, tenant_id: UUID) -> Leased | None:
    """Lease the sink; None if another process holds it or it was removed. Raises KeyUnavailable."""
    with tenant_transaction(tenant_id):
        due = AuditSink.objects.filter(id=sink_id, removed_at=None, next_at__lte=Now())
        sink = due.select_for_update(skip_locked=True).first()
        if sink is None:
            return None
        AuditSink.objects.filter(id=sink_id).update(next_at=Now() + LEASE)
        secret = sink.sealed_secret and open_sealed(
            tenant_id=tenant_id, place=secret_context(sink_id), blob=bytes(sink.sealed_secret)
        )
    return Leased(SinkKind(sink.kind), sink.address, sink.delivered_seq, secret or b"")


def _rows(tenant_id: UUID, after: int) -> list[Pushed]:
    with tenant_transaction(tenant_id), connection.cursor() as cursor:
        cursor.execute(IN_UTC)
        cursor.execute(ROWS, [after, after + BATCH])
        return [
            Pushed(seq, chain, f"{at.replace(' ', 'T')}Z" if at else "-", line or "null")
            for seq, chain, at, line in cursor.fetchall()
        ]


def _advance_cursor(sink_id: UUID, tenant_id: UUID, before: int, seq: int) -> None:
    with tenant_transaction(tenant_id):
        AuditSink.objects.filter(id=sink_id, delivered_seq=before).update(
            delivered_seq=seq, delivered_at=Now(), next_at=Now(), failures=0, last_error=""
        )


def _pause(sink_id: UUID, tenant_id: UUID, error: str) -> None:
    """Pause the sink for 2 s, 4 s, 8 s … up to LONGEST_PAUSE. Retries never stop, since no audit entry may be lost."""
    with tenant_transaction(tenant_id):
        sink = AuditSink.objects.filter(id=sink_id)
        failures = sink.values_list("failures", flat=True).first() or 0
        pause = min(timedelta(seconds=2 ** min(failures + 1, 12)), LONGEST_PAUSE)
        sink.update(failures=Least(F("failures") + 1, 1_000_000), last_error=error[:300], next_at=Now() + pause)

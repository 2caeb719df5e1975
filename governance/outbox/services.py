"""The transactional outbox: a write leaves its work here; a dispatcher hands it to Celery; the task ends it.

Redis is never the record: an event that was handed out and not done within its lease is handed out again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Greatest, Now
from psycopg.types.json import Jsonb

from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.authz.services import authorize
from governance.database import acting, no_tenant, tenant_transaction
from governance.ids import uuid7
from governance.models import OutboxEvent
from governance.prepared import prepared_cursor
from governance.vocabulary import Permission, Topic, Verb

CHANNEL = "memos_outbox"
EMIT = "INSERT INTO governance_outboxevent (id, tenant_id, topic, payload, request_id) VALUES (%s, %s, %s, %s, %s)"
EMIT_AND_WAKE = f"WITH event AS ({EMIT}) SELECT pg_notify('{CHANNEL}', '')"
EMIT_LATER = """
INSERT INTO governance_outboxevent (id, tenant_id, topic, payload, request_id, available_at)
VALUES (%s, %s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))
"""
# Gathered until the dispatcher looks anyway: nobody waits for a count.
UNHURRIED = frozenset({Topic.CUBES_READ, Topic.WORDS_DUE, Topic.WORDS_PLACED})
CLAIM_LIMIT = 200
MAX_ATTEMPTS = 12
LONGEST_DELAY = timedelta(minutes=5)
logger = logging.getLogger(__name__)

Payload = Mapping[str, object]
Write = Callable[[], None]
Handler = Callable[[Actor, Sequence[Payload]], Write]
"""Does the slow and outside work of some events; returns what to write, in one transaction, if they are still open."""


@dataclass(frozen=True)
class Claimed:
    """An event handed out under a lease: ids and topic, nothing else crosses tenants."""

    id: UUID
    tenant_id: UUID
    topic: Topic
    attempts: int


def emit(*, actor: Actor, topic: Topic, payload: Payload) -> None:
    """Leave work in the caller's transaction. `payload` holds ids and numbers only, never content."""
    with prepared_cursor() as cursor:
        cursor.execute(EMIT if topic in UNHURRIED else EMIT_AND_WAKE, _event_row(actor, topic, payload))


def emit_later(*, actor: Actor, topic: Topic, payload: Payload, seconds: float) -> None:
    """`emit` what is not to be done before `seconds` have passed; nobody is woken for it."""
    with prepared_cursor() as cursor:
        cursor.execute(EMIT_LATER, [*_event_row(actor, topic, payload), seconds])


def is_asked(*, actor: Actor, topic: Topic, seconds: float) -> bool:
    """Whether the tenant's open work has some of this topic that was handed out, or is to be within `seconds`."""
    soon = Q(attempts__gt=0) | Q(available_at__lte=Now() + timedelta(seconds=seconds))
    waiting = OutboxEvent.objects.filter(soon, tenant_id=actor.tenant_id, topic=topic)
    return waiting.filter(done_at=None, parked_at=None).exists()


def record_read(*, actor: Actor, verb: Verb, object_ids: Sequence[UUID], version: int | None) -> None:
    """Memories were read: `record` it, and `emit` that they are to be counted, in one statement.

    Raises AuditUnavailable where either cannot be written.
    """
    event = _event_row(actor, Topic.CUBES_READ, {"ids": [str(one) for one in object_ids]})
    record(actor=actor, verb=verb, object_type="memory", object_ids=object_ids, version=version, beside=(EMIT, event))


def _event_row(actor: Actor, topic: Topic, payload: Payload) -> list[Any]:
    return [uuid7(), actor.tenant_id, topic, Jsonb(dict(payload)), actor.request_id]


def events_claim(*, limit: int = CLAIM_LIMIT) -> list[Claimed]:
    """Take up to `limit` due events of all tenants, oldest first, each for one lease; other dispatchers skip them."""
    lease = timedelta(seconds=settings.OUTBOX_LEASE_SECONDS)
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, tenant_id, topic, attempts FROM governance_outbox_claim(%s, make_interval(secs => %s))",
            [limit, lease.total_seconds()],
        )
        return [Claimed(id=row[0], tenant_id=row[1], topic=Topic(row[2]), attempts=row[3]) for row in cursor.fetchall()]


def events_release(*, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
    """Give a claim back: the broker did not take it, so it was no attempt."""
    with tenant_transaction(tenant_id):
        OutboxEvent.objects.filter(id__in=event_ids, done_at=None).update(
            available_at=Now() + timedelta(seconds=1), attempts=Greatest(F("attempts") - 1, 0)
        )


def events_resume(*, actor: Actor) -> int:
    """Take the tenant's parked work up again, from its first attempt; returns how much there was.

    Raises Forbidden. Writes: OutboxEvent …, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        parked = OutboxEvent.objects.filter(parked_at__isnull=False, done_at=None)
        resumed = parked.update(parked_at=None, attempts=0, available_at=Now())
        record(
            actor=actor,
            verb=Verb.WORK_RESUMED,
            object_type="tenant",
            object_ids=[actor.tenant_id],
            detail={"events": resumed},
        )
    return resumed


def events_run(*, tenant_id: UUID, event_ids: Sequence[UUID], handler: Handler) -> int:
    """Run `handler` for the events that are not done, and end them in the transaction of what it writes.

    Safe to run twice at once: one of them ends the events, the other leaves no trace. Returns how many ended.
    A failure is counted, and the events come back after a growing pause; after MAX_ATTEMPTS they are parked and shown.
    """
    with tenant_transaction(tenant_id):
        open_events = list(OutboxEvent.objects.filter(id__in=event_ids, done_at=None, parked_at=None))
    if not open_events:
        return 0
    causes = tuple(dict.fromkeys(event.request_id for event in open_events))
    actor = system_actor(tenant_id=tenant_id, request_id=f"job-{event_ids[0]}", causes=causes)
    try:
        write = handler(actor, [event.payload for event in open_events])
        return _finish(actor, [event.id for event in open_events], write)
    except Exception as error:  # noqa: BLE001 - the job runner: whatever a job dies of is counted and shown
        logger.warning("job failed: tenant=%s events=%d error=%s", tenant_id, len(open_events), type(error).__name__)
        _postpone(actor, open_events, f"{type(error).__name__}: {getattr(error, 'detail', '')}"[:300])
        return 0


def _finish(actor: Actor, event_ids: Sequence[UUID], write: Write) -> int:
    with acting(actor):
        locked = OutboxEvent.objects.select_for_update(skip_locked=True).filter(id__in=event_ids, done_at=None)
        still_open = [event.id for event in locked.order_by("id")]
        if len(still_open) != len(event_ids):
            return 0  # another run has ended some of them, or is about to; the rest come again after their lease
        write()
        return OutboxEvent.objects.filter(id__in=still_open).update(done_at=Now(), last_error="")


def _postpone(actor: Actor, events: Sequence[OutboxEvent], error: str) -> None:
    with acting(actor):
        free = OutboxEvent.objects.select_for_update(skip_locked=True).filter(done_at=None)
        for event in free.filter(id__in=[event.id for event in events]):
            delay = min(timedelta(seconds=2 ** min(event.attempts, MAX_ATTEMPTS)), LONGEST_DELAY)
            changes = {"last_error": error, "available_at": Now() + delay}
            if event.attempts >= MAX_ATTEMPTS:
                changes["parked_at"] = Now()
            OutboxEvent.objects.filter(id=event.id).update(**changes)

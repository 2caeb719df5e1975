"""The transactional outbox: a write stores events, a dispatcher sends them to Celery, and a task marks them done.

Redis never holds the only copy. An event that is not done within its lease is sent again.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.ids import uuid7
from governance.models import OutboxEvent
from governance.outbox.routes import Payload, all_routes
from governance.prepared import prepared_cursor
from governance.vocabulary import Permission, Topic, Verb

CHANNEL = "memos_outbox"
EMIT = "INSERT INTO governance_outboxevent (id, tenant_id, topic, payload, request_id) VALUES (%s, %s, %s, %s, %s)"
EMIT_AND_WAKE = f"WITH event AS ({EMIT}) SELECT pg_notify('{CHANNEL}', '')"
# It counts as waiting from the time on for which it is planned.
EMIT_LATER = """
INSERT INTO governance_outboxevent (id, tenant_id, topic, payload, request_id, available_at, created_at)
SELECT %s, %s, %s, %s, %s, planned.at, planned.at
FROM (SELECT clock_timestamp() + make_interval(secs => %s)) AS planned (at)
"""
# Collected until the dispatcher's next poll: nobody waits for a count.
UNHURRIED = frozenset({Topic.CUBES_READ, Topic.STORE_READ})


def emit(*, actor: Actor, topic: str, payload: Payload, identity: UUID | None = None) -> None:
    """Store an event in the caller's transaction. `payload` holds ids and numbers, and content only as it is sealed."""
    with prepared_cursor() as cursor:
        cursor.execute(EMIT if topic in UNHURRIED else EMIT_AND_WAKE, _event_row(actor, topic, payload, identity))


def emit_later(*, actor: Actor, topic: Topic, payload: Payload, seconds: float) -> None:
    """Store an event that is due after `seconds`, without waking the dispatcher."""
    with prepared_cursor() as cursor:
        cursor.execute(EMIT_LATER, [*_event_row(actor, topic, payload), seconds])


def is_asked(*, actor: Actor, topic: Topic, seconds: float) -> bool:
    """Return whether the tenant has an open event of this topic that was sent, or is due within `seconds`."""
    soon = Q(attempts__gt=0) | Q(lease__isnull=False) | Q(available_at__lte=Now() + timedelta(seconds=seconds))
    waiting = OutboxEvent.objects.filter(soon, tenant_id=actor.tenant_id, topic=topic)
    return waiting.filter(done_at=None, parked_at=None).exists()


def record_read(
    *, actor: Actor, verb: Verb, object_ids: Sequence[UUID], version: int | None, more: Payload | None = None
) -> None:
    """Record that memories were read, and emit the event that counts the reads, in one statement.

    more: further values of the event: numbers, never content.

    Raises AuditUnavailable if either cannot be written.
    """
    event = _event_row(actor, Topic.CUBES_READ, {"ids": [str(object_id) for object_id in object_ids], **(more or {})})
    record(actor=actor, verb=verb, object_type="memory", object_ids=object_ids, version=version, beside=(EMIT, event))


def events_resume(*, actor: Actor) -> int:
    """Retry the tenant's dead letters from their first attempt, and return their number.

    Raises Forbidden. Writes: OutboxEvent …, Job …, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        letters = OutboxEvent.objects.filter(tenant_id=actor.tenant_id, parked_at__isnull=False, done_at=None)
        by_topic: dict[str, list[UUID]] = defaultdict(list)
        for event_id, topic in letters.select_for_update().values_list("id", "topic"):
            by_topic[topic].append(event_id)
        for route in all_routes():
            if route.resumed and route.topic in by_topic:
                route.resumed(by_topic[route.topic])
        resumed = letters.update(parked_at=None, lease=None, attempts=0, available_at=Now())
        record(
            actor=actor,
            verb=Verb.WORK_RESUMED,
            object_type="tenant",
            object_ids=[actor.tenant_id],
            detail={"events": resumed},
        )
    return resumed


def _event_row(actor: Actor, topic: str, payload: Payload, event_id: UUID | None = None) -> list[Any]:
    return [event_id or uuid7(), actor.tenant_id, topic, Jsonb(dict(payload)), actor.request_id]

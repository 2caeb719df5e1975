"""Claims: due events become tasks under a lease, round-robin between tenants (docs/decisions/0030)."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.actor import Actor
from governance.database import no_tenant, tenant_transaction
from governance.ids import uuid7
from governance.models import OutboxEvent
from governance.outbox.routes import Task, all_routes, routes_of
from governance.outbox.workers import workers_of
from governance.vocabulary import Weight

CLAIM = """
SELECT lease, id, tenant_id, topic, attempts
FROM governance_outbox_claim(%s::text[], %s::integer[], %s, %s, make_interval(secs => %s))
"""
PARK_UNROUTED = "SELECT governance_outbox_park_unrouted(%s::text[])"


def tasks_claim(weight: Weight) -> list[Task]:
    """Lease due events of one weight, from each tenant in turn, until the slots of all its workers are used.

    Two dispatchers never get the same event. Writes: OutboxEvent ….
    """
    slots, tenant_slots = settings.JOB_SLOTS[weight]
    workers, routes = workers_of(weight), routes_of(weight)
    topics, batches = [route.topic for route in routes], [route.batch for route in routes]
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(CLAIM, [topics, batches, slots * workers, tenant_slots, settings.OUTBOX_LEASE_SECONDS])
        return _tasks(cursor.fetchall())


def event_claim(*, actor: Actor, topic: str, event_id: UUID, lease_time: timedelta) -> Task:
    """Lease an event that the caller's transaction wrote: the caller runs the task itself, and no worker does
    meanwhile.

    Writes: OutboxEvent.
    """
    task = Task(actor.tenant_id, topic, uuid7(), (event_id,))
    OutboxEvent.objects.filter(id=event_id).update(lease=task.lease, available_at=Now() + lease_time)
    return task


def task_release(task: Task) -> None:
    """Release the claim of a task that the broker refused."""
    with tenant_transaction(task.tenant_id):
        OutboxEvent.objects.filter(lease=task.lease, done_at=None).update(lease=None, available_at=Now())


def park_unrouted() -> int:
    """Make open events without a handler dead letters, for all tenants, and return their number."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(PARK_UNROUTED, [[route.topic for route in all_routes()]])
        parked: int = cursor.fetchone()[0]
    return parked


def _tasks(rows: Sequence[tuple[UUID, UUID, UUID, str, int]]) -> list[Task]:
    grouped: dict[tuple[UUID, UUID, str], list[tuple[UUID, int]]] = defaultdict(list)
    for lease, event_id, tenant_id, topic, attempts in rows:
        grouped[(lease, tenant_id, topic)].append((event_id, attempts))
    return [
        Task(
            tenant_id,
            topic,
            lease,
            tuple(sorted(event_id for event_id, _ in events)),
            max(tried for _, tried in events),
        )
        for (lease, tenant_id, topic), events in grouped.items()
    ]

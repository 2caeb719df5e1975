"""The health of the outbox across tenants: counts and ages only."""

from dataclasses import dataclass

from django.db import connection

from governance.database import no_tenant
from governance.outbox.routes import find_weight
from governance.vocabulary import Weight


@dataclass(frozen=True)
class OutboxHealth:
    """oldest_due_seconds: the age of the oldest due event, 0 without one; parked: dead letters."""

    due: int
    oldest_due_seconds: float
    parked: int


@dataclass(frozen=True)
class QueueHealth:
    """The open events of a queue, of all tenants. oldest_seconds: the age of the oldest; waiting_seconds: of the oldest
    that no worker has taken; 0 without one.
    """

    due: int = 0
    oldest_seconds: float = 0.0
    waiting_seconds: float = 0.0


def queue_healths() -> dict[Weight, QueueHealth]:
    """Return the state of each queue."""
    found = dict.fromkeys(Weight, QueueHealth())
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT topic, due, oldest_seconds, waiting_seconds FROM governance_outbox_topics()")
        for topic, due, oldest, waiting in cursor.fetchall():
            weight = find_weight(topic)
            if weight is not None:  # work without a handler becomes a dead letter
                before = found[weight]
                found[weight] = QueueHealth(
                    before.due + due, max(before.oldest_seconds, oldest), max(before.waiting_seconds, waiting)
                )
    return found


def outbox_health() -> OutboxHealth:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT due, oldest_seconds, parked FROM governance_outbox_health()")
        due, oldest, parked = cursor.fetchone()
    return OutboxHealth(due=due, oldest_due_seconds=float(oldest), parked=parked)

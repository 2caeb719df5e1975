"""The health of the outbox across tenants: counts and ages only."""

from dataclasses import dataclass

from django.db import connection

from governance.database import no_tenant


@dataclass(frozen=True)
class OutboxHealth:
    """oldest_due_seconds: the age of the oldest due event, 0 without one; parked: dead letters."""

    due: int
    oldest_due_seconds: float
    parked: int


def outbox_health() -> OutboxHealth:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT due, oldest_seconds, parked FROM governance_outbox_health()")
        due, oldest, parked = cursor.fetchone()
    return OutboxHealth(due=due, oldest_due_seconds=float(oldest), parked=parked)

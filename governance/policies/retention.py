"""Requests for the retention job, when another policy sets the expiry of some memories."""

from uuid import UUID

from governance.actor import Actor
from governance.outbox.services import emit
from governance.policies.active import policies_active
from governance.vocabulary import Topic

FIRST = UUID(int=0)


def retention_request(actor: Actor) -> None:
    """Request the retention job in the caller's transaction, if a retention policy is in force.

    Call it after memories were moved or a hold on them has ended. Writes: OutboxEvent?.
    """
    if policies_active(actor).retention:
        emit_retention_change(actor)


def emit_retention_change(actor: Actor) -> None:
    """Emit the event that makes jobs apply changed retention. Writes: OutboxEvent."""
    emit(actor=actor, topic=Topic.RETENTION_CHANGED, payload={"after": str(FIRST)})

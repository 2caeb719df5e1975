"""Asking the worker to look through the memories of a tenant for whose end another policy now stands."""

from uuid import UUID

from governance.actor import Actor
from governance.outbox.services import emit
from governance.policies.active import policies_active
from governance.vocabulary import Topic

FIRST = UUID(int=0)


def retention_request(actor: Actor) -> None:
    """Ask for the job of retention if a policy is in force: in the caller's transaction, for memories that it released.
    Writes: OutboxEvent?.
    """
    if policies_active(actor).retention:
        retention_changed(actor)


def retention_changed(actor: Actor) -> None:
    """Writes: OutboxEvent."""
    emit(actor=actor, topic=Topic.RETENTION_CHANGED, payload={"after": str(FIRST)})

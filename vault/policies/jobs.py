"""What follows a change of retention, from the outbox: memory that was there before it, step by step."""

from collections.abc import Sequence
from uuid import UUID

from governance.actor import Actor
from governance.outbox.services import Payload, Write, emit
from governance.vocabulary import Topic
from vault.cubes.following import cubes_follow


def retention_apply(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """One step of a chain. It commits with the event of the next, so that a killed worker loses one step's work.

    Several chains become one, from the farthest back; each step goes by the policies of its own time.
    """
    after = min(UUID(str(payload["after"])) for payload in payloads)

    def write() -> None:
        step = cubes_follow(actor=actor, after=after)
        if step.after is not None:
            emit(actor=actor, topic=Topic.RETENTION_CHANGED, payload={"after": str(step.after)})

    return write

"""Exports that an event starts: a pack is ready, a namespace was moved or restored."""

from collections.abc import Sequence

from governance.actor import Actor
from governance.jobs.schedules import schedules_start_on
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Topic


def exports_start(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Start the scheduled exports that wait for these events, each once. Writes: Job …, Schedule …, AuditEntry …."""
    events = {str(payload["event"]) for payload in payloads}

    def write() -> None:
        schedules_start_on(actor=actor, kind=Topic.MEMORIES_EXPORT, events=events)

    return write

"""Exports and pipelines that an event starts: an import has ended, a pack is ready, a namespace was moved."""

from collections.abc import Sequence

from governance.actor import Actor
from governance.jobs.schedules import schedules_start_on
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Topic


def exports_start(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Start the scheduled exports and pipelines that wait for these events, each once.

    Writes: Job …, Schedule …, AuditEntry ….
    """
    events = {str(payload["event"]) for payload in payloads}

    def write() -> None:
        for kind in (Topic.MEMORIES_EXPORT, Topic.PIPELINE_RUN):
            schedules_start_on(actor=actor, kind=kind, events=events)

    return write

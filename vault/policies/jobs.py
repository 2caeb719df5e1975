"""The retention job: applies changed retention policies to stored memories, step by step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.jobs.services import job_create, job_waits
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Permission, Topic
from vault.cubes.expiry import find_retention_changes, retention_apply_step

FIRST = UUID(int=0)
MOST_NAMED = 100  # ids in a preview


@dataclass(frozen=True)
class NoSettings:
    """A scheduled run of retention has no settings."""


def retention_start(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Request the job that applies the current policies, unless one is pending."""

    def write() -> None:
        if not job_waits(actor=actor, kind=Topic.RETENTION_APPLY):
            job_create(actor=actor, kind=Topic.RETENTION_APPLY)

    return write


def retention_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the memories whose expiry a run would set now. Raises Forbidden."""
    authorize(actor, Permission.POLICY_MANAGE)
    due = find_retention_changes(actor=actor)
    return Preview(len(due), tuple(due[:MOST_NAMED]))


@handler(Topic.RETENTION_APPLY, permission=Permission.POLICY_MANAGE, settings=NoSettings, preview=retention_preview)
def retention_apply(run: JobRun) -> Callable[[], Step]:
    """Apply the policies in force at the time of the step, as the system actor. done: changed memories."""

    def write() -> Step:
        step = retention_apply_step(actor=run.system, after=UUID(run.state.get("after", str(FIRST))))
        done = run.done + step.changed
        return Step(state={"after": str(step.after)} if step.after else None, done=done, result={"changed": done})

    return write

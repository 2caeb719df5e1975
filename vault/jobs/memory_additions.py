"""Memories that are stored by a job: `POST memories/?async=true`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.vocabulary import Permission, Topic
from vault.content.drafts import CubeDraft
from vault.cubes.writer.builder import texts_index
from vault.layers.services import memories_add as memories_add_now
from vault.reconciliation.services import relations_store, statements_relate
from vault.screening.screen import screen_drafts

DRAFTS: TypeAdapter[list[CubeDraft]] = TypeAdapter(list[CubeDraft])
PART = 100  # memories of one transaction
BATCH = 50  # jobs of one task: handing a task out costs more than a small addition


@dataclass(frozen=True)
class ScreenedDrafts:
    """Drafts after the policies for personal data: what is redacted is not kept for the job either."""

    drafts: tuple[CubeDraft, ...] = field(repr=False)


def drafts_screen(*, actor: Actor, drafts: Sequence[CubeDraft]) -> ScreenedDrafts:
    """Screen drafts before the transaction that asks for their job. Raises Forbidden; Invalid; PiiUnavailable."""
    authorize(actor, Permission.MEMORY_CREATE)
    return ScreenedDrafts(tuple(screen_drafts(actor=actor, drafts=drafts)))


def memories_add_later(*, actor: Actor, screened: ScreenedDrafts) -> JobView:
    """Ask for a job that stores the drafts.

    Raises Forbidden; KeyUnavailable. Writes: Job, AuditEntry, OutboxEvent.
    """
    drafts = screened.drafts
    request = DRAFTS.dump_json(list(drafts))
    return job_create(actor=actor, kind=Topic.MEMORIES_ADD, request=request, total=len(drafts))


@handler(Topic.MEMORIES_ADD, permission=Permission.MEMORY_CREATE, batch=BATCH, most_open=5_000)
def memories_add(run: JobRun) -> Callable[[], Step]:
    """Store the next PART memories; a job that fails keeps the parts before. done: memories looked at.

    Raises Conflict once the request was erased. Writes what `memories_add` writes.
    """
    if run.request is None:
        raise Conflict("The memories of this job were erased.")
    drafts = DRAFTS.validate_json(run.request)
    part = drafts[run.done : run.done + PART]
    reconciled = statements_relate(actor=run.actor, drafts=part)
    texts = texts_index(run.actor.tenant_id, reconciled.drafts)

    def write() -> Step:
        added = memories_add_now(actor=run.actor, drafts=reconciled.drafts, texts=texts)
        relations_store(actor=run.actor, added=added, relations=reconciled.relations)
        kept = [memory for memory in added if not memory.cube.is_dialogue_only]
        done = run.done + len(part)
        result = {
            "memory_ids": [*run.result.get("memory_ids", ()), *(str(memory.cube.id) for memory in kept)],
            "duplicates": run.result.get("duplicates", 0) + sum(memory.duplicate for memory in added),
        }
        return Step(state={} if done < len(drafts) else None, done=done, result=result)

    return write

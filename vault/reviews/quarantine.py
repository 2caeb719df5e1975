"""Quarantine of memories: texts with orders to a language model, or all memories of a writer. A person decides on each.

A text from an API key, a tool or an import is quarantined if it gives orders (vault/screening/commands.py). A
quarantined memory, and memories derived from it, can be read only in the inbox.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Forbidden, NotFound
from governance.idempotency.services import replies_forget
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.object_names import names_find
from governance.vocabulary import Permission, Topic, Verb, Weight
from vault.cubes.eligibility import index_cubes
from vault.cubes.lookup import cube_target
from vault.cubes.services import emit_cubes_written
from vault.models import Cube, CubeVersion, Review
from vault.models.cube import CubeQuerySet
from vault.reviews.withdrawals import UNDECIDED
from vault.screening.findings import quarantine_ask
from vault.vocabulary import ReviewKind, Source

SHOWN = 100  # memories that a dry run names
HIDDEN, ASKED = 1_000, 500  # memories of one step
FIRST = UUID(int=0)


@dataclass(frozen=True)
class WriterMemories:
    """The memories of a writer that would be quarantined. count: their number; ids: the first SHOWN; held: number of
    held ones."""

    count: int
    ids: tuple[UUID, ...]
    held: int


def quarantine_release(*, actor: Actor, review: Review, cube: Cube) -> None:
    """End the quarantine of a memory, so that it and memories derived from it can be read. Use inside `acting`.

    Raises Forbidden for the key that wrote it. Writes: Cube, Posting …, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    if review.version.principal_id == actor.principal_id:
        detail = "Whoever stored this memory may not accept it. Ask another person, or sign in and decide in the inbox."
        raise Forbidden(detail, permission=Permission.MEMORY_UPDATE, rule="separation")
    Cube.objects.filter(id=cube.id).update(is_quarantined=False)
    cube.is_quarantined = False
    index_cubes([cube])
    emit_cubes_written(actor, [cube])


def quarantine_return(*, actor: Actor, cube: Cube) -> None:
    """Put a memory that was released back into the quarantine. Use inside `acting`.

    Raises Forbidden. Writes: Cube, AuditEntry; deletes Posting ….
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    Cube.objects.filter(id=cube.id).update(is_quarantined=True)
    cube.is_quarantined = True
    index_cubes([cube])
    replies_forget(actor=actor, object_ids=[cube.id])
    record(actor=actor, verb=Verb.MEMORY_QUARANTINED, object_type="memory", object_ids=[cube.id])


def writer_memories(*, actor: Actor, writer_id: UUID) -> WriterMemories:
    """Return the memories of a writer that `writer_quarantine` would quarantine. Raises NotFound; Forbidden."""
    authorize(actor, Permission.APIKEY_MANAGE, Target("principal", writer_id, actor.tenant_id))
    with acting(actor):
        _refuse_unknown(actor, writer_id)
        rows = _written_by(actor, writer_id).filter(is_quarantined=False)
        free = rows.free()
        return WriterMemories(
            free.count(), tuple(free.values_list("id", flat=True)[:SHOWN]), rows.count() - free.count()
        )


def writer_quarantine(*, actor: Actor, writer_id: UUID) -> JobView:
    """Create the job that quarantines all memories of a member or an API key.

    Raises NotFound if no member or key has this id; Forbidden. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.APIKEY_MANAGE, Target("principal", writer_id, actor.tenant_id))
    with acting(actor):
        _refuse_unknown(actor, writer_id)
        return job_create(actor=actor, kind=Topic.WRITER_QUARANTINE, settings={"writer": str(writer_id)})


@handler(Topic.WRITER_QUARANTINE, permission=Permission.APIKEY_MANAGE, weight=Weight.INTERACTIVE)
def writers_quarantine(run: JobRun) -> Callable[[], Step]:
    """Quarantine all memories of a writer. done: memories hidden. Held memories are skipped and counted.

    First all memories are hidden from readers, then each gets a review and leaves the index.
    Writes: Cube …, Review …, AuditEntry; deletes IdempotencyKey …, Posting …, Embedding ….
    """
    writer_id = UUID(run.settings["writer"])

    def write() -> Step:
        if "after" in run.state:
            return _ask_part(run, writer_id, UUID(run.state["after"]))
        return _hide_part(run, writer_id)

    return write


def _refuse_unknown(actor: Actor, writer_id: UUID) -> None:
    """Raise NotFound unless a member or an API key of the tenant has this id."""
    if not {name.kind for name in names_find(actor.tenant_id, {writer_id}).values()} & {"member", "api_key"}:
        raise NotFound


def _hide_part(run: JobRun, writer_id: UUID) -> Step:
    """Hide the next HIDDEN memories of the writer from all readers."""
    rows = _written_by(run.actor, writer_id).filter(is_quarantined=False)
    ids = list(rows.free().select_for_update(no_key=True).values_list("id", flat=True)[:HIDDEN])
    if ids:
        Cube.objects.filter(id__in=ids).update(is_quarantined=True)
        replies_forget(actor=run.actor, object_ids=ids)
        record(actor=run.actor, verb=Verb.MEMORY_QUARANTINED, object_type="memory", object_ids=ids)
    done = run.done + len(ids)
    if len(ids) == HIDDEN:
        return Step(state={"hidden": done}, done=done, result={"quarantined": done})
    return Step(state={"after": str(FIRST)}, done=done, result={"quarantined": done, "held": rows.count()})


def _ask_part(run: JobRun, writer_id: UUID, after: UUID) -> Step:
    """Open a review for the next ASKED memories in quarantine, and remove them from the index."""
    rows = _written_by(run.actor, writer_id).filter(is_quarantined=True, id__gt=after)
    cubes = list(rows.select_related("namespace").select_for_update(of=("self",), no_key=True)[:ASKED])
    index_cubes(cubes)
    versions = CubeVersion.objects.filter(cube_id__in=[cube.id for cube in cubes], number=F("cube__version"))
    decided = Review.objects.filter(kind=ReviewKind.QUARANTINE, version__in=versions)
    asked = set(decided.values_list("version_id", flat=True))
    decided.update(**UNDECIDED)
    if unasked := [version for version in versions.defer("sealed") if version.id not in asked]:
        quarantine_ask(unasked)
    is_last = len(cubes) < ASKED
    return Step(
        state=None if is_last else {"after": str(cubes[-1].id)},
        done=run.done,
        total=run.done if is_last else None,
        result=dict(run.result),
    )


def _written_by(actor: Actor, writer_id: UUID) -> CubeQuerySet:
    """Return the memories with a version by this writer, except those of chats."""
    versions = CubeVersion.objects.filter(tenant_id=actor.tenant_id, principal_id=writer_id)
    rows = Cube.objects.filter(tenant_id=actor.tenant_id, id__in=versions.values("cube_id"))
    return rows.filter(deleted_at=None).exclude(source=Source.CHAT).order_by("id")

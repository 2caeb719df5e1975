"""Export of all memories about a data subject: a job lists them, and the file is written while it is downloaded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, NotFound
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import job_get
from governance.models import Job
from governance.privacy.services import subject_view
from governance.tenants.principals import actor_now
from governance.vocabulary import JobStatus, Permission, Topic, Verb
from vault.content.blobs import with_blobs
from vault.cubes.selectors import versions_view
from vault.cubes.versions import readable_versions
from vault.models import ActionItem, Cube, CubeLink, CubeOrigin, CubeSource, StateTransition, Turn
from vault.subjects.documents import FileForm, Heading, SubjectMemory, file_end, file_start, memory_block
from vault.subjects.rows import cubes_about, versions_about
from vault.subjects.selectors import subject_locate

PART = 100  # memories of one transaction


@dataclass(frozen=True)
class ExportFile:
    """The name of the file, and its content block by block."""

    name: str
    blocks: Iterator[bytes]


@handler(Topic.SUBJECT_EXPORT, permission=Permission.SUBJECT_MANAGE)
def subject_export_run(run: JobRun) -> Callable[[], Step]:
    """List the next PART memories of an export; their texts are not copied. Writes: ActionItem …."""
    return lambda: _note_part(run, UUID(run.settings["subject"]))


def export_open(*, actor: Actor, subject_id: UUID, job_id: UUID, form: FileForm) -> ExportFile:
    """Return the file of a finished export; each block has the memories that the actor may read when it is written.

    Raises NotFound; Forbidden, also at a block once the key, membership or role has ended; Conflict while the job runs,
    and once the subject is erased. Writes: AuditEntry …, for each block.
    """
    authorize(actor, Permission.SUBJECT_MANAGE)
    with acting(actor):
        subject = subject_locate(actor, subject_id)
        view = job_get(actor=actor, job_id=job_id)
        row = Job.objects.get(tenant_id=actor.tenant_id, id=job_id)
        if view.kind != Topic.SUBJECT_EXPORT or row.settings.get("subject") != str(subject_id):
            raise NotFound
        if view.status != JobStatus.SUCCEEDED:
            raise Conflict(f"The export is {view.status}.")
        if subject.erasing_since is not None:
            raise Conflict("This data subject was erased, or is being erased.")
        record(actor=actor, verb=Verb.SUBJECT_EXPORTED, object_type="subject", object_ids=[subject_id])
        heading = Heading(
            tenant_id=actor.tenant_id,
            subject_id=subject_id,
            reference=subject_view(subject).reference,
            at=database_now(),
            total=view.done,
        )
    return ExportFile(f"subject-{subject_id}.{form}", _write_blocks(actor, job_id, heading, form))


def _note_part(run: JobRun, subject_id: UUID) -> Step:
    authorize(run.actor, Permission.SUBJECT_MANAGE)
    rows = cubes_about(run.actor.tenant_id, subject_id)
    if "after" in run.state:
        rows = rows.filter(id__gt=UUID(run.state["after"]))
    part = list(rows.order_by("id").values_list("id", "version")[:PART])
    ActionItem.objects.bulk_create(
        ActionItem(tenant_id=run.actor.tenant_id, job_id=run.job_id, cube_id=cube_id, version=version)
        for cube_id, version in part
    )
    done = run.done + len(part)
    result = {"memories": done}
    if len(part) < PART:
        return Step(done=done, total=done, result=result)
    return Step(state={"after": str(part[-1][0])}, done=done, result=result)


def _write_blocks(actor: Actor, job_id: UUID, heading: Heading, form: FileForm) -> Iterator[bytes]:
    yield file_start(heading, form)
    last: UUID | None = None
    written = withheld = 0
    while True:
        actor = actor_now(actor)  # a download may take longer than the right to it lasts
        authorize(actor, Permission.SUBJECT_MANAGE)
        named, found = _read_part(actor, heading.subject_id, job_id, last)
        for memory in found:
            yield memory_block(memory, form, is_first=written == 0)
            written += 1
        withheld += len(named) - len(found)
        if len(named) < PART:
            break
        last = named[-1]
    yield file_end(form, withheld=withheld)


@with_blobs
def _read_part(
    actor: Actor, subject_id: UUID, job_id: UUID, last: UUID | None
) -> tuple[list[UUID], list[SubjectMemory]]:
    """Return the next PART memories that the job listed, and those that the actor may read. Writes: AuditEntry."""
    with acting(actor):
        items = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job_id).order_by("cube_id")
        items = items if last is None else items.filter(cube_id__gt=last)
        named = list(items.values_list("cube_id", flat=True)[:PART])
        return named, _read_memories(actor, subject_id, named)


def _read_memories(actor: Actor, subject_id: UUID, ids: list[UUID]) -> list[SubjectMemory]:
    """Return the memories that the actor may read, with their lineage.

    Deleted and expired ones are included; those whose source was withdrawn are not. Writes: AuditEntry.
    """
    rows = Cube.objects.in_reach_of(actor).resting_on(CubeOrigin.objects.filter(stands=True))
    cubes = list(rows.filter(id__in=ids).select_related("namespace").order_by("id"))
    readable = [cube.id for cube in cubes]
    about = versions_about(actor.tenant_id, subject_id).filter(
        cube_id__in=readable, id__in=readable_versions(actor).values("id")
    )
    views = versions_view(actor, list(about.select_related("namespace").order_by("cube_id", "number")), leaves=True)
    record(actor=actor, verb=Verb.MEMORY_EXPORTED, object_type="memory", object_ids=readable)
    links = list(CubeLink.objects.filter(Q(source_id__in=readable) | Q(target_id__in=readable)).order_by("id"))
    sources = list(CubeSource.objects.filter(Q(cube_id__in=readable) | Q(source_id__in=readable)).order_by("id"))
    steps = list(StateTransition.objects.filter(cube_id__in=readable).order_by("cube_id", "step"))
    used_in: dict[UUID, set[UUID]] = {}
    for source in sources:
        used_in.setdefault(source.source_id, set()).add(source.cube_id)
    said = {*readable, *(source.cube_id for source in sources)}
    turns = list(Turn.objects.filter(Q(question_id__in=said) | Q(answer_id__in=said)).order_by("id"))
    return [
        SubjectMemory(
            cube=cube,
            versions=tuple(view for view in views if view.row.cube_id == cube.id),
            links=tuple(link for link in links if cube.id in {link.source_id, link.target_id}),
            sources=tuple(source for source in sources if cube.id in {source.cube_id, source.source_id}),
            steps=tuple(step for step in steps if step.cube_id == cube.id),
            turns=tuple(
                turn
                for turn in turns
                if not {cube.id, *used_in.get(cube.id, ())}.isdisjoint({turn.question_id, turn.answer_id})
            ),
        )
        for cube in cubes
    ]

"""Selectors of data subjects for those who manage them: references, counts of memories, and erasures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound
from governance.jobs.selectors import JobView, job_view
from governance.models import DataSubject, Job
from governance.pages import Pages
from governance.privacy.services import reference_token, subject_view
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.holds import terms_open
from vault.models import Cube, Hold, HoldCube
from vault.models.cube import IS_HELD
from vault.subjects.rows import cubes_about, erasure_counts, subject_is_held
from vault.subjects.rules import ErasureCounts, subject_status
from vault.vocabulary import SubjectStatus

MOST_JOBS = 20  # of one subject's page
MOST_COUNTED = 2_000  # memories whose copies are counted before an erasure
MOST_HELD = 100  # memories that a page names
JOBS = (Topic.SUBJECT_EXPORT, Topic.SUBJECT_ERASE)


@dataclass(frozen=True)
class SubjectLine:
    """A data subject. reference: empty once erased. memories: the number about the person that are not deleted."""

    id: UUID
    reference: str = field(repr=False)
    status: SubjectStatus
    memories: int
    created_at: datetime
    erased_at: datetime | None
    receipts: tuple[dict[str, Any], ...] = field(repr=False, default=())


@dataclass(frozen=True)
class HeldMemory:
    """A memory that an erasure leaves, and the reasons of its holds."""

    memory_id: UUID
    path: str
    reasons: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class ErasurePreview:
    """The effect of an erasure now. is_capped: only the first MOST_COUNTED memories were counted.

    is_held: a legal hold covers the subject, so that no erasure is possible.
    """

    counts: ErasureCounts
    kept: tuple[HeldMemory, ...]
    is_held: bool
    is_capped: bool


def subjects_list(*, actor: Actor, pages: Pages, reference: str = "") -> list[SubjectLine]:
    """Return the subjects, newest first; with `reference` only that one. Raises Forbidden; KeyUnavailable. Writes:
    AuditEntry.
    """
    authorize(actor, Permission.SUBJECT_MANAGE)
    with acting(actor):
        rows = DataSubject.objects.filter(tenant_id=actor.tenant_id)
        if reference:
            rows = rows.filter(reference_token=reference_token(actor.tenant_id, reference))
        page = pages.take(rows.order_by("-id"))
        record(actor=actor, verb=Verb.SUBJECT_LISTED, object_type="subject", object_ids=[row.id for row in page])
        return _make_lines(page)


def subject_get(*, actor: Actor, subject_id: UUID) -> SubjectLine:
    """Return one subject. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        row = subject_locate(actor, subject_id)
        record(actor=actor, verb=Verb.SUBJECT_READ, object_type="subject", object_ids=[row.id])
        return _make_lines([row])[0]


def subject_jobs(*, actor: Actor, subject_id: UUID) -> list[JobView]:
    """Return the exports and erasures of a subject, newest first, up to MOST_JOBS. Raises NotFound; Forbidden."""
    with acting(actor):
        subject_locate(actor, subject_id)
        rows = Job.objects.filter(tenant_id=actor.tenant_id, kind__in=JOBS, settings__subject=str(subject_id))
        return [job_view(job) for job in rows.order_by("-id")[:MOST_JOBS]]


def erasure_preview(*, actor: Actor, subject_id: UUID) -> ErasurePreview:
    """Return the rows that an erasure would remove, and the memories that holds keep.

    Raises NotFound; Forbidden; KeyUnavailable. Writes nothing.
    """
    with acting(actor):
        subject_locate(actor, subject_id)
        rows = cubes_about(actor.tenant_id, subject_id)
        free = list(rows.free().order_by("id").values_list("id", flat=True)[: MOST_COUNTED + 1])
        kept = rows.filter(IS_HELD).select_related("namespace").order_by("id")[:MOST_HELD]
        return ErasurePreview(
            counts=erasure_counts(subject_id, free[:MOST_COUNTED]),
            kept=tuple(_held_memories(actor, list(kept))),
            is_held=subject_is_held(actor.tenant_id, subject_id),
            is_capped=len(free) > MOST_COUNTED,
        )


def subject_locate(actor: Actor, subject_id: UUID, *, lock: bool = False) -> DataSubject:
    """Return a subject of the actor's tenant. Raises NotFound; Forbidden."""
    rows = DataSubject.objects.filter(tenant_id=actor.tenant_id, id=subject_id)
    row = (rows.select_for_update() if lock else rows).first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.SUBJECT_MANAGE, Target("subject", row.id, row.tenant_id))
    return row


def _make_lines(rows: Sequence[DataSubject]) -> list[SubjectLine]:
    ids = [row.id for row in rows]
    about = Cube.objects.filter(subject_id__in=ids, deleted_at=None).values("subject_id").annotate(cubes=Count("id"))
    counted: Mapping[UUID, int] = dict(about.values_list("subject_id", "cubes"))
    return [_make_line(row, counted.get(row.id, 0)) for row in rows]


def _make_line(row: DataSubject, memories: int) -> SubjectLine:
    return SubjectLine(
        id=row.id,
        reference=subject_view(row).reference,
        status=subject_status(row.erasing_since, row.erased_at, len(row.receipts)),
        memories=memories,
        created_at=row.created_at,
        erased_at=row.erased_at,
        receipts=tuple(row.receipts),
    )


def _held_memories(actor: Actor, cubes: Sequence[Cube]) -> list[HeldMemory]:
    """Return held memories with the reasons of their holds and freezes, for those who manage holds."""
    covered = HoldCube.objects.filter(cube_id__in=[cube.id for cube in cubes])
    holds = {hold.id: hold for hold in Hold.objects.active().filter(id__in=covered.values("hold_id"))}
    reasons: dict[UUID, list[str]] = {cube.id: [] for cube in cubes}
    for cube_id, hold_id in covered.order_by("hold_id").values_list("cube_id", "hold_id"):
        if hold_id in holds:
            reasons[cube_id].append(terms_open(holds[hold_id]).reason)
    return [HeldMemory(cube.id, cube.namespace.path, tuple(reasons[cube.id])) for cube in cubes]

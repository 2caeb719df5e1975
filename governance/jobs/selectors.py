"""Selectors of jobs."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from governance.access.decisions.rules import Target, sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.ids import uuid7_floor
from governance.jobs.sealed_payloads import open_result
from governance.models import Job
from governance.pages import Pages
from governance.vocabulary import JobStatus, Permission


@dataclass(frozen=True)
class JobView:
    """A job. progress: 0..1. `result`: decrypted for those who may read the job; `error`: code, detail and errors, or
    None.
    """

    id: UUID
    kind: str
    status: JobStatus
    progress: float
    done: int
    total: int | None
    attempts: int
    dead_letter: bool
    undo_until: datetime | None
    result: Any = field(repr=False)
    error: dict[str, Any] | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


OPEN = frozenset({JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CANCELLING})


def jobs_list(
    *,
    actor: Actor,
    pages: Pages,
    kind: str | None = None,
    statuses: Collection[JobStatus] = (),
    dead_letters: bool = False,
) -> list[JobView]:
    """Return the actor's own jobs, or all jobs for those who govern, newest first. Raises Forbidden.

    statuses: empty means all. dead_letters: only jobs that failed in every attempt.
    """
    authorize(actor, Permission.JOB_READ)
    asked = {"kind": kind, "status__in": list(statuses), "dead_letter": dead_letters}
    with acting(actor):
        rows = jobs_readable(actor).filter(**{name: value for name, value in asked.items() if value})
        return [job_view(job) for job in pages.take(rows.order_by("-id"))]


def jobs_undoable(*, actor: Actor, most: int) -> list[JobView]:
    """Return the member's own jobs that can be undone now, newest first. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    if actor.member_id is None:
        return []
    with acting(actor):
        since = uuid7_floor(timezone.now() - timedelta(days=settings.DELETED_GRACE_DAYS))
        rows = _visible_to(actor).filter(member_id=actor.member_id, id__gte=since, undo_until__gt=Now())
        return [job_view(job) for job in rows.order_by("-id")[:most]]


def jobs_readable(actor: Actor) -> QuerySet[Job]:
    """Return the actor's own jobs, all jobs for those who govern; use inside `acting`. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    rows = _visible_to(actor)
    return rows if sees_private(actor) else rows.filter(Q(member_id=actor.member_id))


def job_get(*, actor: Actor, job_id: UUID) -> JobView:
    """Return one job. Raises NotFound; Forbidden (another requester's)."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        return job_view(job_locate(actor, job_id))


def job_locate(actor: Actor, job_id: UUID, *, lock: bool = False) -> Job:
    """Return the row of a job that the actor may read. Raises NotFound; Forbidden."""
    rows = _visible_to(actor).filter(id=job_id)
    job = (rows.select_for_update() if lock else rows).first()
    if job is None:
        raise NotFound
    target = Target("job", job.id, job.tenant_id, private_to=frozenset({job.member_id}))
    authorize(actor, Permission.JOB_READ, target)
    return job


def _visible_to(actor: Actor) -> QuerySet[Job]:
    """Return the jobs that the actor can see. A bound key sees only its own."""
    rows = Job.objects.filter(tenant_id=actor.tenant_id)
    return rows if actor.binding is None else rows.filter(principal_id=actor.principal_id)


def job_view(job: Job) -> JobView:
    """Return the view of a job, with its result decrypted. The caller has checked that the actor may read the job."""
    return JobView(
        id=job.id,
        kind=job.kind,
        status=JobStatus(job.status),
        progress=progress_of(job),
        done=job.done,
        total=job.total,
        attempts=job.attempts,
        dead_letter=job.dead_letter,
        undo_until=_time(job.undo_until),
        result=open_result(job),
        error=job.error,
        created_at=_time(job.created_at),
        started_at=_time(job.started_at),
        finished_at=_time(job.finished_at),
    )


def progress_of(job: Job) -> float:
    """Return the finished share, 0..1; 1 once the job has succeeded."""
    if job.status == JobStatus.SUCCEEDED:
        return 1.0
    return min(job.done / job.total, 1.0) if job.total else 0.0


def _time(value: object) -> datetime | None:
    """Return the time, or None if this transaction set it to the database's clock."""
    return value if isinstance(value, datetime) else None

"""How jobs fare."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.actor import Actor
from governance.authz.rules import Target, sees_private
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import NotFound
from governance.keys.services import open_sealed
from governance.vocabulary import Permission
from vault.models import Job
from vault.vocabulary import JobKind, JobStatus


@dataclass(frozen=True)
class JobView:
    """progress: 0..1. `result` is opened for those who may read the job; `error`: code, detail and errors, or None."""

    id: UUID
    kind: JobKind
    status: JobStatus
    progress: float
    result: Any = field(repr=False)
    error: dict[str, Any] | None
    created_at: datetime | None
    finished_at: datetime | None


def jobs_list(*, actor: Actor, paginate: Callable[[QuerySet[Job]], Sequence[Job]]) -> list[JobView]:
    """The actor's own jobs, all of them for those who govern; newest first. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        rows = _in_reach(actor).order_by("-id")
        page = paginate(rows if sees_private(actor) else rows.filter(Q(member_id=actor.member_id)))
        return [job_view(job) for job in page]


def job_get(*, actor: Actor, job_id: UUID) -> JobView:
    """Raises NotFound; Forbidden (somebody else's)."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        return job_view(job_locate(actor, job_id))


def job_locate(actor: Actor, job_id: UUID, *, lock: bool = False) -> Job:
    """The job's row, if it is the actor's. Raises NotFound; Forbidden."""
    rows = _in_reach(actor).filter(id=job_id)
    job = (rows.select_for_update() if lock else rows).first()
    if job is None:
        raise NotFound
    target = Target("job", job.id, job.tenant_id, private_to=frozenset({job.member_id}))
    authorize(actor, Permission.JOB_READ, target)
    return job


def _in_reach(actor: Actor) -> QuerySet[Job]:
    """A bound key knows of no job but its own."""
    rows = Job.objects.filter(tenant_id=actor.tenant_id)
    return rows if actor.binding is None else rows.filter(principal_id=actor.principal_id)


def job_view(job: Job) -> JobView:
    """Open the result of a job that its reader may read."""
    result = None
    if job.sealed_result:
        plaintext = open_sealed(tenant_id=job.tenant_id, place=b"job" + job.id.bytes, blob=bytes(job.sealed_result))
        result = json.loads(plaintext) if plaintext else None
    return JobView(
        id=job.id,
        kind=JobKind(job.kind),
        status=JobStatus(job.status),
        progress=job.progress,
        result=result,
        error=job.error,
        created_at=job.created_at if isinstance(job.created_at, datetime) else None,
        finished_at=job.finished_at,
    )

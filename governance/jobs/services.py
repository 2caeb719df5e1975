"""Requesting, cancelling, retrying and undoing jobs. A job runs step by step with the rights of its requester."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid, TooManyJobs
from governance.ids import uuid7
from governance.jobs.kinds import JobKind, find_kind, kind_of
from governance.jobs.sealed_payloads import seal_request
from governance.jobs.selectors import OPEN, JobView, job_locate, job_view, jobs_readable
from governance.jobs.steps import ENDED, job_cancel_now, jobs_reopen
from governance.models import Job, OutboxEvent
from governance.outbox.services import emit
from governance.vocabulary import JobStatus, Permission, Verb

MOST_CANCELLED = 1_000  # jobs in one call
ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def job_create(
    *,
    actor: Actor,
    kind: str,
    settings: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    request: bytes = b"",
    total: int | None = None,
) -> JobView:
    """Request a job. settings: ids, numbers and filters; state: where the first step begins; request: content, stored
    sealed.

    Raises Forbidden; KeyUnavailable; TooManyJobs. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, kind_of(kind).permission)
    context = asdict(actor.context) | {"causes": [actor.request_id]}
    job = Job(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        kind=kind,
        status=JobStatus.PENDING,
        total=total,
        member_id=actor.member_id,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        context={name: value for name, value in context.items() if name != "channel" and value},
        settings=dict(settings or {}),
        state=dict(state or {}),
    )
    job.sealed_request = seal_request(job, request) if request else b""
    with acting(actor):
        _refuse_too_many(actor, kind_of(kind))
        job.save(force_insert=True)
        record(actor=actor, verb=Verb.JOB_CREATED, object_type="job", object_ids=[job.id], detail={"kind": kind})
        emit(actor=actor, topic=kind, payload={"job": str(job.id)}, identity=job.id)
        return job_view(job)


def open_jobs(*, actor: Actor, kind: str) -> list[UUID]:
    """Return the ids of the tenant's unfinished jobs of a kind, oldest first. Raises Forbidden."""
    authorize(actor, kind_of(kind).permission)
    with acting(actor):
        rows = Job.objects.filter(tenant_id=actor.tenant_id, kind=kind).exclude(status__in=ENDED)
        return list(rows.order_by("id").values_list("id", flat=True))


def job_waits(*, actor: Actor, kind: str) -> bool:
    """Return whether a job of this kind is pending. Raises Forbidden."""
    authorize(actor, kind_of(kind).permission)
    with acting(actor):
        return Job.objects.filter(tenant_id=actor.tenant_id, kind=kind, status=JobStatus.PENDING).exists()


def job_retry(*, actor: Actor, job_id: UUID) -> JobView:
    """Retry a failed job from the step that failed.

    Raises NotFound; Forbidden; Conflict if it did not fail. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        job = job_locate(actor, job_id, lock=True)
        authorize(actor, _kind(job).permission)
        if job.status != JobStatus.FAILED and not _is_dead_letter(job):
            raise Conflict(f"The job is {job.status}; only a failed one can be run again.")
        jobs_reopen([job.id])
        _reopen_event(actor, job)
        return _record_change(actor, job, Verb.JOB_RETRIED)


def job_cancel(*, actor: Actor, job_id: UUID) -> JobView:
    """Cancel a job: at once if it is not running, otherwise before its current step is written.

    Raises NotFound; Forbidden; Conflict if it has ended. Writes: Job, OutboxEvent, AuditEntry ….
    """
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        job = job_locate(actor, job_id, lock=True)
        kind = find_kind(job.kind)
        authorize(actor, kind.permission if kind else Permission.OPERATIONS_MANAGE)
        if job.status in ENDED and not job.dead_letter:
            raise Conflict(f"The job is {job.status}; only an open one can be cancelled.")
        return _cancel(actor, kind, job)


def jobs_cancel(*, actor: Actor, kind: str) -> int:
    """Cancel the open jobs of a kind: the actor's own, and all of them for those who govern.

    Returns how many, MOST_CANCELLED at most. Raises Forbidden; Invalid where there is no such kind. Writes as
    `job_cancel`.
    """
    found = find_kind(kind)
    if found is None:
        raise Invalid(errors=[FieldError("kind", "no kind of jobs")])
    authorize(actor, found.permission)
    with acting(actor):
        rows = jobs_readable(actor).filter(kind=kind, status__in=(JobStatus.PENDING, JobStatus.RUNNING))
        jobs = list(rows.order_by("id").select_for_update()[:MOST_CANCELLED])
        for job in jobs:
            _cancel(actor, found, job)
    return len(jobs)


def _cancel(actor: Actor, kind: JobKind | None, job: Job) -> JobView:
    waiting = OutboxEvent.objects.filter(id=job.id, done_at=None, lease=None)
    if waiting.update(done_at=Now()) or job.status in ENDED:
        job_cancel_now(kind, actor, job)
    else:
        Job.objects.filter(id=job.id).update(status=JobStatus.CANCELLING)
    return _record_change(actor, job, Verb.JOB_CANCELLED)


def _refuse_too_many(actor: Actor, kind: JobKind) -> None:
    """Raise TooManyJobs; calls of one principal at once are counted one after another."""
    if actor.is_system:
        return
    with connection.cursor() as cursor:
        cursor.execute(ALONE, [f"{kind.name} {actor.principal_id}"])
    rows = Job.objects.filter(tenant_id=actor.tenant_id, kind=kind.name, principal_id=actor.principal_id)
    if rows.filter(status__in=OPEN).count() >= kind.most_open:
        raise TooManyJobs(f"{kind.most_open} jobs of this kind wait or run. Let some end, or cancel them.")


def job_undo(*, actor: Actor, job_id: UUID) -> JobView:
    """Request the job that undoes this one. A failed one is cancelled, and cannot be retried.

    Raises NotFound; Forbidden; Conflict if it can no longer be undone. Writes: Job …, AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        job = job_locate(actor, job_id, lock=True)
        kind = _kind(job)
        if kind.undo is None or job.status not in ENDED or not _is_in_time(job.undo_until):
            raise Conflict("The job cannot be undone, or not any more.")
        if job.status == JobStatus.FAILED:
            _cancel(actor, kind, job)
        Job.objects.filter(id=job.id).update(undo_until=None)
        record(actor=actor, verb=Verb.JOB_UNDONE, object_type="job", object_ids=[job.id])
        return job_create(actor=actor, kind=kind.undo, settings={"job": str(job.id)})


def _record_change(actor: Actor, job: Job, verb: Verb) -> JobView:
    record(actor=actor, verb=verb, object_type="job", object_ids=[job.id])
    job.refresh_from_db()
    return job_view(job)


def _is_dead_letter(job: Job) -> bool:
    return OutboxEvent.objects.filter(id=job.id, parked_at__isnull=False, done_at=None).exists()


def _reopen_event(actor: Actor, job: Job) -> None:
    """Make the job's event due again, or emit a new one if the event has been deleted."""
    fresh = {"done_at": None, "parked_at": None, "lease": None, "attempts": 0, "available_at": Now()}
    if not OutboxEvent.objects.filter(id=job.id).update(**fresh):
        emit(actor=actor, topic=job.kind, payload={"job": str(job.id)}, identity=job.id)


def _kind(job: Job) -> JobKind:
    """Return the kind of a job. Raises Conflict for a kind of an earlier release."""
    kind = find_kind(job.kind)
    if kind is None:
        raise Conflict("This release has no such kind of job.")
    return kind


def _is_in_time(until: datetime | None) -> bool:
    return until is not None and database_now() < until

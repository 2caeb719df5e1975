"""Running one step of a job: under the lease of its event, and recorded in the transaction of its writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from governance.actor import Actor, CallContext
from governance.audit.services import record, record_denial
from governance.database import acting
from governance.errors import DomainError, Forbidden, Unavailable
from governance.jobs.kinds import JobCancelled, JobKind, JobRun, Step, find_kind
from governance.jobs.sealed_payloads import open_request, open_result, seal_result
from governance.models import Job
from governance.outbox.routes import AGAIN, Route, Task, Write, add_route
from governance.outbox.runner import LeaseLost, lease_renew
from governance.tenants.principals import reload_actor
from governance.vocabulary import Channel, JobStatus, PrincipalKind, Verb, Weight

KEPT = timedelta(days=7)  # a failed job waits so long to be run again
ENDED = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})
MOST_PARKED_NAMED = 100
ITEMS_PARKED = "items_parked"
EXHAUSTED = "It was tried many times without success. Run it again once the cause is gone."


def route_for(kind: JobKind, *, weight: Weight, batch: int, limit: timedelta) -> None:
    """Register the route of a kind: its jobs run one by one, at most `batch` in a task."""

    def run(task: Task, system: Actor, payloads: Sequence[Mapping[str, object]]) -> Write:
        return step_run(kind, task, system, UUID(str(payloads[0]["job"])))

    add_route(
        Route(
            topic=kind.name,
            handler=run,
            weight=weight,
            batch=batch,
            is_serial=True,
            limit=limit,
            dead_letter=jobs_fail,
            resumed=jobs_reopen,
        )
    )


def step_run(kind: JobKind, task: Task, system: Actor, job_id: UUID) -> Write:
    """Run the job's next step outside any transaction, and return the function that writes its result.

    Raises Unavailable.
    """
    job = _start_job(system, task, job_id)
    if job is None:
        return lambda: None
    if job.status == JobStatus.CANCELLING:
        return lambda: _end_cancelled(kind, system, job_id)
    try:
        outcome = kind.handler(_prepare_run(job, task, system))
    except Unavailable:
        raise
    except JobCancelled:
        return lambda: _end_cancelled(kind, system, job_id)
    except DomainError as error:
        failure = error
        return lambda: _end_failed(system, job_id, failure)
    return lambda: _record_step(kind, system, job_id, outcome)


def jobs_fail(actor: Actor, job_ids: Sequence[UUID], reason: str) -> None:
    """Fail the jobs whose events became dead letters. Writes: Job …, AuditEntry …."""
    for job in Job.objects.select_for_update().filter(id__in=job_ids).exclude(status__in=ENDED):
        job.dead_letter = True
        code = "time_limit" if reason.startswith("TimeLimit") else "unavailable"
        _fail(job, {"code": code, "detail": EXHAUSTED})
        job_end(actor, job)


def jobs_reopen(job_ids: Sequence[UUID]) -> None:
    """Make failed jobs pending again, at the step that failed."""
    Job.objects.filter(id__in=job_ids).update(
        status=JobStatus.PENDING,
        dead_letter=False,
        error=None,
        finished_at=None,
        kept_until=None,
        undo_until=None,
        attempts=0,
    )


def job_end(actor: Actor, job: Job) -> None:
    """Save the job as ended. What it did can be undone, also if it failed or was cancelled. Writes: Job, AuditEntry."""
    job.finished_at = Now()
    kind = find_kind(job.kind)
    has_effect = job.status == JobStatus.SUCCEEDED or job.done
    job.undo_until = Now() + kind.undo_for if kind is not None and kind.undo and has_effect else None
    job.save()
    detail = {"kind": job.kind, "status": job.status}
    record(actor=actor, verb=Verb.JOB_FINISHED, object_type="job", object_ids=[job.id], detail=detail)


def requester_of(job: Job) -> Actor:
    """Return the requester of the job, with current rights. Raises Forbidden if none are left."""
    if job.principal_kind == PrincipalKind.SYSTEM:
        return _name_requester(job)
    return reload_actor(
        tenant_id=job.tenant_id,
        kind=PrincipalKind(job.principal_kind),
        principal_id=job.principal_id,
        request_id=f"job-{job.id}",
        context=_context(job),
    )


def _start_job(system: Actor, task: Task, job_id: UUID) -> Job | None:
    """Mark the job as running and return it, or None if it has ended. A cancelled job is not changed."""
    with acting(system):
        job = Job.objects.select_for_update().filter(id=job_id).first()
        if job is None or job.status in ENDED:
            return None
        if job.status != JobStatus.CANCELLING:
            job.status, job.attempts = JobStatus.RUNNING, task.attempt + 1
            job.started_at = job.started_at or Now()
            job.save(update_fields=["status", "attempts", "started_at"])
    return job


def _prepare_run(job: Job, task: Task, system: Actor) -> JobRun:
    """Build the arguments of a step's handler. Raises Forbidden; KeyUnavailable."""
    return JobRun(
        job_id=job.id,
        actor=requester_of(job),
        system=system,
        settings=job.settings,
        state=job.state,
        done=job.done,
        total=job.total,
        request=open_request(job),
        result=open_result(job) or {},
        report=lambda done, total: _report(system, task, job.id, done, total),
    )


def _report(system: Actor, task: Task, job_id: UUID, done: int, total: int | None) -> None:
    with acting(system):
        job = Job.objects.filter(id=job_id).first()
        if job is None or job.status == JobStatus.CANCELLING:
            raise JobCancelled
        Job.objects.filter(id=job_id).update(done=done, total=total)
        if not lease_renew(task):
            raise LeaseLost


def _record_step(kind: JobKind, system: Actor, job_id: UUID, outcome: Step | Callable[[], Step]) -> object:
    """Record the step in its transaction; return AGAIN if another step follows."""
    job = Job.objects.select_for_update().get(id=job_id)
    if job.status == JobStatus.CANCELLING:
        _end_cancelled(kind, system, job_id)
        return None
    try:
        with transaction.atomic():
            step = outcome() if callable(outcome) else outcome
    except Unavailable:
        raise
    except DomainError as error:
        _end_failed(system, job_id, error)
        return None
    return _save_step(kind, system, job, step)


def _save_step(kind: JobKind, system: Actor, job: Job, step: Step) -> object:
    job.done = job.done if step.done is None else step.done
    job.total = job.total if step.total is None else step.total
    if step.result is not None:
        job.sealed_result = seal_result(job, step.result)
    if step.parked:
        _fail_partly(system, job, step)
        return None
    if step.state is not None:
        job.state = dict(step.state)
        job.save(update_fields=["done", "total", "sealed_result", "state"])
        return AGAIN
    job.status, job.error, job.sealed_request, job.kept_until = JobStatus.SUCCEEDED, None, b"", None
    job_end(system, job)
    return None


def _fail_partly(system: Actor, job: Job, step: Step) -> None:
    """Fail a job because some of its objects failed, so that it can be retried for these."""
    job.state, job.dead_letter = dict(step.state or {}), True
    named = [{"field": str(id), "message": code} for id, code in list(step.parked.items())[:MOST_PARKED_NAMED]]
    detail = f"{len(step.parked)} could not be changed in any attempt. Run the job again once the cause is gone."
    _fail(job, {"code": ITEMS_PARKED, "detail": detail, "errors": named})
    job_end(system, job)


def _end_cancelled(kind: JobKind, system: Actor, job_id: UUID) -> None:
    job = Job.objects.select_for_update().get(id=job_id)
    job_cancel_now(kind, system, job)


def job_cancel_now(kind: JobKind | None, system: Actor, job: Job) -> None:
    """End a locked job as cancelled. Writes: Job, AuditEntry, and what the kind writes."""
    job.status, job.dead_letter, job.sealed_request = JobStatus.CANCELLED, False, b""
    job_end(system, job)
    if kind is not None and kind.cancelled is not None:
        kind.cancelled(system, job)


def _end_failed(system: Actor, job_id: UUID, error: DomainError) -> None:
    job = Job.objects.select_for_update().get(id=job_id)
    if isinstance(error, Forbidden):
        record_denial(actor=_name_requester(job), denial=error, path=f"jobs/{job.id}/")
    fault: dict[str, Any] = {"code": error.code, "detail": error.detail}
    if error.errors:
        fault["errors"] = [asdict(fault) for fault in error.errors]
    _fail(job, fault)
    job_end(system, job)


def _fail(job: Job, error: Mapping[str, Any]) -> None:
    job.status, job.error, job.kept_until = JobStatus.FAILED, dict(error), Now() + KEPT


def _name_requester(job: Job) -> Actor:
    """Return the requester without rights, which may have ended, for audit entries."""
    return Actor(
        tenant_id=job.tenant_id,
        principal_kind=PrincipalKind(job.principal_kind),
        principal_id=job.principal_id,
        member_id=job.member_id,
        role=None,
        scopes=None if job.principal_kind == PrincipalKind.SYSTEM else frozenset(),
        request_id=f"job-{job.id}",
        context=_context(job),
    )


def _context(job: Job) -> CallContext:
    return CallContext(channel=Channel.WORKER, **(job.context | {"causes": tuple(job.context.get("causes", ()))}))

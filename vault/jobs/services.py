"""Work that outlives its request: asked for with 202, done from the outbox, once, as the principal who asked."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from pydantic import TypeAdapter

from governance.actor import Actor, CallContext, system_actor
from governance.audit.services import record, record_denial
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import Conflict, DomainError, Forbidden, Unavailable
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.models import OutboxEvent
from governance.outbox.services import Payload, Write, emit
from governance.tenants.principals import actor_again
from governance.vocabulary import Channel, Permission, PrincipalKind, Topic, Verb
from vault.cubes.building import NO_TEXTS, TextIndexes, texts_index
from vault.cubes.drafts import CubeDraft
from vault.cubes.screening import drafts_screened
from vault.cubes.services import cubes_add
from vault.jobs.selectors import JobView, job_locate, job_view
from vault.models import Job
from vault.vocabulary import JobKind, JobStatus

DRAFTS: TypeAdapter[list[CubeDraft]] = TypeAdapter(list[CubeDraft])
KEPT = timedelta(days=7)  # a failed job waits so long to be run again
Commit = Callable[[JobView], None]


def memories_add_later(*, actor: Actor, drafts: Sequence[CubeDraft], commit: Commit = lambda job: None) -> JobView:
    """Promise to store `drafts`: the job may be asked for how it fares. `commit` runs in the same transaction.

    Raises Forbidden; Invalid; PiiUnavailable; KeyUnavailable. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    drafts = drafts_screened(actor=actor, drafts=drafts)  # what is redacted is not kept for the job either
    context = asdict(actor.context) | {"causes": [actor.request_id]}
    job = Job(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        kind=JobKind.MEMORIES_ADD,
        status=JobStatus.PENDING,
        member_id=actor.member_id,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        context={name: value for name, value in context.items() if name != "channel" and value},
    )
    job.sealed_request = _seal(job, DRAFTS.dump_json(list(drafts)))
    with acting(actor):
        job.save(force_insert=True)
        record(actor=actor, verb=Verb.JOB_CREATED, object_type="job", object_ids=[job.id])
        emit(actor=actor, topic=Topic.JOB_REQUESTED, payload={"job": str(job.id)})
        view = job_view(job)
        commit(view)
    return view


def job_retry_ask(*, actor: Actor, job_id: UUID) -> None:
    """Whether the actor may run this job again at all. Raises NotFound; Forbidden."""
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        job_locate(actor, job_id)


def job_retry(*, actor: Actor, job_id: UUID, commit: Commit = lambda job: None) -> JobView:
    """Run a failed job again, or one whose work was given up. `commit` runs in the same transaction.

    Raises NotFound; Forbidden; Conflict when it did not fail. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        job = job_locate(actor, job_id, lock=True)
        parked = _parked().filter(payload__job=str(job.id))
        if job.status != JobStatus.FAILED and not parked.exists():
            raise Conflict(f"The job is {job.status}; only a failed one can be run again.")
        parked.update(done_at=Now())
        job.status, job.error, job.finished_at, job.kept_until = JobStatus.PENDING, None, None, None
        job.save(update_fields=["status", "error", "finished_at", "kept_until"])
        record(actor=actor, verb=Verb.JOB_RETRIED, object_type="job", object_ids=[job.id])
        emit(actor=actor, topic=Topic.JOB_REQUESTED, payload={"job": str(job.id)})
        view = job_view(job)
        commit(view)
    return view


def jobs_run(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Run the jobs that the events name; each one's effect and end commit together with its event's."""
    job_ids = _named(payloads)
    with acting(actor):
        Job.objects.filter(id__in=job_ids, status=JobStatus.PENDING).update(status=JobStatus.RUNNING)
        jobs = list(Job.objects.filter(id__in=job_ids))
    texts = {job.id: texts_index(job.tenant_id, _drafts(job) or ()) for job in jobs}

    def write() -> None:
        for job_id in job_ids:
            job = Job.objects.select_for_update().filter(id=job_id).first()
            if job is not None and job.status != JobStatus.SUCCEEDED:
                _run(actor, job, texts.get(job.id, NO_TEXTS))

    return write


def jobs_give_up(*, tenant_id: UUID, event_ids: Sequence[UUID]) -> int:
    """Fail the jobs whose events were parked, so that nobody waits for them; how many. Writes: Job, AuditEntry."""
    actor = system_actor(tenant_id=tenant_id, request_id=f"job-{event_ids[0]}")
    with acting(actor):
        job_ids = _named([event.payload for event in _parked().filter(id__in=event_ids)])
        waiting = Job.objects.filter(id__in=job_ids, status__in=[JobStatus.PENDING, JobStatus.RUNNING])
        jobs = list(waiting.select_for_update().order_by("id"))
        for job in jobs:
            _fail(job, Unavailable("It was tried many times, and what it needs was never there."))
            _end(actor, job)
    return len(jobs)


def _run(actor: Actor, job: Job, texts: TextIndexes) -> None:
    try:
        with transaction.atomic():
            job.sealed_result = _seal(job, json.dumps(_memories_add(job, texts)).encode())
        job.status, job.progress, job.error = JobStatus.SUCCEEDED, 1.0, None
        job.sealed_request, job.kept_until = b"", None
    except Unavailable:
        raise  # comes again after a pause
    except DomainError as error:
        if isinstance(error, Forbidden):
            record_denial(actor=_asked_by(job), denial=error, path=f"jobs/{job.id}/")
        _fail(job, error)
    _end(actor, job)


def _fail(job: Job, error: DomainError) -> None:
    job.status, job.kept_until = JobStatus.FAILED, Now() + KEPT
    job.error = {"code": error.code, "detail": error.detail}
    if error.errors:
        job.error["errors"] = [asdict(fault) for fault in error.errors]


def _end(actor: Actor, job: Job) -> None:
    job.finished_at = Now()
    job.save()
    record(
        actor=actor,
        verb=Verb.JOB_FINISHED,
        object_type="job",
        object_ids=[job.id],
        detail={"kind": job.kind, "status": job.status},
    )


def _memories_add(job: Job, texts: TextIndexes) -> dict[str, Any]:
    requester = actor_again(
        tenant_id=job.tenant_id,
        kind=PrincipalKind(job.principal_kind),
        principal_id=job.principal_id,
        request_id=_request_id(job),
        context=_context(job),
    )
    drafts = _drafts(job)
    if drafts is None:
        raise Conflict("What the job should store was erased.")
    added = cubes_add(actor=requester, drafts=drafts, texts=texts)
    return {
        "memory_ids": [str(one.cube.id) for one in added],
        "duplicates": sum(one.duplicate for one in added),
    }


def _drafts(job: Job) -> list[CubeDraft] | None:
    """What the job should store; None once it was erased. Raises KeyUnavailable."""
    sealed = bytes(job.sealed_request)
    plaintext = open_sealed(tenant_id=job.tenant_id, place=_place(job), blob=sealed) if sealed else None
    return None if plaintext is None else DRAFTS.validate_json(plaintext)


def _asked_by(job: Job) -> Actor:
    """Who asked for the job, to be named on the trail: without any right, since they may have lost theirs."""
    return Actor(
        tenant_id=job.tenant_id,
        principal_kind=PrincipalKind(job.principal_kind),
        principal_id=job.principal_id,
        member_id=job.member_id,
        role=None,
        scopes=frozenset(),
        request_id=_request_id(job),
        context=_context(job),
    )


def _context(job: Job) -> CallContext:
    return CallContext(channel=Channel.WORKER, **(job.context | {"causes": tuple(job.context.get("causes", ()))}))


def _request_id(job: Job) -> str:
    return f"job-{job.id}"


def _parked() -> QuerySet[OutboxEvent]:
    return OutboxEvent.objects.filter(topic=Topic.JOB_REQUESTED, parked_at__isnull=False, done_at=None)


def _named(payloads: Sequence[Payload]) -> list[UUID]:
    return [UUID(str(payload["job"])) for payload in payloads]


def _seal(job: Job, plaintext: bytes) -> bytes:
    return seal_for(tenant_id=job.tenant_id, scope=GENERAL, place=_place(job), plaintext=plaintext)


def _place(job: Job) -> bytes:
    return b"job" + job.id.bytes

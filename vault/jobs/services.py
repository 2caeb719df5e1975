"""Work that outlives its request: asked for with 202, done from the outbox, once, as the principal who asked."""

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from pydantic import TypeAdapter

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import Conflict, DomainError, Unavailable
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.outbox.services import Payload, Write, emit
from governance.tenants.principals import actor_again
from governance.vocabulary import Permission, PrincipalKind, Topic, Verb
from vault.cubes.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.jobs.selectors import JobView, job_locate, job_view
from vault.models import Job
from vault.vocabulary import JobKind, JobStatus

DRAFTS: TypeAdapter[list[CubeDraft]] = TypeAdapter(list[CubeDraft])
Commit = Callable[[JobView], None]


def memories_add_later(*, actor: Actor, drafts: Sequence[CubeDraft], commit: Commit = lambda job: None) -> JobView:
    """Promise to store `drafts`: the job may be asked for how it fares. `commit` runs in the same transaction.

    Raises Forbidden; KeyUnavailable. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    job = Job(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        kind=JobKind.MEMORIES_ADD,
        status=JobStatus.PENDING,
        member_id=actor.member_id,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
    )
    job.sealed_request = _seal(job, DRAFTS.dump_json(list(drafts)))
    with acting(actor):
        job.save(force_insert=True)
        record(actor=actor, verb=Verb.JOB_CREATED, object_type="job", object_ids=[job.id])
        emit(actor=actor, topic=Topic.JOB_REQUESTED, payload={"job": str(job.id)})
        view = job_view(job)
        commit(view)
    return view


def job_retry(*, actor: Actor, job_id: UUID) -> JobView:
    """Run a failed job again.

    Raises NotFound; Forbidden; Conflict when it did not fail. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        job = job_locate(actor, job_id, lock=True)
        if job.status != JobStatus.FAILED:
            raise Conflict(f"The job is {job.status}; only a failed one can be run again.")
        job.status, job.error, job.finished_at = JobStatus.PENDING, None, None
        job.save(update_fields=["status", "error", "finished_at"])
        record(actor=actor, verb=Verb.JOB_RETRIED, object_type="job", object_ids=[job.id])
        emit(actor=actor, topic=Topic.JOB_REQUESTED, payload={"job": str(job.id)})
        return job_view(job)


def jobs_run(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Run the jobs that the events name; each one's effect and end commit together with its event's."""
    job_ids = [UUID(str(payload["job"])) for payload in payloads]
    with acting(actor):
        Job.objects.filter(id__in=job_ids, status=JobStatus.PENDING).update(status=JobStatus.RUNNING)

    def write() -> None:
        for job_id in job_ids:
            job = Job.objects.select_for_update().filter(id=job_id).first()
            if job is not None and job.status not in {JobStatus.SUCCEEDED, JobStatus.FAILED}:
                _run(actor, job)

    return write


def _run(actor: Actor, job: Job) -> None:
    try:
        with transaction.atomic():
            job.sealed_result = _seal(job, json.dumps(_memories_add(job)).encode())
        job.status, job.progress = JobStatus.SUCCEEDED, 1.0
    except Unavailable:
        raise  # comes again after a pause
    except DomainError as error:
        job.status, job.error = JobStatus.FAILED, {"code": error.code, "detail": error.detail}
    job.finished_at = Now()
    job.save(update_fields=["status", "progress", "sealed_result", "error", "finished_at"])
    record(
        actor=actor,
        verb=Verb.JOB_FINISHED,
        object_type="job",
        object_ids=[job.id],
        detail={"kind": job.kind, "status": job.status},
    )


def _memories_add(job: Job) -> dict[str, Any]:
    requester = actor_again(
        tenant_id=job.tenant_id,
        kind=PrincipalKind(job.principal_kind),
        principal_id=job.principal_id,
        request_id=f"job-{job.id}",
    )
    plaintext = open_sealed(tenant_id=job.tenant_id, place=_place(job), blob=bytes(job.sealed_request))
    if plaintext is None:
        raise Conflict("What the job should store was erased.")
    added = cubes_add(actor=requester, drafts=DRAFTS.validate_json(plaintext))
    return {
        "memory_ids": [str(one.cube.id) for one in added],
        "duplicates": sum(one.duplicate for one in added),
    }


def _seal(job: Job, plaintext: bytes) -> bytes:
    return seal_for(tenant_id=job.tenant_id, scope=GENERAL, place=_place(job), plaintext=plaintext)


def _place(job: Job) -> bytes:
    return b"job" + job.id.bytes

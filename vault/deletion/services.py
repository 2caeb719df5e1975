"""Services for the deletion of a whole tenant, which an owner or the operator may request and cancel."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.jobs.selectors import OPEN, JobView, job_get
from governance.jobs.services import job_cancel, job_create
from governance.models import Job, Member, OutboxEvent, Tenant
from governance.vocabulary import Permission, RoleName, Topic, Verb
from vault.deletion.rows import HoldLine, active_holds, refuse_held, tenant_counts
from vault.subjects.rules import ErasureCounts

WRONG_SLUG = "type the short name of this organisation"


@dataclass(frozen=True)
class DeletionView:
    """The tenant, and its pending deletion, if any. delete_at: when the grace period ends."""

    slug: str
    name: str
    job: JobView | None
    delete_at: datetime | None


@dataclass(frozen=True)
class DeletionPreview:
    """The rows that would be deleted, and the holds that prevent the deletion."""

    counts: ErasureCounts
    members: int
    holds: tuple[HoldLine, ...]


def deletion_get(*, actor: Actor) -> DeletionView:
    """Return the tenant with its pending deletion, if any. Raises Forbidden."""
    owner_check(actor)
    with acting(actor):
        tenant = Tenant.objects.get(id=actor.tenant_id)
        waiting = _is_waiting(tenant)
        job = job_get(actor=actor, job_id=tenant.deletion_job) if waiting and tenant.deletion_job else None
        return DeletionView(tenant.slug, tenant.name, job, tenant.deletion_at if waiting else None)


def deletion_preview(*, actor: Actor) -> DeletionPreview:
    """Count the rows that a deletion would delete, and list the holds that prevent it. Raises Forbidden."""
    owner_check(actor)
    with acting(actor):
        members = Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None).count()
        return DeletionPreview(tenant_counts(actor.tenant_id), members, tuple(active_holds(actor.tenant_id)))


def deletion_request(*, actor: Actor, slug: str) -> JobView:
    """Request the job that deletes the tenant after TENANT_GRACE_DAYS; until then it can be cancelled.

    slug: the tenant's own, typed to confirm. Raises Forbidden; Invalid; Held, naming the holds; Conflict if a deletion
    is already pending. Writes: Tenant, Job, AuditEntry × 2, OutboxEvent.
    """
    owner_check(actor)
    with acting(actor):
        tenant = Tenant.objects.select_for_update().get(id=actor.tenant_id)
        if slug != tenant.slug:
            raise Invalid(errors=[FieldError("slug", WRONG_SLUG)])
        if _is_waiting(tenant):
            raise Conflict("The deletion of this organisation is asked for already.")
        delete_at = database_now() + timedelta(days=settings.TENANT_GRACE_DAYS)
        job = job_create(actor=actor, kind=Topic.TENANT_ERASE, settings={"delete_at": delete_at.isoformat()})
        OutboxEvent.objects.filter(id=job.id).update(available_at=delete_at, created_at=delete_at)
        Tenant.objects.filter(id=tenant.id).update(deletion_job=job.id, deletion_at=delete_at)
        record(
            actor=actor,
            verb=Verb.TENANT_DELETION_REQUESTED,
            object_type="tenant",
            object_ids=[tenant.id],
            detail={"days": settings.TENANT_GRACE_DAYS},
        )
        refuse_held(actor.tenant_id)
        return job


def deletion_cancel(*, actor: Actor) -> JobView:
    """Cancel the pending deletion. Raises Forbidden; Conflict if there is none. Writes the rows of `job_cancel`."""
    owner_check(actor)
    with acting(actor):
        tenant = Tenant.objects.get(id=actor.tenant_id)
        if tenant.deletion_job is None or not _is_waiting(tenant) or tenant.erasing_since is not None:
            raise Conflict("No deletion of this organisation is waiting.")
        return job_cancel(actor=actor, job_id=tenant.deletion_job)


def deletion_receipt(*, actor: Actor) -> dict[str, Any]:
    """Return the signed receipt of a deleted tenant. Raises Forbidden; NotFound."""
    owner_check(actor)
    with acting(actor):
        receipt = Tenant.objects.filter(id=actor.tenant_id).values_list("receipt", flat=True).first()
    if not receipt:
        raise NotFound("There is no receipt of such an organisation.")
    return dict(receipt)


def deletion_forget(system: Actor, job: Job) -> None:
    """Clear the time of a deletion that was cancelled. Writes: Tenant."""
    Tenant.objects.filter(id=system.tenant_id, deletion_job=job.id).update(deletion_job=None, deletion_at=None)


def owner_check(actor: Actor) -> None:
    """Check that the actor is an owner or the operator, who alone may delete a tenant. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    if actor.role is not RoleName.OWNER and not actor.is_system:
        raise Forbidden(
            "Only an owner may delete the organisation.",
            permission=Permission.OPERATIONS_MANAGE,
            rule="owners",
            object_type="tenant",
            object_id=actor.tenant_id,
        )


def _is_waiting(tenant: Tenant) -> bool:
    if tenant.deletion_job is None:
        return False
    return Job.objects.filter(id=tenant.deletion_job, status__in=OPEN).exists()

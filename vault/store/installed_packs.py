"""Installed packs on the subscriber's side: number of memories, rewordings, offered versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound
from governance.models import Job
from governance.pages import First
from governance.vocabulary import JobStatus, Permission, Topic, Verb
from vault.models import PackMemory, PackVersion, Publication, Subscription
from vault.namespaces.mounts import MountView, mounts_list
from vault.store.numbers import number_read, range_read
from vault.store.subscriptions import LIVE, subscription_locate, subscription_target
from vault.vocabulary import PackState, PublicationState

MOST_MOUNTS = 50
MOST_REWORDED = 50
MOST_VERSIONS = 20
OPEN_JOBS = (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CANCELLING)


@dataclass(frozen=True)
class Installed:
    """The state of an installed pack. memories: their number; reworded: ids of memories that the subscriber reworded.

    At most MOST_REWORDED ids are listed. is_at_work: a job is installing or removing memories.
    """

    memories: int
    reworded: Sequence[UUID]
    mounts: Sequence[MountView]
    is_at_work: bool


@dataclass(frozen=True)
class OfferedVersion:
    """A version that the publisher offers. is_taken: it is in the subscription's range."""

    number: str
    changelog: str
    published_at: datetime | None
    is_installed: bool
    is_taken: bool
    is_newer: bool


def installed_get(*, actor: Actor, subscription_id: UUID) -> Installed:
    """Return one installed pack. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        row = subscription_locate(actor, subscription_id, lock=False)
        authorize(actor, Permission.MEMORY_READ, subscription_target(row))
        record(actor=actor, verb=Verb.SUBSCRIPTION_READ, object_type="subscription", object_ids=[row.id])
        rows = PackMemory.objects.filter(tenant_id=actor.tenant_id, subscription=row)
        jobs = Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.PACK_INSTALL, status__in=OPEN_JOBS)
        reworded = rows.filter(is_overridden=True).order_by("id").values_list("cube_id", flat=True)
        return Installed(
            memories=rows.count(),
            reworded=list(reworded[:MOST_REWORDED]),
            mounts=mounts_list(actor=actor, pages=First(MOST_MOUNTS), namespace_id=row.namespace_id),
            is_at_work=jobs.filter(settings__subscription=str(row.id)).exists(),
        )


def origin_get(*, actor: Actor, memory_id: UUID) -> PackMemory:
    """Return the installed pack memory of a memory, with its subscription. Raises NotFound; Forbidden."""
    with acting(actor):
        rows = PackMemory.objects.filter(tenant_id=actor.tenant_id, cube_id=memory_id).select_related("subscription")
        row = rows.filter(subscription__state__in=LIVE).first()
        if row is None:
            raise NotFound
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row.subscription))
    return row


def offered_versions_list(*, actor: Actor, subscription_id: UUID) -> list[OfferedVersion]:
    """Return the newest MOST_VERSIONS versions that the publisher offers, newest first. Raises NotFound; Forbidden.

    Runs outside any transaction. Writes: AuditEntry.
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id, lock=False)
        authorize(actor, Permission.MEMORY_READ, subscription_target(row))
        record(actor=actor, verb=Verb.SUBSCRIPTION_READ, object_type="subscription", object_ids=[row.id])
    publisher = system_actor(tenant_id=row.publisher_id, request_id=f"subscription-{row.id}")
    with acting(publisher):
        publication = Publication.objects.get(tenant_id=row.publisher_id, id=row.publication_id)
        if publication.state == PublicationState.BANNED:
            return []
        found = PackVersion.objects.filter(tenant_id=row.publisher_id, pack_id=publication.pack_id)
        found = found.filter(published_at__isnull=False).exclude(state=PackState.YANKED).defer("sealed")
        return [_offered_version(row, version) for version in found.order_by("-parts")[:MOST_VERSIONS]]


def _offered_version(row: Subscription, version: PackVersion) -> OfferedVersion:
    number = number_read(version.number)
    return OfferedVersion(
        number=version.number,
        changelog=version.changelog,
        published_at=version.published_at,
        is_installed=version.number == row.number,
        is_taken=range_read(row.range).allows(number),
        is_newer=bool(row.number) and number > number_read(row.number),
    )

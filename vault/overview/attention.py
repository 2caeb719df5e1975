"""Items that need attention and that the actor can resolve. Counts are capped to limit their cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.db.models import Count, Q

from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting, database_now
from governance.ids import uuid7_floor
from governance.models import ApiKey, Job
from governance.vocabulary import JobStatus, Permission
from vault.models import Cube, Namespace, Publication, Review, Subscription
from vault.overview.selectors import SOON, Overview
from vault.reviews.selectors import pairs_readable
from vault.vocabulary import ContractState, ReviewKind, ReviewStatus

MOST = 100  # a larger count is shown as 100+
LOOKED_AT = 1_000  # of the newest open reviews and failed jobs
FAILED_DAYS = 7  # so long a failed job can be run again
UNUSED_DAYS = 90
NEARLY = 90  # percent of a quota


class Waiting(StrEnum):
    REVIEWS = "reviews"
    EXPIRING = "expiring"
    FAILED_JOBS = "failed_jobs"
    QUOTA = "quota"
    AUDIT = "audit"
    UNUSED_KEYS = "unused_keys"
    PACK_APPROVALS = "pack_approvals"
    PACK_UPDATES = "pack_updates"
    PACK_ENDS = "pack_ends"


@dataclass(frozen=True)
class Attention:
    """A kind of open item. count: the number of items, for a quota its percentage. about: the measure of a quota, or
    empty.
    """

    kind: Waiting
    count: int
    about: str = ""

    @property
    def count_text(self) -> str:
        return f"{MOST}+" if self.count > MOST and self.kind is not Waiting.EXPIRING else f"{self.count:,}"


def attention_list(*, actor: Actor, overview: Overview) -> list[Attention]:
    """Return the open items, most urgent first. Raises Forbidden. Queries: at most five."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        return [item for item in _list_attention(actor, overview) if item.count]


def reviews_waiting(*, actor: Actor) -> int:
    """Return the number of open reviews of readable memories, at most MOST + 1. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        newest = Review.objects.filter(tenant_id=actor.tenant_id, status=ReviewStatus.OPEN).order_by("-id")
        waiting = Q(kind=ReviewKind.QUARANTINE, cube__in=Cube.objects.stored().reached_by(actor))
        rows = Review.objects.filter(
            waiting | Q(cube__in=Cube.objects.visible_to(actor)),
            pairs_readable(actor, ReviewStatus.OPEN),
            id__in=newest.values("id")[:LOOKED_AT],
            version__namespace__in=Namespace.objects.visible_to(actor),
        )
        return len(rows.values_list("id")[: MOST + 1])


def count_failed_jobs(*, actor: Actor) -> int:
    """Return the number of failed jobs that the actor may see and retry, at most MOST + 1. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        since = uuid7_floor(database_now() - timedelta(days=FAILED_DAYS))
        rows = Job.objects.filter(tenant_id=actor.tenant_id, status=JobStatus.FAILED, id__gte=since)
        rows = rows if sees_private(actor) else rows.filter(Q(member_id=actor.member_id))
        return len(rows.values_list("id")[: MOST + 1])


def _list_attention(actor: Actor, overview: Overview) -> Iterator[Attention]:
    if overview.audit and overview.audit.fault is not None:
        yield Attention(Waiting.AUDIT, max(1, overview.audit.fault))
    if is_allowed(actor, Permission.JOB_READ):
        yield Attention(Waiting.FAILED_JOBS, count_failed_jobs(actor=actor))
    for measure, use in (overview.use or {}).items():
        if use.percent is not None and use.percent >= NEARLY:
            yield Attention(Waiting.QUOTA, use.percent, measure)
    if is_allowed(actor, Permission.MEMORY_UPDATE):
        yield Attention(Waiting.REVIEWS, reviews_waiting(actor=actor))
        yield Attention(Waiting.EXPIRING, overview.expiring_soon)
    if is_allowed(actor, Permission.STORE_MANAGE):
        yield from _list_pack_items(actor)
    if is_allowed(actor, Permission.APIKEY_MANAGE):
        yield Attention(Waiting.UNUSED_KEYS, _count_unused_keys(actor))


def _list_pack_items(actor: Actor) -> Iterator[Attention]:
    """Yield versions that others offered for approval, newer versions of installed packs, and contracts that end within
    SOON days, or ended or were revoked so many days ago. Two queries.
    """
    offered = Publication.objects.filter(tenant_id=actor.tenant_id, waiting__isnull=False)
    yield Attention(Waiting.PACK_APPROVALS, len(offered.exclude(requested_by_id=actor.member_id)[: MOST + 1]))
    now, span = database_now(), timedelta(days=SOON)
    newer = Q(state=ContractState.ACTIVE) & ~Q(available="")
    gone = Q(state=ContractState.REVOKED) & (Q(namespace__ended_at=None) | Q(namespace__ended_at__gte=now - span))
    ends = Q(state=ContractState.ACTIVE, valid_to__range=(now - span, now + span)) | gone
    counts = Subscription.objects.filter(newer | ends, tenant_id=actor.tenant_id).aggregate(
        updates=Count("id", filter=newer), ends=Count("id", filter=ends)
    )
    yield Attention(Waiting.PACK_ENDS, counts["ends"])
    yield Attention(Waiting.PACK_UPDATES, counts["updates"])


def _count_unused_keys(actor: Actor) -> int:
    now = database_now()
    before = now - timedelta(days=UNUSED_DAYS)
    rows = ApiKey.objects.filter(tenant_id=actor.tenant_id, revoked_at=None, created_at__lt=before)
    return len(rows.exclude(last_used_at__gte=before).exclude(expires_at__lt=now)[: MOST + 1])

"""The mailed digest of notices: the choice of a member, the digests that are due, and the counts of the last one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.db.models.functions import Now

from governance.accounts.rules import SignedIn
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.models import Member
from governance.vocabulary import Verb

MORNING = 7  # the hour from which a digest is due, in the member's time zone
DAY = timedelta(hours=20)  # at least, between two of them: the clocks of a time zone change


@dataclass(frozen=True)
class DueDigest:
    """A member whose digest is due. counts: the notices of the last digest, by kind."""

    member_id: UUID
    email: str
    counts: Mapping[str, int]


def is_digest_wanted(*, person: SignedIn) -> bool:
    with acting(person.actor):
        return Member.objects.values_list("wants_digest", flat=True).get(id=person.actor.principal_id)


def digest_set(*, person: SignedIn, wanted: bool) -> None:
    """Set whether the member gets a digest; members set only their own. Writes: Member, AuditEntry."""
    actor = person.actor
    with acting(actor):
        Member.objects.filter(id=actor.principal_id).update(wants_digest=wanted)
        record(
            actor=actor,
            verb=Verb.MEMBER_CHANGED,
            object_type="member",
            object_ids=[actor.principal_id],
            detail={"wants_digest": wanted},
        )


def digests_due(actor: Actor, *, most: int) -> list[DueDigest]:
    """Return the members who want a digest, have a proved address, and in whose time zone it is morning. For the
    worker.

    An address must be proved, because nobody else may learn about open items of a tenant.
    """
    with acting(actor):
        now = database_now()
        rows = Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None, wants_digest=True)
        rows = rows.filter(Q(digest_at=None) | Q(digest_at__lt=now - DAY), user__is_active=True)
        members = rows.exclude(proved_at=None).select_related("user").order_by("id")
        due = [member for member in members if now.astimezone(ZoneInfo(member.timezone)).hour >= MORNING]
    return [DueDigest(member.id, member.user.email, member.digest_counts) for member in due[:most]]


def digest_note(actor: Actor, due: DueDigest, counts: Mapping[str, int]) -> None:
    """Record that this morning's digest was sent; called by the worker. Writes: Member."""
    with acting(actor):
        Member.objects.filter(id=due.member_id).update(digest_at=Now(), digest_counts=dict(counts))

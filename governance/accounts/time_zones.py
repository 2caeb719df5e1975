"""The time zone in which pages show times to a member."""

from zoneinfo import available_timezones

from governance.accounts.rules import SignedIn
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import Member
from governance.vocabulary import Verb


def time_zone_set(*, person: SignedIn, timezone: str) -> None:
    """Set the member's own time zone, an IANA name. Raises Invalid. Writes: Member, AuditEntry."""
    if timezone not in available_timezones():
        raise Invalid(errors=[FieldError("timezone", "a name as Europe/Berlin or UTC")])
    actor = person.actor
    with acting(actor):
        Member.objects.filter(id=actor.principal_id).update(timezone=timezone)
        record(
            actor=actor,
            verb=Verb.MEMBER_CHANGED,
            object_type="member",
            object_ids=[actor.principal_id],
            detail={"timezone": timezone},
        )

"""The time zone in which a member's pages tell times."""

from zoneinfo import available_timezones

from governance.accounts.rules import SignedIn
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import Member
from governance.vocabulary import Verb


def time_zone_set(*, person: SignedIn, timezone: str) -> None:
    """timezone: a name of the IANA database. A member's own alone. Raises Invalid. Writes: Member, AuditEntry."""
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

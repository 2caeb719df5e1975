"""A member's own details: the name that others see, the time zone of pages, and a checklist that was put away."""

from zoneinfo import available_timezones

from governance.accounts.rules import SignedIn
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import Member, Persona
from governance.vocabulary import PersonaKind, Verb

LONGEST_NAME = 200


def display_name_set(*, person: SignedIn, name: str) -> None:
    """Set the name by which others see the member, and that of the member's first persona.

    Raises Invalid, also for the name of another member: nobody may appear as somebody else. Writes: Member, Persona,
    AuditEntry.
    """
    name = " ".join(name.split())
    actor = person.actor
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(errors=[FieldError("name", f"a line of 1 to {LONGEST_NAME} characters")])
    with acting(actor):
        others = Member.objects.filter(removed_at=None).exclude(id=actor.principal_id)
        own = Persona.objects.filter(member_id=actor.principal_id, removed_at=None)
        first = own.filter(kind=PersonaKind.USER).order_by("id").first()
        taken = (own.exclude(id=first.id) if first else own).filter(name=name)
        if others.filter(display_name__iexact=name).exists() or taken.exists():
            raise Invalid(errors=[FieldError("name", "another has this name")])
        if first is not None:
            Persona.objects.filter(id=first.id).update(name=name)
        _member_change(person, display_name=name)


def time_zone_set(*, person: SignedIn, timezone: str) -> None:
    """Set the member's own time zone, an IANA name. Raises Invalid. Writes: Member, AuditEntry."""
    if timezone not in available_timezones():
        raise Invalid(errors=[FieldError("timezone", "a name as Europe/Berlin or UTC")])
    with acting(person.actor):
        _member_change(person, timezone=timezone)


def setup_hide(*, person: SignedIn) -> None:
    """Put the checklist of the overview away for this member, in every browser. Writes: Member, AuditEntry."""
    with acting(person.actor):
        _member_change(person, hides_setup=True)


def hides_setup(*, person: SignedIn) -> bool:
    with acting(person.actor):
        return Member.objects.values_list("hides_setup", flat=True).get(id=person.actor.principal_id)


def _member_change(person: SignedIn, **changed: str | bool) -> None:
    actor = person.actor
    Member.objects.filter(id=actor.principal_id).update(**changed)
    record(actor=actor, verb=Verb.MEMBER_CHANGED, object_type="member", object_ids=[actor.principal_id], detail=changed)

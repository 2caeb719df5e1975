"""Operators of the installation: people with rights that no tenant gives."""

from uuid import UUID

from governance.accounts.person_events import person_event_record
from governance.actor import Actor
from governance.database import acting, as_person, no_tenant
from governance.errors import NotFound
from governance.models import Member, User
from governance.vocabulary import Verb


def operator_set(*, user_id: UUID, is_operator: bool) -> bool:
    """Make a person an operator, or end that; only the command line calls this. Return False if nothing changed.

    Writes: User, AuditEntry in each of the person's tenants.
    """
    with no_tenant(), as_person(user_id):
        rows = User.objects.filter(id=user_id).exclude(is_operator=is_operator)
        changed = rows.update(is_operator=is_operator)
    if changed:
        person_event_record(
            user_id=user_id,
            verb=Verb.OPERATOR_CHANGED,
            request_id="cli-operator",
            address="",
            detail={"is_operator": is_operator},
        )
    return bool(changed)


def operator_require(*, actor: Actor) -> None:
    """Check that the actor is an operator. Raises NotFound unless it is one, in a session that no member of a tenant
    could have started.
    """
    if not actor.is_proved or actor.member_id is None:
        raise NotFound
    with acting(actor):
        member = Member.objects.filter(id=actor.member_id, removed_at=None).first()
    if member is None:
        raise NotFound
    with no_tenant(), as_person(member.user_id):
        is_operator = User.objects.filter(id=member.user_id, is_operator=True).exists()
    if not is_operator:
        raise NotFound

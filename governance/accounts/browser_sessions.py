"""Browser sessions: the last step of every sign-in, the change of organisation, and the end of sessions."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from governance.accounts.rules import FirstFactor, SignedIn, Way
from governance.accounts.selectors import (
    Organisation,
    manages_person,
    member_actor,
    membership_prove,
    organisations_of,
)
from governance.actor import CallContext
from governance.audit.services import record
from governance.database import acting, as_person, database_now, tenant_transaction
from governance.errors import Forbidden, NotFound
from governance.ids import uuid7
from governance.models import BrowserSession, Member, Tenant
from governance.vocabulary import Verb


def session_begin(
    *,
    first: FirstFactor,
    strong: bool,
    place: Organisation,
    request_id: str,
    context: CallContext,
    agent: str,
    zone: str = "",
) -> SignedIn:
    """Start the person's session in an organisation. Raises NotFound once the membership has ended.

    zone: the IANA name of the browser's time zone; at the first session, pages tell times in it from then on.
    Writes: BrowserSession, Member?, AuditEntry.
    """
    if first.bound_to not in {None, place.tenant_id}:
        raise NotFound
    with tenant_transaction(place.tenant_id), as_person(first.user_id):
        member = _member(place.member_id, first.user_id)
        if first.bound_to is None:
            membership_prove(member.id)
        if zone and not BrowserSession.objects.filter(user_id=first.user_id).exists():
            member.timezone = zone
            member.save(update_fields=["timezone"])
        row = BrowserSession(
            id=uuid7(),
            user_id=first.user_id,
            address=context.address[:64],
            agent=agent[:200],
            expires_at=database_now() + timedelta(seconds=settings.SESSION_COOKIE_AGE),
        )
        row.save(force_insert=True)
        person = _person(first, strong, member, row.id, request_id, context)
        _record_entry(person, first.way)
    return person


def session_switch(*, person: SignedIn, member_id: UUID) -> SignedIn:
    """Enter another organisation of the person in the same session. Raises NotFound; Forbidden. Writes: AuditEntry."""
    if person.bound_to is not None:
        raise Forbidden("This session opens one organisation only: sign in with your password.", rule="bound")
    place = next(
        (
            organisation
            for organisation in organisations_of(person.user_id, bound_to=None)
            if organisation.member_id == member_id
        ),
        None,
    )
    if place is None:
        raise NotFound
    first = FirstFactor(user_id=person.user_id, bound_to=None, way=Way.SWITCH)
    with tenant_transaction(place.tenant_id), as_person(person.user_id):
        member = _member(member_id, person.user_id)
        membership_prove(member.id)
        actor = person.actor
        there = _person(first, person.strong, member, person.session_id, actor.request_id, actor.context)
        _record_entry(there, Way.SWITCH)
    return there


def session_end(*, person: SignedIn) -> None:
    """Sign the person out of this session. Writes: BrowserSession, AuditEntry."""
    with acting(person.actor), as_person(person.user_id):
        BrowserSession.objects.filter(id=person.session_id, ended_at=None).update(ended_at=Now())
        record(
            actor=person.actor,
            verb=Verb.MEMBER_SIGNED_OUT,
            object_type="member",
            object_ids=[person.actor.principal_id],
        )


def session_revoke(*, person: SignedIn, session_id: UUID) -> None:
    """End one of the person's own sessions, at its next request. Raises NotFound.

    Writes: BrowserSession, AuditEntry.
    """
    if not manages_person(person) and session_id != person.session_id:
        raise NotFound
    with acting(person.actor), as_person(person.user_id):
        if not _end(person, BrowserSession.objects.filter(id=session_id)):
            raise NotFound


def sessions_revoke_others(*, person: SignedIn) -> int:
    """End the person's other sessions; return their number. Raises Forbidden. Writes: BrowserSession …, AuditEntry."""
    if not manages_person(person):
        raise Forbidden("Sign in with your password: your other sessions are of other organisations.", rule="bound")
    with acting(person.actor), as_person(person.user_id):
        return _end(person, BrowserSession.objects.exclude(id=person.session_id))


def _end(person: SignedIn, rows: QuerySet[BrowserSession]) -> int:
    ids = list(rows.filter(ended_at=None).values_list("id", flat=True))
    ended = BrowserSession.objects.filter(id__in=ids).update(ended_at=Now())
    record(actor=person.actor, verb=Verb.SESSION_REVOKED, object_type="session", object_ids=ids)
    return ended


def _member(member_id: UUID, user_id: UUID) -> Member:
    found = Member.objects.filter(id=member_id, user_id=user_id, removed_at=None, user__is_active=True)
    member = found.select_related("role").first()
    if member is None:
        raise NotFound
    return member


def _person(
    first: FirstFactor, strong: bool, member: Member, session_id: UUID, request_id: str, context: CallContext
) -> SignedIn:
    return SignedIn(
        actor=member_actor(member, request_id=request_id, context=context),
        user_id=first.user_id,
        session_id=session_id,
        bound_to=first.bound_to,
        strong=strong,
        second_factor_required=Tenant.objects.get(id=member.tenant_id).second_factor_required,
        by_server=first.way is Way.OIDC,
    )


def _record_entry(person: SignedIn, way: Way) -> None:
    record(
        actor=person.actor,
        verb=Verb.MEMBER_SIGNED_IN,
        object_type="member",
        object_ids=[person.actor.principal_id],
        detail={"way": way, "second_factor": person.strong, "session": str(person.session_id)},
    )

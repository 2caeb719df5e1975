"""Selectors of persons before any tenant is known, of their memberships, and of their browser sessions."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.accounts.rules import SignedIn
from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.database import acting, as_person, database_now, no_tenant, person_transaction, tenant_transaction
from governance.errors import AddressNotProved
from governance.models import BrowserSession, Member, OidcIdentity, Tenant, User
from governance.tenants.selectors import user_id_by_email
from governance.vocabulary import PrincipalKind, RoleName, Verb

LAST_USE_SECONDS = 300
# Hand-written, because every page begins with this statement.
SIGNED_IN = """
SELECT role.name, tenant.second_factor_required,
  session.last_used_at < transaction_timestamp() - make_interval(secs => %s), person.is_operator,
  member.timezone
FROM governance_browsersession AS session
  JOIN governance_member AS member ON member.user_id = session.user_id
  JOIN governance_role AS role ON role.id = member.role_id
  JOIN governance_user AS person ON person.id = member.user_id
  JOIN governance_tenant AS tenant ON tenant.id = member.tenant_id
WHERE session.id = %s AND session.ended_at IS NULL AND session.expires_at > transaction_timestamp()
  AND member.id = %s AND member.removed_at IS NULL AND person.is_active
"""


class Membership(NamedTuple):
    member_id: UUID
    tenant_id: UUID


@dataclass(frozen=True)
class Organisation:
    """A tenant that a person may enter."""

    member_id: UUID
    tenant_id: UUID
    name: str
    slug: str


@dataclass(frozen=True)
class StoredSession:
    """The content of a browser's session row."""

    tenant_id: UUID
    member_id: UUID
    user_id: UUID
    session_id: UUID
    bound_to: UUID | None
    strong: bool
    by_server: bool = False


@dataclass(frozen=True)
class SessionView:
    id: UUID
    address: str
    agent: str
    created_at: datetime
    last_used_at: datetime
    current: bool


def memberships_of(user_id: UUID) -> list[Membership]:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT member_id, tenant_id FROM governance_memberships(%s)", [user_id])
        return [Membership(*row) for row in cursor.fetchall()]


def organisations_of(user_id: UUID, *, bound_to: UUID | None) -> list[Organisation]:
    """Return the organisations that the person may enter. One short transaction for each of their tenants."""
    found = [membership for membership in memberships_of(user_id) if bound_to in {None, membership.tenant_id}]
    return [_organisation(membership) for membership in found]


def manages_person(person: SignedIn) -> bool:
    """Return whether this session may see and change the person's sign-in methods: it may if no admin of a tenant can
    have started it.

    The answer does not depend on other memberships: whoever started a bound session must not learn about them.
    """
    return person.bound_to is None


def require_proved_address(person: SignedIn) -> None:
    """Raise AddressNotProved in a session that an admin of the tenant may have started."""
    if not manages_person(person):
        raise AddressNotProved("Have a link mailed to your address, and open that link.", rule="bound")


def is_membership_proved(*, user_id: UUID, tenant_id: UUID) -> bool:
    """Return whether the person ever signed in to this tenant by themselves."""
    with tenant_transaction(tenant_id):
        return Member.objects.filter(user_id=user_id, removed_at=None).exclude(proved_at=None).exists()


def membership_prove(member_id: UUID) -> None:
    """Record that the person has signed in by themselves, in the tenant's transaction. Writes, once: Member."""
    Member.objects.filter(id=member_id, proved_at=None).update(proved_at=Now())


def _organisation(membership: Membership) -> Organisation:
    with tenant_transaction(membership.tenant_id):
        tenant = Tenant.objects.get(id=membership.tenant_id)
    return Organisation(
        member_id=membership.member_id, tenant_id=membership.tenant_id, name=tenant.name, slug=tenant.slug
    )


def person_get(user_id: UUID) -> User | None:
    """Return the user row, with its password, as the person may read it."""
    with no_tenant(), as_person(user_id):
        return User.objects.filter(id=user_id, is_active=True).first()


def member_actor(member: Member, *, request_id: str, context: CallContext) -> Actor:
    return Actor(
        tenant_id=member.tenant_id,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=member.id,
        member_id=member.id,
        role=RoleName(member.role.name),
        scopes=None,
        request_id=request_id,
        context=context,
    )


def find_signed_in(*, stored: StoredSession, request_id: str, context: CallContext) -> SignedIn | None:
    """Return the person behind a session, or None if the session, the membership or the sign-in server has ended.

    One statement; two in a session by way of a sign-in server.

    Writes, once in SEEN_EVERY_SECONDS: BrowserSession.
    """
    with person_transaction(stored.tenant_id, stored.user_id):
        with connection.cursor() as cursor:
            cursor.execute(SIGNED_IN, [LAST_USE_SECONDS, stored.session_id, stored.member_id])
            row = cursor.fetchone()
        if row is None or (stored.by_server and not OidcIdentity.objects.filter(member_id=stored.member_id).exists()):
            return None
        if row[2]:
            BrowserSession.objects.filter(id=stored.session_id).update(last_used_at=Now(), address=context.address[:64])
    actor = Actor(
        tenant_id=stored.tenant_id,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=stored.member_id,
        member_id=stored.member_id,
        role=RoleName(row[0]),
        scopes=None,
        request_id=request_id,
        context=context,
        is_proved=stored.bound_to is None,
    )
    return SignedIn(
        actor=actor,
        user_id=stored.user_id,
        session_id=stored.session_id,
        bound_to=stored.bound_to,
        strong=stored.strong,
        by_server=stored.by_server,
        second_factor_required=row[1],
        is_operator=row[3],
        timezone=row[4],
    )


def sessions_list(*, person: SignedIn) -> list[SessionView]:
    """Return the person's browser sessions, last used first; only this one if an admin of a tenant may have started it.

    Writes: AuditEntry.
    """
    whole = manages_person(person)
    with acting(person.actor), as_person(person.user_id):
        rows = BrowserSession.objects.filter(ended_at=None, expires_at__gt=database_now()).order_by("-last_used_at")
        rows = rows if whole else rows.filter(id=person.session_id)
        views = [
            SessionView(
                id=row.id,
                address=row.address,
                agent=row.agent,
                created_at=row.created_at,
                last_used_at=row.last_used_at,
                current=row.id == person.session_id,
            )
            for row in rows[: settings.MAX_PAGE_SIZE]
        ]
        record(
            actor=person.actor,
            verb=Verb.SESSIONS_LISTED,
            object_type="session",
            object_ids=[view.id for view in views],
        )
    return views


def member_user(*, actor: Actor) -> UUID:
    """Return the person behind the acting member, which needs no permission."""
    with acting(actor):
        assert actor.member_id is not None
        return Member.objects.get(id=actor.member_id).user_id


def email_has_password(email: str) -> bool:
    """Return whether the person with this address has a password. Call only after the address was proved."""
    with no_tenant():
        user_id = user_id_by_email(email)
    user = person_get(user_id) if user_id else None
    return user is not None and user.has_usable_password()


def person_email(*, person: SignedIn) -> str:
    with acting(person.actor), as_person(person.user_id):
        return User.objects.get(id=person.user_id).email

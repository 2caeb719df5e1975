"""Selectors of a tenant's members and open invitations."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import NotFound
from governance.models import Invitation, Member
from governance.pages import Pages
from governance.vocabulary import Permission, RoleName, Verb


@dataclass(frozen=True)
class MemberView:
    id: UUID
    email: str
    name: str
    role: RoleName
    created_at: datetime


@dataclass(frozen=True)
class InvitationView:
    id: UUID
    email: str
    role: RoleName
    created_at: datetime
    expires_at: datetime


def members_list(*, actor: Actor, pages: Pages) -> list[MemberView]:
    """Return the members of the tenant. Raises Forbidden. Writes: AuditEntry. Two queries besides the page's own."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        rows = pages.take(Member.objects.filter(removed_at=None).select_related("user", "role").order_by("id"))
        views = [member_view(row) for row in rows]
        record(actor=actor, verb=Verb.MEMBERS_LISTED, object_type="member", object_ids=[view.id for view in views])
    return views


def member_get(*, actor: Actor, member_id: UUID) -> Member:
    """Return a member to be changed; within the caller's transaction or its own. Raises NotFound; Forbidden."""
    with acting(actor):
        row = Member.objects.filter(id=member_id, removed_at=None).select_related("user", "role").first()
    if row is None:
        authorize(actor, Permission.MEMBER_MANAGE)
        raise NotFound
    authorize(actor, Permission.MEMBER_MANAGE, Target("member", row.id, row.tenant_id))
    return row


def invitations_list(*, actor: Actor, pages: Pages) -> list[InvitationView]:
    """Return the open invitations. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        rows = pages.take(open_invitations(database_now()).order_by("-id"))
        views = [invitation_view(row) for row in rows]
        record(
            actor=actor, verb=Verb.INVITATIONS_LISTED, object_type="invitation", object_ids=[view.id for view in views]
        )
    return views


def invitation_get(*, actor: Actor, invitation_id: UUID) -> Invitation:
    """Return an open invitation. Raises NotFound; Forbidden."""
    with acting(actor):
        row = open_invitations(database_now()).filter(id=invitation_id).first()
    if row is None:
        authorize(actor, Permission.MEMBER_MANAGE)
        raise NotFound
    authorize(actor, Permission.MEMBER_MANAGE, Target("invitation", row.id, row.tenant_id))
    return row


def open_invitations(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)


def member_view(row: Member) -> MemberView:
    return MemberView(
        id=row.id,
        email=row.user.email,
        name=row.display_name,
        role=RoleName(row.role.name),
        created_at=row.created_at,
    )


def invitation_view(row: Invitation) -> InvitationView:
    return InvitationView(
        id=row.id, email=row.email, role=RoleName(row.role), created_at=row.created_at, expires_at=row.expires_at
    )

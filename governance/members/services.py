"""Services for members: invitation, role, removal. A tenant always keeps an owner."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor, CallContext, system_actor
from governance.audit.services import record
from governance.database import acting, database_now, no_tenant, tenant_transaction
from governance.errors import AddressNotProved, Conflict, Forbidden, NotFound
from governance.ids import uuid7
from governance.keys.services import credential_hash
from governance.members.selectors import (
    InvitationView,
    MemberView,
    invitation_get,
    invitation_view,
    member_get,
    member_view,
    open_invitations,
)
from governance.models import ApiKey, Invitation, Member, Role, SignInLink, Tenant
from governance.outbox.services import emit
from governance.tenants.rules import link_token_new
from governance.tenants.services import email_check, member_add, refuse_above
from governance.vocabulary import Channel, Permission, PrincipalKind, RoleName, Scope, Topic, Verb


@dataclass(frozen=True)
class NewInvitation:
    """An invitation, with a link that only shows it; the mailed link accepts it."""

    view: InvitationView
    url: str = field(repr=False)


@dataclass(frozen=True)
class Invited:
    """The content of an invitation's link for its reader. `proves_address`: the link was mailed to that address.

    Without a mail server the inviter's link admits the person too, to this tenant alone; it proves nothing.
    """

    id: UUID
    tenant_id: UUID
    tenant_name: str
    email: str
    role: RoleName
    proves_address: bool

    @property
    def may_join(self) -> bool:
        return self.proves_address or not settings.EMAIL_HOST


def member_role_change(*, actor: Actor, member_id: UUID, role: RoleName) -> MemberView:
    """Change a member's role, from its next request on. Raises NotFound; Forbidden; Conflict (the last owner).

    Writes: Member, AuditEntry.
    """
    member = member_get(actor=actor, member_id=member_id)
    _refuse_less_than_member(actor)
    with acting(actor):
        before = _refuse_ownerless(actor, member, stays_owner=role is RoleName.OWNER)
        refuse_above(actor, role)
        member.role = Role.objects.get(name=role)
        member.save(update_fields=["role"])
        record(
            actor=actor,
            verb=Verb.MEMBER_ROLE_CHANGED,
            object_type="member",
            object_ids=[member.id],
            detail={"before": before, "role": role},
        )
    return member_view(member)


def member_remove(*, actor: Actor, member_id: UUID) -> None:
    """Remove a member, from its next request on, with its keys and sign-in links. Its memories stay.

    Raises NotFound; Forbidden; Conflict (the last owner). Writes: Member, ApiKey …, SignInLink …, AuditEntry.
    """
    member = member_get(actor=actor, member_id=member_id)
    with acting(actor):
        before = _refuse_ownerless(actor, member, stays_owner=False)
        Member.objects.filter(id=member.id).update(removed_at=Now())
        keys = ApiKey.objects.filter(member_id=member.id, revoked_at=None).update(revoked_at=Now())
        SignInLink.objects.filter(member_id=member.id, used_at=None).update(used_at=Now())
        record(
            actor=actor,
            verb=Verb.MEMBER_REMOVED,
            object_type="member",
            object_ids=[member.id],
            detail={"role": before, "keys_revoked": keys},
        )


def _refuse_ownerless(actor: Actor, member: Member, *, stays_owner: bool) -> RoleName:
    """Lock all owners and return the member's current role, so that the last owner cannot be removed."""
    owners = Member.objects.select_for_update(of=("self",)).filter(role__name=RoleName.OWNER, removed_at=None)
    others = [owner for owner in owners.order_by("id") if owner.id != member.id]
    locked = Member.objects.select_for_update(of=("self",)).select_related("role").get(id=member.id)
    if locked.removed_at is not None:
        raise NotFound
    role = RoleName(locked.role.name)
    refuse_above(actor, role)
    if role is RoleName.OWNER and not stays_owner and not others:
        raise Conflict("The last owner stays: name another owner first.")
    return role


def invitation_create(*, actor: Actor, email: str, role: RoleName) -> NewInvitation:
    """Invite an address by mail. An earlier invitation of the address ends, so that only one role is offered.

    Raises Invalid; Forbidden; Conflict if already a member. Writes: Invitation …, AuditEntry …, OutboxEvent.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    _refuse_less_than_member(actor)
    refuse_above(actor, role)
    email_check(email)
    token = link_token_new()
    with acting(actor):
        if Member.objects.filter(user__email__iexact=email, removed_at=None).exists():
            raise Conflict(f"{email} is a member already.")
        _replace_earlier(actor, email)
        row = Invitation(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            email=email,
            role=role,
            inviter_id=actor.member_id,
            token_hash=credential_hash(token),
            expires_at=database_now() + timedelta(hours=settings.INVITATION_HOURS),
        )
        row.save(force_insert=True)
        row.refresh_from_db(fields=["created_at"])
        record(
            actor=actor,
            verb=Verb.INVITATION_CREATED,
            object_type="invitation",
            object_ids=[row.id],
            detail={"role": role},
        )
        emit(actor=actor, topic=Topic.INVITATION_CREATED, payload={"invitation": str(row.id)})
        return NewInvitation(view=invitation_view(row), url=invitation_url(token))


def _replace_earlier(actor: Actor, email: str) -> None:
    """Revoke earlier invitations of the address. Locks the tenant against concurrent invitations."""
    Tenant.objects.select_for_update().get(id=actor.tenant_id)
    earlier = open_invitations(database_now()).filter(email__iexact=email)
    ids = list(earlier.values_list("id", flat=True))
    if not ids:
        return
    Invitation.objects.filter(id__in=ids).update(revoked_at=Now())
    record(
        actor=actor,
        verb=Verb.INVITATION_REVOKED,
        object_type="invitation",
        object_ids=ids,
        detail={"replaced": True},
    )


def invitation_revoke(*, actor: Actor, invitation_id: UUID) -> None:
    """Revoke an invitation: its links no longer work. Raises NotFound; Forbidden. Writes: Invitation, AuditEntry."""
    row = invitation_get(actor=actor, invitation_id=invitation_id)
    with acting(actor):
        Invitation.objects.filter(id=row.id).update(revoked_at=Now())
        record(actor=actor, verb=Verb.INVITATION_REVOKED, object_type="invitation", object_ids=[row.id])


def invitation_by_token(*, token: str) -> Invited:
    """Return the invitation of a link without using it up. Raises NotFound (unknown, used, revoked or expired)."""
    digest = credential_hash(token)
    invitation_id, tenant_id = _find_by_hash(digest)
    with tenant_transaction(tenant_id):
        row = open_invitations(database_now()).filter(id=invitation_id).first()
        if row is None:
            raise NotFound
        return Invited(
            id=row.id,
            tenant_id=tenant_id,
            tenant_name=Tenant.objects.get(id=tenant_id).name,
            email=row.email,
            role=RoleName(row.role),
            proves_address=row.mailed_token_hash is not None and bytes(row.mailed_token_hash) == digest,
        )


def invitation_accept(*, token: str, request_id: str, address: str) -> Actor:
    """Accept an invitation by its mailed link, without a mail server by the inviter's; creates the user if missing. Of
    concurrent calls, one succeeds.

    Raises NotFound; AddressNotProved; Conflict if already a member. Writes: Invitation, User?, Member, Persona?,
    AuditEntry × 2.
    """
    invited = invitation_by_token(token=token)
    if not invited.may_join:
        raise AddressNotProved(f"Open the link that was mailed to {invited.email}.", rule="invitation")
    inviting = system_actor(tenant_id=invited.tenant_id, request_id=request_id, channel=Channel.WEB)
    with acting(inviting):
        open_one = open_invitations(database_now()).select_for_update().filter(id=invited.id).first()
        if open_one is None:
            raise NotFound
        member = member_add(actor=inviting, email=invited.email, role=invited.role)
        Invitation.objects.filter(id=invited.id).update(accepted_at=Now())
        if invited.proves_address:
            Member.objects.filter(id=member.id).update(proved_at=Now())
        actor = Actor(
            tenant_id=invited.tenant_id,
            principal_kind=PrincipalKind.MEMBER,
            principal_id=member.id,
            member_id=member.id,
            role=invited.role,
            scopes=None,
            request_id=request_id,
            context=CallContext(channel=Channel.WEB, address=address),
        )
        record(actor=actor, verb=Verb.INVITATION_ACCEPTED, object_type="invitation", object_ids=[invited.id])
    return actor


def invitation_url(token: str) -> str:
    return f"{settings.PUBLIC_URL}/invitation/{token}/"


def _find_by_hash(digest: bytes) -> tuple[UUID, UUID]:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_invitation_by_hash(%s)", [digest])
        found = cursor.fetchone()
    if found is None:
        raise NotFound
    return found[0], found[1]


def _refuse_less_than_member(actor: Actor) -> None:
    """Refuse a key without all scopes: a new member has all rights of its role, so the key could gain rights."""
    if actor.scopes is not None and not actor.scopes >= frozenset(Scope):
        raise Forbidden(
            "A key gives people roles only if it has every scope: a member may do all that the role allows.",
            permission=Permission.MEMBER_MANAGE,
            rule="scopes",
        )

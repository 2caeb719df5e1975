"""Rebuilding of actors: a job acts as its requester, with the rights that the requester has when it runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.actor import Actor, Binding, CallContext
from governance.database import database_now, tenant_transaction
from governance.errors import Forbidden
from governance.models import ApiKey, Member, SignInLink
from governance.vocabulary import PrincipalKind, RoleName, Scope


def reload_actor(
    *, tenant_id: UUID, kind: PrincipalKind, principal_id: UUID, request_id: str, context: CallContext
) -> Actor:
    """Return the actor of a member or a key, with current rights. Raises Forbidden once the key was revoked or the
    member removed.
    """
    with tenant_transaction(tenant_id):
        key = _key(principal_id) if kind is PrincipalKind.API_KEY else None
        member = member_active(key.member_id if key else principal_id)
    if member is None or (kind is PrincipalKind.API_KEY and key is None):
        raise Forbidden("Who asked for this job may no longer do anything here.", rule="revoked")
    return Actor(
        tenant_id=tenant_id,
        principal_kind=kind,
        principal_id=principal_id,
        member_id=member.id,
        role=RoleName(member.role.name),
        scopes=frozenset(Scope(scope) for scope in key.scopes) if key else None,
        request_id=request_id,
        context=context,
        persona_id=key.persona_id if key else None,
        binding=binding_of(key.persona_id, key.namespaces) if key else None,
    )


def actor_now(actor: Actor) -> Actor:
    """Return the same principal with its current rights, for work after the response.

    Raises Forbidden once the key was revoked or the member removed.
    """
    if actor.is_system:
        return actor
    found = reload_actor(
        tenant_id=actor.tenant_id,
        kind=actor.principal_kind,
        principal_id=actor.principal_id,
        request_id=actor.request_id,
        context=actor.context,
    )
    return replace(found.speaking_as(actor.persona_id), persona_scope=actor.persona_scope)


def binding_of(persona_id: UUID | None, namespaces: Sequence[str]) -> Binding | None:
    """Return the binding in the columns of a key, or None if the key is not bound."""
    return Binding(persona_id, tuple(namespaces)) if persona_id or namespaces else None


def member_active(member_id: UUID) -> Member | None:
    """Return the member with its role, or None if the membership has ended; within the tenant's transaction."""
    return Member.objects.filter(id=member_id, removed_at=None, user__is_active=True).select_related("role").first()


def links_usable(now: datetime) -> QuerySet[SignInLink]:
    """Return the tenant's sign-in links that still work."""
    return SignInLink.objects.filter(
        used_at=None, expires_at__gt=now, member__removed_at=None, member__user__is_active=True
    )


def _key(key_id: UUID) -> ApiKey | None:
    not_expired = Q(expires_at=None) | Q(expires_at__gt=database_now())
    usable = ApiKey.objects.filter(id=key_id, revoked_at=None, persona__removed_at=None).filter(not_expired)
    return usable.first()

"""Audit entries for events of a person, such as a changed password: one in each of their tenants."""

from collections.abc import Mapping
from uuid import UUID

from governance.accounts.selectors import memberships_of
from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.database import tenant_transaction
from governance.models import Member
from governance.vocabulary import Channel, Outcome, PrincipalKind, RoleName, Verb


def person_event_record(
    *,
    user_id: UUID,
    verb: Verb,
    request_id: str,
    address: str,
    detail: Mapping[str, str | int | bool | None],
    outcome: Outcome = Outcome.DONE,
) -> None:
    """Record the event in each tenant of the person, one transaction per tenant. Raises AuditUnavailable."""
    for membership in memberships_of(user_id):
        with tenant_transaction(membership.tenant_id):
            role = Member.objects.select_related("role").get(id=membership.member_id).role.name
            actor = Actor(
                tenant_id=membership.tenant_id,
                principal_kind=PrincipalKind.MEMBER,
                principal_id=membership.member_id,
                member_id=membership.member_id,
                role=RoleName(role),
                scopes=None,
                request_id=request_id,
                context=CallContext(channel=Channel.WEB, address=address),
            )
            record(
                actor=actor,
                verb=verb,
                object_type="member",
                object_ids=[membership.member_id],
                detail=detail,
                outcome=outcome,
            )

"""Sharing policies: new grants that they forbid are refused, and earlier ones are listed.

A grant that is older than a policy holds until it is revoked: otherwise every search would weigh every policy against
every grant. The simulator counts such grants, and the page of a policy lists them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.grantables import Grantable, grantables
from governance.access.decisions.rules import Target, policy_name
from governance.access.decisions.services import authorize
from governance.access.grants.grantees import Grantee, name_grantees
from governance.actor import Actor
from governance.database import acting
from governance.errors import SharingForbidden
from governance.models import AccessGroup
from governance.personas.lookup import OBJECT_TYPE as PERSONA
from governance.policies.active import policies_active
from governance.policies.rules import Allowed, Facts, Rule, Sharing, may_share
from governance.policies.selectors import check_sharing
from governance.vocabulary import Effect, Permission, Recipient

FactsOf = Callable[[Collection[UUID]], dict[UUID, Facts]]
"""What policies must know of these objects; without those that are there no more. Use inside `acting`."""
AT_ONCE = 1_000  # grants held at once
# A persona may later hold memory of any namespace of its member: it is shareable only if every namespace is.
_facts: dict[str, FactsOf] = {PERSONA: lambda ids: {id: Facts(namespace="") for id in ids}}


@dataclass(frozen=True)
class Forbade:
    """An older grant that `rule` forbids."""

    grant_id: UUID
    object_type: str
    object_id: UUID
    holder: Grantee
    rule: str


def declare_facts(object_type: str, facts: FactsOf) -> None:
    _facts[object_type] = facts


def refuse_denied_sharing(actor: Actor, target: Target, holder: Grantee) -> None:
    """Raise Forbidden, with the policy's name, if a sharing policy forbids this grant."""
    facts = _facts[target.object_type]([target.object_id])[target.object_id]
    answer = check_sharing(actor=actor, facts=facts, recipient=Recipient(holder.kind), roles=holder.reaches)
    if not answer.allowed:
        raise SharingForbidden(
            f"The sharing policy {policy_name(answer.rule)} forbids this grant. Give it to somebody else, or ask an "
            "admin about the policy.",
            permission=Permission.ACCESS_SHARE,
            rule=answer.rule,
            object_type=target.object_type,
            object_id=target.object_id,
            policy=policy_name(answer.rule),
        )


def grants_forbidden(*, actor: Actor, most: int) -> tuple[int, list[Forbade]]:
    """Count the live grants that policies in force forbid, and return at most `most` of them. Raises Forbidden.

    Reads every live allowance of the tenant if there is a sharing policy.
    """
    authorize(actor, Permission.POLICY_READ)
    with acting(actor):
        found = list(grants_against(actor.tenant_id, policies_active(actor).sharing))
    return len(found), found[:most]


def grants_against(tenant_id: UUID, rules: Sequence[Rule[Sharing]]) -> Iterator[Forbade]:
    """Yield the tenant's live allowances that these rules forbid, kind by kind, oldest first. Use inside `acting`."""

    @cache
    def answer(facts: Facts, holder: Grantee) -> Allowed:
        return may_share(rules, facts, Recipient(holder.kind), holder.reaches)

    for kind in grantables() if rules else ():
        found = _allowances(tenant_id, kind).iterator(chunk_size=AT_ONCE)
        while rows := list(islice(found, AT_ONCE)):
            facts = _facts[kind.object_type]({row.content_object_id for row in rows})
            groups = AccessGroup.objects.filter(id__in={row.group_id for row in rows})
            holders = name_grantees(groups)
            for row in rows:
                about, holder = facts.get(row.content_object_id), holders.get(row.group_id)
                if about is not None and holder is not None and not (verdict := answer(about, holder)).allowed:
                    yield Forbade(row.id, kind.object_type, row.content_object_id, holder, verdict.rule)


def _allowances(tenant_id: UUID, kind: Grantable) -> Any:
    live = Q(expires_at=None) | Q(expires_at__gt=Now())
    return kind.grants.objects.filter(live, tenant_id=tenant_id, effect=Effect.ALLOW).order_by("id")

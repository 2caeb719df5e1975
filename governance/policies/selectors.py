"""Selectors of policies, and their decisions for the packages above."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import F

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.models import Policy, PolicyVersion
from governance.pages import Pages
from governance.policies.active import policies_active
from governance.policies.rules import (
    Allowed,
    AnyDocument,
    Facts,
    PiiRule,
    approval_of,
    load_document,
    may_publish,
    may_share,
    pii_rule_of,
)
from governance.vocabulary import Permission, PiiAction, PolicyKind, PrincipalKind, PublishApproval, Recipient, RoleName


@dataclass(frozen=True)
class PolicyView:
    """A version of a policy."""

    id: UUID
    kind: PolicyKind
    name: str
    version: int
    enabled: bool
    document: AnyDocument
    reason: str
    author_kind: PrincipalKind
    author_id: UUID
    changed_at: datetime


def policies_list(
    *, actor: Actor, pages: Pages, kind: PolicyKind | None = None, enabled: bool | None = None
) -> list[PolicyView]:
    """Return the tenant's current policies, newest first. `enabled`: None for both. Raises Forbidden."""
    authorize(actor, Permission.POLICY_READ)
    with acting(actor):
        rows = PolicyVersion.objects.filter(tenant_id=actor.tenant_id, number=F("policy__version"))
        rows = rows.filter(policy__kind=kind) if kind else rows
        rows = rows if enabled is None else rows.filter(enabled=enabled)
        return [policy_view(row) for row in pages.take(rows.select_related("policy").order_by("-policy_id"))]


def policy_get(*, actor: Actor, policy_id: UUID) -> PolicyView:
    """Return one policy. Raises NotFound; Forbidden."""
    with acting(actor):
        policy = policy_locate(actor, policy_id, Permission.POLICY_READ)
        return policy_view(PolicyVersion.objects.select_related("policy").get(policy=policy, number=policy.version))


def policy_versions(*, actor: Actor, policy_id: UUID, pages: Pages) -> list[PolicyView]:
    """Return all versions of a policy, newest first. Raises NotFound; Forbidden."""
    with acting(actor):
        policy = policy_locate(actor, policy_id, Permission.POLICY_READ)
        rows = PolicyVersion.objects.filter(policy=policy).select_related("policy")
        return [policy_view(row) for row in pages.take(rows.order_by("-number"))]


def policy_locate(actor: Actor, policy_id: UUID, permission: Permission) -> Policy:
    """Return the policy, if the actor has `permission` for it. Raises NotFound; Forbidden."""
    policy = Policy.objects.filter(tenant_id=actor.tenant_id, id=policy_id).first()
    if policy is None:
        raise NotFound
    authorize(actor, permission, Target("policy", policy.id, policy.tenant_id))
    return policy


def policy_view(row: PolicyVersion) -> PolicyView:
    kind = PolicyKind(row.policy.kind)
    return PolicyView(
        id=row.policy_id,
        kind=kind,
        name=row.policy.name,
        version=row.number,
        enabled=row.enabled,
        document=load_document(kind, row.document),
        reason=row.reason,
        author_kind=PrincipalKind(row.principal_kind),
        author_id=row.principal_id,
        changed_at=row.created_at,
    )


def check_sharing(*, actor: Actor, facts: Facts, recipient: Recipient, roles: Collection[RoleName] = ()) -> Allowed:
    """Decide whether memories with `facts` may be shared with a recipient. Called before a grant is made.

    A fact that is None may have any value: a namespace may be shared only if every memory in it may be.
    """
    return may_share(policies_active(actor).sharing, facts, recipient, roles)


def check_publishing(*, actor: Actor, facts: Facts) -> Allowed:
    """Decide whether memories with `facts` may leave the tenant. Called before they are published."""
    return may_publish(policies_active(actor).sharing, facts)


def publish_approval(*, actor: Actor) -> PublishApproval:
    """Return the kinds of publications that another member must approve."""
    return approval_of(policies_active(actor).sharing)


def pii_rule(*, actor: Actor, namespace_path: str, sensitivity: str) -> PiiRule:
    """Return the action for each kind of finding in a text of this namespace and sensitivity; the installation's
    default if no policy applies.
    """
    found = pii_rule_of(policies_active(actor).pii, Facts(namespace=namespace_path, sensitivity=sensitivity))
    return found if found.rule else PiiRule(action=PiiAction(settings.PII_ACTION))


def pii_action(*, actor: Actor, namespace_path: str, sensitivity: str) -> PiiAction:
    """Return the action for kinds of findings without an action of their own."""
    return pii_rule(actor=actor, namespace_path=namespace_path, sensitivity=sensitivity).action

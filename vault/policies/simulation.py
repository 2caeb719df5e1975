"""Simulation of a policy with the real rules and rows. Writes nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid
from governance.models import PolicyVersion
from governance.policies.active import ActivePolicies, policies_active
from governance.policies.purposes import where_condition
from governance.policies.rules import AnyDocument, Quota, Rule, document_read, load_document
from governance.policies.selectors import policy_locate
from governance.policies.services import PolicyDraft, terms
from governance.vocabulary import Permission, PolicyKind
from vault.policies.effects import (
    Change,
    examination_effects,
    pii_effects,
    purpose_effects,
    quota_effects,
    retention_effects,
    sharing_changes,
)
from vault.policies.rules import Outcome

NEW = UUID(int=0)  # a policy that has no id yet
EFFECTS = {
    PolicyKind.RETENTION: retention_effects,
    PolicyKind.SHARING: sharing_changes,
    PolicyKind.PURPOSE: purpose_effects,
    PolicyKind.PII: pii_effects,
    PolicyKind.EXAMINATION: examination_effects,
}


def policy_simulate(*, actor: Actor, draft: PolicyDraft, replaces: UUID | None = None, days: int) -> list[Outcome]:
    """Simulate saving `draft`, as a new policy or as the next version of `replaces`.

    `days`: the number of past days whose writes and reads are examined. Raises NotFound; Forbidden; Invalid. Writes
    nothing. Reads one row of every memory that either version selects, without decrypting it.
    """
    authorize(actor, Permission.POLICY_MANAGE)
    with acting(actor):
        former = _locate_former(actor, draft.kind, replaces) if replaces else None
        document = document_read(draft.kind, draft.document, terms())
        before, now = policies_active(actor), database_now()
        change = Change(
            tenant_id=actor.tenant_id,
            before=before,
            after=_policies_after(before, draft, document, former),
            reach=_affected_rows(document, former),
            now=now,
            since=now - timedelta(days=days),
        )
        if isinstance(document, Quota):
            return quota_effects(change, document)
        return EFFECTS[draft.kind](change)


def _locate_former(actor: Actor, kind: PolicyKind, policy_id: UUID) -> PolicyVersion:
    """Return the current version of the replaced policy. Raises NotFound; Forbidden; Invalid (it has another kind)."""
    policy = policy_locate(actor, policy_id, Permission.POLICY_MANAGE)
    if policy.kind != kind:
        raise Invalid(errors=[FieldError("kind", f"this policy is of the kind {policy.kind}")])
    return PolicyVersion.objects.get(policy=policy, number=policy.version)


def _affected_rows(document: AnyDocument, former: PolicyVersion | None) -> Q:
    if isinstance(document, Quota):
        return Q()
    reach = where_condition(document.where)
    if former is None:
        return reach
    old = load_document(PolicyKind(former.policy.kind), former.document)
    return reach if isinstance(old, Quota) else reach | where_condition(old.where)


def _policies_after(
    before: ActivePolicies, draft: PolicyDraft, document: AnyDocument, former: PolicyVersion | None
) -> ActivePolicies:
    """Return the policies that are in force after the draft is saved."""
    if isinstance(document, Quota):
        return replace(before, quotas=_quotas_after(before, draft, document, former))
    name = draft.kind.value
    policy_id = former.policy_id if former else NEW
    remaining: list[Rule[Any]] = [rule for rule in getattr(before, name) if rule.policy_id != policy_id]
    if draft.enabled:
        remaining.append(Rule(policy_id, draft.name, former.number + 1 if former else 1, document))
    changed: dict[str, Any] = {name: tuple(remaining)}
    return replace(before, **changed)


def _quotas_after(
    before: ActivePolicies, draft: PolicyDraft, quota: Quota, former: PolicyVersion | None
) -> tuple[Quota, ...]:
    remaining = list(before.quotas)
    if former is not None and former.enabled:
        remaining.remove(load_document(PolicyKind.QUOTA, former.document))  # type: ignore[arg-type]
    return (*remaining, *([quota] if draft.enabled else []))

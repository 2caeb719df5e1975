"""Services that create and change policies. Each change is a version, and the audit log has the former one."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, epoch_advance
from governance.errors import Conflict, FieldError, Invalid, PreconditionRequired, VersionConflict
from governance.ids import uuid7
from governance.models import ApiKey, Member, Policy, PolicyVersion
from governance.policies.retention import emit_retention_change
from governance.policies.rules import AnyDocument, Limits, Quota, Terms, document_json, document_read, load_document
from governance.policies.selectors import PolicyView, policy_locate, policy_view
from governance.versions import version_check
from governance.vocabulary import Permission, PolicyKind, QuotaTargetKind, Verb


@dataclass(frozen=True)
class PolicyDraft:
    """The content of a new policy; `document`: parsed JSON, not yet validated."""

    kind: PolicyKind
    name: str
    document: object
    enabled: bool = True
    reason: str = ""


@dataclass(frozen=True)
class PolicyChanges:
    """The changes of a policy. None leaves a field unchanged."""

    document: object = None
    enabled: bool | None = None
    reason: str = ""


def terms() -> Terms:
    """Return the terms (memory types and the like) that a policy may name; packages above define them."""
    return {name: frozenset(words) for name, words in settings.POLICY_TERMS.items()}


def policy_create(*, actor: Actor, draft: PolicyDraft) -> PolicyView:
    """Create a policy.

    Raises Forbidden; Invalid; Conflict (the name is taken). Writes: Policy, PolicyVersion, AuditEntry, OutboxEvent?.
    """
    authorize(actor, Permission.POLICY_MANAGE)
    document = document_read(draft.kind, draft.document, terms())
    with acting(actor):
        epoch_advance()
        if Policy.objects.filter(name=draft.name).exists():
            raise Conflict(f"There is a policy named {draft.name} already.")
        _check_quota_target(document)
        policy = Policy(id=uuid7(), tenant_id=actor.tenant_id, kind=draft.kind, name=draft.name, version=1)
        policy.save(force_insert=True)
        return _version_add(actor, policy, document, enabled=draft.enabled, reason=draft.reason, before=None)


def policy_change(
    *,
    actor: Actor,
    policy_id: UUID,
    expected_versions: Collection[int] | None,
    changes: PolicyChanges,
    must_expect: bool = True,
) -> PolicyView:
    """Create the next version of a policy.

    Raises, in this order: NotFound, Forbidden, PreconditionRequired, Invalid.
    Writes: Policy, PolicyVersion, AuditEntry, OutboxEvent?.
    """
    with acting(actor):
        policy = policy_change_ask(
            actor=actor, policy_id=policy_id, expected_versions=expected_versions, must_expect=must_expect
        )
        before = PolicyVersion.objects.get(policy=policy, number=policy.version)
        raw = before.document if changes.document is None else changes.document
        document = document_read(PolicyKind(policy.kind), raw, terms())
        _check_quota_target(document)
        policy.version += 1
        policy.save(update_fields=["version"])
        enabled = before.enabled if changes.enabled is None else changes.enabled
        return _version_add(actor, policy, document, enabled=enabled, reason=changes.reason, before=before)


def policy_change_ask(
    *, actor: Actor, policy_id: UUID, expected_versions: Collection[int] | None, must_expect: bool = False
) -> Policy:
    """Return the policy, locked, if the actor may change it.

    Raises, in this order: NotFound; Forbidden; PreconditionRequired; VersionConflict. Writes: Tenant.
    """
    with acting(actor):
        policy = policy_locate(actor, policy_id, Permission.POLICY_MANAGE)
        if expected_versions is None and must_expect:
            raise PreconditionRequired
        _lock_policies(policy, expected_versions)
    return policy


def policy_disable(
    *,
    actor: Actor,
    policy_id: UUID,
    expected_versions: Collection[int] | None = None,
    reason: str = "",
) -> None:
    """Disable a policy by a new version, unless it is disabled already.

    Raises, in this order: NotFound; Forbidden; VersionConflict. Writes: Policy, PolicyVersion, AuditEntry and event.
    """
    with acting(actor):
        policy = policy_change_ask(actor=actor, policy_id=policy_id, expected_versions=expected_versions)
        if not PolicyVersion.objects.get(policy=policy, number=policy.version).enabled:
            return
        off = PolicyChanges(enabled=False, reason=reason)
        policy_change(actor=actor, policy_id=policy_id, expected_versions=[policy.version], changes=off)


def quota_set(
    *, actor: Actor, quota: Quota, reason: str = "", expected_versions: Collection[int] | None = None
) -> PolicyView:
    """Create or change the only quota of a principal, and disable its others; a quota without limits is disabled.

    Raises Forbidden; Invalid; VersionConflict. Writes: Policy?, PolicyVersion, AuditEntry.
    """
    authorize(actor, Permission.POLICY_MANAGE)
    document = document_json(PolicyKind.QUOTA, quota)
    enabled = quota.limits != Limits()
    with acting(actor):
        epoch_advance()  # first: two who set the same quota wait for each other here
        known, others = _quotas_of(actor, quota)
        for other in others:
            policy_disable(actor=actor, policy_id=other.id, reason=reason)
        if known is None and expected_versions is not None:
            raise VersionConflict("There is no such quota yet.")
        if known is None:
            draft = PolicyDraft(PolicyKind.QUOTA, quota_name(quota), document, enabled=enabled, reason=reason)
            return policy_create(actor=actor, draft=draft)
        changes = PolicyChanges(document, enabled=enabled, reason=reason)
        return policy_change(
            actor=actor,
            policy_id=known.id,
            expected_versions=expected_versions,
            changes=changes,
            must_expect=False,
        )


def _quotas_of(actor: Actor, quota: Quota) -> tuple[Policy | None, list[Policy]]:
    """Return the policy to change, and the other enabled quotas of the same principal."""
    rows = PolicyVersion.objects.filter(
        tenant_id=actor.tenant_id, policy__kind=PolicyKind.QUOTA, number=F("policy__version")
    )
    found = [
        row
        for row in rows.select_related("policy").order_by("policy_id")
        if (row.enabled or row.policy.name == quota_name(quota))
        and getattr(load_document(PolicyKind.QUOTA, row.document), "holder", None) == quota.holder
    ]
    found.sort(key=lambda row: row.policy.name != quota_name(quota))
    policies = [row.policy for row in found]
    return (policies[0] if policies else None), [row.policy for row in found[1:] if row.enabled]


def quota_name(quota: Quota) -> str:
    """Return the policy name of a quota that was set through quotas/."""
    return ".".join(["quota", quota.holder.kind, *([str(quota.holder.id)] if quota.holder.id else [])])


def _lock_policies(policy: Policy, expected_versions: Collection[int] | None) -> None:
    """Lock the tenant's policies, and reload the version of this one. Raises VersionConflict."""
    epoch_advance()
    policy.refresh_from_db(fields=["version"])
    if expected_versions is not None:
        version_check("policy", policy.version, expected_versions)


def _version_add(
    actor: Actor, policy: Policy, document: AnyDocument, *, enabled: bool, reason: str, before: PolicyVersion | None
) -> PolicyView:
    kind = PolicyKind(policy.kind)
    row = PolicyVersion(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        policy=policy,
        number=policy.version,
        enabled=enabled,
        document=document_json(kind, document),
        reason=reason,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
    )
    row.save(force_insert=True)
    row.refresh_from_db(fields=["created_at"])
    record(
        actor=actor,
        verb=_verb(kind, enabled=enabled, before=before),
        object_type="policy",
        object_ids=[policy.id],
        version=row.number,
        before_hash=_hash(before.enabled, before.document) if before else None,
        after_hash=_hash(enabled, row.document),
        detail={"kind": kind, "name": policy.name, "enabled": enabled},
    )
    if kind is PolicyKind.RETENTION:
        emit_retention_change(actor)
    return policy_view(row)


def _verb(kind: PolicyKind, *, enabled: bool, before: PolicyVersion | None) -> Verb:
    if kind is PolicyKind.QUOTA:
        return Verb.QUOTA_CHANGED
    if before is None:
        return Verb.POLICY_CREATED
    return Verb.POLICY_DISABLED if before.enabled and not enabled else Verb.POLICY_CHANGED


def _hash(enabled: bool, document: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps([enabled, document], sort_keys=True).encode()).digest()


def _check_quota_target(document: AnyDocument) -> None:
    """Check that a quota of one member or key names one of this tenant. Raises Invalid."""
    if not isinstance(document, Quota) or document.holder.id is None:
        return
    rows = Member.objects if document.holder.kind is QuotaTargetKind.MEMBER else ApiKey.objects
    if not rows.filter(id=document.holder.id).exists():
        raise Invalid(errors=[FieldError("document.holder.id", f"no {document.holder.kind} of this tenant")])

"""Services that give and revoke grants. Actors give at most their own rights; a revocation holds for later requests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from governance.access.decisions.conditions import ConditionFault, check_conditions, narrows
from governance.access.decisions.grantables import Grantable, grantable_of, grantables, permission_ids
from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize, authorize_giving, decide_on, is_allowed
from governance.access.grants.grantees import Grantee, grantee_find, group_ensure
from governance.access.grants.sharing_policies import refuse_denied_sharing
from governance.access.grants.views import GrantView, grant_views
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, clear_transaction_cache, database_now
from governance.errors import FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.models import GrantCondition
from governance.models.grant import ObjectGrant
from governance.vocabulary import Action, Effect, GranteeKind, Permission, RoleName, Verb


@dataclass(frozen=True)
class GrantDraft:
    """The fields of a new grant. holder: the id of a role, member, persona or key; a role also by name. conditions: see
    authz.conditions.
    """

    holder_kind: GranteeKind
    holder: str
    object_type: str
    object_id: UUID
    action: Action
    effect: Effect = Effect.ALLOW
    expires_at: datetime | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)


def grant_create(*, actor: Actor, draft: GrantDraft) -> tuple[GrantView, bool]:
    """Create a grant, and return it with True if it is new. Repeating a grant only changes its end, if the actor may
    revoke it.

    Allowing to read or write takes the same right and the right to share the object; any other grant takes the right to
    govern it. No sharing policy may forbid it. Raises NotFound; Forbidden; Invalid. Writes: AccessGroup?,
    GrantCondition?, the grant, AuditEntry.
    """
    kind = find_grantable(draft.object_type, field="object.type")
    with acting(actor):
        target = kind.locate(actor, draft.object_id)
        _authorize_grant(actor, kind, target, draft)
        checked = _conditions(draft)
        if draft.expires_at is not None and draft.expires_at <= database_now():
            raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
        holder = grantee_find(actor.tenant_id, draft.holder_kind, draft.holder)
        _refuse_above(actor, holder, draft)
        if draft.effect is Effect.ALLOW:
            refuse_denied_sharing(actor, target, holder)
        row, new = _store_grant(actor, kind, draft, holder, checked)
        if not new and row.expires_at != draft.expires_at:
            _authorize_change(actor, row, target)
            row.expires_at = draft.expires_at
            row.save(update_fields=["expires_at"])
        view = grant_views([(draft.object_type, row)])[0]
        _record_change(actor, Verb.GRANT_CREATED if new else Verb.GRANT_CHANGED, view)
    return view, new


def grant_create_ask(*, actor: Actor, object_type: str, object_id: UUID) -> None:
    """Check that the actor may give any grant on this object. Raises NotFound; Forbidden; Invalid."""
    kind = find_grantable(object_type, field="object.type")
    with acting(actor):
        authorize_giving(actor, Permission.ACCESS_SHARE, kind.locate(actor, object_id))


def grant_revoke(*, actor: Actor, grant_id: UUID, dry_run: bool = False) -> None:
    """Revoke a grant. The actor must govern its object, or have given the grant and still share the object.

    dry_run: only check. Raises NotFound; Forbidden. Writes: deletes the grant; AuditEntry.
    """
    with acting(actor):
        kind, row = grant_locate(actor, grant_id)
        view = grant_views([(kind.object_type, row)])[0]
        _authorize_change(actor, row, kind.locate(actor, view.object_id))
        if dry_run:
            return
        row.delete()
        _record_change(actor, Verb.GRANT_REVOKED, view)


def grant_locate(actor: Actor, grant_id: UUID) -> tuple[Grantable, ObjectGrant]:
    """Return the grant of any kind with this id. Raises NotFound. The caller must authorize."""
    for kind in grantables():
        row = kind.grants.objects.filter(tenant_id=actor.tenant_id, id=grant_id).select_related("condition").first()
        if row is not None:
            return kind, row
    raise NotFound


def find_grantable(object_type: str, *, field: str) -> Grantable:
    """Return the kind of objects with this name. Raises Invalid, with the known names."""
    kind = grantable_of(object_type)
    if kind is None:
        known = ", ".join(grantable.object_type for grantable in grantables())
        raise Invalid(errors=[FieldError(field, f"one of {known}")])
    return kind


def _authorize_grant(actor: Actor, kind: Grantable, target: Target, draft: GrantDraft) -> None:
    """Check that the actor may give this grant. Raises NotFound; Forbidden."""
    governing = draft.effect is Effect.DENY or draft.action in {Action.SHARE, Action.GOVERN}
    authorize_giving(actor, Permission.ACCESS_GOVERN if governing else Permission.ACCESS_SHARE, target)
    if not is_allowed(actor, Permission.GRANT_MANAGE):
        _refuse_past(actor, Permission.ACCESS_SHARE, target, draft)
    if draft.effect is Effect.ALLOW:
        permission = kind.permissions[draft.action]
        authorize(actor, permission, target)
        _refuse_past(actor, permission, target, draft)


def _authorize_change(actor: Actor, row: ObjectGrant, target: Target) -> None:
    """Check that the actor may end this grant or change its end. Raises NotFound; Forbidden."""
    given = (row.given_by_kind, row.given_by) == (actor.principal_kind, actor.principal_id)
    own = given and row.effect == Effect.ALLOW
    authorize_giving(actor, Permission.ACCESS_SHARE if own else Permission.ACCESS_GOVERN, target)


def _refuse_past(actor: Actor, permission: Permission, target: Target, draft: GrantDraft) -> None:
    """Refuse a grant wider than the actor's own access: it must lie within the end and conditions of that access."""
    decision = decide_on(actor, permission, target)
    if decision.grant_id is None:
        return
    _, own = grant_locate(actor, decision.grant_id)
    outlives = own.expires_at is not None and (draft.expires_at is None or draft.expires_at > own.expires_at)
    if outlives or (own.condition and not narrows(_conditions(draft), own.condition.document)):
        raise Forbidden(
            "You have this for a time or under a condition, and cannot give more than that.",
            permission=permission,
            rule=decision.rule_reference,
            object_type=target.object_type,
            object_id=target.object_id,
        )


def _refuse_above(actor: Actor, holder: Grantee, draft: GrantDraft) -> None:
    """Refuse a denial to owners by an actor who is no owner."""
    if (
        draft.effect is Effect.DENY
        and holder.role is RoleName.OWNER
        and not (actor.is_system or actor.role is RoleName.OWNER)
    ):
        raise Forbidden("Only an owner can deny something to owners.", rule="above", object_type="member")


def _conditions(draft: GrantDraft) -> dict[str, Any]:
    try:
        return check_conditions(draft.conditions)
    except ConditionFault as fault:
        raise Invalid(errors=[FieldError(f"conditions.{fault.part}", fault.message)]) from fault


def _store_grant(
    actor: Actor, kind: Grantable, draft: GrantDraft, holder: Grantee, conditions: Mapping[str, Any]
) -> tuple[ObjectGrant, bool]:
    group = group_ensure(actor.tenant_id, holder)
    condition = _condition_ensure(actor, conditions) if conditions else None
    row, new = kind.grants.objects.get_or_create(
        tenant_id=actor.tenant_id,
        content_object_id=draft.object_id,
        group=group,
        permission_id=permission_ids(kind.grants)[draft.action],
        effect=draft.effect,
        condition=condition,
        defaults={
            "id": uuid7(),
            "expires_at": draft.expires_at,
            "given_by_kind": actor.principal_kind,
            "given_by": actor.principal_id,
        },
    )
    return kind.grants.objects.select_related("condition").get(id=row.id), new


def _condition_ensure(actor: Actor, conditions: Mapping[str, Any]) -> GrantCondition:
    fingerprint = sha256(json.dumps(conditions, sort_keys=True).encode()).digest()
    new = GrantCondition(id=uuid7(), tenant_id=actor.tenant_id, document=dict(conditions), fingerprint=fingerprint)
    GrantCondition.objects.bulk_create([new], ignore_conflicts=True)
    return GrantCondition.objects.get(tenant_id=actor.tenant_id, fingerprint=fingerprint)


def _record_change(actor: Actor, verb: Verb, view: GrantView) -> None:
    """Record the change in the audit log, and clear the grants cached in this transaction."""
    clear_transaction_cache()
    record(
        actor=actor,
        verb=verb,
        object_type=view.object_type,
        object_ids=[view.object_id],
        detail={
            "grant": str(view.id),
            "holder_kind": view.holder.kind,
            "holder": str(view.holder.id),
            "action": view.action,
            "effect": view.effect,
            "expires_at": view.expires_at.isoformat() if view.expires_at else None,
            "conditions": " ".join(sorted(view.conditions)),  # their kinds; what they say is free text
        },
    )

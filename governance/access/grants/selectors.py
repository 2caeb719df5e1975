"""Selectors of grants, and of the decision and rule for any principal."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.access.decisions.grantables import Grantable, grantable_of, grantables
from governance.access.decisions.past_grants import find_grants_at
from governance.access.decisions.principal_grants import find_grants_on, principal_grants
from governance.access.decisions.rules import Decision, Target, decide, decide_by_grant
from governance.access.decisions.services import authorize_disclosure, authorize_giving, is_allowed
from governance.access.grants.grantees import grantee_find
from governance.access.grants.services import find_grantable, grant_locate
from governance.access.grants.views import GrantView, grant_views
from governance.actor import Actor, CallContext, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid, NotFound
from governance.models import ApiKey, Persona
from governance.object_names import names_find
from governance.pages import MergedTables
from governance.tenants.principals import reload_actor
from governance.vocabulary import Action, GranteeKind, Permission, PrincipalKind, RoleName, Verb

Rows = QuerySet[Any]


@dataclass(frozen=True)
class GrantFilter:
    """Filters of a list of grants. None means any."""

    object_type: str | None = None
    object_id: UUID | None = None
    holder_kind: GranteeKind | None = None
    holder: str | None = None


@dataclass(frozen=True)
class Checked:
    """The decision on a checked access. grant: the grant that decided, if any; beside: one that would allow it, too."""

    decision: Decision
    grant: GrantView | None
    beside: GrantView | None = None


def grants_list(*, actor: Actor, wanted: GrantFilter, pages: MergedTables) -> list[GrantView]:
    """Return a page of grants: all of them if the actor manages grants; else those on objects that the actor may share,
    or that the actor has given or received.

    Raises NotFound; Forbidden; Invalid. Writes: AuditEntry.
    """
    with acting(actor):
        kinds = _kinds(actor, wanted)
        condition = _condition(actor, wanted)
        page = pages.take([(kind.object_type, _visible_rows(actor, kind, condition)) for kind in kinds])
        views = grant_views(page)
        record(actor=actor, verb=Verb.GRANT_LISTED, object_type="grant", object_ids=[view.id for view in views])
    return views


def grants_list_at(*, actor: Actor, object_type: str, object_id: UUID, at: datetime) -> list[GrantView]:
    """Return the grants on an object that stood at a time, oldest first, for an actor who may share it.

    Raises NotFound; Forbidden; Invalid. Writes: AuditEntry.
    """
    kind = find_grantable(object_type, field="object_type")
    with acting(actor):
        authorize_giving(actor, Permission.ACCESS_SHARE, kind.locate(actor, object_id))
        rows = find_grants_at(kind, tenant_id=actor.tenant_id, object_id=object_id, at=at)
        views = grant_views([(kind.object_type, row) for row in rows])
        record(actor=actor, verb=Verb.GRANT_LISTED, object_type="grant", object_ids=[view.id for view in views])
    return views


def grant_get(*, actor: Actor, grant_id: UUID) -> GrantView:
    """Return one grant. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        kind, row = grant_locate(actor, grant_id)
        view = grant_views([(kind.object_type, row)])[0]
        own = row.group_id in principal_grants(actor).groups and _visible_rows(actor, kind, Q(id=row.id)).exists()
        if not own:
            authorize_giving(actor, Permission.ACCESS_SHARE, kind.locate(actor, view.object_id))
        record(actor=actor, verb=Verb.GRANT_LISTED, object_type="grant", object_ids=[view.id])
    return view


def find_object_by_name(*, actor: Actor, object_type: str, name: str) -> UUID:
    """Return the id of the readable object with this name in the tenant. Raises NotFound; Invalid."""
    kind = find_grantable(object_type, field="object.type")
    with acting(actor):
        found = kind.by_name(actor, name)
        if found is None or not kind.readable(actor).filter(pk=found).exists():
            raise NotFound
    return found


def objects_readable(*, actor: Actor, object_type: str, most: int) -> list[str]:
    """Return the names of at most `most` objects of a type that the actor may read, in their order. Two queries."""
    kind = find_grantable(object_type, field="object.type")
    with acting(actor):
        ids = list(kind.readable(actor).order_by("pk").values_list("pk", flat=True)[:most])
        return sorted(name.text for name in names_find(actor.tenant_id, ids).values())


def access_check(
    *,
    actor: Actor,
    kind: str,
    principal: str,
    action: Action,
    object_type: str,
    object_id: UUID,
    context: CallContext,
    at: datetime | None = None,
) -> Checked:
    """Return the decision on an access and its rule. Any actor may check its own access; to check others' access, the
    actor must govern the object.

    kind: of the principal: role, member, persona, api_key or system. at: None means now. Raises NotFound; Forbidden;
    Invalid. Writes: AuditEntry.
    """
    found = grantable_of(object_type)
    if found is None:
        raise Invalid(
            errors=[
                FieldError("object.type", f"one of {', '.join(grantable.object_type for grantable in grantables())}")
            ]
        )
    with acting(actor):
        target = found.locate(actor, object_id)
        if not _is_self(actor, kind, principal):
            authorize_giving(actor, Permission.ACCESS_GOVERN, target)
        decision, also = _decide_as(actor, kind, principal, action, target, context, at)
        if not decision.allowed:
            authorize_disclosure(actor, target)
        record(
            actor=actor,
            verb=Verb.ACCESS_CHECKED,
            object_type=object_type,
            object_ids=[object_id],
            detail={"kind": kind, "action": action, "allowed": decision.allowed, "rule": decision.rule},
        )
        beside = _view_decisive_grant(actor, also, target, at) if also is not None else None
        return Checked(decision, _view_decisive_grant(actor, decision, target, at), beside)


def _decide_as(
    actor: Actor,
    kind: str,
    principal: str,
    action: Action,
    target: Target,
    context: CallContext,
    at: datetime | None,
) -> tuple[Decision, Decision | None]:
    """Return the decision, and the one of a grant where a role has decided that a grant would allow it, too."""
    try:
        asked_about = build_actor(actor, kind, principal, context)
    except Forbidden as ended:
        return Decision(allowed=False, rule=ended.rule), None
    if target.object_type == "persona" and kind == GranteeKind.PERSONA:
        asked_about = replace(asked_about, persona_id=UUID(principal))
    granted = find_grants_on(asked_about, target, at=at)
    decision = decide(
        asked_about, find_grantable(target.object_type, field="object.type").permissions[action], target, granted
    )
    is_by_role = decision.allowed and decision.grant_id is None
    return decision, decide_by_grant(action, target, granted) if is_by_role else None


def build_actor(actor: Actor, kind: str, principal: str, context: CallContext) -> Actor:
    """Return another principal of the tenant as an actor in `context`. Raises Invalid; Forbidden if it has ended."""
    if kind == PrincipalKind.SYSTEM:
        return system_actor(tenant_id=actor.tenant_id, request_id=actor.request_id)
    try:
        holder_kind = GranteeKind(kind)
    except ValueError as error:
        known = ", ".join([*GranteeKind, PrincipalKind.SYSTEM])
        raise Invalid(errors=[FieldError("principal.kind", f"one of {known}")]) from error
    holder = grantee_find(actor.tenant_id, holder_kind, principal)
    if holder_kind is GranteeKind.API_KEY:
        purpose = ApiKey.objects.values_list("purpose", flat=True).get(id=holder.id)
        context = replace(context, purpose=purpose) if purpose else context
    if holder_kind in {GranteeKind.MEMBER, GranteeKind.API_KEY}:
        return reload_actor(
            tenant_id=actor.tenant_id,
            kind=PrincipalKind(holder_kind),
            principal_id=holder.id,
            request_id=actor.request_id,
            context=context,
        )
    if holder_kind is GranteeKind.PERSONA:
        return _build_persona_actor(actor, holder.id, context)
    return _build_actor_without_member(actor, holder.id, context, role=holder.role)


def _build_persona_actor(actor: Actor, persona_id: UUID, context: CallContext) -> Actor:
    """Return a member speaking as its persona; an agent without a member has only its own grants."""
    persona = Persona.objects.get(id=persona_id)
    if persona.member_id is None:
        return replace(_build_actor_without_member(actor, persona_id, context), persona_id=persona_id)
    member = reload_actor(
        tenant_id=actor.tenant_id,
        kind=PrincipalKind.MEMBER,
        principal_id=persona.member_id,
        request_id=actor.request_id,
        context=context,
    )
    return member.speaking_as(persona_id)


def _build_actor_without_member(
    actor: Actor, principal_id: UUID, context: CallContext, role: RoleName | None = None
) -> Actor:
    """Return an actor with this role that owns nothing and has no grants of its own."""
    return Actor(
        tenant_id=actor.tenant_id,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=principal_id,
        member_id=None,
        role=role,
        scopes=None,
        request_id=actor.request_id,
        context=context,
    )


def _is_self(actor: Actor, kind: str, principal: str) -> bool:
    own = {(GranteeKind.MEMBER, str(actor.member_id)), (actor.principal_kind, str(actor.principal_id))}
    return (kind, principal) in own and (actor.binding is None or kind == PrincipalKind.API_KEY)


def _view_decisive_grant(actor: Actor, decision: Decision, target: Target, at: datetime | None) -> GrantView | None:
    if decision.grant_id is None:
        return None
    if at is None:
        kind, row = grant_locate(actor, decision.grant_id)
        return grant_views([(kind.object_type, row)])[0]
    levels = [(grantable_of(level.object_type), level.object_id) for level in target.chain]
    rows = [
        (kind.object_type, row)
        for kind, object_id in levels
        if kind is not None
        for row in find_grants_at(kind, tenant_id=actor.tenant_id, object_id=object_id, at=at)
    ]
    return grant_views([(name, row) for name, row in rows if row.id == decision.grant_id])[0]


def _kinds(actor: Actor, wanted: GrantFilter) -> list[Grantable]:
    if wanted.object_type is None:
        if wanted.object_id is not None:
            raise Invalid(errors=[FieldError("object_type", "say of which type the object is")])
        return list(grantables())
    return [find_grantable(wanted.object_type, field="object_type")]


def _condition(actor: Actor, wanted: GrantFilter) -> Q:
    condition = Q()
    if wanted.object_id is not None:
        condition &= Q(content_object_id=wanted.object_id)
    if wanted.holder is not None:
        if wanted.holder_kind is None:
            raise Invalid(errors=[FieldError("principal_kind", "say of which kind the principal is")])
        holder = grantee_find(actor.tenant_id, wanted.holder_kind, wanted.holder)
        condition &= Q(group__kind=holder.kind, group__principal_id=holder.id)
    elif wanted.holder_kind is not None:
        condition &= Q(group__kind=wanted.holder_kind)
    return condition & _visible_to(actor, wanted)


def _visible_to(actor: Actor, wanted: GrantFilter) -> Q:
    """Return the condition for the grants that the actor may see."""
    if is_allowed(actor, Permission.GRANT_MANAGE):
        return Q()
    if wanted.object_type is not None and wanted.object_id is not None:
        kind = grantable_of(wanted.object_type)
        assert kind is not None
        target = kind.locate(actor, wanted.object_id)
        if is_allowed(actor, Permission.ACCESS_SHARE, target):
            return Q()
    given = Q(given_by_kind=actor.principal_kind, given_by=actor.principal_id)
    return given | Q(group_id__in=principal_grants(actor).groups)


def _visible_rows(actor: Actor, kind: Grantable, condition: Q) -> Rows:
    """Return the visible grants of one kind. A bound key sees no grant outside its bindings, not even its id."""
    rows: Rows = kind.grants.objects.filter(condition, kind.within_bonds(actor), tenant_id=actor.tenant_id)
    return rows.select_related("condition").order_by("-id")

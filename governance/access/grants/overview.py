"""Overview of the access to one object: the decision and rule for every member, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.conditions import holds
from governance.access.decisions.grantables import Grantable, grantable_of, permission_ids
from governance.access.decisions.rules import Decision, Granted, Target, decide
from governance.access.decisions.services import authorize, authorize_giving
from governance.access.grants.grantees import Grantee
from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import NotFound
from governance.models import ApiKey, Member, Persona, Role
from governance.pages import Pages
from governance.vocabulary import Action, Effect, GranteeKind, Permission, PersonaKind, PrincipalKind, RoleName, Verb

Holding = dict[tuple[str, UUID], list[Granted]]
MOST_HOLDERS = 200  # of each kind, to choose from


@dataclass(frozen=True)
class MemberAccess:
    """The decisions on one member's access to the object, in the order of Action."""

    name: str
    role: RoleName
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Overview:
    """The access to one object. path: of its namespace, None for a persona. holders: the possible grantees."""

    object_type: str
    object_id: UUID
    path: str
    members: tuple[MemberAccess, ...]
    holders: tuple[Grantee, ...] = ()


def access_overview(
    *,
    actor: Actor,
    object_type: str,
    object_id: UUID,
    context: CallContext,
    pages: Pages,
    is_giving: bool = False,
) -> Overview:
    """Return a page of members with the actions that each may take in a browser in `context`.

    is_giving: include the possible grantees of a grant on the object. Raises NotFound; Forbidden unless the actor may
    share the object. Writes: AuditEntry. Queries: seven; with `is_giving` eleven.
    """
    kind = grantable_of(object_type)
    if kind is None:
        raise NotFound
    with acting(actor):
        target = kind.locate(actor, object_id)
        authorize_giving(actor, Permission.ACCESS_SHARE, target)
        held = _find_holding(actor, target, context)
        roles = dict(Role.objects.filter(tenant_id=actor.tenant_id).values_list("name", "id"))
        present = Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None).select_related("role")
        page = pages.take(present.order_by("-id"))
        record(actor=actor, verb=Verb.ACCESS_CHECKED, object_type=object_type, object_ids=[object_id])
        members = tuple(_access(actor, member, kind, target, held, roles, context) for member in page)
        holders = tuple(_holders(actor, roles)) if is_giving else ()
    return Overview(object_type, object_id, target.path or "", members, holders)


def principals_to_choose(*, actor: Actor) -> list[Grantee]:
    """Return the roles, members, agents and keys that can receive grants. Raises Forbidden unless the actor manages
    grants.
    """
    authorize(actor, Permission.GRANT_MANAGE)
    with acting(actor):
        roles = dict(Role.objects.filter(tenant_id=actor.tenant_id).values_list("name", "id"))
        return _holders(actor, roles)


def _holders(actor: Actor, roles: Mapping[str, UUID]) -> list[Grantee]:
    tenant = Q(tenant_id=actor.tenant_id)
    members = Member.objects.filter(tenant, removed_at=None).order_by("display_name")[:MOST_HOLDERS]
    agents = Persona.objects.filter(tenant, removed_at=None, kind=PersonaKind.AGENT).order_by("name")
    keys = ApiKey.objects.filter(tenant, revoked_at=None).order_by("name")[:MOST_HOLDERS]
    return [
        *(
            Grantee(GranteeKind.ROLE, role_id, name)
            for name, role_id in sorted(roles.items(), key=lambda role: role[1])
        ),
        *(Grantee(GranteeKind.MEMBER, member.id, member.display_name) for member in members),
        *(Grantee(GranteeKind.PERSONA, agent.id, agent.name) for agent in agents[:MOST_HOLDERS]),
        *(Grantee(GranteeKind.API_KEY, key.id, f"{key.name} {key.prefix}".strip()) for key in keys),
    ]


def _find_holding(actor: Actor, target: Target, context: CallContext) -> Holding:
    """Return the live grants on the object and its parents that hold in `context`, by grantee."""
    held: Holding = defaultdict(list)
    now = database_now()
    for level in target.chain:
        kind = grantable_of(level.object_type)
        if kind is not None:
            _add(held, actor, kind, level.object_id, context, now)
    return held


def _add(held: Holding, actor: Actor, kind: Grantable, object_id: UUID, context: CallContext, now: datetime) -> None:
    actions = {pk: action for action, pk in permission_ids(kind.grants).items()}
    rows = kind.grants.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), content_object_id=object_id)
    for row in rows.filter(tenant_id=actor.tenant_id).select_related("group", "condition").order_by("id"):
        effect = Effect(row.effect)
        if row.condition is None or holds(row.condition.document, effect, context, now):
            granted = Granted(row.id, effect, actions[row.permission_id], object_id)
            held[(row.group.kind, row.group.principal_id)].append(granted)


def _access(
    actor: Actor,
    member: Member,
    kind: Grantable,
    target: Target,
    held: Holding,
    roles: dict[str, UUID],
    context: CallContext,
) -> MemberAccess:
    role = RoleName(member.role.name)
    own = held.get((GranteeKind.MEMBER, member.id), []) + held.get((GranteeKind.ROLE, roles[role]), [])
    granted = sorted(own, key=lambda grant: grant.id)
    reader = replace(
        actor,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=member.id,
        member_id=member.id,
        role=role,
        scopes=None,
        context=context,
        persona_id=None,
        binding=None,
    )
    decisions = tuple(decide(reader, kind.permissions[action], target, granted) for action in Action)
    return MemberAccess(member.display_name, role, decisions)

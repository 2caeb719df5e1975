"""Rules of access as data and one function. Default deny; deny overrides; every decision names its rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.vocabulary import Action, Effect, Permission, RoleName, Scope

READING = frozenset({Permission.MEMORY_READ, Permission.JOB_READ, Permission.PERSONA_USE})
WRITING = frozenset(
    {
        Permission.MEMORY_CREATE,
        Permission.MEMORY_UPDATE,
        Permission.MEMORY_DELETE,
        Permission.NAMESPACE_CREATE,
        Permission.JOB_READ,
        Permission.MEMORY_FREEZE,
        Permission.PERSONA_USE,
        Permission.PERSONA_CREATE,
        Permission.PERSONA_UPDATE,
    }
)
CHATTING = frozenset(
    {
        Permission.CONVERSATION_USE,
        Permission.PERSONA_USE,
        Permission.PERSONA_CREATE,
        Permission.PERSONA_UPDATE,
    }
)
SHARING = frozenset({Permission.ACCESS_SHARE, Permission.ACCESS_GOVERN})
MANAGING = frozenset(
    {
        Permission.MEMBER_MANAGE,
        Permission.APIKEY_MANAGE,
        Permission.OPERATIONS_MANAGE,
        Permission.POLICY_MANAGE,
        Permission.HOLD_MANAGE,
        Permission.SUBJECT_MANAGE,
        Permission.GRANT_MANAGE,
        Permission.TEMPLATE_MANAGE,
        Permission.STORE_MANAGE,
    }
)
AUDITING = frozenset({Permission.AUDIT_READ, Permission.POLICY_READ})

ROLE_PERMISSIONS: dict[RoleName, frozenset[Permission]] = {
    RoleName.OWNER: READING | WRITING | CHATTING | SHARING | MANAGING | AUDITING,
    RoleName.ADMIN: READING | WRITING | CHATTING | SHARING | MANAGING | AUDITING,
    RoleName.EDITOR: READING | WRITING | CHATTING | SHARING,
    RoleName.VIEWER: READING | CHATTING,
    RoleName.AUDITOR: AUDITING | {Permission.JOB_READ},
}
SCOPE_PERMISSIONS: dict[Scope, frozenset[Permission]] = {
    Scope.MEMORIES_READ: READING,
    Scope.MEMORIES_WRITE: WRITING,
    Scope.CHAT: CHATTING,
    Scope.ADMIN: MANAGING | AUDITING | SHARING,
}
SEES_PRIVATE = frozenset({RoleName.OWNER, RoleName.ADMIN})
# Roles that read memory at all; each of them may speak as any agent.
READS_CONTENT = frozenset(role for role in RoleName if Permission.MEMORY_READ in ROLE_PERMISSIONS[role])
# What a bound key may do at all: it manages nothing and passes nothing on.
BOUND = (READING | WRITING | CHATTING) - {Permission.PERSONA_CREATE, Permission.PERSONA_UPDATE}

# What a permission does to an object that grants can be about; of the others roles and scopes alone decide.
ACTIONS: dict[Permission, Action] = {
    Permission.MEMORY_READ: Action.READ,
    Permission.MEMORY_CREATE: Action.WRITE,
    Permission.MEMORY_UPDATE: Action.WRITE,
    Permission.MEMORY_DELETE: Action.WRITE,
    Permission.MEMORY_FREEZE: Action.WRITE,
    Permission.PERSONA_USE: Action.READ,
    Permission.PERSONA_UPDATE: Action.WRITE,
    Permission.ACCESS_SHARE: Action.SHARE,
    Permission.ACCESS_GOVERN: Action.GOVERN,
}
OF_PERSONAS = frozenset({"memory", "persona", "conversation"})  # objects that may belong to a persona
# An allowance opens what is listed; a denial closes whatever would open its action.
OPENS: dict[Action, frozenset[Action]] = {
    Action.READ: frozenset({Action.READ}),
    Action.WRITE: frozenset({Action.READ, Action.WRITE}),
    Action.SHARE: frozenset({Action.READ, Action.SHARE}),
    Action.GOVERN: frozenset(Action),
}


def allowing_actions(action: Action) -> frozenset[Action]:
    """The actions of grants that allow `action`."""
    return frozenset(opener for opener in Action if action in OPENS[opener])


def denying_actions(action: Action) -> frozenset[Action]:
    """Return the actions of denials that deny `action`."""
    return OPENS[action]


@dataclass(frozen=True)
class Target:
    """The object of a decision, as far as the rules need it.

    private_to: whom it is kept to, if private. owner_id: the member who may share it. within: what it lies in; grants
    on that count for it too, allowances only if `open_within`. locked: nobody writes. curated: its owner writes, and
    who has a grant. path, persona_id: what a key may be bound to. purposes: what it may be read for, by the policy that
    `purpose_rule` names; None: for anything. sources: what it was made from; who reads it must be able to read these.
    """

    object_type: str
    object_id: UUID
    tenant_id: UUID
    private_to: frozenset[UUID | None] = frozenset()
    purposes: frozenset[str] | None = None
    purpose_rule: str = ""
    owner_id: UUID | None = None
    within: "Target | None" = None
    open_within: bool = True
    locked: bool = False
    curated: bool = False
    path: str | None = None
    persona_id: UUID | None = None
    sources: tuple["Target", ...] = ()

    @property
    def chain(self) -> tuple["Target", ...]:
        """The object and its parents."""
        return (self, *self.within.chain) if self.within else (self,)


@dataclass(frozen=True)
class Granted:
    """A grant that is live, given to one of the actor's groups, and whose condition holds."""

    id: UUID
    effect: Effect
    action: Action
    object_id: UUID


@dataclass(frozen=True)
class Decision:
    """`rule`: the kind of rule that decided; `grant_id`: the grant, where one did."""

    allowed: bool
    rule: str
    grant_id: UUID | None = None

    @property
    def rule_reference(self) -> str:
        """The rule as the audit log stores it: its kind, and the id of the grant, if any."""
        return f"{self.rule}:{self.grant_id}" if self.grant_id else self.rule


def policy_name(rule: str) -> str:
    """The name of the policy in a rule `policy:name@version`; empty for any other."""
    kind, _, named = rule.partition(":")
    return named.rpartition("@")[0] if kind == "policy" else ""


def action_on(permission: Permission, target: Target | None) -> Action | None:
    """Return the action that a permission performs on an object; None if grants cannot be about it. A chat stores its
    turns in a namespace.
    """
    if permission is Permission.CONVERSATION_USE and target is not None and target.object_type == "namespace":
        return Action.WRITE
    return ACTIONS.get(permission)


def sees_private(actor: Actor) -> bool:
    """Return whether the role reads private memory: owners, admins, the system. Every such read is audited."""
    return actor.is_system or actor.role in SEES_PRIVATE


def reads_content(actor: Actor) -> bool:
    """Return whether the actor's role reads memory at all."""
    return actor.is_system or actor.role in READS_CONTENT


def decide(actor: Actor, permission: Permission, target: Target | None, granted: Sequence[Granted] = ()) -> Decision:
    """Decide whether `actor` has `permission` (on `target`). The caller must check that the target is of its tenant.

    `granted`: the grants on the target and on what it lies in, the oldest first.
    """
    if actor.is_system:
        return Decision(allowed=True, rule="system")
    decision = _decide_by_grants(actor, permission, target, granted)
    bound = decision.allowed and permission is Permission.MEMORY_READ
    if bound and target is not None and not _fits_purpose(actor, target):
        return Decision(allowed=False, rule=target.purpose_rule)
    return decision


def _decide_by_grants(
    actor: Actor, permission: Permission, target: Target | None, granted: Sequence[Granted]
) -> Decision:
    """Decide by the actor's role, bindings and grants, before purposes are checked."""
    ceiling = _exceeded_limit(actor, permission, target)
    if ceiling is not None:
        return Decision(allowed=False, rule=ceiling)
    action = action_on(permission, target)
    if target is None or action is None:
        return _decide_by_role(actor, permission, target)
    for grant in granted:
        if grant.effect is Effect.DENY and grant.action in denying_actions(action):
            return Decision(allowed=False, rule="deny", grant_id=grant.id)
    if action is Action.WRITE and any(level.locked for level in target.chain):
        return Decision(allowed=False, rule="read_only")
    own = _decide_by_role(actor, permission, target)
    return own if own.allowed else _decide_by_grant(action, target, granted) or own


def _exceeded_limit(actor: Actor, permission: Permission, target: Target | None) -> str | None:
    """Return the limit that the call exceeds and no grant lifts: the scopes or the bindings of a key. Else None."""
    if actor.scopes is not None and not any(permission in SCOPE_PERMISSIONS[scope] for scope in actor.scopes):
        return "scopes"
    if actor.binding is None:
        return None
    if permission not in BOUND:
        return "binding"
    if target is None:
        return None
    outside = target.path is not None and not actor.binding.covers(target.path)
    of_others = target.object_type in OF_PERSONAS and actor.binding.persona_id not in {None, target.persona_id}
    return "binding" if outside or of_others else None


def _decide_by_role(actor: Actor, permission: Permission, target: Target | None) -> Decision:
    role = f"role:{actor.role}"
    if actor.role is None or permission not in ROLE_PERMISSIONS[actor.role]:
        return Decision(allowed=False, rule=role)
    if target is None or sees_private(actor):
        return Decision(allowed=True, rule=role)
    if not all(owner == actor.member_id for owner in target.private_to):
        return Decision(allowed=False, rule="private")
    action = action_on(permission, target)
    if action is Action.WRITE and not _curates(actor, target):
        return Decision(allowed=False, rule="curated")
    if action in {Action.SHARE, Action.GOVERN} and not any(_owns(actor, level) for level in target.chain):
        return Decision(allowed=False, rule="not_owner")
    return Decision(allowed=True, rule=role)


def _fits_purpose(actor: Actor, target: Target) -> bool:
    """Return whether the purpose of the call fits. Owners and grantees must name a purpose, too."""
    return target.purposes is None or actor.context.purpose in target.purposes


def _curates(actor: Actor, target: Target) -> bool:
    return all(not level.curated or _owns(actor, level) for level in target.chain)


def _owns(actor: Actor, target: Target) -> bool:
    return target.owner_id is not None and target.owner_id == actor.member_id


def _decide_by_grant(action: Action, target: Target, granted: Sequence[Granted]) -> Decision | None:
    """Decide by the oldest grant that allows the action, on the object itself or on one of its parents."""
    for grant in granted:
        reaches = grant.object_id == target.object_id or target.open_within
        if grant.effect is Effect.ALLOW and grant.action in allowing_actions(action) and reaches:
            return Decision(allowed=True, rule="grant", grant_id=grant.id)
    return None

"""Rules of access, as data and one pure function. Without an allowance a call is denied; a denial overrides allowances;
every decision names its rule.
"""

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
# Roles that may read memory; each of them may speak as any agent.
READS_CONTENT = frozenset(role for role in RoleName if Permission.MEMORY_READ in ROLE_PERMISSIONS[role])
# All permissions that a bound key can have: it manages nothing and gives no grants.
BOUND = (READING | WRITING | CHATTING) - {Permission.PERSONA_CREATE, Permission.PERSONA_UPDATE}

CONCEALING = frozenset({"private", "deny", "binding"})  # rules that leave an object out of lists

# The action that a permission performs on an object of grants; for other permissions only roles and scopes decide.
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
# An allowance of an action also allows the listed ones; a denial denies each action whose allowance implies the denied
# one.
OPENS: dict[Action, frozenset[Action]] = {
    Action.READ: frozenset({Action.READ}),
    Action.WRITE: frozenset({Action.READ, Action.WRITE}),
    Action.SHARE: frozenset({Action.READ, Action.SHARE}),
    Action.GOVERN: frozenset(Action),
}


def allowing_actions(action: Action) -> frozenset[Action]:
    """Return the actions of grants that allow `action`."""
    return frozenset(opener for opener in Action if action in OPENS[opener])


def denying_actions(action: Action) -> frozenset[Action]:
    """Return the actions of denials that deny `action`."""
    return OPENS[action]


@dataclass(frozen=True)
class Target:
    """The facts about an object that the rules need.

    private_to: the only member who reads it, if it is private. owner_id: the member who may share it. within: its
    parents; grants on them count too, allowances only if `open_within`. locked: nobody may write. curated: only its
    owner and grantees may write. path, persona_id: compared with the bindings of a key. purposes: the purposes that the
    policy `purpose_rule` allows reading for; None means any. sources: the objects that it was made from; a reader must
    be able to read them too.
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
        """Return the object and its parents."""
        return (self, *self.within.chain) if self.within else (self,)


@dataclass(frozen=True)
class Granted:
    """A live grant of one of the actor's groups, whose condition holds."""

    id: UUID
    effect: Effect
    action: Action
    object_id: UUID


@dataclass(frozen=True)
class Decision:
    """The result of a decision. `rule`: the kind of rule that decided; `grant_id`: the grant, if a grant decided."""

    allowed: bool
    rule: str
    grant_id: UUID | None = None

    @property
    def rule_reference(self) -> str:
        """Return the rule as the audit log stores it: its kind, and the id of the grant, if any."""
        return f"{self.rule}:{self.grant_id}" if self.grant_id else self.rule


def policy_name(rule: str) -> str:
    """Return the name of the policy in a rule `policy:name@version`; an empty text for any other rule."""
    kind, _, named = rule.partition(":")
    return named.rpartition("@")[0] if kind == "policy" else ""


def action_on(permission: Permission, target: Target | None) -> Action | None:
    """Return the action that a permission performs on an object, or None if no grant can be about it. A chat writes to
    its namespace.
    """
    if permission is Permission.CONVERSATION_USE and target is not None and target.object_type == "namespace":
        return Action.WRITE
    return ACTIONS.get(permission)


def sees_private(actor: Actor) -> bool:
    """Return whether the role reads private memory: owners, admins and the system do. Every such read is audited."""
    return actor.is_system or actor.role in SEES_PRIVATE


def reads_content(actor: Actor) -> bool:
    """Return whether the actor's role may read memory."""
    return actor.is_system or actor.role in READS_CONTENT


def decide(actor: Actor, permission: Permission, target: Target | None, granted: Sequence[Granted] = ()) -> Decision:
    """Decide whether `actor` has `permission` on `target`. The caller must check that the target is of its tenant.

    `granted`: the grants on the target and its parents, oldest first.
    """
    if actor.is_system:
        return Decision(allowed=True, rule="system")
    decision = _decide_by_grants(actor, permission, target, granted)
    bound = decision.allowed and permission is Permission.MEMORY_READ
    if bound and target is not None and not _fits_purpose(actor, target):
        return Decision(allowed=False, rule=target.purpose_rule)
    return decision


def is_concealed(actor: Actor, target: Target, decision: Decision) -> bool:
    """Return whether the refusal of reading an object means that the actor may not know that it exists.

    A policy, or a role or key that reads nothing, refuses openly what is not private to others.
    """
    is_others = not sees_private(actor) and any(owner != actor.member_id for owner in target.private_to)
    return is_others or decision.rule in CONCEALING


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
    return own if own.allowed else decide_by_grant(action, target, granted) or own


def _exceeded_limit(actor: Actor, permission: Permission, target: Target | None) -> str | None:
    """Return the scope or binding of a key that the call exceeds and no grant lifts, or None."""
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
    """Return whether the purpose of the call is allowed. Owners and grantees must name a purpose too."""
    return target.purposes is None or actor.context.purpose in target.purposes


def _curates(actor: Actor, target: Target) -> bool:
    return all(not level.curated or _owns(actor, level) for level in target.chain)


def _owns(actor: Actor, target: Target) -> bool:
    return target.owner_id is not None and target.owner_id == actor.member_id


def decide_by_grant(action: Action, target: Target, granted: Sequence[Granted]) -> Decision | None:
    """Decide by the oldest grant that allows the action, on the object itself or on one of its parents."""
    for grant in granted:
        reaches = grant.object_id == target.object_id or target.open_within
        if grant.effect is Effect.ALLOW and grant.action in allowing_actions(action) and reaches:
            return Decision(allowed=True, rule="grant", grant_id=grant.id)
    return None

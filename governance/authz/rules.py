"""Who may do what, as data and one function. Default deny; every decision names the rule that made it."""

from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.vocabulary import Permission, RoleName, Scope

READING = frozenset({Permission.MEMORY_READ, Permission.JOB_READ})
WRITING = frozenset(
    {
        Permission.MEMORY_CREATE,
        Permission.MEMORY_UPDATE,
        Permission.MEMORY_DELETE,
        Permission.NAMESPACE_CREATE,
        Permission.JOB_READ,
        Permission.MEMORY_FREEZE,
    }
)
CHATTING = frozenset({Permission.CONVERSATION_USE})
MANAGING = frozenset(
    {
        Permission.MEMBER_MANAGE,
        Permission.APIKEY_MANAGE,
        Permission.OPERATIONS_MANAGE,
        Permission.POLICY_MANAGE,
        Permission.HOLD_MANAGE,
    }
)
AUDITING = frozenset({Permission.AUDIT_READ, Permission.POLICY_READ})

ROLE_PERMISSIONS: dict[RoleName, frozenset[Permission]] = {
    RoleName.OWNER: READING | WRITING | CHATTING | MANAGING | AUDITING,
    RoleName.ADMIN: READING | WRITING | CHATTING | MANAGING | AUDITING,
    RoleName.EDITOR: READING | WRITING | CHATTING,
    RoleName.VIEWER: READING | CHATTING,
    RoleName.AUDITOR: AUDITING,
}
SCOPE_PERMISSIONS: dict[Scope, frozenset[Permission]] = {
    Scope.MEMORIES_READ: READING,
    Scope.MEMORIES_WRITE: WRITING,
    Scope.CHAT: CHATTING,
    Scope.ADMIN: MANAGING | AUDITING,
}
SEES_PRIVATE = frozenset({RoleName.OWNER, RoleName.ADMIN})


@dataclass(frozen=True)
class Target:
    """The object of a decision, as far as the law must know it. `private_to`: whom it is kept to, if private.

    `purposes`: what it may be read for, by the policy that `purpose_rule` names; None: for anything.
    """

    object_type: str
    object_id: UUID
    tenant_id: UUID
    private_to: frozenset[UUID | None] = frozenset()
    purposes: frozenset[str] | None = None
    purpose_rule: str = ""


@dataclass(frozen=True)
class Decision:
    allowed: bool
    rule: str


def sees_private(actor: Actor) -> bool:
    """Owners, admins and the system reach private memory; every such read is on the audit trail."""
    return actor.is_system or actor.role in SEES_PRIVATE


def decide(actor: Actor, permission: Permission, target: Target | None) -> Decision:
    """May `actor` do `permission` (to `target`)? The tenant is the caller's to check: a foreign one is not found."""
    if actor.is_system:
        return Decision(allowed=True, rule="system")
    if actor.role is None or permission not in ROLE_PERMISSIONS[actor.role]:
        return Decision(allowed=False, rule=f"role:{actor.role}")
    if actor.scopes is not None and not any(permission in SCOPE_PERMISSIONS[scope] for scope in actor.scopes):
        return Decision(allowed=False, rule="scopes")
    if target and not all(owner == actor.member_id for owner in target.private_to) and not sees_private(actor):
        return Decision(allowed=False, rule="private")
    if target and permission is Permission.MEMORY_READ and not _fits_purpose(actor, target):
        return Decision(allowed=False, rule=target.purpose_rule)
    return Decision(allowed=True, rule=f"role:{actor.role}")


def _fits_purpose(actor: Actor, target: Target) -> bool:
    """Owners too must say what they read for."""
    return target.purposes is None or actor.context.purpose in target.purposes

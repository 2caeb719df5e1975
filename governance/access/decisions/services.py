"""Authorization: decides whether an actor has a permission."""

from typing import NoReturn
from uuid import UUID

from governance.access.decisions.principal_grants import find_grants_on, has_any_grant
from governance.access.decisions.rules import Decision, Target, action_on, decide, is_concealed, policy_name
from governance.actor import Actor
from governance.database import acting
from governance.errors import Concealed, Forbidden, NotFound
from governance.vocabulary import Permission

# The permission without which an actor does not know of an object, by its type. Other objects have names, or are listed
# for all who may be refused.
DISCLOSED_BY = {
    "memory": Permission.MEMORY_READ,
    "persona": Permission.PERSONA_USE,
    "conversation": Permission.CONVERSATION_USE,
}
NOBODY = UUID(int=0)
REASONS = {
    "read_only": "It is read-only.",
    "binding": "The key is bound to something else.",
}


def decide_on(actor: Actor, permission: Permission, target: Target | None = None) -> Decision:
    """Return the decision with its rule. At most one query if the actor's rights are cached and the object is loaded.

    Without a target: decide whether the actor has the permission on any object at all.
    """
    if actor.is_system or action_on(permission, target) is None:
        return decide(actor, permission, target)
    if target is None:
        return _decide_on_any_object(actor, permission)
    with acting(actor):
        own = decide(actor, permission, target, find_grants_on(actor, target))
    sources = target.sources if own.allowed and permission is Permission.MEMORY_READ else ()
    others = (decide_on(actor, permission, source) for source in sources)
    return next((decision for decision in others if not decision.allowed), own)


def is_allowed(actor: Actor, permission: Permission, target: Target | None = None) -> bool:
    """Return whether `authorize` would pass, for responses whose content depends on rights."""
    at_home = target is None or target.tenant_id == actor.tenant_id
    return at_home and decide_on(actor, permission, target).allowed


def authorize(actor: Actor, permission: Permission, target: Target | None = None) -> None:
    """Check that the actor has the permission.

    Raises NotFound for a target of another tenant; Concealed for one that the actor may not know of; Forbidden, with
    the rule.
    """
    if target is not None and target.tenant_id != actor.tenant_id:
        raise NotFound
    decision = decide_on(actor, permission, target)
    if decision.allowed:
        return
    if target is not None and not _is_disclosed(actor, target):
        raise _conceal(permission, decision, target)
    raise Forbidden(
        _denial_detail(actor, permission, decision.rule),
        permission=permission,
        rule=decision.rule_reference,
        object_type=target.object_type if target else "tenant",
        object_id=target.object_id if target else actor.tenant_id,
        policy=policy_name(decision.rule),
        purpose=actor.context.purpose,
    )


def authorize_disclosure(actor: Actor, target: Target) -> None:
    """Check that the actor may know of a memory, persona or conversation of its tenant. Raises Concealed."""
    if not _is_disclosed(actor, target):
        permission = DISCLOSED_BY[target.object_type]
        raise _conceal(permission, decide_on(actor, permission, target), target)


def _is_disclosed(actor: Actor, target: Target) -> bool:
    permission = DISCLOSED_BY.get(target.object_type)
    if permission is None:
        return True
    decision = decide_on(actor, permission, target)
    return decision.allowed or not is_concealed(actor, target, decision)


def _conceal(permission: Permission, decision: Decision, target: Target) -> Concealed:
    return Concealed(
        permission=permission,
        rule=decision.rule_reference,
        object_type=target.object_type,
        object_id=target.object_id,
    )


def refuse_missing(actor: Actor, object_type: str, object_id: UUID) -> NoReturn:
    """Answer for an object that does not exist, or no longer, as for one that is private to somebody else.

    Both take the same queries, and both are in the audit log. Raises NotFound, also as Concealed.
    """
    private_to = frozenset[UUID | None]({NOBODY})
    with acting(actor):
        authorize_disclosure(actor, Target(object_type, object_id, actor.tenant_id, private_to=private_to, path=""))
    raise NotFound


def authorize_giving(actor: Actor, permission: Permission, target: Target) -> None:
    """Check a permission that gives access; an actor who manages all grants has it on every object despite denials."""
    managing = is_allowed(actor, Permission.GRANT_MANAGE)
    authorize(actor, Permission.GRANT_MANAGE if managing else permission, target)


def _denial_detail(actor: Actor, permission: Permission, rule: str) -> str:
    """Return the detail of a denial. A policy is named only to an actor who may know that the object exists."""
    policy, purpose = policy_name(rule), actor.context.purpose
    if not policy:
        return REASONS.get(rule, f"The permission {permission} is missing.")
    if not purpose:
        return f"The policy {policy} allows this only for certain purposes. Name one in X-Memory-Purpose."
    return f"The policy {policy} does not allow this for the purpose {purpose}. Name another in X-Memory-Purpose."


def _decide_on_any_object(actor: Actor, permission: Permission) -> Decision:
    """Decide for a list: allow if the role has the permission, or if a grant gives it on any object."""
    own = decide(actor, permission, None)
    if own.allowed or not own.rule.startswith("role:"):
        return own
    with acting(actor):
        some = has_any_grant(actor, permission)
    return Decision(allowed=True, rule="grants") if some else own

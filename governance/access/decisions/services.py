"""The one question of the product: may this actor do this?"""

from governance.access.decisions.principal_grants import find_grants_on, has_any_grant
from governance.access.decisions.rules import Decision, Target, action_on, decide, policy_name
from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, NotFound
from governance.vocabulary import Permission

REASONS = {
    "read_only": "It is read-only.",
    "binding": "The key is bound to something else.",
}


def decide_on(actor: Actor, permission: Permission, target: Target | None = None) -> Decision:
    """The decision with the rule that made it. At most one query for a known standing and each object asked about.

    About no object: whether there is anything at all that the actor may do it to.
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
    """`authorize` as a question, for replies that show more to those who may see more."""
    at_home = target is None or target.tenant_id == actor.tenant_id
    return at_home and decide_on(actor, permission, target).allowed


def authorize(actor: Actor, permission: Permission, target: Target | None = None) -> None:
    """Pass, or raise: NotFound for another tenant's object, Forbidden (with the deciding rule) at home."""
    if target is not None and target.tenant_id != actor.tenant_id:
        raise NotFound
    decision = decide_on(actor, permission, target)
    if not decision.allowed:
        raise Forbidden(
            _denial_detail(actor, permission, decision.rule),
            permission=permission,
            rule=decision.named,
            object_type=target.object_type if target else "tenant",
            object_id=target.object_id if target else actor.tenant_id,
            policy=policy_name(decision.rule),
            purpose=actor.context.purpose,
        )


def authorize_giving(actor: Actor, permission: Permission, target: Target) -> None:
    """`authorize` for what is about access itself: who manages all grants may it on every object, whatever denies."""
    managing = is_allowed(actor, Permission.GRANT_MANAGE)
    authorize(actor, Permission.GRANT_MANAGE if managing else permission, target)


def _denial_detail(actor: Actor, permission: Permission, rule: str) -> str:
    """A policy decides only where all else allows: whoever hears its name may know that the object is there."""
    policy, purpose = policy_name(rule), actor.context.purpose
    if not policy:
        return REASONS.get(rule, f"The permission {permission} is missing.")
    if not purpose:
        return f"The policy {policy} allows this only for certain purposes. Name one in X-Memory-Purpose."
    return f"The policy {policy} does not allow this for the purpose {purpose}. Name another in X-Memory-Purpose."


def _decide_on_any_object(actor: Actor, permission: Permission) -> Decision:
    """A role that lacks a permission may have it for single objects: then lists show those."""
    own = decide(actor, permission, None)
    if own.allowed or not own.rule.startswith("role:"):
        return own
    with acting(actor):
        some = has_any_grant(actor, permission)
    return Decision(allowed=True, rule="grants") if some else own

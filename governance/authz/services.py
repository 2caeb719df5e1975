"""The one question of the product: may this actor do this?"""

from governance.actor import Actor
from governance.authz.rules import Target, decide
from governance.errors import Forbidden, NotFound
from governance.vocabulary import Permission


def is_allowed(actor: Actor, permission: Permission, target: Target | None = None) -> bool:
    """`authorize` as a question, for replies that show more to those who may see more."""
    at_home = target is None or target.tenant_id == actor.tenant_id
    return at_home and decide(actor, permission, target).allowed


def authorize(actor: Actor, permission: Permission, target: Target | None = None) -> None:
    """Pass, or raise: NotFound for another tenant's object, Forbidden (with the deciding rule) at home."""
    if target is not None and target.tenant_id != actor.tenant_id:
        raise NotFound
    decision = decide(actor, permission, target)
    if not decision.allowed:
        raise Forbidden(
            f"The permission {permission} is missing.",
            permission=permission,
            rule=decision.rule,
            object_type=target.object_type if target else "tenant",
            object_id=target.object_id if target else actor.tenant_id,
        )

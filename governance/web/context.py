"""What every template knows: who is signed in."""

from typing import Any

from django.http import HttpRequest

from governance.actor import Actor
from governance.authz.services import is_allowed
from governance.vocabulary import Permission


def signed_in(request: HttpRequest) -> dict[str, Any]:
    """`actor` of the page, None on those before sign-in, and which pages to lead it to: each asks again."""
    actor: Actor | None = getattr(request, "actor", None)
    return {
        "actor": actor,
        "may_chat": _may(actor, Permission.CONVERSATION_USE),
        "may_audit": _may(actor, Permission.AUDIT_READ),
        "may_operate": _may(actor, Permission.OPERATIONS_MANAGE),
        "may_hold": _may(actor, Permission.HOLD_MANAGE),
        "may_see_policies": _may(actor, Permission.POLICY_READ),
        "may_speak_as": _may(actor, Permission.PERSONA_USE),
        "may_share": _may(actor, Permission.ACCESS_SHARE),
        "may_review": _may(actor, Permission.MEMORY_UPDATE),
    }


def _may(actor: Actor | None, permission: Permission) -> bool:
    return actor is not None and is_allowed(actor, permission)

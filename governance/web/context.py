"""What every template knows: who is signed in."""

from typing import Any

from django.http import HttpRequest

from governance.actor import Actor
from governance.authz.services import is_allowed
from governance.vocabulary import Permission


def signed_in(request: HttpRequest) -> dict[str, Any]:
    """`actor` of the page, None on those before sign-in, and which of the product's pages it may open."""
    actor: Actor | None = getattr(request, "actor", None)
    return {"actor": actor, "may_chat": actor is not None and is_allowed(actor, Permission.CONVERSATION_USE)}

"""What every template knows: who is signed in."""

from typing import Any

from django.http import HttpRequest

from governance.actor import Actor
from governance.authz.services import is_allowed
from governance.vocabulary import Permission


def signed_in(request: HttpRequest) -> dict[str, Any]:
    """`actor` of the page, set by the views that require one; None on the pages before sign-in.

    `may_audit`, `may_operate`: which pages to lead to; each page asks again.
    """
    actor: Actor | None = getattr(request, "actor", None)
    return {
        "actor": actor,
        "may_audit": actor is not None and is_allowed(actor, Permission.AUDIT_READ),
        "may_operate": actor is not None and is_allowed(actor, Permission.OPERATIONS_MANAGE),
    }

"""Context of every template: the signed-in person, and the pages that the person may open."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.tenants.selectors import me_get
from governance.vocabulary import Permission
from governance.web.navigation import address_of, bottom_bar_of, navigation_of, settings_of
from governance.web.sessions import persona_of_session
from governance.web.undo import list_deeds, take_message

SIDE_COOKIE = "memos-side"


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """Return the template context. `actor`: None before sign-in; `shell`: data of the page frame, and `me`: the actor's
    own data, both computed when rendered.
    """
    actor: Actor | None = getattr(request, "actor", None)
    if actor is None:
        return {"actor": None, "me": None}
    shell: Any = SimpleLazyObject(lambda: _shell(request, actor))
    return {
        "actor": actor,
        "shell": shell,
        "me": SimpleLazyObject(lambda: shell["me"]),
        "is_operator": getattr(request, "is_operator", False),
        "may_operate": is_allowed(actor, Permission.OPERATIONS_MANAGE),
    }


def _shell(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Return the data of the page frame; each page in the navigation is checked again."""
    with acting(actor):  # one transaction for all that is asked
        return {
            "me": me_get(actor=actor),
            "groups": navigation_of(actor, request.path),
            "settings": settings_of(actor, request.path),
            "bottom": bottom_bar_of(actor, request.path),
            "persona": persona_of_session(request),
            "may_add": is_allowed(actor, Permission.MEMORY_CREATE),
            "may_find": is_allowed(actor, Permission.MEMORY_READ),
            "message": take_message(request),
            "deeds": list_deeds(request),
            "notices": address_of("notices"),
            "is_narrow": request.COOKIES.get(SIDE_COOKIE) == "narrow",
        }

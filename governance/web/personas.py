"""Pages of personas: the reader's own, and the tenant's agents."""

from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Invalid
from governance.personas.selectors import persona_show, personas_list
from governance.personas.services import (
    LONGEST_NAME,
    NameInUse,
    PersonaDraft,
    persona_create,
    persona_remove,
)
from governance.vocabulary import PersonaKind
from governance.web.pages import draw, form_page, see_other
from governance.web.pagination import NewestOf

if TYPE_CHECKING:
    from governance.models import Persona

PERSONAS = 50  # of one page


@form_page
def personas(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List personas; POST creates one."""
    if request.method != "POST":
        return _draw_list(request, actor)
    kind = PersonaKind.AGENT if request.POST.get("kind") == PersonaKind.AGENT else PersonaKind.USER
    name = request.POST.get("name", "").strip()
    try:
        persona_create(actor=actor, draft=PersonaDraft(name=name, kind=kind))
    except (Invalid, Conflict) as failure:
        return _draw_list(request, actor, name=name, fault=name_fault(failure))
    return see_other(reverse("personas"))


@form_page
def persona_delete(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """GET shows the effect of the deletion; POST deletes the persona."""
    with acting(actor):
        persona_remove(actor=actor, persona_id=persona_id, dry_run=request.method != "POST")
        if request.method == "POST":
            return see_other(reverse("personas"))
        known = persona_show(actor=actor, persona_id=persona_id)
    return draw(request, "governance/personas/delete.html", {"persona": known})


def _draw_list(request: HttpRequest, actor: Actor, *, name: str = "", fault: str = "") -> HttpResponseBase:
    take = NewestOf(PERSONAS, request.GET.get("before", ""))
    with acting(actor):
        found: list[Persona] = personas_list(actor=actor, pages=take)
        context = {"personas": found, "older": take.older, "name": name, "fault": fault, "longest": LONGEST_NAME}
        context["kind"] = request.POST.get("kind", "")
        status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
        return draw(request, "governance/personas/list.html", context, status=status)


def name_fault(failure: Invalid | Conflict) -> str:
    """Return the reason why a name of a persona is refused, in words."""
    if isinstance(failure, NameInUse):
        return _("Memories of somebody else use this name. Choose another.")
    if isinstance(failure, Conflict):
        return _("You have a persona of this name.")
    return _("Write a name of at most %(limit)s characters.") % {"limit": LONGEST_NAME}

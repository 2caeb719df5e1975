"""The page on which an owner deletes the organisation, or cancels the deletion."""

from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from governance.actor import Actor
from governance.errors import Held, Invalid
from governance.web.pages import draw, form_page, post_page, see_other
from vault.deletion.services import deletion_cancel, deletion_get, deletion_preview, deletion_request


@form_page
def organisation(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the page; POST requests the deletion, confirmed by typing the organisation's short name."""
    view = deletion_get(actor=actor)
    if request.method != "POST":
        return _draw_page(request, actor)
    if request.POST.get("understood") != "yes":
        return _draw_page(request, actor, fault=_("Confirm that you understand what is deleted."))
    try:
        deletion_request(actor=actor, slug=request.POST.get("slug", "").strip())
    except Invalid:
        return _draw_page(request, actor, fault=_("Type “%(word)s” to confirm.") % {"word": view.slug})
    except Held:
        return _draw_page(request, actor, fault=_("Holds keep memories of this organisation. End them first."))
    return see_other(reverse("organisation"))


@post_page
def cancel(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    deletion_cancel(actor=actor)
    return see_other(reverse("organisation"))


def _draw_page(request: HttpRequest, actor: Actor, *, fault: str = "") -> HttpResponseBase:
    view = deletion_get(actor=actor)
    context = {
        "deletion": view,
        "preview": None if view.job else deletion_preview(actor=actor),
        "fault": fault,
        "typed": request.POST.get("slug", ""),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
    return draw(request, "vault/organisation.html", context, status=status)

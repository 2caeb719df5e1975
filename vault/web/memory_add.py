"""The form that stores one memory."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page, see_other
from governance.web.sessions import persona_of_session
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.cubes.writer.builder import texts_index
from vault.listing.selectors import paths_list
from vault.vocabulary import SemanticType, Sensitivity
from vault.web.labels import SEMANTIC_TYPES, SENSITIVITIES
from vault.web.memory_forms import day_read, member_read, tags_read, unconfirmed_path


@form_page
def memory_add(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the form, filled from `?content=`; POST stores a memory and redirects to it."""
    authorize(actor, Permission.MEMORY_CREATE)
    if request.method != "POST":
        return _draw_form(request, actor, {"content": request.GET.get("content", "")})
    try:
        draft = _read_draft(request)
        if new_path := unconfirmed_path(actor, request.POST):
            given = request.POST.dict() | {"new_path": new_path}
            return _draw_form(request, actor, given, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        added = cubes_add(actor=actor, drafts=[draft], texts=texts_index(actor.tenant_id, [draft]))
    except Invalid as fault:
        return _draw_form(request, actor, request.POST.dict(), fault=fault, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("memory", args=[added[0].cube.id]))


def _read_draft(request: HttpRequest) -> CubeDraft:
    form = request.POST
    content = form.get("content", "").replace("\r\n", "\n")
    if not content.strip() or len(content) > settings.MAX_CONTENT_CHARACTERS or "\x00" in content:
        raise Invalid(errors=[FieldError("content", f"1 to {settings.MAX_CONTENT_CHARACTERS} characters")])
    persona = persona_of_session(request)
    return CubeDraft(
        content=content,
        title=form.get("title", "").strip()[:500],
        namespace=form.get("namespace", "").strip() or None,
        persona=persona["id"] if persona else None,
        tags=tags_read(form.get("tags", "")),
        semantic_type=member_read(SemanticType, form, "semantic_type"),
        sensitivity=member_read(Sensitivity, form, "sensitivity"),
        expires_at=day_read(form, "expires_at"),
        reader="verbatim",
    )


def _draw_form(
    request: HttpRequest,
    actor: Actor,
    given: dict[str, Any],
    *,
    fault: Invalid | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    with acting(actor):
        context = {
            "given": given,
            "fault": fault,
            "places": paths_list(actor=actor),
            "types": SEMANTIC_TYPES,
            "sensitivities": SENSITIVITIES,
            "persona": persona_of_session(request),
            "longest": settings.MAX_CONTENT_CHARACTERS,
        }
        return draw(request, "vault/memories/add.html", context, status=status)

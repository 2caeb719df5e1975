"""Editing of one memory, and rollback to an earlier version. Another person's change is never overwritten."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid, VersionConflict
from governance.object_names import names_find
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page, go, post_page, see_other, wants_part
from governance.web.pagination import number_or_none
from governance.web.undo import put_message
from vault.content.drafts import CubeChanges
from vault.cubes.comparison import versions_compare
from vault.cubes.differences import text_difference
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target
from vault.cubes.moves_and_rollbacks import cube_rollback
from vault.cubes.selectors import CubeView, cube_get
from vault.cubes.services import cube_update, cube_update_ask
from vault.vocabulary import SemanticType, Sensitivity
from vault.web.labels import SEMANTIC_TYPES, SENSITIVITIES
from vault.web.memories import memory_context
from vault.web.memory_forms import day_read, member_read, moment_format, read_expected_versions, tags_read

LONGEST_REASON = 500


@form_page
def memory_edit(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """GET shows the form in place of the text; POST saves a version, or shows both texts after a conflict."""
    if request.method != "POST":
        return _draw_form(request, actor, memory_id, {})
    try:
        _save_changes(request.POST, actor, memory_id)
    except Invalid as fault:
        return _draw_form(request, actor, memory_id, {"fault": fault}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    except VersionConflict:
        return _draw_conflict(request, actor, memory_id)
    return go(request, reverse("memory", args=[memory_id]))


@post_page
def memory_rollback(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    number = number_or_none(request.POST.get("version", "")) or 0
    seen = number_or_none(request.POST.get("present", "")) or 0
    cube_rollback(actor=actor, cube_id=memory_id, number=number, expected_versions={seen})
    words = _("Rolled back to version %(number)s") % {"number": number}
    put_message(request, words)
    return see_other(reverse("memory", args=[memory_id]))


def _save_changes(form: QueryDict, actor: Actor, memory_id: UUID) -> None:
    expected = read_expected_versions(form)
    cube_update_ask(actor=actor, cube_id=memory_id, expected_versions=expected)  # before the form is validated
    changes, reason = _read_changes(form), _read_reason(form)
    cube_update(actor=actor, cube_id=memory_id, expected_versions=expected, changes=changes, reason=reason)


def _read_changes(form: QueryDict) -> CubeChanges:
    """Read the changes from the form. Raises Invalid."""
    content = form.get("content", "").replace("\r\n", "\n")
    if not content.strip() or len(content) > settings.MAX_CONTENT_CHARACTERS or "\x00" in content:
        raise Invalid(errors=[FieldError("content", f"1 to {settings.MAX_CONTENT_CHARACTERS} characters")])
    title = form.get("title", "").strip()
    if len(title) > 500 or "\x00" in title:
        raise Invalid(errors=[FieldError("title", "at most 500 characters")])
    return CubeChanges(
        content=content,
        title=title,
        tags=tags_read(form.get("tags", "")),
        semantic_type=member_read(SemanticType, form, "semantic_type"),
        sensitivity=member_read(Sensitivity, form, "sensitivity"),
        valid_from=day_read(form, "valid_from"),
        expires_at=day_read(form, "expires_at"),
    )


def _read_reason(form: QueryDict) -> str:
    reason = form.get("reason", "").strip()
    if len(reason) > LONGEST_REASON or not (reason.isprintable() or not reason):
        raise Invalid(errors=[FieldError("reason", f"at most {LONGEST_REASON} characters")])
    return reason


def _draw_form(
    request: HttpRequest, actor: Actor, memory_id: UUID, more: dict[str, Any], *, status: int = HTTPStatus.OK
) -> HttpResponseBase:
    """Draw the page of the memory with a form in place of its text; a script gets only the form."""
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(view.cube))
        refuse_held(actor, [memory_id])
        context = {
            "editing": True,
            "given": request.POST if request.method == "POST" else _initial_fields(view),
            "next_version": view.cube.version + 1,
            "types": SEMANTIC_TYPES,
            "sensitivities": SENSITIVITIES,
            "longest": settings.MAX_CONTENT_CHARACTERS,
            **more,
        }
        if wants_part(request):
            return draw(request, "vault/memories/_edit.html", {"memory": view, **context}, status=status)
        page_context = memory_context(request, actor, view)
        return draw(request, "vault/memories/memory.html", {**page_context, **context}, status=status)


def _draw_conflict(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Draw both texts, each compared with the version that the writer edited. The form continues with the newer
    version."""
    began = number_or_none(request.POST.get("version", "")) or 1
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        theirs = versions_compare(actor=actor, cube_id=memory_id, before=began, after=view.cube.version)
        mine = text_difference(theirs.before.words.content, request.POST.get("content", "").replace("\r\n", "\n"))
        more = {"conflict": theirs, "mine": mine, "authors": _find_author(actor, theirs.after.row.principal_id)}
        return _draw_form(request, actor, memory_id, more, status=HTTPStatus.CONFLICT)


def _find_author(actor: Actor, principal_id: UUID) -> Any:
    return names_find(actor.tenant_id, {principal_id})


def _initial_fields(view: CubeView) -> dict[str, Any]:
    """Return the initial values of the form."""
    cube = view.cube
    return {
        "version": cube.version,
        "title": view.words.title,
        "content": view.words.content,
        "tags": ", ".join(cube.tags),
        "semantic_type": cube.semantic_type,
        "sensitivity": cube.sensitivity,
        "valid_from": moment_format(cube.valid_from),
        "expires_at": moment_format(cube.expires_at),
    }

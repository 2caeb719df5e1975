"""Editing of one memory, and rollback to an earlier version. Another person's change is never overwritten."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Held, VersionConflict
from governance.object_names import names_find
from governance.vocabulary import Permission
from governance.web.page_forms import LocalTimeField
from governance.web.pages import draw, form_page, go, post_page, see_other, wants_part
from governance.web.pagination import number_or_none
from governance.web.undo import put_message
from vault.content.drafts import CubeChanges
from vault.cubes.comparison import versions_compare
from vault.cubes.differences import text_difference
from vault.cubes.lookup import cube_target
from vault.cubes.moves_and_rollbacks import cube_rollback
from vault.cubes.selectors import CubeView, cube_get
from vault.cubes.services import cube_update, cube_update_ask
from vault.web.memories import memory_context
from vault.web.memory_forms import MemoryForm, read_expected_versions

LONGEST_REASON = 500
IDS = "edit-%s"


class EditForm(MemoryForm):
    """Changes of a memory, with the reason for them."""

    valid_from = LocalTimeField(label=gettext_lazy("True from"), required=False)
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=LONGEST_REASON,
        help_text=gettext_lazy("Readers of the history see the reason."),
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Why does this memory change?")}),
    )

    def clean_reason(self) -> str:
        reason = str(self.cleaned_data["reason"])
        if not reason.isprintable():
            raise forms.ValidationError(_("Use visible characters only."))
        return reason


@form_page
def memory_edit(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """GET shows the form in place of the text; POST saves a version, or shows both texts after a conflict."""
    if request.method != "POST":
        return _draw_form(request, actor, memory_id, None)
    form, expected = EditForm(request.POST, auto_id=IDS), read_expected_versions(request.POST)

    def save() -> None:
        values = dict(form.cleaned_data)
        reason = values.pop("reason")
        changes = CubeChanges(**values)
        cube_update(actor=actor, cube_id=memory_id, expected_versions=expected, changes=changes, reason=reason)

    try:
        cube_update_ask(actor=actor, cube_id=memory_id, expected_versions=expected)  # before the form is validated
        if form.is_done_by(save):
            return go(request, reverse("memory", args=[memory_id]))
    except VersionConflict:
        return _draw_conflict(request, actor, memory_id, form)
    return _draw_form(request, actor, memory_id, form)


@post_page
def memory_rollback(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    number = number_or_none(request.POST.get("version", "")) or 0
    seen = number_or_none(request.POST.get("present", "")) or 0
    cube_rollback(actor=actor, cube_id=memory_id, number=number, expected_versions={seen})
    words = _("Rolled back to version %(number)s") % {"number": number}
    put_message(request, words)
    return see_other(reverse("memory", args=[memory_id]))


def _draw_form(
    request: HttpRequest, actor: Actor, memory_id: UUID, form: EditForm | None, **more: Any
) -> HttpResponseBase:
    """Draw the page of the memory with a form in place of its text; a script gets only the form."""
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(view.cube))
        if view.held:
            raise Held
        form = form or EditForm(auto_id=IDS, initial=_initial_fields(view))
        status = HTTPStatus.CONFLICT if more else form.status
        context = {"editing": True, "edit_form": form, "next_version": view.cube.version + 1, **more}
        if wants_part(request):
            return draw(request, "vault/memories/_edit.html", {"memory": view, **context}, status=status)
        page_context = memory_context(request, actor, view)
        return draw(request, "vault/memories/memory.html", {**page_context, **context}, status=status)


def _draw_conflict(request: HttpRequest, actor: Actor, memory_id: UUID, form: EditForm) -> HttpResponseBase:
    """Draw both texts, each compared with the version that the writer edited. The form continues with the newer
    version."""
    began = number_or_none(request.POST.get("version", "")) or 1
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        theirs = versions_compare(actor=actor, cube_id=memory_id, before=began, after=view.cube.version)
        text = "" if "content" in form.errors else form.cleaned_data["content"]
        mine = text_difference(theirs.before.words.content, text)
        authors = names_find(actor.tenant_id, {theirs.after.row.principal_id})
        return _draw_form(request, actor, memory_id, form, conflict=theirs, mine=mine, authors=authors)


def _initial_fields(view: CubeView) -> dict[str, Any]:
    """Return the initial values of the form."""
    cube = view.cube
    return {
        "title": view.words.title,
        "content": view.words.content,
        "tags": ", ".join(cube.tags),
        "semantic_type": cube.semantic_type,
        "sensitivity": cube.sensitivity,
        "valid_from": cube.valid_from,
        "expires_at": cube.expires_at,
    }

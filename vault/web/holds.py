"""Freezes of memories, and legal holds: one member creates a hold, two release it. Pages work without JavaScript."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Forbidden, NotFound
from governance.object_names import Name, ids_in, names_find
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, uuid_or_none
from vault.cubes.lookup import cube_target
from vault.cubes.selectors import CubeView, cube_get
from vault.holds.selectors import HoldView, Keeping, cube_holds, hold_get, holds_list
from vault.holds.services import (
    LONGEST_REASON,
    HoldDraft,
    cube_freezable,
    cube_freeze,
    cube_unfreeze,
    hold_create,
    hold_rehearse,
    hold_release,
)
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import memories_page, paths_list
from vault.vocabulary import HoldKind, HoldStatus
from vault.web.memory_forms import read_expected_versions
from vault.web.memory_rows import MemoryRow, row_make, rows_make

HOLDS = 30  # of one page
MATCHES = 10  # memories that the search of the form shows
OVER: dict[str, Promise] = {
    HoldKind.MEMORY: gettext_lazy("One memory"),
    HoldKind.QUERY: gettext_lazy("All that match"),
    HoldKind.SUBJECT: gettext_lazy("All about a person"),
}
KINDS: dict[HoldKind, Promise] = {
    HoldKind.FREEZE: gettext_lazy("freeze"),
    HoldKind.MEMORY: gettext_lazy("one memory"),
    HoldKind.QUERY: gettext_lazy("a query"),
    HoldKind.SUBJECT: gettext_lazy("a data subject"),
}
STATUSES: dict[HoldStatus, Promise] = {
    HoldStatus.ACTIVE: gettext_lazy("active"),
    HoldStatus.RELEASING: gettext_lazy("one approval of two"),
    HoldStatus.RELEASED: gettext_lazy("released"),
}
MARKS = {
    HoldStatus.ACTIVE: "state-activated",
    HoldStatus.RELEASING: "state-waiting",
    HoldStatus.RELEASED: "state-archived",
}
UNHELD = Keeping(freezes=(), legal=False)


class FreezeForm(PageForm):
    """The reason of a freeze."""

    reason = forms.CharField(
        label=gettext_lazy("Freeze this memory: why?"),
        max_length=LONGEST_REASON,
        error_messages={"required": gettext_lazy("Say why.")},
    )


class HoldForm(PageForm):
    """A hold; the fields of one kind of hold are filled in. q: the search for the memory to hold."""

    over = forms.ChoiceField(choices=list(OVER.items()), required=False, widget=forms.HiddenInput())
    q = forms.CharField(required=False, max_length=1000, widget=forms.HiddenInput())
    memory_id = forms.UUIDField(
        required=False,
        widget=forms.HiddenInput(),
        error_messages={"invalid": gettext_lazy("There is no memory with this id.")},
    )
    namespace = forms.CharField(
        label=gettext_lazy("Namespace"),
        required=False,
        help_text=gettext_lazy("Without those below."),
        widget=forms.Select(),
    )
    tag = forms.CharField(label=gettext_lazy("Tag"), required=False, max_length=100)
    filters = forms.CharField(
        label=gettext_lazy("Or a query as the API takes it"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": '{"tags": "case-17"}'}),
    )
    subject = forms.CharField(
        label=gettext_lazy("Your reference for the person"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Everything about this person is held, now and in future."),
        widget=forms.TextInput(attrs={"required": True}),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=LONGEST_REASON,
        error_messages={"required": gettext_lazy("Say why.")},
    )

    @property
    def kind(self) -> str:
        """The kind of hold that the form shows; guessed if it names none."""
        over = self["over"].value()
        if over in OVER:
            return str(over)
        if self["subject"].value():
            return HoldKind.SUBJECT
        return HoldKind.QUERY if self["filters"].value() else HoldKind.MEMORY

    def clean_filters(self) -> dict[str, Any] | None:
        text = self.cleaned_data["filters"]
        try:
            found = json.loads(text) if text else None
        except (ValueError, RecursionError):
            found = text
        if found is not None and not isinstance(found, dict):
            words = _('This is no query. Write it in braces, names and texts in double quotes: {"tags": "case-17"}')
            raise forms.ValidationError(words)
        return found

    def draft(self) -> HoldDraft:
        values = self.cleaned_data
        fields = {"namespace": values["namespace"], "tags": values["tag"]}
        filters = values["filters"]
        if filters is None:
            filters = {name: text for name, text in fields.items() if text} or None
        return HoldDraft(
            reason=values["reason"],
            memory_id=values["memory_id"],
            subject=values["subject"] or None,
            filters=filters,
        )

    def blame_field(self, fault: FieldError) -> None:
        if fault.field.startswith("filters"):
            self.add_error("filters", _describe_fault(fault))
        else:
            super().blame_field(fault)


@dataclass(frozen=True)
class ShownHold:
    hold: HoldView
    kind: Promise
    status: Promise
    over: str

    @property
    def mark(self) -> str:
        return MARKS[self.hold.status]

    @property
    def is_released(self) -> bool:
        return self.hold.status is HoldStatus.RELEASED


@form_page
def holds(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET lists the legal holds of the tenant; POST creates one, or with `count` counts the memories that it would
    cover."""
    if request.method != "POST":
        return _draw_list(request, actor)
    authorize(actor, Permission.HOLD_MANAGE)
    form = HoldForm(request.POST)
    if "count" in request.POST:
        counted = form.made_by(lambda: hold_rehearse(actor=actor, draft=form.draft(), most=0)[0])
        return _draw_form(request, actor, form, counted=counted)
    made = form.made_by(lambda: hold_create(actor=actor, draft=form.draft()))
    return see_other(reverse("hold", args=[made.id])) if made else _draw_form(request, actor, form)


@safe_page
def hold_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the form of a hold on a searched memory, the results of a query, or everything about a data subject."""
    authorize(actor, Permission.HOLD_MANAGE)
    return _draw_form(request, actor, HoldForm(initial=request.GET.dict()))


@safe_page
def hold(request: HttpRequest, actor: Actor, hold_id: UUID) -> HttpResponseBase:
    view = hold_get(actor=actor, hold_id=hold_id)
    mine = actor.member_id in {approval.member_id for approval in view.approvals}
    context = {"shown": make_shown_hold(view), "named": _find_names(actor, view), "approved_by_me": mine}
    return draw(request, "vault/holds/hold.html", context)


@post_page
def release(request: HttpRequest, actor: Actor, hold_id: UUID) -> HttpResponseBase:
    hold_release(actor=actor, hold_id=hold_id)
    return see_other(reverse("hold", args=[hold_id]))


@post_page
def freeze(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    cube_freezable(actor=actor, cube_id=memory_id)
    form = FreezeForm(request.POST, auto_id="freeze_%s")
    versions = read_expected_versions(request.POST)
    if form.is_done_by(
        lambda: cube_freeze(actor=actor, cube_id=memory_id, expected_versions=versions, **form.cleaned_data)
    ):
        return _draw_held_part(request, actor, memory_id)
    context = {"memory_id": memory_id, "version": request.POST.get("version", ""), "freeze_form": form}
    template = "vault/holds/_freeze.html" if wants_part(request) else "vault/holds/freeze.html"
    return draw(request, template, context, status=form.status)


@post_page
def unfreeze(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    cube_unfreeze(actor=actor, cube_id=memory_id, expected_versions=read_expected_versions(request.POST))
    return _draw_held_part(request, actor, memory_id)


def keeping_context(actor: Actor, view: CubeView) -> dict[str, Any]:
    """Return the context of `_keeping.html`; no query for a memory without holds."""
    cube = view.cube
    return {
        "memory_id": cube.id,
        "version": cube.version,
        "keeping": cube_holds(actor=actor, cube_id=cube.id) if view.held else UNHELD,
        "may_freeze": is_allowed(actor, Permission.MEMORY_FREEZE, cube_target(cube)),
        "freeze_form": FreezeForm(auto_id="freeze_%s"),
    }


def make_shown_hold(view: HoldView) -> ShownHold:
    over = view.subject.reference if view.subject else ""
    if view.filters is not None:
        over = json.dumps(view.filters, ensure_ascii=False, sort_keys=True)
    return ShownHold(hold=view, kind=KINDS[view.kind], status=STATUSES[view.status], over=over)


def _find_names(actor: Actor, view: HoldView) -> list[Name]:
    """Return the names of the ids in a hold's terms; for a memory, the name of its namespace."""
    ids = ids_in(json.dumps(view.filters)) if view.filters else []
    ids += [view.memory_id] if view.memory_id else []
    with acting(actor):
        return [*names_find(actor.tenant_id, ids).values()]


def _draw_held_part(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    if not wants_part(request):
        return see_other(reverse("memory", args=[memory_id]))
    cube = cube_freezable(actor=actor, cube_id=memory_id)
    context = {
        "memory_id": memory_id,
        "version": cube.version,
        "keeping": cube_holds(actor=actor, cube_id=memory_id),
        "may_freeze": True,
        "freeze_form": FreezeForm(auto_id="freeze_%s"),
    }
    return draw(request, "vault/holds/_keeping.html", context)


def _draw_list(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    take = Newest(size=HOLDS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    found = holds_list(actor=actor, pages=take)
    context = {"holds": [make_shown_hold(view) for view in found], "holds_older": take.older}
    return draw(request, "vault/holds/holds.html", context)


def _draw_form(request: HttpRequest, actor: Actor, form: HoldForm, *, counted: int | None = None) -> HttpResponseBase:
    """Draw the form of a hold, with the memories that `q` finds."""
    text, chosen = form["q"].value() or "", uuid_or_none(str(form["memory_id"].value() or ""))
    if form.kind == HoldKind.QUERY:
        paths = [(path, path) for path in paths_list(actor=actor)]
        form.fields["namespace"].widget.choices = [("", _("Any")), *paths]
    context = {
        "form": form,
        "over": form.kind,
        "ways": OVER.items(),
        "text": text,
        "rows": _find_matches(actor, text, chosen) if form.kind == HoldKind.MEMORY else [],
        "chosen": chosen,
        "counted": counted,
    }
    return draw(request, "vault/holds/new.html", context, status=form.status)


def _find_matches(actor: Actor, text: str, chosen: UUID | None) -> list[MemoryRow]:
    """Return the memories that a search finds, as rows; without a search, only the chosen one."""
    if text.strip():
        found = memories_page(actor=actor, query=MemoryQuery(text=text))
        return rows_make(found, text)[:MATCHES]
    if chosen is None:
        return []
    try:
        return [row_make(cube_get(actor=actor, cube_id=chosen))]
    except (NotFound, Forbidden):
        return []  # the actor can hold the memory by its id, but may not read its text


def _describe_fault(fault: FieldError) -> str:
    """Describe an error of a query in the reader's language."""
    if fault.field == "filters":
        return _('Say what to hold, as in {"tags": "case-17"}. An empty query would hold everything.')
    place = fault.field.removeprefix("filters.")
    unknown, _separator, known = fault.message.partition("; known are ")
    if known and unknown == "unknown field":
        return _("A query has no field %(place)s. Its fields are: %(known)s.") % {"place": place, "known": known}
    return _("The query cannot be used at %(place)s: %(message)s.") % {"place": place, "message": fault.message}

"""Freezes of memories, and legal holds: one member creates a hold, two release it. Pages work without JavaScript."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid, NotFound
from governance.object_names import Name, ids_in, names_find
from governance.vocabulary import Permission
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
NO_QUERY = "filters as text"  # name of a form field that the API does not have
UNHELD = Keeping(freezes=(), legal=False)


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
    try:
        if "count" in request.POST:
            counted = hold_rehearse(actor=actor, draft=_read_draft(request), most=0)[0]
            return _draw_form(request, actor, request.POST, counted=counted)
        made = hold_create(actor=actor, draft=_read_draft(request))
    except Invalid as failure:
        return _draw_form(request, actor, request.POST, fault=_describe_fault(failure))
    return see_other(reverse("hold", args=[made.id]))


@safe_page
def hold_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the form of a hold on a searched memory, the results of a query, or everything about a data subject."""
    authorize(actor, Permission.HOLD_MANAGE)
    return _draw_form(request, actor, request.GET)


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
    reason = request.POST.get("reason", "").strip()
    try:
        cube_freeze(
            actor=actor, cube_id=memory_id, reason=reason, expected_versions=read_expected_versions(request.POST)
        )
    except Invalid as failure:
        context = {
            "memory_id": memory_id,
            "version": request.POST.get("version", ""),
            "fault": _describe_fault(failure),
            "reason": reason,
            "longest": LONGEST_REASON,
        }
        template = "vault/holds/_freeze.html" if wants_part(request) else "vault/holds/freeze.html"
        return draw(request, template, context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _draw_held_part(request, actor, memory_id)


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
        "longest": LONGEST_REASON,
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
        "longest": LONGEST_REASON,
    }
    return draw(request, "vault/holds/_keeping.html", context)


def _draw_list(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    take = Newest(size=HOLDS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    found = holds_list(actor=actor, pages=take)
    context = {"holds": [make_shown_hold(view) for view in found], "holds_older": take.older}
    return draw(request, "vault/holds/holds.html", context)


def _draw_form(
    request: HttpRequest, actor: Actor, given: QueryDict, *, counted: int | None = None, fault: str = ""
) -> HttpResponseBase:
    """Draw the form of a hold, with the memories that `q` finds."""
    over = given.get("over", "")
    over = over if over in OVER else _guess_kind(given)
    chosen = uuid_or_none(given.get("memory_id", ""))
    context = {
        "over": over,
        "ways": OVER.items(),
        "given": given.dict(),
        "text": given.get("q", ""),
        "rows": _find_matches(actor, given.get("q", ""), chosen) if over == HoldKind.MEMORY else [],
        "paths": paths_list(actor=actor) if over == HoldKind.QUERY else [],
        "chosen": chosen,
        "counted": counted,
        "fault": fault,
        "longest": LONGEST_REASON,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
    return draw(request, "vault/holds/new.html", context, status=status)


def _guess_kind(given: QueryDict) -> HoldKind:
    """Return the kind of hold that a form means if it names no kind."""
    if given.get("subject"):
        return HoldKind.SUBJECT
    return HoldKind.QUERY if given.get("filters") else HoldKind.MEMORY


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


def _read_draft(request: HttpRequest) -> HoldDraft:
    """Read the hold of the form; empty fields, and those of other kinds of holds, are ignored. Raises Invalid."""
    memory, subject, filters = (request.POST.get(name, "").strip() for name in ("memory_id", "subject", "filters"))
    memory_id = uuid_or_none(memory)
    if memory and memory_id is None:
        raise Invalid(errors=[FieldError("memory_id", "there is no such memory")])
    return HoldDraft(
        reason=request.POST.get("reason", "").strip(),
        memory_id=memory_id,
        subject=subject or None,
        filters=_parse_filters(filters) if filters else _read_filters_of_fields(request.POST) or None,
    )


def _read_filters_of_fields(given: QueryDict) -> dict[str, Any]:
    """Read the filters from the form's fields."""
    said = {name: given.get(name, "").strip() for name in ("namespace", "tag")}
    names = {"namespace": "namespace", "tag": "tags"}
    return {names[name]: text for name, text in said.items() if text}


def _parse_filters(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Invalid(errors=[FieldError(NO_QUERY, "a JSON object is needed")])
    return found


def _describe_fault(failure: Invalid) -> str:
    """Describe the first fault in the reader's language."""
    fault = failure.errors[0] if failure.errors else FieldError("body", failure.detail)
    told = {
        "reason": _("Say why, in at most %(limit)s characters.") % {"limit": LONGEST_REASON},
        "memory_id": _("There is no memory with this id."),
        "body": _("Fill in just one: a memory, a data subject or a query."),
        NO_QUERY: _('This is no query. Write it in braces, names and texts in double quotes: {"tags": "case-17"}'),
        "filters": _('Say what to hold, as in {"tags": "case-17"}. An empty query would hold everything.'),
    }
    return told.get(fault.field) or _fault_of_query(fault)


def _fault_of_query(fault: FieldError) -> str:
    place = fault.field.removeprefix("filters.")
    unknown, _separator, known = fault.message.partition("; known are ")
    if known and unknown == "unknown field":
        return _("A query has no field %(place)s. Its fields are: %(known)s.") % {"place": place, "known": known}
    return _("The query cannot be used at %(place)s: %(message)s.") % {"place": place, "message": fault.message}

"""Freezing a memory, and the tenant's legal holds: made by one, released by two. Each page works without JavaScript."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.naming import Name, ids_in, names_find
from governance.vocabulary import Permission
from governance.web.pages import draw, page, see_other, wants_part
from governance.web.paging import Newest, uuid_or_none
from vault.cubes.lookup import cube_target
from vault.cubes.selectors import CubeView
from vault.holds.selectors import HoldView, Keeping, cube_keeping, hold_get, holds_list
from vault.holds.services import (
    LONGEST_REASON,
    HoldDraft,
    cube_freezable,
    cube_freeze,
    cube_unfreeze,
    hold_create,
    hold_release,
)
from vault.vocabulary import HoldKind, HoldStatus

HOLDS = 30  # of one page
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
NO_QUERY = "filters as text"  # what a field is called here that the API does not know
UNHELD = Keeping(freezes=(), legal=False)


@dataclass(frozen=True)
class ShownHold:
    hold: HoldView
    kind: Promise
    status: Promise
    over: str

    @property
    def released(self) -> bool:
        return self.hold.status is HoldStatus.RELEASED


@require_http_methods(["GET", "HEAD", "POST"])
@page
def holds(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """The legal holds of the tenant, and a form for a new one."""
    if request.method != "POST":
        return _listed(request, actor)
    try:
        made = hold_create(actor=actor, draft=_draft(request))
    except Invalid as failure:
        return _listed(request, actor, given=request.POST.dict(), fault=_fault(failure))
    return see_other(reverse("hold", args=[made.id]))


@require_http_methods(["GET", "HEAD"])
@page
def hold(request: HttpRequest, actor: Actor, hold_id: UUID) -> HttpResponseBase:
    view = hold_get(actor=actor, hold_id=hold_id)
    mine = actor.member_id in {one.member_id for one in view.approvals}
    context = {"shown": shown(view), "named": _named(actor, view), "approved_by_me": mine}
    return draw(request, "vault/holds/hold.html", context)


@require_POST
@page
def release(request: HttpRequest, actor: Actor, hold_id: UUID) -> HttpResponseBase:
    hold_release(actor=actor, hold_id=hold_id)
    return see_other(reverse("hold", args=[hold_id]))


@require_POST
@page
def freeze(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    reason = request.POST.get("reason", "").strip()
    try:
        cube_freeze(actor=actor, cube_id=memory_id, reason=reason)
    except Invalid as failure:
        context = {"memory_id": memory_id, "fault": _fault(failure), "reason": reason, "longest": LONGEST_REASON}
        template = "vault/holds/_freeze.html" if wants_part(request) else "vault/holds/freeze.html"
        return draw(request, template, context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _kept(request, actor, memory_id)


@require_POST
@page
def unfreeze(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    cube_unfreeze(actor=actor, cube_id=memory_id)
    return _kept(request, actor, memory_id)


def keeping_context(actor: Actor, view: CubeView) -> dict[str, Any]:
    """What `_keeping.html` needs; no query for a memory that nothing holds."""
    cube = view.cube
    return {
        "memory_id": cube.id,
        "keeping": cube_keeping(actor=actor, cube_id=cube.id) if view.held else UNHELD,
        "may_freeze": is_allowed(actor, Permission.MEMORY_FREEZE, cube_target(cube)),
        "longest": LONGEST_REASON,
    }


def shown(view: HoldView) -> ShownHold:
    over = view.subject.reference if view.subject else ""
    if view.filters is not None:
        over = json.dumps(view.filters, ensure_ascii=False, sort_keys=True)
    return ShownHold(hold=view, kind=KINDS[view.kind], status=STATUSES[view.status], over=over)


def _named(actor: Actor, view: HoldView) -> list[Name]:
    """What the ids in a hold's terms are called; of a memory where it lies."""
    ids = ids_in(json.dumps(view.filters)) if view.filters else []
    ids += [view.memory_id] if view.memory_id else []
    with acting(actor):
        return [*names_find(actor.tenant_id, ids).values()]


def _kept(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    if not wants_part(request):
        return see_other(reverse("memory", args=[memory_id]))
    cube_freezable(actor=actor, cube_id=memory_id)
    context = {
        "memory_id": memory_id,
        "keeping": cube_keeping(actor=actor, cube_id=memory_id),
        "may_freeze": True,
        "longest": LONGEST_REASON,
    }
    return draw(request, "vault/holds/_keeping.html", context)


def _listed(
    request: HttpRequest, actor: Actor, *, given: dict[str, Any] | None = None, fault: str = ""
) -> HttpResponseBase:
    take = Newest(size=HOLDS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    found = holds_list(actor=actor, pages=take)
    context = {
        "holds": [shown(view) for view in found],
        "holds_older": take.older,
        "given": given or {},
        "fault": fault,
        "longest": LONGEST_REASON,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
    return draw(request, "vault/holds/holds.html", context, status=status)


def _draft(request: HttpRequest) -> HoldDraft:
    """The form: fields left empty are not meant. Raises Invalid."""
    memory, subject, filters = (request.POST.get(name, "").strip() for name in ("memory_id", "subject", "filters"))
    memory_id = uuid_or_none(memory)
    if memory and memory_id is None:
        raise Invalid(errors=[FieldError("memory_id", "there is no such memory")])
    return HoldDraft(
        reason=request.POST.get("reason", "").strip(),
        memory_id=memory_id,
        subject=subject or None,
        filters=_filters(filters) if filters else None,
    )


def _filters(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Invalid(errors=[FieldError(NO_QUERY, "a JSON object is needed")])
    return found


def _fault(failure: Invalid) -> str:
    """The first thing that is wrong, in the reader's language."""
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
        return _("A query knows no field %(place)s. There are: %(known)s.") % {"place": place, "known": known}
    return _("The query cannot be used at %(place)s: %(message)s.") % {"place": place, "message": fault.message}

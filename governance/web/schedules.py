"""Pages of schedules: created, changed, previewed, run now and removed. Each form works without JavaScript."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict, Invalid, NotFound
from governance.jobs.kinds import kind_of, schedulable_kinds
from governance.jobs.schedules import (
    schedule_create,
    schedule_get,
    schedule_preview,
    schedule_remove,
    schedule_run,
    schedule_update,
)
from governance.vocabulary import Permission
from governance.web.job_words import cron_words, effect_words, kind_words, meaning_words
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.return_page import is_here
from governance.web.schedule_forms import ScheduleForm, initial_of
from governance.web.schedule_list import list_choices
from governance.web.zones import ZONES

if TYPE_CHECKING:
    from governance.models import Schedule


@form_page
def schedule_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Choose the kind of job, then its times."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    kind = request.GET.get("kind", "")
    if not kind:
        kinds = [(kind, kind_words(kind), meaning_words(kind)) for kind in schedulable_kinds()]
        return draw(request, "governance/jobs/kinds.html", {"kinds": kinds})
    if kind not in schedulable_kinds():
        raise NotFound
    if request.method != "POST":
        initial = {
            "rhythm": "day",
            "at": "03:00",
            "timezone": timezone.get_current_timezone_name(),
            "enabled": True,
            "settings": {name: value for name, value in request.GET.items() if name != "kind"},
        }
        return _form(request, ScheduleForm(initial=initial, kind=kind, choices=list_choices(actor, kind)), kind)
    form = ScheduleForm(request.POST, kind=kind, choices=list_choices(actor, kind))
    try:
        if form.is_valid():
            schedule_create(actor=actor, draft=form.draft(kind))
            return see_other(reverse("schedules"))
    except Invalid as failure:
        form.blame(failure)
    return _form(request, form, kind)


@form_page
def schedule(request: HttpRequest, actor: Actor, schedule_id: UUID) -> HttpResponseBase:
    """Show one schedule. `preview` in the address: also show the changes that a run would make now."""
    found = schedule_get(actor=actor, schedule_id=schedule_id)
    more: dict[str, Any] = {"schedule": found, "words": cron_words(found.cron)}
    choices = list_choices(actor, found.kind)
    if request.method != "POST":
        more["effect"] = _describe_effect(request, actor, found)
        form = ScheduleForm(initial=initial_of(found), kind=found.kind, choices=choices)
        return _form(request, form, found.kind, more)
    form = ScheduleForm(request.POST, kind=found.kind, choices=choices)
    try:
        if form.is_valid():
            schedule_update(actor=actor, schedule_id=schedule_id, changes=form.changes())
            return see_other(reverse("schedules"))
    except Invalid as failure:
        form.blame(failure)
    return _form(request, form, found.kind, more)


@post_page
def schedule_switch(request: HttpRequest, actor: Actor, schedule_id: UUID) -> HttpResponseBase:
    schedule_update(actor=actor, schedule_id=schedule_id, changes={"enabled": request.POST.get("enabled") == "yes"})
    wanted = request.POST.get("next", "")
    return see_other(wanted if is_here(request, wanted) else reverse("jobs"))


@post_page
def schedule_start(request: HttpRequest, actor: Actor, schedule_id: UUID) -> HttpResponseBase:
    started = schedule_run(actor=actor, schedule_id=schedule_id)
    return see_other(reverse("job", args=[started.id]))


@post_page
def schedule_end(request: HttpRequest, actor: Actor, schedule_id: UUID) -> HttpResponseBase:
    schedule_remove(actor=actor, schedule_id=schedule_id)
    return see_other(reverse("schedules"))


def _describe_effect(request: HttpRequest, actor: Actor, found: "Schedule") -> str:
    """Return the effect of a run now in words, if the address asks for it; else an empty text."""
    if "preview" not in request.GET:
        return ""
    try:
        return effect_words(found.kind, schedule_preview(actor=actor, schedule_id=found.id))
    except Conflict:
        return ""  # this kind has none, and the page offers none


def _form(request: HttpRequest, form: ScheduleForm, kind: str, more: dict[str, Any] | None = None) -> HttpResponseBase:
    context = {
        "form": form,
        "kind": kind,
        "kind_words": kind_words(kind),
        "meaning": meaning_words(kind),
        "has_preview": kind in schedulable_kinds() and kind_of(kind).preview is not None,
        "zones": ZONES,
        "action": request.path if more else f"{request.path}?{urlencode({'kind': kind})}",
        **(more or {}),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.errors or form.chosen.errors else HTTPStatus.OK
    return draw(request, "governance/jobs/schedule.html", context, status=status)

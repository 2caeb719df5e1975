"""Schedules by their next run, previews of the changes of each, and the kinds without a schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.jobs.kinds import Preview, kind_of, schedulable_kinds
from governance.jobs.schedules import (
    kinds_without_schedule,
    schedule_preview,
    schedules_create_defaults,
    schedules_list,
)
from governance.object_names import Name, names_find
from governance.pages import First
from governance.vocabulary import JobStatus, Permission
from governance.web.job_words import STATUSES, cron_words, effect_words, kind_words, meaning_words
from governance.web.pages import draw, post_page, safe_page, see_other
from governance.web.setting_words import CHOICES

if TYPE_CHECKING:
    from governance.models import Schedule

SCHEDULES = 100
SOON = timedelta(hours=24)
NAMED = 5  # memories of a preview that the page names
COUNT_SOON = "soon"


@dataclass(frozen=True)
class Counted:
    """The effect of a run now, in words, and some of its memories with their namespaces."""

    effect: str
    memories: tuple[tuple[UUID, str], ...] = ()


@dataclass(frozen=True)
class ShownSchedule:
    """A schedule in words. counted: None if no preview was requested or the kind has none."""

    row: "Schedule"
    name: str
    meaning: str
    when: str
    mark: str
    status: str
    may_count: bool
    counted: Counted | None = None


@safe_page
def schedules(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the schedules. `count` in the address: the id of a schedule to preview, or `soon` for the next 24 hours."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    rows = schedules_list(actor=actor, pages=First(SCHEDULES))
    counted = _count_effects(actor, rows, request.GET.get("count", ""))
    shown = [describe_schedule(actor, row, counted.get(row.id)) for row in _sort_by_next_run(rows)]
    context = {
        "soon": [schedule for schedule in shown if _is_soon(schedule.row)],
        "schedules": shown,
        "unscheduled": _list_unscheduled(rows),
        "defaults": [kind_words(kind.name) for kind in kinds_without_schedule(actor=actor)],
        "is_counted": bool(counted),
        "here": request.get_full_path(),
    }
    return draw(request, "governance/jobs/schedules.html", context)


@post_page
def schedules_default(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Create the default schedules of a new tenant."""
    schedules_create_defaults(actor=actor)
    return see_other(reverse("schedules"))


def _sort_by_next_run(rows: "Sequence[Schedule]") -> "list[Schedule]":
    """Sort by the next run; disabled schedules come last."""
    return sorted(rows, key=lambda row: (row.next_run_at is None, row.next_run_at or row.created_at, row.id))


def _is_soon(row: "Schedule") -> bool:
    return row.next_run_at is not None and row.next_run_at <= timezone.now() + SOON


def _count_effects(actor: Actor, rows: "Sequence[Schedule]", asked: str) -> dict[UUID, Counted]:
    """Count the effects of the schedules that the address asks for."""
    wanted = [row for row in rows if asked == str(row.id) or (asked == COUNT_SOON and _is_soon(row))]
    found = {row.id: schedule_preview(actor=actor, schedule_id=row.id) for row in wanted if _may_count(actor, row.kind)}
    with acting(actor):
        names = names_find(actor.tenant_id, [id for preview in found.values() for id in preview.ids[:NAMED]])
    kinds = {row.id: row.kind for row in wanted}
    return {id: _describe_count(kinds[id], preview, names) for id, preview in found.items()}


def _describe_count(kind: str, preview: Preview, names: Mapping[UUID, Name]) -> Counted:
    named = [(id, names[id]) for id in preview.ids[:NAMED] if id in names]
    return Counted(effect_words(kind, preview), tuple((id, str(name)) for id, name in named if name.kind == "memory"))


def _may_count(actor: Actor, kind: str) -> bool:
    """Return whether the kind has a preview that the actor may see; False for a kind of a former release."""
    if kind not in schedulable_kinds():
        return False
    return kind_of(kind).preview is not None and is_allowed(actor, kind_of(kind).permission)


def list_choices(actor: Actor, kind: str) -> Mapping[str, Mapping[str, str]]:
    """Return the values among which the actor chooses settings of a kind, with their names; none of a former kind or
    one that the actor may not request."""
    known = kind_of(kind) if kind in schedulable_kinds() else None
    if known is None or known.choices is None or not is_allowed(actor, known.permission):
        return {}
    return known.choices(actor)


def _name_settings(row: "Schedule", choices: Mapping[str, Mapping[str, str]]) -> str:
    """Return the names of the values that a schedule chooses, or nothing."""
    others = _("of another member, or removed")
    return ", ".join(known.get(str(row.settings.get(name)), others) for name, known in choices.items())


def describe_schedule(actor: Actor, row: "Schedule", counted: Counted | None = None) -> ShownSchedule:
    mark, status = STATUSES[JobStatus(row.last_job.status)] if row.last_job else ("", "")
    chosen = _name_settings(row, list_choices(actor, row.kind))
    return ShownSchedule(
        row=row,
        name=f"{kind_words(row.kind)}: {chosen}" if chosen else kind_words(row.kind),
        meaning=meaning_words(row.kind),
        when=_describe_times(row),
        mark=mark,
        status=str(status),
        may_count=_may_count(actor, row.kind),
        counted=counted,
    )


def _describe_times(row: "Schedule") -> str:
    """Return the times of a schedule in words, with the event that starts it, too."""
    event = CHOICES.get((row.kind, "on"), {}).get(row.settings.get("on") or "-")
    return f"{cron_words(row.cron)} · {event}" if event else cron_words(row.cron)


def _list_unscheduled(rows: "Sequence[Schedule]") -> list[tuple[str, str, str]]:
    """Return (kind, its name, its meaning) of the kinds without a schedule."""
    scheduled = {row.kind for row in rows}
    return [(kind, kind_words(kind), meaning_words(kind)) for kind in schedulable_kinds() if kind not in scheduled]

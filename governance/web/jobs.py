"""Pages of jobs: running, failed and waiting ones; one job; cancelling, retrying and undoing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.heartbeats import Part, silent_parts
from governance.jobs.kinds import kind_of
from governance.jobs.schedules import schedules_list
from governance.jobs.selectors import OPEN, JobView, job_get, jobs_list
from governance.jobs.services import job_cancel, job_retry, job_undo, jobs_cancel
from governance.jobs.summary import jobs_summary
from governance.object_names import names_find
from governance.pages import First
from governance.vocabulary import JobStatus, Permission, Topic
from governance.web.charts import bars_of, shares_of
from governance.web.job_words import (
    PARTS,
    STATUSES,
    duration_words,
    error_words,
    kind_words,
    left_codes,
    progress_words,
    reason_words,
    result_words,
)
from governance.web.pages import draw, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, uuid_or_none
from governance.web.return_page import is_here
from governance.web.schedule_list import ShownSchedule, describe_schedule

NOW, ALL, DEAD = "", "all", "dead"
ROWS = {NOW: 8, ALL: 50, DEAD: 50}
SCHEDULES = 50
FILES = {Topic.MEMORIES_EXPORT: "memories_export"}  # the page that gives out what a job made
NARROWED = {"open": OPEN, "failed": frozenset({JobStatus.FAILED})}


@dataclass(frozen=True)
class ShownJob:
    """A row of the list of jobs: title, status and the actions that the reader may take."""

    view: JobView
    name: str
    mark: str
    status: str
    note: str
    error: str
    took: str
    may_cancel: bool
    may_retry: bool
    may_undo: bool

    @property
    def percent(self) -> int:
        return int(self.view.progress * 100)

    @property
    def progress(self) -> str:
        return progress_words(self.view)

    @property
    def is_open(self) -> bool:
        return self.view.status in OPEN


@dataclass(frozen=True)
class LeftOut:
    """A memory that a job could not change: its id, the path of its namespace and the reason."""

    id: UUID
    place: str
    reason: str


@safe_page
def jobs(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show running jobs and schedules; with `list`, all jobs or those that wait for a person."""
    shown = request.GET.get("list", NOW)
    shown = shown if shown in ROWS else NOW
    state = request.GET.get("state", "")
    take = Newest(size=ROWS[shown], key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    views = jobs_list(actor=actor, pages=take, statuses=NARROWED.get(state, frozenset()), dead_letters=shown == DEAD)
    context: dict[str, Any] = {
        "list": shown,
        "state": state,
        "jobs": _describe_jobs(actor, views),
        "is_live": any(view.status in OPEN for view in views),
        "older": take.older,
        "here": request.get_full_path(),
    }
    if wants_part(request):
        return draw(request, "governance/jobs/_runs.html", context)
    return draw(request, "governance/jobs/list.html", {**context, **_make_side_context(actor, shown)})


@safe_page
def job(request: HttpRequest, actor: Actor, job_id: UUID) -> HttpResponseBase:
    view = job_get(actor=actor, job_id=job_id)
    raw = json.dumps(view.result, ensure_ascii=False, indent=2) if view.result else ""
    error = json.dumps(view.error, ensure_ascii=False, indent=2) if view.error else ""
    context = {
        "job": _describe_jobs(actor, [view])[0],
        "reasons": [(count, reason_words(code)) for code, count in left_codes(view)],
        "left_out": _find_left_out(actor, view),
        "result": raw,
        "error": error,
        "here": request.path,
    }
    if view.status is JobStatus.SUCCEEDED and view.kind in FILES:
        context["file"] = reverse(FILES[Topic(view.kind)], args=[view.id])
    template = "governance/jobs/_job.html" if wants_part(request) else "governance/jobs/job.html"
    return draw(request, template, context)


@post_page
def cancel(request: HttpRequest, actor: Actor, job_id: UUID) -> HttpResponseBase:
    return _redirect_after_change(request, job_cancel(actor=actor, job_id=job_id))


@post_page
def cancel_kind(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Cancel all open jobs of the kind that the form names."""
    jobs_cancel(actor=actor, kind=request.POST.get("kind", ""))
    return see_other(reverse("jobs"))


@post_page
def retry(request: HttpRequest, actor: Actor, job_id: UUID) -> HttpResponseBase:
    return _redirect_after_change(request, job_retry(actor=actor, job_id=job_id))


@post_page
def undo(request: HttpRequest, actor: Actor, job_id: UUID) -> HttpResponseBase:
    return _redirect_after_change(request, job_undo(actor=actor, job_id=job_id))


def _describe_jobs(actor: Actor, views: Sequence[JobView]) -> list[ShownJob]:
    """Return the jobs as rows of a list; the rights for each kind of job are checked once."""
    kinds = {view.kind for view in views}
    runnable = {kind for kind in kinds if _may_run(actor, kind)}
    return [_describe_job(view, view.kind in runnable) for view in views]


def _may_run(actor: Actor, kind: str) -> bool:
    """Return whether the actor may request this kind of job; False for a kind of a former release."""
    try:
        return is_allowed(actor, kind_of(kind).permission)
    except LookupError:
        return False


def _describe_job(view: JobView, runnable: bool) -> ShownJob:
    mark, status = STATUSES[view.status]
    is_open, now = view.status in OPEN, timezone.now()
    return ShownJob(
        view=view,
        name=kind_words(view.kind),
        mark=mark,
        status=str(status),
        note=result_words(view),
        error=error_words(view),
        took=_describe_duration(view, now),
        may_cancel=(runnable and is_open and view.status is not JobStatus.CANCELLING) or view.dead_letter,
        may_retry=view.status is JobStatus.FAILED and runnable,
        may_undo=runnable and _is_undoable(view),
    )


def may_undo(actor: Actor, view: JobView) -> bool:
    """Return whether the actor can undo a job now."""
    return _is_undoable(view) and _may_run(actor, view.kind)


def _is_undoable(view: JobView) -> bool:
    return view.undo_until is not None and timezone.now() < view.undo_until


def _find_left_out(actor: Actor, view: JobView) -> list[LeftOut]:
    """Return the memories that a job could not change; only for managers of operations."""
    if not is_allowed(actor, Permission.OPERATIONS_MANAGE):
        return []
    parked = (view.error or {}).get("errors", ())
    skipped = view.result.get("skipped") if isinstance(view.result, Mapping) else None
    named = [(fault["field"], fault["message"]) for fault in parked]
    if not named and isinstance(skipped, list):  # other kinds only count what they skip
        named = [(memory["id"], memory["code"]) for memory in skipped]
    codes = {id: code for text, code in named if (id := uuid_or_none(text))}
    with acting(actor):
        names = names_find(actor.tenant_id, codes)
    return [
        LeftOut(id, str(names[id]), reason_words(code))
        for id, code in codes.items()
        if id in names and names[id].kind == "memory"
    ]


def _describe_duration(view: JobView, now: datetime) -> str:
    """Return how long a job has been running; empty before it began."""
    if view.started_at is None:
        return ""
    return duration_words((view.finished_at or now) - view.started_at)


def _make_side_context(actor: Actor, shown: str) -> dict[str, Any]:
    """Return the context of the column beside the list."""
    summary = jobs_summary(actor=actor)
    may_schedule = is_allowed(actor, Permission.OPERATIONS_MANAGE)
    silent = silent_parts()
    return {
        "summary": summary,
        "done": sum(summary.done),
        "failed": sum(summary.failed),
        "total": sum(count for _kind, count in summary.kinds),
        "done_bars": bars_of(summary.done, last="is-on"),
        "failed_bars": bars_of(summary.failed, every="is-bad"),
        "shares": [(kind_words(kind), share) for kind, share in shares_of(summary.kinds)],
        "waited": duration_words(timezone.now() - summary.oldest_open) if summary.oldest_open else "",
        "parts": [(PARTS[part], part in silent) for part in Part] if may_schedule else [],
        "at_work": len(Part) - len(silent),
        "may_schedule": may_schedule,
        "schedules": _describe_schedules(actor) if may_schedule and shown == NOW else [],
    }


def _describe_schedules(actor: Actor) -> list[ShownSchedule]:
    return [describe_schedule(actor, row) for row in schedules_list(actor=actor, pages=First(SCHEDULES))]


def _redirect_after_change(request: HttpRequest, view: JobView) -> HttpResponseBase:
    wanted = request.POST.get("next", "")
    return see_other(wanted if is_here(request, wanted) else reverse("job", args=[view.id]))

"""Exports of the audit log: a job writes each file for its requester, who alone may download it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.reading.files import export_path, export_write
from governance.audit.reading.queries import FILTERS, AuditQuery, query_read, query_words
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView, job_view
from governance.jobs.services import job_create
from governance.models import AuditEntry, Job
from governance.pages import Pages
from governance.shared_files import file_fetch, file_share, shared_files_tidy
from governance.vocabulary import ExportFormat, JobStatus, Permission, Topic, Verb

TIME_LIMIT = timedelta(hours=1)


@dataclass(frozen=True)
class ExportSettings:
    """Settings of a scheduled export: the format of the file, and the filters of `GET audit/`."""

    format: ExportFormat = ExportFormat.JSONL
    filters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings. Raises Invalid for an unknown filter, since ignoring it would export too much."""
        known = f"unknown filter; known are {', '.join(FILTERS)}"
        faults = [FieldError(name, known) for name in self.filters if name not in FILTERS]
        try:
            query_read(dict(self.filters))
        except Invalid as failure:
            faults += failure.errors
        if faults:
            raise Invalid(errors=[replace(fault, field=f"settings.filters.{fault.field}") for fault in faults])


@dataclass(frozen=True)
class ExportView:
    """An export. progress: 0..1. rows: the number of entries in the file; size: its bytes."""

    id: UUID
    format: ExportFormat
    filters: dict[str, str]
    status: JobStatus
    progress: float
    rows: int
    size: int
    error: str
    created_at: datetime | None
    finished_at: datetime | None


def export_create(*, actor: Actor, query: AuditQuery, form: ExportFormat) -> ExportView:
    """Request a file with the entries that match `query`, and their proof.

    Raises Forbidden. Writes: Job, AuditEntry …, OutboxEvent.
    """
    authorize(actor, Permission.AUDIT_READ)
    asked = {"format": form, "filters": query_words(query)}
    with acting(actor):
        view = _view(job_create(actor=actor, kind=Topic.AUDIT_EXPORT, settings=asked, total=100), asked)
        words = " ".join(view.filters)
        _record(actor, Verb.AUDIT_EXPORT_CREATED, view.id, format=form, filters=words)
    return view


def exports_list(*, actor: Actor, pages: Pages) -> list[ExportView]:
    """Return the actor's own exports, newest first. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        own = Job.objects.filter(Q(member_id=actor.member_id), tenant_id=actor.tenant_id, kind=Topic.AUDIT_EXPORT)
        return [_view(job_view(job), job.settings) for job in pages.take(own.order_by("-id"))]


def export_get(*, actor: Actor, export_id: UUID) -> ExportView:
    """Return the actor's own export. Raises Forbidden; NotFound."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        job = _find_own(actor, export_id)
        return _view(job_view(job), job.settings)


def export_file(*, actor: Actor, export_id: UUID) -> Path:
    """Return the path of the actor's own finished export, which another machine may have written.

    Raises Forbidden; NotFound (also if it has expired); Conflict if it is not finished. Writes: AuditEntry.
    """
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        job = _find_own(actor, export_id)
        view = _view(job_view(job), job.settings)
        if view.status != JobStatus.SUCCEEDED:
            raise Conflict(f"The export is {view.status}.")
    path = export_path(actor.tenant_id, view.id)
    if not path.exists() and not file_fetch(actor.tenant_id, view.id, path, size=view.size):
        raise NotFound("The file of this export is gone: its time is over.")
    with acting(actor):
        _record(actor, Verb.AUDIT_EXPORT_READ, view.id, size=view.size)
    return path


def export_discard(actor: Actor, job: Job) -> None:
    """Delete the file of a cancelled export."""
    export_path(job.tenant_id, job.id).unlink(missing_ok=True)


def export_preview(actor: Actor, asked: Mapping[str, Any]) -> Preview:
    """Return the number of entries that an export would hold now. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    query = query_read(dict(asked.get("filters", {})))
    with acting(actor):
        return Preview(AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id).count())


@handler(
    Topic.AUDIT_EXPORT,
    permission=Permission.AUDIT_READ,
    limit=TIME_LIMIT,
    settings=ExportSettings,
    preview=export_preview,
    cancelled=export_discard,
)
def export_run(run: JobRun) -> Callable[[], Step]:
    """Write the file as the requester. done: percent. Raises Forbidden; KeyUnavailable."""
    authorize(run.actor, Permission.AUDIT_READ)
    written = export_write(
        actor=run.actor,
        path=export_path(run.actor.tenant_id, run.job_id),
        query=query_read(dict(run.settings.get("filters", {}))),
        form=ExportFormat(run.settings.get("format", ExportFormat.JSONL)),
        progress=lambda part: run.report(int(part * 100), 100),
    )
    file_share(run.actor.tenant_id, run.job_id, export_path(run.actor.tenant_id, run.job_id))

    def write() -> Step:
        _record(run.system, Verb.AUDIT_EXPORT_FINISHED, run.job_id, status=JobStatus.SUCCEEDED, rows=written.rows)
        return Step(done=100, total=100, result={"rows": written.rows, "size": written.size})

    return write


def exports_tidy() -> int:
    """Delete the expired export files of all tenants, and their shared parts; return their number. Their rows stay.

    Raises Unavailable.
    """
    removed = 0
    oldest = datetime.now().timestamp() - timedelta(days=settings.AUDIT_EXPORT_DAYS).total_seconds()
    for path in (settings.DATA_DIR / "exports").glob("*/*"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
            removed += 1
    shared_files_tidy(datetime.fromtimestamp(oldest, UTC))
    return removed


def _find_own(actor: Actor, export_id: UUID) -> Job:
    """Return the job of an export that the actor requested. Raises NotFound; Forbidden."""
    job = Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.AUDIT_EXPORT, id=export_id).first()
    if job is None:
        raise NotFound
    authorize(actor, Permission.AUDIT_READ, Target("audit_export", job.id, job.tenant_id))
    if job.member_id != actor.member_id:  # not even who governs
        raise Forbidden(
            "An export is for the one who asked for it.",
            permission=Permission.AUDIT_READ,
            rule="own",
            object_type="audit_export",
            object_id=job.id,
        )
    return job


def _view(job: JobView, asked: Mapping[str, Any]) -> ExportView:
    counts = job.result or {}
    return ExportView(
        id=job.id,
        format=ExportFormat(asked.get("format", ExportFormat.JSONL)),
        filters=dict(asked.get("filters", {})),
        status=job.status,
        progress=job.progress,
        rows=counts.get("rows", 0),
        size=counts.get("size", 0),
        error=(job.error or {}).get("detail", ""),
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


def _record(actor: Actor, verb: Verb, export_id: UUID, **detail: str | int) -> None:
    record(actor=actor, verb=verb, object_type="audit_export", object_ids=[export_id], detail=detail)

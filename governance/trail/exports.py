"""Exports of the trail: asked for, written by a job as the one who asked, and given to nobody else."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.authz.rules import Target
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import Conflict, DomainError, Forbidden, NotFound, Unavailable
from governance.ids import uuid7
from governance.models import AuditExport, OutboxEvent
from governance.outbox.services import Payload, Write, emit
from governance.tenants.principals import actor_again
from governance.trail.files import Written, export_path, export_write
from governance.trail.queries import TrailQuery, query_read, query_words
from governance.vocabulary import Channel, ExportFormat, ExportStatus, Permission, PrincipalKind, Topic, Verb

WRITER_IS_GONE = timedelta(minutes=1)  # a writer tells more often than that that it is at it


@dataclass(frozen=True)
class ExportView:
    """progress: 0..1. rows: entries in the file; size: its bytes."""

    id: UUID
    format: ExportFormat
    filters: dict[str, str]
    status: ExportStatus
    progress: float
    rows: int
    size: int
    error: str
    created_at: datetime | None
    finished_at: datetime | None


Commit = Callable[[ExportView], None]


def export_create(
    *, actor: Actor, query: TrailQuery, form: ExportFormat, commit: Commit = lambda made: None
) -> ExportView:
    """Promise a file with the rows that fit `query`, and the proof of them. `commit` runs in the same transaction.

    Raises Forbidden. Writes: AuditExport, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.AUDIT_READ)
    context = asdict(actor.context) | {"causes": [actor.request_id]}
    export = AuditExport(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        member_id=actor.member_id,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        context={name: value for name, value in context.items() if name != "channel" and value},
        format=form,
        filters=query_words(query),
        status=ExportStatus.PENDING,
    )
    with acting(actor):
        export.save(force_insert=True)
        _tell(actor, Verb.AUDIT_EXPORT_CREATED, export, format=form, filters=" ".join(export.filters))
        emit(actor=actor, topic=Topic.AUDIT_EXPORT_REQUESTED, payload={"export": str(export.id)})
        view = _view(export)
        commit(view)
    return view


def exports_list(
    *, actor: Actor, paginate: Callable[[QuerySet[AuditExport]], Sequence[AuditExport]]
) -> list[ExportView]:
    """The actor's own, newest first. Raises Forbidden."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        own = AuditExport.objects.filter(tenant_id=actor.tenant_id, member_id=actor.member_id)
        return [_view(row) for row in paginate(own.order_by("-id"))]


def export_get(*, actor: Actor, export_id: UUID) -> ExportView:
    """Raises Forbidden (somebody else's); NotFound."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        return _view(_own(actor, export_id))


def export_file(*, actor: Actor, export_id: UUID) -> Path:
    """The file of a finished export, for the one who asked for it.

    Raises Forbidden; NotFound (also when its time is over); Conflict when it is not finished. Writes: AuditEntry.
    """
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        export = _own(actor, export_id)
        if export.status != ExportStatus.SUCCEEDED:
            raise Conflict(f"The export is {export.status}.")
        path = export_path(actor.tenant_id, export.id)
        if not path.exists():
            raise NotFound("The file of this export is gone: its time is over.")
        _tell(actor, Verb.AUDIT_EXPORT_READ, export, size=export.size)
    return path


def exports_run(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Write the files that the events ask for, as those who asked; the end of each commits with its event's."""
    export_ids = [UUID(str(payload["export"])) for payload in payloads]
    done = [(export_id, _run(actor, export_id)) for export_id in export_ids]

    def write() -> None:
        for export_id, outcome in done:
            _end(actor, export_id, outcome)

    return write


def exports_give_up(actor: Actor, export_ids: Sequence[UUID]) -> None:
    """Fail the exports whose work was parked, so that nobody waits for them. Writes: AuditExport, AuditEntry."""
    with acting(actor):
        for export_id in export_ids:
            _end(actor, export_id, Unavailable("It was tried many times, and what it needs was never there."))


def export_ids_parked(tenant_id: UUID, event_ids: Sequence[UUID]) -> list[UUID]:
    """The exports of events that were parked; within the tenant's transaction."""
    parked = OutboxEvent.objects.filter(
        tenant_id=tenant_id, id__in=event_ids, topic=Topic.AUDIT_EXPORT_REQUESTED, parked_at__isnull=False, done_at=None
    )
    return [UUID(event.payload["export"]) for event in parked]


def exports_tidy() -> int:
    """Remove the files whose time is over, of all tenants; how many. Their rows stay."""
    removed = 0
    oldest = datetime.now().timestamp() - timedelta(days=settings.AUDIT_EXPORT_DAYS).total_seconds()
    for path in (settings.DATA_DIR / "exports").glob("*/*"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _run(actor: Actor, export_id: UUID) -> Written | DomainError | None:
    """What came of it; None when there is nothing to do. Raises Unavailable: it comes again after a pause."""
    with acting(actor):
        waiting = AuditExport.objects.filter(
            id=export_id, status__in=[ExportStatus.PENDING, ExportStatus.RUNNING]
        ).filter(Q(beat_at=None) | Q(beat_at__lt=Now() - WRITER_IS_GONE))
        started = waiting.update(status=ExportStatus.RUNNING, beat_at=Now())
        export = AuditExport.objects.filter(id=export_id).first()
    if export is None or export.status not in {ExportStatus.PENDING, ExportStatus.RUNNING}:
        return None
    if not started:
        raise Unavailable("Another process is writing this export.")
    try:
        requester = _asked_by(export)
        authorize(requester, Permission.AUDIT_READ)
        return export_write(
            actor=requester,
            path=export_path(export.tenant_id, export.id),
            query=query_read(export.filters),
            form=ExportFormat(export.format),
            progress=lambda part: _beat(actor, export_id, part),
        )
    except Unavailable:
        raise
    except DomainError as error:
        return error


def _beat(actor: Actor, export_id: UUID, progress: float) -> None:
    with acting(actor):
        AuditExport.objects.filter(id=export_id).update(progress=progress, beat_at=Now())


def _end(actor: Actor, export_id: UUID, outcome: Written | DomainError | None) -> None:
    export = AuditExport.objects.select_for_update().filter(id=export_id).first()
    if export is None or outcome is None or export.status in {ExportStatus.SUCCEEDED, ExportStatus.FAILED}:
        return
    if isinstance(outcome, Written):
        export.status, export.progress = ExportStatus.SUCCEEDED, 1.0
        export.rows, export.size = outcome.rows, outcome.size
    else:
        export.status, export.error = ExportStatus.FAILED, outcome.detail[:300]
    export.finished_at = Now()
    export.save()
    _tell(actor, Verb.AUDIT_EXPORT_FINISHED, export, status=export.status, rows=export.rows)


def _asked_by(export: AuditExport) -> Actor:
    """Who asked, with the rights of now. Raises Forbidden once they have none."""
    causes = tuple(export.context.get("causes", ()))
    context = CallContext(channel=Channel.WORKER, **(export.context | {"causes": causes}))
    return actor_again(
        tenant_id=export.tenant_id,
        kind=PrincipalKind(export.principal_kind),
        principal_id=export.principal_id,
        request_id=f"job-{export.id}",
        context=context,
    )


def _own(actor: Actor, export_id: UUID) -> AuditExport:
    """The export's row, if the actor asked for it. Raises NotFound; Forbidden."""
    export = AuditExport.objects.filter(tenant_id=actor.tenant_id, id=export_id).first()
    if export is None:
        raise NotFound
    authorize(actor, Permission.AUDIT_READ, Target("audit_export", export.id, export.tenant_id))
    if export.member_id != actor.member_id:  # not even who governs
        raise Forbidden(
            "An export is for the one who asked for it.",
            permission=Permission.AUDIT_READ,
            rule="own",
            object_type="audit_export",
            object_id=export.id,
        )
    return export


def _view(export: AuditExport) -> ExportView:
    return ExportView(
        id=export.id,
        format=ExportFormat(export.format),
        filters=export.filters,
        status=ExportStatus(export.status),
        progress=export.progress,
        rows=export.rows,
        size=export.size,
        error=export.error,
        created_at=export.created_at if isinstance(export.created_at, datetime) else None,
        finished_at=export.finished_at if isinstance(export.finished_at, datetime) else None,
    )


def _tell(actor: Actor, verb: Verb, export: AuditExport, **detail: str | int) -> None:
    record(actor=actor, verb=verb, object_type="audit_export", object_ids=[export.id], detail=detail)

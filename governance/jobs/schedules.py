"""Schedules of tenants. A periodic task starts the jobs that are due, every 30 seconds."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from pydantic import TypeAdapter, ValidationError

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.database import acting, database_now, no_tenant, tenant_transaction
from governance.errors import Conflict, DomainError, FieldError, Forbidden, Invalid, NotFound
from governance.jobs.cron import next_run
from governance.jobs.kinds import JobKind, Preview, default_kinds, kind_of, schedulable_kinds
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.models import Schedule
from governance.pages import Pages
from governance.policies.rules.documents import message_of
from governance.tenants.principals import reload_actor
from governance.vocabulary import Channel, JobStatus, Permission, PrincipalKind, Verb

MOST = 100  # schedules of one look
MOST_OF_TENANT = 100
LASTING = (Forbidden, NotFound, Invalid)  # refusals that the next time would meet again
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('default schedules ' || %s, 0))"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScheduleDraft:
    """A schedule's fields. kind: one that can be scheduled; cron: five fields in `timezone`; settings: those of the
    kind.
    """

    kind: str
    cron: str
    timezone: str = "UTC"
    enabled: bool = True
    settings: Mapping[str, Any] | None = None


def schedules_list(*, actor: Actor, pages: Pages) -> Sequence[Schedule]:
    """Return the schedules, newest first. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        rows = Schedule.objects.filter(tenant_id=actor.tenant_id).select_related("last_job")
        return list(pages.take(rows.order_by("-id")))


def schedule_get(*, actor: Actor, schedule_id: UUID) -> Schedule:
    """Return one schedule. Raises NotFound; Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _locate(actor, schedule_id)


def schedule_create(*, actor: Actor, draft: ScheduleDraft) -> Schedule:
    """Create a schedule.

    Raises Forbidden; Invalid; Conflict if there are MOST_OF_TENANT already. Writes: Schedule, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    kind = _kind(draft.kind)
    authorize(actor, kind.permission)
    with acting(actor):
        if Schedule.objects.filter(tenant_id=actor.tenant_id).count() >= MOST_OF_TENANT:
            raise Conflict(f"There are {MOST_OF_TENANT} schedules already. Remove one first.")
        schedule = Schedule(
            tenant_id=actor.tenant_id,
            kind=draft.kind,
            cron=draft.cron,
            timezone=draft.timezone,
            enabled=draft.enabled,
            settings=_check_choices(actor, kind, _check_settings(kind, draft.settings or {})),
            principal_kind=actor.principal_kind,
            principal_id=actor.principal_id,
            next_run_at=_find_next_run(draft),
        )
        schedule.save(force_insert=True)
        _record(actor, Verb.SCHEDULE_CREATED, schedule)
    return schedule


def schedules_create_defaults(*, actor: Actor) -> list[Schedule]:
    """Create the default schedule of each kind that has none yet. Repeated and concurrent calls add each schedule once.

    Raises Forbidden; Conflict as `schedule_create`. Writes: Schedule …, AuditEntry ….
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        with connection.cursor() as cursor:
            cursor.execute(LOCK, [str(actor.tenant_id)])
        drafts = [ScheduleDraft(kind.name, kind.default_cron) for kind in kinds_without_schedule(actor=actor)]
        return [schedule_create(actor=actor, draft=draft) for draft in drafts]


def kinds_without_schedule(*, actor: Actor) -> list[JobKind]:
    """Return the kinds that `schedules_create_defaults` would schedule. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        scheduled = set(Schedule.objects.filter(tenant_id=actor.tenant_id).values_list("kind", flat=True))
        return [kind for kind in default_kinds() if kind.name not in scheduled]


def schedule_update(*, actor: Actor, schedule_id: UUID, changes: Mapping[str, Any]) -> Schedule:
    """Change cron, timezone, enabled or settings; the schedule then runs as the actor.

    Raises NotFound; Forbidden; Invalid. Writes: Schedule, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        schedule = _locate(actor, schedule_id, lock=True)
        kind = _kind(schedule.kind)
        authorize(actor, kind.permission)
        present = ScheduleDraft(schedule.kind, schedule.cron, schedule.timezone, schedule.enabled, schedule.settings)
        draft = replace(present, **changes)
        schedule.cron, schedule.timezone, schedule.enabled = draft.cron, draft.timezone, draft.enabled
        settings, schedule.next_run_at = _check_settings(kind, draft.settings or {}), _find_next_run(draft)
        if draft.enabled or settings != schedule.settings:
            _check_choices(actor, kind, settings)
        schedule.settings = settings
        schedule.principal_kind, schedule.principal_id = actor.principal_kind, actor.principal_id
        schedule.save()
        _record(actor, Verb.SCHEDULE_CHANGED, schedule)
    return schedule


def schedule_remove(*, actor: Actor, schedule_id: UUID) -> None:
    """Remove a schedule; its jobs stay. Raises NotFound; Forbidden. Writes: AuditEntry; deletes the Schedule."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        schedule = _locate(actor, schedule_id, lock=True)
        _record(actor, Verb.SCHEDULE_REMOVED, schedule)
        schedule.delete()


def schedule_run(*, actor: Actor, schedule_id: UUID) -> JobView:
    """Start the schedule's job now, as the actor. Raises NotFound; Forbidden.

    Writes: Job, Schedule, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        schedule = _locate(actor, schedule_id, lock=True)
        return _start(actor, schedule)


def schedule_preview(*, actor: Actor, schedule_id: UUID) -> Preview:
    """Return the changes that a run would make now. Raises NotFound; Forbidden; Conflict if the kind has no preview."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        schedule = _locate(actor, schedule_id)
        kind = _kind(schedule.kind)
        authorize(actor, kind.permission)
        if kind.preview is None:
            raise Conflict("This kind of job has no preview.")
        return kind.preview(actor, schedule.settings)


def schedules_start() -> int:
    """Start the due schedules of all tenants, tenants in turn, and return the number of started jobs.

    Concurrent calls start each schedule once.
    """
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_schedules_due(%s)", [MOST])
        due = cursor.fetchall()
    return sum(_start_due(schedule_id, tenant_id) for schedule_id, tenant_id in due)


def schedules_start_on(*, actor: Actor, kind: str, events: Collection[str]) -> int:
    """Start the enabled schedules of a kind whose setting `on` names one of the events; return the number of started
    jobs.

    A schedule whose last job is still pending is skipped: that job will find the change. Raises Forbidden. Writes the
    rows of `schedule_run`.
    """
    authorize(actor, kind_of(kind).permission)
    with acting(actor):
        rows = Schedule.objects.select_for_update(of=("self",)).select_related("last_job")
        chosen = rows.filter(tenant_id=actor.tenant_id, kind=kind, enabled=True, settings__on__in=list(events))
        due = [
            schedule
            for schedule in chosen
            if schedule.last_job is None or schedule.last_job.status != JobStatus.PENDING
        ]
        return sum(_start_on(schedule) for schedule in due)


def _start_on(schedule: Schedule) -> bool:
    """Start a schedule as its owner; a refusal is logged, and the schedule keeps its times."""
    try:
        with transaction.atomic():
            _start(_load_owner(schedule), schedule)
    except DomainError as error:
        logger.warning("schedule not started: tenant=%s id=%s error=%s", schedule.tenant_id, schedule.id, error.code)
        return False
    return True


def _start_due(schedule_id: UUID, tenant_id: UUID) -> bool:
    """Start the job of a due schedule, and return whether it was started.

    A schedule that can never start again, because its owner lost the right or it has no next time, is disabled. After a
    temporary refusal, by a quota or an unavailable service, it starts at its next time.
    """
    with tenant_transaction(tenant_id):
        rows = Schedule.objects.select_for_update(skip_locked=True)
        schedule = rows.filter(id=schedule_id, enabled=True, next_run_at__lte=database_now()).first()
        if schedule is None:
            return False
        try:
            schedule.next_run_at = next_run(schedule.cron, schedule.timezone, database_now())
            with transaction.atomic():
                _start(_load_owner(schedule), schedule)
        except DomainError as error:
            is_over = isinstance(error, LASTING)
            what = "disabled" if is_over else "not started"
            logger.warning("schedule %s: tenant=%s id=%s error=%s", what, tenant_id, schedule_id, error.code)
            if is_over:
                schedule.enabled, schedule.next_run_at = False, None
            schedule.save(update_fields=["enabled", "next_run_at"])
            return False
    return True


def _start(actor: Actor, schedule: Schedule) -> JobView:
    job = job_create(actor=actor, kind=schedule.kind, settings=schedule.settings)
    schedule.last_job_id = job.id
    schedule.save(update_fields=["next_run_at", "last_job"])
    return job


def _load_owner(schedule: Schedule) -> Actor:
    """Return the schedule's owner as an actor with current rights. Raises Forbidden if none are left."""
    return reload_actor(
        tenant_id=schedule.tenant_id,
        kind=PrincipalKind(schedule.principal_kind),
        principal_id=schedule.principal_id,
        request_id=f"schedule-{schedule.id}",
        context=CallContext(channel=Channel.WORKER),
    )


def _kind(name: str) -> JobKind:
    """Return the kind of a scheduled job. Raises Invalid."""
    if name not in schedulable_kinds():
        raise Invalid(errors=[FieldError("kind", f"one of {', '.join(schedulable_kinds())}")])
    return kind_of(name)


def _check_settings(kind: JobKind, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as JSON, checked by the kind. Raises Invalid."""
    assert kind.settings is not None
    unknown = sorted(set(settings) - {setting.name for setting in fields(kind.settings)})
    if unknown:
        known = ", ".join(setting.name for setting in fields(kind.settings))
        raise Invalid(errors=[FieldError(f"settings.{name}", f"unknown field; known are {known}") for name in unknown])
    try:
        return asdict(TypeAdapter(kind.settings).validate_python(dict(settings)))
    except ValidationError as error:
        faults = [
            FieldError(".".join(["settings", *map(str, fault["loc"])]), message_of(fault)) for fault in error.errors()
        ]
        raise Invalid(errors=faults) from error


def _check_choices(actor: Actor, kind: JobKind, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, if the actor may choose each of them. Raises Invalid; Forbidden."""
    choices = kind.choices(actor) if kind.choices is not None else {}
    wrong = [name for name, known in choices.items() if settings[name] not in known]
    if wrong:
        raise Invalid(errors=[FieldError(f"settings.{name}", "nothing has this id or name") for name in wrong])
    return settings


def _find_next_run(draft: ScheduleDraft) -> datetime | None:
    """Return the time of the next run, None for a disabled schedule. Raises Invalid (a wrong expression), even then."""
    at = next_run(draft.cron, draft.timezone, database_now())
    return at if draft.enabled else None


def _locate(actor: Actor, schedule_id: UUID, *, lock: bool = False) -> Schedule:
    """Return the row of a schedule. Raises NotFound; Forbidden."""
    rows = Schedule.objects.filter(tenant_id=actor.tenant_id, id=schedule_id)
    schedule = (rows.select_for_update() if lock else rows).first()
    if schedule is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target("schedule", schedule.id, schedule.tenant_id))
    return schedule


def _record(actor: Actor, verb: Verb, schedule: Schedule) -> None:
    detail: dict[str, str | bool] = {"kind": schedule.kind, "cron": schedule.cron, "enabled": schedule.enabled}
    record(actor=actor, verb=verb, object_type="schedule", object_ids=[schedule.id], detail=detail)

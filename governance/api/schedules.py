"""REST views of schedules/."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, PageSchema, describe, read
from governance.api.fields import FlagField, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema, NoInput, job_json
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.jobs.schedules import (
    ScheduleDraft,
    schedule_create,
    schedule_get,
    schedule_preview,
    schedule_remove,
    schedule_run,
    schedule_update,
    schedules_create_defaults,
    schedules_list,
)
from governance.vocabulary import Permission

if TYPE_CHECKING:
    from governance.models import Schedule


class ScheduleChanges(StrictSerializer):
    cron = TextField(max_length=100, required=False, help_text="Minute, hour, day of month, month, day of week.")
    timezone = TextField(max_length=64, required=False, help_text="As `Europe/Berlin`; default UTC.")
    enabled = FlagField(required=False)
    settings = serializers.DictField(required=False, help_text="As the kind has them.")


class ScheduleInput(ScheduleChanges):
    kind = TextField(max_length=40, help_text="As `audit.export` or `retention.apply`.")
    cron = TextField(max_length=100, help_text="Minute, hour, day of month, month, day of week.")


class ScheduleSchema(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    cron = serializers.CharField()
    timezone = serializers.CharField()
    enabled = serializers.BooleanField()
    settings = serializers.DictField()
    next_run_at = serializers.DateTimeField(allow_null=True)
    last_job = serializers.UUIDField(allow_null=True)


class ScheduleListSchema(PageSchema):
    results = ScheduleSchema(many=True)


class SchedulesAddedSchema(serializers.Serializer[Any]):
    results = ScheduleSchema(many=True)


class PreviewSchema(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="By what a run does to them; of a sweep: archived, expired, purged."
    )


def schedule_json(schedule: "Schedule") -> dict[str, Any]:
    return {
        "id": str(schedule.id),
        "kind": schedule.kind,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "enabled": schedule.enabled,
        "settings": schedule.settings,
        "next_run_at": time_json(schedule.next_run_at),
        "last_job": str(schedule.last_job_id) if schedule.last_job_id else None,
    }


class SchedulesView(ApiView):
    @describe("schedules_list", ScheduleListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the tenant's schedules, newest first."""
        pages = CursorPages(request)
        rows = schedules_list(actor=self.actor(), pages=pages)
        return pages.envelope([schedule_json(row) for row in rows])

    @describe("schedules_add", ScheduleSchema, status=201, request=ScheduleInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Schedule jobs of a kind. They run as you, with your rights of that time."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        refuse_unknown_parameters(request)
        draft = ScheduleDraft(**read(ScheduleInput, request))

        def call() -> Reply:
            return Reply(201, schedule_json(schedule_create(actor=actor, draft=draft)))

        return self.post_once(call)


class ScheduleDefaultsView(ApiView):
    @describe(
        "schedules_add_defaults",
        SchedulesAddedSchema,
        status=201,
        request=None,
        parameters=[ONCE],
        also={200: SchedulesAddedSchema},
    )
    def post(self, request: Request) -> Response:
        """Schedule the jobs that a new tenant has, each that has no schedule yet. 200 if none was missing."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        refuse_unknown_parameters(request)

        def call() -> Reply:
            read(NoInput, request)
            added = schedules_create_defaults(actor=actor)
            return Reply(201 if added else 200, {"results": [schedule_json(schedule) for schedule in added]})

        return self.post_once(call)


class ScheduleView(ApiView):
    @describe("schedules_get", ScheduleSchema, may=[404])
    def get(self, request: Request, schedule_id: UUID) -> Response:
        """Read a schedule."""
        schedule = schedule_get(actor=self.actor(), schedule_id=schedule_id)
        refuse_unknown_parameters(request)
        return Response(schedule_json(schedule))

    @describe("schedules_change", ScheduleSchema, request=ScheduleChanges, may=[404])
    def patch(self, request: Request, schedule_id: UUID) -> Response:
        """Change a schedule. It runs as you from now on."""
        actor = self.actor()
        schedule_get(actor=actor, schedule_id=schedule_id)
        refuse_unknown_parameters(request)
        changes = read(ScheduleChanges, request)
        return Response(schedule_json(schedule_update(actor=actor, schedule_id=schedule_id, changes=changes)))

    @describe("schedules_remove", None, status=204, may=[404])
    def delete(self, request: Request, schedule_id: UUID) -> Response:
        """Remove a schedule. Its jobs stay."""
        actor = self.actor()
        schedule_get(actor=actor, schedule_id=schedule_id)
        refuse_unknown_parameters(request)
        schedule_remove(actor=actor, schedule_id=schedule_id)
        return Response(status=204)


class ScheduleRunView(ApiView):
    @describe(
        "schedules_run",
        JobPromiseSchema,
        status=202,
        request=None,
        parameters=[ONCE, DRY_RUN],
        also={200: PreviewSchema},
        may=[404],
    )
    def post(self, request: Request, schedule_id: UUID) -> Response:
        """Start the job of a schedule now. A dry run counts what it would change."""
        actor = self.actor()
        schedule_get(actor=actor, schedule_id=schedule_id)
        refuse_unknown_parameters(request, "dry_run")
        if flag(request, "dry_run"):
            preview = schedule_preview(actor=actor, schedule_id=schedule_id)
            ids = [str(id) for id in preview.ids]
            return Response({"count": preview.count, "ids": ids, "counts": dict(preview.counts)})

        def call() -> Reply:
            read(NoInput, request)
            return Reply(202, {"job": job_json(schedule_run(actor=actor, schedule_id=schedule_id))})

        return self.post_once(call)

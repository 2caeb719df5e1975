"""REST views of schedules/."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of, read
from governance.api.fields import FlagField, NoInput, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import show_page
from governance.api.schema import Schema
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


class ScheduleChanges(StrictSerializer):
    cron = TextField(max_length=100, required=False, help_text="Minute, hour, day of month, month, day of week.")
    timezone = TextField(max_length=64, required=False, help_text="As `Europe/Berlin`; default UTC.")
    enabled = FlagField(required=False)
    settings = serializers.DictField(required=False, help_text="As the kind has them.")


class ScheduleInput(ScheduleChanges):
    kind = TextField(max_length=40, help_text="As `audit.export` or `retention.apply`.")
    cron = TextField(max_length=100, help_text="Minute, hour, day of month, month, day of week.")


class ScheduleSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    cron = serializers.CharField()
    timezone = serializers.CharField()
    enabled = serializers.BooleanField()
    settings = serializers.DictField()
    next_run_at = serializers.DateTimeField(allow_null=True)
    last_job = serializers.UUIDField(source="last_job_id", allow_null=True)


class SchedulesAddedSchema(Schema):
    results = ScheduleSchema(many=True)


class PreviewSchema(Schema):
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="By what a run does to them; of a sweep: archived, expired, purged."
    )


class SchedulesView(ApiView):
    @describe("schedules_list", page_of(ScheduleSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the tenant's schedules, newest first."""
        return show_page(self, schedules_list)

    @describe("schedules_add", ScheduleSchema, status=201, request=ScheduleInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Schedule jobs of a kind. They run as you, with your rights of that time."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        draft = ScheduleDraft(**self.read_body())
        return self.post_once(lambda: schedule_create(actor=actor, draft=draft))


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
        self.read_body()

        def call() -> Reply:
            read(NoInput, request)
            added = schedules_create_defaults(actor=actor)
            return Reply(201 if added else 200, SchedulesAddedSchema.of(results=added))

        return self.post_once(call)


class ScheduleView(ApiView):
    @describe("schedules_get", ScheduleSchema, may=[404])
    def get(self, request: Request, schedule_id: UUID) -> object:
        """Read a schedule."""
        return schedule_get(actor=self.actor(), schedule_id=schedule_id)

    @describe("schedules_change", ScheduleSchema, request=ScheduleChanges, may=[404])
    def patch(self, request: Request, schedule_id: UUID) -> object:
        """Change a schedule. It runs as you from now on."""
        actor = self.actor()
        schedule_get(actor=actor, schedule_id=schedule_id)
        changes = self.read_body()
        return schedule_update(actor=actor, schedule_id=schedule_id, changes=changes)

    @describe("schedules_remove", None, status=204, may=[404])
    def delete(self, request: Request, schedule_id: UUID) -> None:
        """Remove a schedule. Its jobs stay."""
        actor = self.actor()
        schedule_get(actor=actor, schedule_id=schedule_id)
        self.read_body()
        schedule_remove(actor=actor, schedule_id=schedule_id)


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
            return Response(PreviewSchema.json(preview))

        def call() -> object:
            read(NoInput, request)
            return schedule_run(actor=actor, schedule_id=schedule_id)

        return self.post_once(call)

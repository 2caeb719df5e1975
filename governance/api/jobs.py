"""REST views of jobs/."""

from collections.abc import Callable
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of, read
from governance.api.fields import NoInput, StrictSerializer
from governance.api.pages import show_page
from governance.api.schema import FaultSchema, Schema
from governance.api.views import ApiView
from governance.errors import FieldError, Invalid
from governance.jobs.selectors import JobView, job_get, jobs_list
from governance.jobs.services import job_cancel, job_retry, job_undo, jobs_cancel
from governance.vocabulary import JobStatus, Permission

FILTERS = ("kind", "status")
FILTER_PARAMETERS = [
    OpenApiParameter("kind", str, description="Only jobs of this kind."),
    OpenApiParameter("status", str, enum=[*JobStatus], description="Only jobs with this status."),
]
Change = Callable[..., JobView]


class JobErrorSchema(Schema):
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = FaultSchema(many=True, required=False)  # type: ignore[assignment]


class JobSchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="As `memories.add` or `audit.export`.")
    status = serializers.ChoiceField(choices=list(JobStatus))
    progress = serializers.FloatField(min_value=0, max_value=1)
    done = serializers.IntegerField(help_text="Of `total`, in the unit of the kind.")
    total = serializers.IntegerField(allow_null=True, help_text="Null while unknown.")
    attempts = serializers.IntegerField(help_text="Runs of the present step.")
    dead_letter = serializers.BooleanField(help_text="It failed in every attempt, and waits for `retry/`.")
    undo_until = serializers.DateTimeField(allow_null=True)
    result = serializers.DictField(allow_null=True)
    error = JobErrorSchema(allow_null=True)


class JobPromiseSchema(Schema):
    job = JobSchema(source="*")


class JobsView(ApiView):
    @describe("jobs_list", page_of(JobSchema), parameters=[*PAGE, *FILTER_PARAMETERS])
    def get(self, request: Request) -> object:
        """List the caller's jobs, newest first; all of them for owners and admins."""
        return show_page(self, jobs_list, kind=request.query_params.get("kind"), statuses=_statuses(request))


class JobDetailView(ApiView):
    @describe("jobs_get", JobSchema, may=[404])
    def get(self, request: Request, job_id: UUID) -> object:
        """Read the progress and result of a job."""
        return job_get(actor=self.actor(), job_id=job_id)


class JobChangeView(ApiView):
    """A POST that changes one job and answers 202 with the job."""

    def change(self, request: Request, job_id: UUID, service: Change) -> Response:
        actor = self.actor()
        job_get(actor=actor, job_id=job_id)
        self.read_body()

        def call() -> object:
            read(NoInput, request)
            return service(actor=actor, job_id=job_id)

        return self.post_once(call)


class CancellationInput(StrictSerializer):
    kind = serializers.CharField(max_length=40, help_text="As `memories.export`.")


class CancellationSchema(Schema):
    cancelled = serializers.IntegerField(help_text="Jobs; a running one ends before its present step is written.")


class JobsCancelView(ApiView):
    @describe("jobs_cancel_kind", CancellationSchema, request=CancellationInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Cancel all open jobs of a kind: the caller's, and everybody's for owners and admins; 1,000 at most."""
        actor = self.actor()
        authorize(actor, Permission.JOB_READ)
        kind = self.read_body()["kind"]
        return self.post_once(lambda: {"cancelled": jobs_cancel(actor=actor, kind=kind)})


class JobRetryView(JobChangeView):
    @describe("jobs_retry", JobSchema, status=202, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, job_id: UUID) -> object:
        """Run a failed job again, from the step that failed."""
        return self.change(request, job_id, job_retry)


class JobCancelView(JobChangeView):
    @describe("jobs_cancel", JobSchema, status=202, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, job_id: UUID) -> object:
        """Cancel a job. Steps that were done stay done."""
        return self.change(request, job_id, job_cancel)


class JobUndoView(JobChangeView):
    @describe("jobs_undo", JobSchema, status=202, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, job_id: UUID) -> object:
        """Undo a job until its `undo_until`; answers the job that undoes it."""
        return self.change(request, job_id, job_undo)


def _statuses(request: Request) -> list[JobStatus]:
    """Return the statuses in the query. Raises Invalid."""
    text = request.query_params.get("status")
    if text is not None and text not in {*JobStatus}:
        raise Invalid(errors=[FieldError("status", f"one of {', '.join(JobStatus)}")])
    return [] if text is None else [JobStatus(text)]

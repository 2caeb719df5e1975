"""jobs/ of the REST contract."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.pages import CursorPages
from governance.api.views import ApiView
from vault.api.representations import job_json
from vault.api.schema import JobListSchema, JobSchema, described
from vault.jobs.selectors import job_get, jobs_list
from vault.jobs.services import job_retry

PAGE = [OpenApiParameter("page_size", int), OpenApiParameter("cursor", str)]


class JobsView(ApiView):
    @described("jobs_list", JobListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """The caller's jobs, newest first."""
        pages = CursorPages()
        views = jobs_list(actor=self.actor(), paginate=lambda rows: pages.paginate_queryset(rows, request) or [])
        return pages.envelope([job_json(view) for view in views])


class JobView(ApiView):
    @described("jobs_get", JobSchema)
    def get(self, request: Request, job_id: UUID) -> Response:
        """How one job fares."""
        return Response(job_json(job_get(actor=self.actor(), job_id=job_id)))


class JobRetryView(ApiView):
    @described("jobs_retry", JobSchema, request=None)
    def post(self, request: Request, job_id: UUID) -> Response:
        """Run a failed job again."""
        return Response(job_json(job_retry(actor=self.actor(), job_id=job_id)))

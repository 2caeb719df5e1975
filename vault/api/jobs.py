"""jobs/ of the REST contract."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.described import ONCE, PAGE, described
from governance.api.idempotency import Commit
from governance.api.pages import CursorPages
from governance.api.views import ApiView, asked_only
from governance.idempotency.services import Reply
from vault.api.inputs import NoInput, read
from vault.api.representations import job_json
from vault.api.schema import JobListSchema, JobSchema
from vault.jobs.selectors import job_get, jobs_list
from vault.jobs.services import job_retry, job_retry_ask


class JobsView(ApiView):
    @described("jobs_list", JobListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """The caller's jobs, newest first."""
        pages = CursorPages()
        views = jobs_list(actor=self.actor(), paginate=lambda rows: pages.paginate_queryset(rows, request) or [])
        return pages.envelope([job_json(view) for view in views])


class JobView(ApiView):
    @described("jobs_get", JobSchema, may=[404])
    def get(self, request: Request, job_id: UUID) -> Response:
        """How one job fares."""
        view = job_get(actor=self.actor(), job_id=job_id)
        asked_only(request)
        return Response(job_json(view))


class JobRetryView(ApiView):
    @described("jobs_retry", JobSchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, job_id: UUID) -> Response:
        """Run a failed job again."""
        actor = self.actor()
        job_retry_ask(actor=actor, job_id=job_id)
        asked_only(request)

        def call(commit: Commit) -> Reply:
            read(NoInput, request)
            view = job_retry(actor=actor, job_id=job_id, commit=lambda made: commit(Reply(200, job_json(made))))
            return Reply(200, job_json(view))

        return self.post_once(call)

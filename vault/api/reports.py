"""publications/{id}/reports/ of the REST API."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, describe
from governance.api.views import ApiView
from governance.vocabulary import Permission
from vault.api.store_schema import ReportInput, ReportSchema
from vault.store.reports import report_write
from vault.vocabulary import ReportReason


class PublicationReportsView(ApiView):
    @describe("publications_report", ReportSchema, status=201, request=ReportInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Report a pack to the operator of the installation. Its publisher does not see the report."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        return self.post_once(
            lambda: report_write(
                actor=actor,
                publication_id=publication_id,
                reason=ReportReason(body["reason"]),
                text=body.get("text", ""),
            )
        )

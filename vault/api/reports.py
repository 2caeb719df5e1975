"""REST views of publications/{id}/reports/."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, describe
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.store_schema import ReportInput, ReportSchema
from vault.store.reports import report_write
from vault.vocabulary import ReportReason


class PublicationReportsView(ApiView):
    @describe("publications_report", ReportSchema, status=201, request=ReportInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Report a pack to the operator of the installation. Its publisher does not see the report."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        body = read(ReportInput, request)

        def call() -> Reply:
            row = report_write(
                actor=actor,
                publication_id=publication_id,
                reason=ReportReason(body["reason"]),
                text=body.get("text", ""),
            )
            shown = {
                "id": str(row.id),
                "publication": str(row.publication_id),
                "reason": row.reason,
                "text": row.text,
                "reported_at": time_json(row.created_at),
            }
            return Reply(201, shown)

        return self.post_once(call)

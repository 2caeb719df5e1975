"""REST views of audit/: the audit log, its verification and its exports."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.audit_schema import (
    FILTER_PARAMETERS,
    PERIOD_PARAMETERS,
    AuditListSchema,
    CheckpointSchema,
    ExportInput,
    ExportSchema,
    PublicKeySchema,
    SealedEntrySchema,
    SignedCheckpointSchema,
    UnusualReadSchema,
    VerificationSchema,
)
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.pages import CursorPages, show_page, whole_list
from governance.api.public_keys import public_key_json
from governance.api.views import ApiView, heavy, refuse_unknown_parameters
from governance.audit.reading.exports import export_create, export_file, export_get, exports_list
from governance.audit.reading.queries import query_read
from governance.audit.reading.reports import changes_csv
from governance.audit.reading.selectors import (
    checkpoint_get,
    checkpoints_list,
    entries_list,
    entry_get,
    permission_changes,
    public_key_get,
    verify,
)
from governance.audit.reading.unusual import unusual_reading
from governance.errors import FieldError, Invalid
from governance.vocabulary import ExportFormat, Permission
from governance.web.files import file_response

TAG = "audit"
PERIOD = ("from", "to")
AFTER = OpenApiParameter(
    "after", int, description="Go on behind this seal; the checkpoints before it are not compared again."
)


class AuditView(ApiView):
    @describe("audit_list", AuditListSchema, tag=TAG, parameters=[*FILTER_PARAMETERS, *PAGE])
    def get(self, request: Request) -> object:
        """List the audit log, newest first."""
        authorize(self.actor(), Permission.AUDIT_READ)
        return show_page(self, entries_list, query=query_read(request.query_params))


class AuditEntryView(ApiView):
    @describe("audit_get", SealedEntrySchema, tag=TAG, may=[404])
    def get(self, request: Request, entry_id: UUID) -> object:
        """Read one audit entry with its seal."""
        return entry_get(actor=self.actor(), entry_id=entry_id)


class AuditVerifyView(ApiView):
    @describe("audit_verify", VerificationSchema, tag=TAG, parameters=[AFTER])
    @heavy
    def get(self, request: Request) -> object:
        """Verify the audit log by its seals and signed checkpoints: up to 200,000 seals in one call."""
        actor = self.actor()
        authorize(actor, Permission.AUDIT_READ)
        refuse_unknown_parameters(request, "after")
        return verify(actor=actor, after=after_of(request.query_params.get("after", "0")))


class AuditCheckpointsView(ApiView):
    @describe("audit_checkpoints_list", page_of(CheckpointSchema), tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the signed checkpoints, newest first."""
        return show_page(self, checkpoints_list, ordering="-seq")


class AuditCheckpointView(ApiView):
    @describe("audit_checkpoints_get", SignedCheckpointSchema, tag=TAG, may=[404])
    def get(self, request: Request, checkpoint_id: UUID) -> Response:
        """Download a signed checkpoint. Keep it on another machine."""
        view = checkpoint_get(actor=self.actor(), checkpoint_id=checkpoint_id)
        refuse_unknown_parameters(request)
        return Response(json.loads(view.text))


class AuditKeyView(ApiView):
    @describe("audit_key", PublicKeySchema, tag=TAG)
    def get(self, request: Request) -> Response:
        """Read the public key of the checkpoints."""
        key = public_key_get(actor=self.actor())
        refuse_unknown_parameters(request)
        return Response(public_key_json(key.raw) | json.loads(key.text()))


class AuditExportsView(ApiView):
    @describe("audit_exports_list", page_of(ExportSchema), tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the caller's exports, newest first."""
        return show_page(self, exports_list)

    @describe("audit_exports_add", ExportSchema, tag=TAG, status=202, request=ExportInput, parameters=[ONCE])
    @heavy
    def post(self, request: Request) -> Response:
        """Export the entries that pass the filters, with proof, as a file.

        Read `audit/export/{id}/` for its progress.
        """
        actor = self.actor()
        authorize(actor, Permission.AUDIT_READ)
        body = self.read_body()
        query = query_read({name: str(value) for name, value in body.items()})
        return self.post_once(lambda: export_create(actor=actor, query=query, form=ExportFormat(body["format"])))


class AuditExportView(ApiView):
    @describe("audit_exports_get", ExportSchema, tag=TAG, may=[404])
    def get(self, request: Request, export_id: UUID) -> object:
        """Read the progress of one export."""
        return export_get(actor=self.actor(), export_id=export_id)


class FileView(ApiView):
    """Accepts any media type, because the response is a file."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return super().perform_content_negotiation(request, force=True)


class AuditExportFileView(FileView):
    @describe("audit_exports_file", OpenApiTypes.BINARY, tag=TAG, status=(200, "application/zip"), may=[404, 409])
    def get(self, request: Request, export_id: UUID) -> StreamingHttpResponse:
        """Download a finished export, a zip with entries, their proof and a verifier. Only its requester may."""
        path = export_file(actor=self.actor(), export_id=export_id)
        refuse_unknown_parameters(request)
        return file_response(path, f"audit-{export_id}.zip")


class AuditChangesView(ApiView):
    @describe("audit_changes", AuditListSchema, tag=TAG, parameters=[*PERIOD_PARAMETERS, *PAGE])
    def get(self, request: Request) -> object:
        """List changes of members, roles, keys, grants, policies and holds between two times, newest first."""
        actor = self.actor()
        authorize(actor, Permission.AUDIT_READ)
        pages = CursorPages(request, also_known=PERIOD)
        query = query_read(_select_parameters(request, PERIOD))
        rows = permission_changes(actor=actor, query=query, pages=pages)
        return pages.envelope(rows)


class AuditChangesCsvView(FileView):
    @describe("audit_changes_csv", OpenApiTypes.STR, tag=TAG, status=(200, "text/csv"), parameters=PERIOD_PARAMETERS)
    @heavy
    def get(self, request: Request) -> HttpResponse:
        """Download all these changes as a CSV table."""
        actor = self.actor()
        authorize(actor, Permission.AUDIT_READ)
        refuse_unknown_parameters(request, *PERIOD)
        text = changes_csv(actor=actor, query=query_read(_select_parameters(request, PERIOD)))
        return csv_response(text, "permission-changes.csv")


class AuditUnusualView(ApiView):
    @describe("audit_unusual_reads", page_of(UnusualReadSchema), tag=TAG)
    @heavy
    def get(self, request: Request) -> object:
        """List memories and principals with unusually many reads, the most unusual first."""
        actor = self.actor()
        authorize(actor, Permission.AUDIT_READ)
        return whole_list(unusual_reading(actor=actor))


def csv_response(text: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def after_of(text: str) -> int:
    """Return the seal number that the text has. Raises Invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise Invalid(errors=[FieldError("after", "the number of a seal")])
    return int(text)


def _select_parameters(request: Request, names: Sequence[str]) -> dict[str, str]:
    return {name: request.query_params[name] for name in names if name in request.query_params}

"""subjects/ of the REST API: data subjects of memories, exports of their data, and their erasure."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.audit import FileView
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, PageSchema, describe, read
from governance.api.fields import NoInput, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.streams import file_stream
from vault.subjects.documents import FileForm
from vault.subjects.exports import export_open
from vault.subjects.rules import LONGEST_REFERENCE
from vault.subjects.selectors import (
    SubjectLine,
    erasure_preview,
    subject_get,
    subject_locate,
    subjects_list,
)
from vault.subjects.services import MOST_ASSIGNED, subject_assign, subject_create, subject_erase, subject_export
from vault.vocabulary import SubjectStatus

CONTENT_TYPES = {FileForm.JSON: "application/json", FileForm.HTML: "text/html; charset=utf-8"}
REFERENCE = OpenApiParameter("reference", str, description="Only the subject with just this reference.")


class SubjectInput(StrictSerializer):
    reference = TextField(max_length=LONGEST_REFERENCE, help_text="The tenant's own name for a person, as a number.")


class AssignInput(StrictSerializer):
    ids = serializers.ListField(child=serializers.UUIDField(), max_length=MOST_ASSIGNED, allow_empty=False)


class CountsSchema(Schema):
    memories = serializers.IntegerField()
    versions = serializers.IntegerField()
    vectors = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Keyed tokens that the memories were found by.")
    derived = serializers.IntegerField(help_text="Texts made of these memories: they lose their words.")
    turns = serializers.IntegerField(help_text="Turns of conversations that held these memories.")
    requests = serializers.IntegerField(help_text="Waiting jobs that would have stored something about the subject.")
    forms = serializers.IntegerField(help_text="Caches and adapters made of these memories: they are destroyed.")


class HeldMemoriesSchema(Schema):
    count = serializers.IntegerField()
    memories = serializers.ListField(child=serializers.UUIDField(), help_text="The first 1,000.")


class CleanSchema(Schema):
    live_files_by = serializers.DateTimeField(allow_null=True)
    wal_by = serializers.DateTimeField(allow_null=True, help_text="The write-ahead log of PostgreSQL.")
    backups_by = serializers.DateTimeField(help_text="As long as the operator keeps backups (MEMOS_BACKUP_DAYS).")
    reason = serializers.CharField(help_text="Why a time is null: what the installation lacks.")


class AskedBySchema(Schema):
    kind = serializers.CharField()
    id = serializers.UUIDField()


class ReceiptSchema(Schema):
    format = serializers.CharField()
    id = serializers.UUIDField()
    tenant = serializers.UUIDField()
    subject = serializers.UUIDField(allow_null=True)
    asked_by = AskedBySchema()
    at = serializers.DateTimeField()
    erased = CountsSchema()
    kept_by_holds = HeldMemoriesSchema()
    key_destroyed = serializers.BooleanField(help_text="False while a hold keeps something under the subject's key.")
    clean = CleanSchema()
    key_id = serializers.CharField(help_text="Of the key at provenance/key/.")
    signature = serializers.CharField(help_text="Ed25519, base64.")


class SubjectRowSchema(Schema):
    id = serializers.UUIDField()
    reference = serializers.CharField(help_text="Empty once erased.")
    status = serializers.ChoiceField(choices=list(SubjectStatus))
    memories = serializers.IntegerField(help_text="That are about the subject now, deleted ones left out.")
    created_at = serializers.DateTimeField()
    erased_at = serializers.DateTimeField(allow_null=True)


class SubjectDetailSchema(SubjectRowSchema):
    """One data subject with the receipts of its erasures."""

    receipts = ReceiptSchema(many=True)

    def to_representation(self, instance: SubjectLine) -> dict[str, Any]:
        return SubjectRowSchema.json(instance) | {"receipts": list(instance.receipts)}  # exactly as they were signed


class SubjectListSchema(PageSchema):
    results = SubjectRowSchema(many=True)


class AssignedSchema(Schema):
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="Memories that were about another, or nobody.")


class HeldMemorySchema(Schema):
    id = serializers.UUIDField(source="memory_id")
    reasons = serializers.ListField(child=serializers.CharField())


class ErasurePreviewSchema(Schema):
    erased = CountsSchema(source="counts")
    kept_by_holds = HeldMemorySchema(source="kept", many=True, help_text="The first 100.")
    held = serializers.BooleanField(
        source="is_held", help_text="A legal hold is over the subject: nothing can be erased."
    )
    capped = serializers.BooleanField(source="is_capped", help_text="Only the first 2,000 memories were counted.")


class SubjectsView(ApiView):
    @describe("subjects_list", SubjectListSchema, parameters=[REFERENCE, *PAGE])
    def get(self, request: Request) -> object:
        """List data subjects, newest first."""
        authorize(self.actor(), Permission.SUBJECT_MANAGE)
        return show_page(self, subjects_list, reference=request.query_params.get("reference", ""))

    @describe("subjects_create", SubjectDetailSchema, status=201, request=SubjectInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Create a data subject. An existing one is returned unchanged."""
        actor = self.actor()
        authorize(actor, Permission.SUBJECT_MANAGE)
        reference = self.read_body()["reference"]

        def call() -> Reply:
            made = subject_create(actor=actor, reference=reference)
            return Reply(201, SubjectDetailSchema.json(subject_get(actor=actor, subject_id=made)), shows=(made,))

        return self.post_once(call)


class OneSubjectView(ApiView):
    def check(self, subject_id: UUID) -> None:
        """Check that the actor may manage the subject. Raises NotFound; Forbidden."""
        with acting(self.actor()):
            subject_locate(self.actor(), subject_id)


class SubjectView(OneSubjectView):
    @describe("subjects_get", SubjectDetailSchema, may=[404])
    def get(self, request: Request, subject_id: UUID) -> object:
        """Read one data subject, with the receipts of its erasures."""
        return subject_get(actor=self.actor(), subject_id=subject_id)


class SubjectAssignView(OneSubjectView):
    @describe("subjects_assign", AssignedSchema, request=AssignInput, parameters=[ONCE], may=[404, 409, 412, 413, 423])
    def post(self, request: Request, subject_id: UUID) -> Response:
        """Assign up to 200 memories to a data subject, all or none. Each gets a version under the subject's key."""
        actor = self.actor()
        ids = self.read_body(lambda: self.check(subject_id))["ids"]

        def call() -> Reply:
            changed = subject_assign(actor=actor, subject_id=subject_id, cube_ids=ids)
            return Reply(200, {"ids": [str(cube_id) for cube_id in changed]})

        return self.post_once(call)


class SubjectExportView(OneSubjectView):
    @describe("subjects_export", JobPromiseSchema, status=202, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, subject_id: UUID) -> Response:
        """Export everything about the data subject, as a job; then download it as JSON or as a page."""
        actor = self.actor()
        self.read_body(lambda: self.check(subject_id))

        def call() -> object:
            read(NoInput, request)
            return subject_export(actor=actor, subject_id=subject_id)

        return self.post_once(call)


class SubjectExportJsonView(FileView):
    @describe("subjects_export_json", OpenApiTypes.OBJECT, status=(200, "application/json"), may=[404, 409])
    def get(self, request: Request, subject_id: UUID, job_id: UUID) -> HttpResponseBase:
        """Download an export as JSON: all versions with their lineage, as the caller may read them now."""
        return _stream_file(self, request, subject_id, job_id, FileForm.JSON)


class SubjectExportHtmlView(FileView):
    @describe("subjects_export_html", OpenApiTypes.STR, status=(200, "text/html"), may=[404, 409])
    def get(self, request: Request, subject_id: UUID, job_id: UUID) -> HttpResponseBase:
        """Download an export as one HTML page that a person can read."""
        return _stream_file(self, request, subject_id, job_id, FileForm.HTML)


class SubjectEraseView(OneSubjectView):
    @describe(
        "subjects_erase",
        JobPromiseSchema,
        status=202,
        request=None,
        parameters=[ONCE, DRY_RUN],
        also={200: ErasurePreviewSchema},
        may=[404, 409, 423],
    )
    def post(self, request: Request, subject_id: UUID) -> Response:
        """Erase everything about the data subject permanently, except held memories.

        The job ends with a signed receipt.
        """
        actor = self.actor()
        self.read_body(lambda: self.check(subject_id))
        if self.dry_run:
            return Response(ErasurePreviewSchema.json(erasure_preview(actor=actor, subject_id=subject_id)))

        def call() -> object:
            read(NoInput, request)
            return subject_erase(actor=actor, subject_id=subject_id)

        return self.post_once(call)


def _stream_file(view: ApiView, request: Request, subject_id: UUID, job_id: UUID, form: FileForm) -> HttpResponseBase:
    actor = view.actor()
    file = export_open(actor=actor, subject_id=subject_id, job_id=job_id, form=form)
    refuse_unknown_parameters(request)
    return file_stream(file.blocks, name=file.name, content_type=CONTENT_TYPES[form], actor=actor, path=request.path)

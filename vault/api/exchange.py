"""exports/ and imports/ of the REST API: memories as files to exchange between systems."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from django.conf import settings
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.audit import FileView
from governance.api.descriptions import DRY_RUN, describe
from governance.api.fields import StrictSerializer
from governance.api.jobs import JobPromiseSchema
from governance.api.public_keys import PublicKeyFormsSchema, public_key_json
from governance.api.schema import Schema
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.text_values import read_uuid
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import ContentField, refuse_deep
from vault.exchange.archives import LARGEST_FILE
from vault.exchange.file_reading import ImportDraft
from vault.exchange.pack_export import part_read
from vault.exchange.sealed_file import SealedFile
from vault.exchange.selectors import ExportForm, exchange_file, exchange_public_key, export_key
from vault.exchange.services import ExportDraft, ImportCheck, export_create, import_check, import_create, import_form
from vault.exchange.tables import COLUMNS
from vault.exchange.uploads import upload_append, upload_begin, upload_open, upload_remove
from vault.listing.actions import MOST_IDS
from vault.streams import file_stream
from vault.vocabulary import ImportFormat, OnConflict

FILE_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    ExportForm.JSONL: "application/jsonl",
    ExportForm.MARKDOWN: "text/markdown; charset=utf-8",
    ExportForm.MEMPACK: FILE_TYPE,
}
QUERY = [
    OpenApiParameter(
        "format", str, enum=list(ImportFormat), description="The format of the file. Default: told by its content."
    ),
    OpenApiParameter(
        "namespace", str, description="Path for all of it. Default: as the file says, else the caller's private one."
    ),
    OpenApiParameter("persona", str, description="Id or name of the persona that all of it is for."),
    OpenApiParameter(
        "on_conflict",
        str,
        enum=list(OnConflict),
        description="For memories of an earlier import that differ now: leave them, or give them the file's words as a "
        "new version. Default: skip.",
    ),
    OpenApiParameter(
        "columns",
        str,
        description=f"Of a CSV file, as `content:Note,tags:Labels`: which column is which of {', '.join(COLUMNS)}.",
    ),
    OpenApiParameter("namespaces", str, description="Other paths for those of the file, as `/theirs:/ours,/old:/new`."),
    OpenApiParameter("speakers", str, description="Other speakers for those of the file, as `user:Ann,bot:Helper`."),
    OpenApiParameter("upload", str, description="The id of a file that was uploaded in parts; the body is empty then."),
    OpenApiParameter("personas", str, description="Other personas for those of the file, as `user-1:Ann`."),
]


RECIPIENT = OpenApiParameter(
    "recipient",
    str,
    description="An X25519 public key, 64 hex digits: the file is encrypted, and only the key's owner can open it.",
)

PACK_PART = OpenApiParameter(
    "part", int, description="Of an export of more than 10,000 memories: which pack, from 1. Default: 1."
)
LINES_PART = OpenApiParameter(
    "part", int, description="Which 10,000 memories of an export, from 1. Default: all of them, in one file."
)

ENCRYPTED = {(200, FILE_TYPE): OpenApiTypes.BINARY}


class MemoriesExportInput(StrictSerializer):
    """The memories to export: chosen ones, matching ones, or all that the caller may read."""

    ids = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=MOST_IDS, allow_empty=False)
    filters = serializers.JSONField(required=False, help_text="As in a search.")
    query = ContentField(
        required=False,
        help_text=f"A question: the {settings.MAX_TOP_K} best memories of a search, within the filters.",
    )

    def validate_filters(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class LeftOutSchema(Schema):
    place = serializers.CharField(help_text="As `line 7` or `row 3`.")
    reason = serializers.CharField(help_text="As `empty`, `too_long`, `bad_time`, `malformed` or `repeated`.")


class PackSignerSchema(Schema):
    pack = serializers.CharField(help_text="Name in the manifest, as `organisation/pack`.")
    version = serializers.CharField()
    key_id = serializers.CharField(help_text="The first 16 hex digits of the SHA-256 of the public key.")
    is_own = serializers.BooleanField(
        help_text="Whether this installation or organisation signed it. Compare any other key with the publisher's."
    )


class SampleSchema(Schema):
    content = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    namespace = serializers.CharField(allow_blank=True, help_text="Empty: private.")
    speaker = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    when = serializers.CharField(allow_blank=True, help_text="Its event time.")


class ImportCheckSchema(Schema):
    new = serializers.IntegerField(help_text="Memories that would be stored.")
    present = serializers.IntegerField(help_text="Memories of an earlier import that are unchanged.")
    conflicts = serializers.IntegerField(help_text="Memories of an earlier import that have other words now.")
    of_packs = serializers.IntegerField(help_text="Memories that the contract of a pack covers; they are left out.")
    deleted = serializers.IntegerField(
        help_text="Memories of an earlier import that are in the trash; they stay there."
    )
    expired = serializers.IntegerField(help_text="Memories that have expired.")
    left_out = serializers.IntegerField(help_text="Parts of the file that cannot be imported.")
    reasons = serializers.DictField(child=serializers.IntegerField(), help_text="How many of them, by reason.")
    places = LeftOutSchema(many=True, help_text="The first 100 of them.")
    signer = PackSignerSchema(allow_null=True, help_text="Of a memory pack; null for other files.")
    columns = serializers.DictField(child=serializers.CharField(), help_text="Of a CSV file: our names to its own.")
    namespaces = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many memories the file has for each path: the first 50."
    )
    speakers = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many memories the file has of each speaker: the first 50."
    )
    personas = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many memories the file has for each persona: the first 50."
    )
    format = serializers.ChoiceField(choices=list(ImportFormat), help_text="As given, or as its content tells.")
    samples = SampleSchema(many=True, help_text="The first 5 memories as they would be stored.")


class FileParser(BaseParser):
    """Parses a body as the bytes of a file."""

    media_type = FILE_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> dict[str, bytes]:
        return {"file": stream.read(LARGEST_FILE + 1)}


class ExportsView(ApiView):
    @of_memories("exports_create", JobPromiseSchema, status=202, request=MemoriesExportInput)
    def post(self, request: Request) -> object:
        """Export memories with their versions and lineage, as a job; then download them as a file."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        draft = ExportDraft(tuple(body.get("ids", ())), body.get("filters"), body.get("query", ""))
        return export_create(actor=actor, draft=draft)


class ExportJsonLinesView(FileView):
    @of_memories(
        "exports_jsonl",
        OpenApiTypes.STR,
        status=(200, "application/jsonl"),
        also=ENCRYPTED,
        may=[404, 409],
        parameters=[RECIPIENT, LINES_PART],
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Download an export as JSON Lines, which another installation imports."""
        return _stream_file(self, request, job_id, ExportForm.JSONL)


class ExportMarkdownView(FileView):
    @of_memories(
        "exports_markdown",
        OpenApiTypes.STR,
        status=(200, "text/markdown"),
        also=ENCRYPTED,
        may=[404, 409],
        parameters=[RECIPIENT],
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Download an export as Markdown: one section per memory."""
        return _stream_file(self, request, job_id, ExportForm.MARKDOWN)


class ExportPackView(FileView):
    @of_memories(
        "exports_mempack",
        OpenApiTypes.BINARY,
        status=(200, FILE_TYPE),
        may=[404, 409, 413],
        parameters=[RECIPIENT, PACK_PART],
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Download an export as a signed memory pack of the memories that the organisation's policies allow to
        leave."""
        return _stream_file(self, request, job_id, ExportForm.MEMPACK)


class ExchangeKeySchema(PublicKeyFormsSchema):
    public_key = serializers.CharField(help_text="The same as `hex`: others encrypt to this key.")
    signing = PublicKeyFormsSchema(help_text="The key that signs the memory packs that are exported.")
    signing_key = serializers.CharField(help_text="The same as `signing.hex`.")
    signing_key_id = serializers.CharField(help_text="The same as `signing.key_id`.")


class ExchangeKeyView(ApiView):
    @describe("exports_key", ExchangeKeySchema)
    def get(self, request: Request) -> Response:
        """Read the organisation's public keys: one for encryption by others, and one that verifies its exported
        packs."""
        actor = self.actor()
        key, signing = exchange_public_key(actor=actor), export_key(actor=actor)
        refuse_unknown_parameters(request)
        own = public_key_json(bytes.fromhex(key), kind=X25519PublicKey)
        names = {"signing_key": signing.public_key().hex(), "signing_key_id": signing.key_id()}
        return Response({**own, "public_key": key, "signing": public_key_json(signing.public_key()), **names})


class ImportsView(ApiView):
    longest_body = LARGEST_FILE + 1
    parser_classes = (FileParser,)

    @describe(
        "imports_create",
        JobPromiseSchema,
        status=202,
        request={FILE_TYPE: OpenApiTypes.BINARY},
        parameters=[*QUERY, DRY_RUN],
        also={200: ImportCheckSchema},
        may=[404],
        memories=True,
    )
    def post(self, request: Request) -> object:
        """Import the memories of a file, as a job. Its result counts imported and skipped memories, with reasons.

        A memory that an earlier import stored is not stored again.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        refuse_unknown_parameters(request, "dry_run", *(parameter.name for parameter in QUERY))
        dry_run = flag(request, "dry_run")
        with _open_file(request, actor) as content:
            draft = _read_draft(request, actor, content)
            if dry_run:
                found = import_check(actor=actor, draft=draft)
                return Response({"format": draft.form, **import_check_json(found)})
            job = import_create(actor=actor, draft=draft)
        if "upload" in request.query_params:
            upload_remove(actor=actor, upload_id=_read_id(request))
        return job


class UploadSchema(Schema):
    id = serializers.UUIDField()
    bytes = serializers.IntegerField(help_text="Bytes of the file that are here.")


class UploadsView(ApiView):
    longest_body = LARGEST_FILE + 1
    parser_classes = (FileParser,)

    @describe(
        "imports_uploads_create",
        UploadSchema,
        status=201,
        request={FILE_TYPE: OpenApiTypes.BINARY},
        parameters=[OpenApiParameter("name", str, description="The name of the file.")],
        may=[409],
    )
    def post(self, request: Request) -> Response:
        """Upload the first part of a file that is larger than a call may be. It waits for a day, sealed and private."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        refuse_unknown_parameters(request, "name")
        content = dict(request.data).get("file", b"")
        upload_id = upload_begin(actor=actor, name=request.query_params.get("name", ""), content=content)
        return Response({"id": str(upload_id), "bytes": len(content)}, status=201)


class UploadPartsView(ApiView):
    longest_body = LARGEST_FILE + 1
    parser_classes = (FileParser,)

    @describe(
        "imports_uploads_append",
        UploadSchema,
        request={FILE_TYPE: OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("number", int, required=True, description="The number of the part: 1 for the second one.")
        ],
        may=[404, 409],
    )
    def post(self, request: Request, upload_id: UUID) -> Response:
        """Upload the next part of a file. The same part again changes nothing."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        refuse_unknown_parameters(request, "number")
        number = part_read(request.query_params.get("number", ""), "number")
        content = dict(request.data).get("file", b"")
        size = upload_append(actor=actor, upload_id=upload_id, number=number, content=content)
        return Response({"id": str(upload_id), "bytes": size})

    @describe("imports_uploads_delete", None, status=204, may=[404])
    def delete(self, request: Request, upload_id: UUID) -> None:
        """Forget an uploaded file."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        self.read_body()
        upload_remove(actor=actor, upload_id=upload_id)


EXAMPLES = {
    "columns": "content:Note,tags:Labels",
    "namespaces": "/theirs:/ours",
    "speakers": "user:Ann,bot:Helper",
    "personas": "user-1:Ann",
}


def pairs_read(name: str, text: str) -> dict[str, str]:
    """Parse pairs such as `content:Note,tags:Labels` into a mapping. Raises Invalid."""
    pairs = [part.partition(":") for part in text.split(",") if part.strip()]
    if any(not colon or not second.strip() for _, colon, second in pairs):
        raise Invalid(errors=[FieldError(name, f"write pairs as in {EXAMPLES[name]}")])
    return {first.strip(): second.strip() for first, _, second in pairs}


def import_check_json(found: ImportCheck) -> dict[str, Any]:
    places = [{"place": part.place, "reason": part.reason} for part in found.left_out.places]
    return {
        "new": found.new,
        "present": found.present,
        "conflicts": found.conflicts,
        "of_packs": found.of_packs,
        "deleted": found.deleted,
        "expired": found.expired,
        "left_out": found.left_out.total,
        "reasons": dict(sorted(found.left_out.counts.items())),
        "places": places,
        "signer": asdict(found.signer) if found.signer else None,
        "columns": dict(found.file.chosen),
        "namespaces": dict(found.file.namespaces),
        "speakers": dict(found.file.speakers),
        "personas": dict(found.file.personas),
        "samples": [asdict(sample) for sample in found.file.samples],
    }


@contextmanager
def _open_file(request: Request, actor: Actor) -> Iterator[bytes | SealedFile]:
    """The file of a call: its body, or what was uploaded in parts. Raises Invalid; NotFound."""
    if "upload" not in request.query_params:
        yield dict(request.data).get("file", b"")
        return
    with upload_open(actor=actor, upload_id=_read_id(request)) as file:
        yield file.content


def _read_id(request: Request) -> UUID:
    return read_uuid(request.query_params["upload"], "upload", "the id of an uploaded file")


def _read_draft(request: Request, actor: Actor, content: bytes | SealedFile) -> ImportDraft:
    """Return the import that the request describes. Raises Invalid; UnsupportedMediaType."""
    asked = request.query_params
    faults = [
        FieldError(name, f"one of {', '.join(known)}")
        for name, known in (("format", ImportFormat), ("on_conflict", OnConflict))
        if name in asked and asked[name] not in set(known)
    ]
    if faults:
        raise Invalid(errors=faults)
    return ImportDraft(
        content=content,
        form=ImportFormat(asked["format"]) if "format" in asked else import_form(actor=actor, content=content),
        namespace=asked.get("namespace") or None,
        persona=asked.get("persona") or None,
        on_conflict=OnConflict(asked.get("on_conflict", OnConflict.SKIP)),
        **{name: pairs_read(name, asked.get(name, "")) for name in EXAMPLES},
    )


def _stream_file(view: ApiView, request: Request, job_id: UUID, form: ExportForm) -> HttpResponseBase:
    actor = view.actor()
    recipient = request.query_params.get("recipient")
    has_parts = form is not ExportForm.MARKDOWN
    part = part_read(request.query_params["part"]) if has_parts and "part" in request.query_params else None
    file = exchange_file(actor=actor, job_id=job_id, form=form, recipient=recipient, part=part)
    refuse_unknown_parameters(request, "recipient", *(["part"] if has_parts else []))
    kind = CONTENT_TYPES[form] if recipient is None else FILE_TYPE
    return file_stream(file.blocks, name=file.name, content_type=kind, actor=actor, path=request.path)

"""Responses of audit/: their schema for the OpenAPI document, and their JSON."""

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from governance.api.descriptions import PageSchema
from governance.api.fields import StrictSerializer, TextField
from governance.api.public_keys import PublicKeyFormsSchema
from governance.api.representations import time_json
from governance.audit.reading.exports import ExportView
from governance.audit.reading.selectors import CheckpointView, EntryView
from governance.audit.reading.sinks import SinkView
from governance.audit.reading.unusual import ReadBy, UnusualReading
from governance.audit.verification import Verification
from governance.vocabulary import ExportFormat, JobStatus, Outcome, PrincipalKind, SinkKind, Verb

if TYPE_CHECKING:
    from governance.models import AuditEntry

Schema = serializers.Serializer[Any]
Json = dict[str, Any]
FILTER_PARAMETERS = [
    OpenApiParameter("verb", str, enum=[*Verb]),
    OpenApiParameter("outcome", str, enum=[*Outcome]),
    OpenApiParameter("principal", OpenApiTypes.UUID, description="A member, also behind their keys; or a key."),
    OpenApiParameter("object", OpenApiTypes.UUID),
    OpenApiParameter("request_id", str, description="Also what jobs did because of this request."),
    OpenApiParameter("from", str, description="RFC 3339, included"),
    OpenApiParameter("to", str, description="RFC 3339, not included; not before `from`"),
]
PERIOD_PARAMETERS = [parameter for parameter in FILTER_PARAMETERS if parameter.name in {"from", "to"}]


class AuditPrincipalSchema(Schema):
    kind = serializers.ChoiceField(choices=list(PrincipalKind))
    id = serializers.UUIDField()
    member = serializers.UUIDField(allow_null=True)


class AuditEntrySchema(Schema):
    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    principal = AuditPrincipalSchema()
    verb = serializers.ChoiceField(choices=list(Verb))
    outcome = serializers.ChoiceField(choices=list(Outcome))
    object_type = serializers.CharField()
    object_ids = serializers.ListField(child=serializers.UUIDField())
    version = serializers.IntegerField(allow_null=True)
    before_hash = serializers.CharField(allow_null=True)
    after_hash = serializers.CharField(allow_null=True)
    detail = serializers.DictField()
    context = serializers.DictField()  # type: ignore[assignment]
    request_id = serializers.CharField()


class AuditListSchema(PageSchema):
    results = AuditEntrySchema(many=True)


class SealSchema(Schema):
    seq = serializers.IntegerField()
    entry_hash = serializers.CharField()
    previous_hash = serializers.CharField()
    chain_hash = serializers.CharField()


class SealedEntrySchema(AuditEntrySchema):
    seal = SealSchema(allow_null=True)


class FirstBadSchema(Schema):
    seq = serializers.IntegerField()
    entry_id = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    detail = serializers.CharField()


class VerificationSchema(Schema):
    intact = serializers.BooleanField()
    seals = serializers.IntegerField()
    upto = serializers.IntegerField()
    complete = serializers.BooleanField(help_text="If not, go on with `?after=` and the value of `upto`.")
    checkpoint = serializers.IntegerField(help_text="The last seal that a signed checkpoint vouches for; 0: none.")
    first_bad = FirstBadSchema(allow_null=True)


class CheckpointSchema(Schema):
    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class CheckpointListSchema(PageSchema):
    results = CheckpointSchema(many=True)


class SignedCheckpointSchema(Schema):
    """The checkpoint as the offline verifier reads it."""

    format = serializers.CharField()
    tenant = serializers.UUIDField()
    seq = serializers.IntegerField()
    chain_hash = serializers.CharField()
    at = serializers.DateTimeField()
    key = serializers.UUIDField()
    signature = serializers.CharField()


class PublicKeySchema(PublicKeyFormsSchema):
    key = serializers.UUIDField(help_text="The id that checkpoints name.")
    public_key = serializers.CharField(help_text="The same as `hex`.")


class ExportInput(StrictSerializer):
    format = serializers.ChoiceField(choices=list(ExportFormat), default=ExportFormat.JSONL)
    verb = serializers.ChoiceField(choices=list(Verb), required=False)
    outcome = serializers.ChoiceField(choices=list(Outcome), required=False)
    principal = serializers.UUIDField(required=False)
    object = serializers.UUIDField(required=False)
    request_id = TextField(max_length=64, required=False)

    def get_fields(self) -> dict[str, Any]:
        """Return the fields, with `from` added: the word is reserved in Python."""
        times = {name: TextField(max_length=40, required=False) for name in ("from", "to")}
        return {**super().get_fields(), **times}


class ExportSchema(Schema):
    id = serializers.UUIDField()
    format = serializers.ChoiceField(choices=list(ExportFormat))
    filters = serializers.DictField(child=serializers.CharField())
    status = serializers.ChoiceField(choices=list(JobStatus))
    progress = serializers.FloatField(min_value=0, max_value=1)
    rows = serializers.IntegerField()
    size = serializers.IntegerField()
    error = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ExportListSchema(PageSchema):
    results = ExportSchema(many=True)


class UnusualReadSchema(Schema):
    by = serializers.ChoiceField(choices=list(ReadBy))
    id = serializers.UUIDField()
    reads = serializers.IntegerField(help_text="In the last 24 hours.")
    usual = serializers.FloatField(help_text="Median of the 28 days before.")
    score = serializers.FloatField(help_text="Modified z-score; above 3.5 is unusual.")


class UnusualReadListSchema(PageSchema):
    results = UnusualReadSchema(many=True)


class SinkInput(StrictSerializer):
    name = TextField(max_length=100)
    kind = serializers.ChoiceField(choices=list(SinkKind))
    address = TextField(max_length=500)
    secret = TextField(max_length=200, required=False, write_only=True)


class SinkSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(SinkKind))
    address = serializers.CharField()
    delivered_seq = serializers.IntegerField()
    waiting = serializers.IntegerField()
    failures = serializers.IntegerField()
    last_error = serializers.CharField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class SinkListSchema(PageSchema):
    results = SinkSchema(many=True)


def entry_json(entry: "AuditEntry") -> Json:
    return {
        "id": str(entry.id),
        "at": time_json(entry.at),
        "principal": {
            "kind": entry.principal_kind,
            "id": str(entry.principal_id),
            "member": str(entry.member_id) if entry.member_id else None,
        },
        "verb": entry.verb,
        "outcome": entry.outcome,
        "object_type": entry.object_type,
        "object_ids": [str(object_id) for object_id in entry.object_ids],
        "version": entry.version,
        "before_hash": _hex(entry.before_hash),
        "after_hash": _hex(entry.after_hash),
        "detail": entry.detail,
        "context": entry.context,
        "request_id": entry.request_id,
    }


def sealed_entry_json(view: EntryView) -> Json:
    seal = view.seal
    seal_json = seal and {
        "seq": seal.seq,
        "entry_hash": _hex(seal.entry_hash),
        "previous_hash": _hex(seal.previous_hash),
        "chain_hash": _hex(seal.chain_hash),
    }
    return entry_json(view.entry) | {"seal": seal_json}


def verification_json(found: Verification) -> Json:
    return {
        "intact": found.intact,
        "seals": found.seals,
        "upto": found.upto,
        "complete": found.complete,
        "checkpoint": found.checkpoint,
        "first_bad": vars(found.fault) if found.fault else None,
    }


def checkpoint_json(view: CheckpointView) -> Json:
    return {"id": str(view.id), "seq": view.seq, "created_at": time_json(view.at)}


def export_json(view: ExportView) -> Json:
    return {
        "id": str(view.id),
        "format": view.format,
        "filters": view.filters,
        "status": view.status,
        "progress": view.progress,
        "rows": view.rows,
        "size": view.size,
        "error": view.error or None,
        "created_at": time_json(view.created_at),
        "finished_at": time_json(view.finished_at),
    }


def unusual_json(reading: UnusualReading) -> Json:
    return {
        "by": reading.by,
        "id": str(reading.id),
        "reads": reading.reads,
        "usual": reading.usual.median,
        "score": reading.score,
    }


def sink_json(view: SinkView) -> Json:
    return {
        "id": str(view.id),
        "name": view.name,
        "kind": view.kind,
        "address": view.address,
        "delivered_seq": view.delivered_seq,
        "waiting": view.waiting,
        "failures": view.failures,
        "last_error": view.last_error or None,
        "delivered_at": time_json(view.delivered_at),
        "created_at": time_json(view.created_at),
    }


def _hex(value: bytes | memoryview | None) -> str | None:
    return bytes(value).hex() if value is not None else None

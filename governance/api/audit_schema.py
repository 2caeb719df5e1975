"""Responses of audit/: their schema for the OpenAPI document, and their JSON."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from governance.api.descriptions import PageSchema
from governance.api.fields import StrictSerializer, TextField
from governance.api.public_keys import PublicKeyFormsSchema
from governance.api.schema import HexField, NullTextField, Schema
from governance.audit.reading.selectors import EntryView
from governance.audit.reading.unusual import ReadBy
from governance.vocabulary import ExportFormat, JobStatus, Outcome, PrincipalKind, SinkKind, Verb

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
    kind = serializers.ChoiceField(source="principal_kind", choices=list(PrincipalKind))
    id = serializers.UUIDField(source="principal_id")
    member = serializers.UUIDField(source="member_id", allow_null=True)


class AuditEntrySchema(Schema):
    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    principal = AuditPrincipalSchema(source="*")
    verb = serializers.ChoiceField(choices=list(Verb))
    outcome = serializers.ChoiceField(choices=list(Outcome))
    object_type = serializers.CharField()
    object_ids = serializers.ListField(child=serializers.UUIDField())
    version = serializers.IntegerField(allow_null=True)
    before_hash = HexField(allow_null=True)
    after_hash = HexField(allow_null=True)
    detail = serializers.DictField()
    context = serializers.DictField()  # type: ignore[assignment]
    request_id = serializers.CharField()


class AuditListSchema(PageSchema):
    results = AuditEntrySchema(many=True)


class SealSchema(Schema):
    seq = serializers.IntegerField()
    entry_hash = HexField()
    previous_hash = HexField()
    chain_hash = HexField()


class SealedEntrySchema(AuditEntrySchema):
    seal = SealSchema(allow_null=True)

    def to_representation(self, instance: EntryView) -> Json:
        return AuditEntrySchema.json(instance.entry) | {"seal": instance.seal and SealSchema.json(instance.seal)}


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
    first_bad = FirstBadSchema(source="fault", allow_null=True)


class CheckpointSchema(Schema):
    id = serializers.UUIDField()
    seq = serializers.IntegerField()
    created_at = serializers.DateTimeField(source="at")


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
    error = NullTextField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class UnusualReadSchema(Schema):
    by = serializers.ChoiceField(choices=list(ReadBy))
    id = serializers.UUIDField()
    reads = serializers.IntegerField(help_text="In the last 24 hours.")
    usual = serializers.FloatField(source="usual.median", help_text="Median of the 28 days before.")
    score = serializers.FloatField(help_text="Modified z-score; above 3.5 is unusual.")


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
    last_error = NullTextField()
    delivered_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

"""provenance/ of the REST API: the provenance of a memory, and the check of a manifest."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import describe
from governance.api.fields import StrictSerializer
from governance.api.public_keys import PublicKeyFormsSchema, public_key_json
from governance.api.schema import HexField, Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from governance.keys.signing_keys import signing_key
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import refuse_deep
from vault.provenance.rules import Verdict
from vault.provenance.selectors import provenance_get
from vault.provenance.services import manifest_verify
from vault.vocabulary import Source


class NamedAuthorSchema(Schema):
    kind = serializers.CharField()
    id = serializers.UUIDField()
    name = serializers.CharField(help_text="A member's name, an API key's prefix; empty for the system.")


class VersionFactSchema(Schema):
    version = serializers.IntegerField(source="number")
    author = NamedAuthorSchema()
    reason = serializers.CharField()
    hash = HexField()
    previous_hash = HexField(allow_null=True)
    redacted = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class LinkFactSchema(Schema):
    memory_id = serializers.UUIDField()
    kind = serializers.CharField()


class ProvenanceSchema(Schema):
    memory_id = serializers.UUIDField()
    source = serializers.ChoiceField(choices=list(Source))  # type: ignore[assignment]
    reader = serializers.CharField(help_text="What made the memory of what was sent.")
    created_at = serializers.DateTimeField()
    versions = VersionFactSchema(many=True)
    parents = LinkFactSchema(many=True)
    derived = LinkFactSchema(many=True)


class VerifyInput(StrictSerializer):
    manifest = serializers.JSONField(help_text="As it came with an answer, unchanged.")

    def validate_manifest(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class VerdictSchema(Schema):
    valid = serializers.BooleanField()
    verdict = serializers.ChoiceField(choices=list(Verdict))


class SigningKeySchema(PublicKeyFormsSchema):
    public_key = serializers.CharField(help_text="The same as `pem`.")


class MemoryProvenanceView(ApiView):
    @of_memories("memories_provenance", ProvenanceSchema, may=[404])
    def get(self, request: Request, memory_id: UUID) -> object:
        """Read the lineage of a memory: versions with authors, its sources, and the memories derived from it."""
        actor = self.actor()
        with acting(actor):
            view = provenance_get(actor=actor, cube_id=memory_id)
            refuse_unknown_parameters(request)
        return view


class VerifyView(ApiView):
    @describe("provenance_verify", VerdictSchema, request=VerifyInput)
    def post(self, request: Request) -> object:
        """Verify that this installation signed a manifest."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        verdict = manifest_verify(actor=actor, body=self.read_body()["manifest"])
        return {"valid": verdict is Verdict.VALID, "verdict": verdict}


class SigningKeyView(ApiView):
    @describe("provenance_key", SigningKeySchema)
    def get(self, request: Request) -> Response:
        """Read the public key that verifies manifests."""
        refuse_unknown_parameters(request)
        key = signing_key()
        return Response(public_key_json(key.public_key()) | {"public_key": key.public_pem()})

"""packs/{id}/trace/ and contracts/{id}/file/ of the REST API: watermarked copies of packs."""

from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.request import Request

from governance.api.descriptions import describe
from governance.api.fields import StrictSerializer, TextField
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from vault.api.pack_schema import PACK_TYPE
from vault.store.selectors import pack_get
from vault.store.traces import LONGEST_LEAK, contract_file, leak_trace


class TraceInput(StrictSerializer):
    text = TextField(max_length=LONGEST_LEAK, help_text="The leaked text, or any part of it.")


class CandidateSchema(Schema):
    subscriber = serializers.CharField()
    contract = serializers.CharField(source="state", help_text="The state of its latest contract.")
    matching = serializers.IntegerField(
        source="match.matching", help_text="Marked sentences that the text has in this subscriber's wording."
    )
    probability = serializers.FloatField(
        source="match.probability", help_text="0 to 1; the rest to 1 is of other subscribers and of nobody."
    )


class TraceSchema(Schema):
    marked = serializers.IntegerField(help_text="Marked sentences of all versions.")
    compared = serializers.IntegerField(help_text="Those that the text has, in one of their wordings.")
    candidates = CandidateSchema(many=True, help_text="All subscribers that the pack ever had, the likeliest first.")


class PackTraceView(ApiView):
    @describe("packs_trace", TraceSchema, request=TraceInput, may=[404])
    def post(self, request: Request, pack_id: UUID) -> object:
        """Find the subscriber whose copy of the pack a leaked text comes from. Nothing of the text is stored."""
        actor = self.actor()
        text = self.read_body(lambda: pack_get(actor=actor, pack_id=pack_id))["text"]
        return leak_trace(actor=actor, pack_id=pack_id, text=text)


class ContractFileView(ApiView):
    @describe("contracts_file", OpenApiTypes.BINARY, status=(200, PACK_TYPE), may=[404, 409])
    def get(self, request: Request, contract_id: UUID) -> HttpResponse:
        """Download the signed file of the installed version with the wordings of this subscriber."""
        actor = self.actor()
        name, content = contract_file(actor=actor, contract_id=contract_id)
        refuse_unknown_parameters(request)
        disposition = f'attachment; filename="{name}"'
        return HttpResponse(content, content_type=PACK_TYPE, headers={"Content-Disposition": disposition})

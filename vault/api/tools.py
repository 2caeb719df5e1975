"""memories/tool-calls/ of the REST API: stores and recalls tool calls and their outcomes."""

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE
from governance.api.fields import NumberField, OneOfField, StrictSerializer, TextField, WholeField
from governance.api.schema import Schema
from governance.api.views import ApiView
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.descriptions import MEMORIES, of_memories
from vault.api.fields import ContentField, MetadataField
from vault.api.inputs import DescribedInput
from vault.api.representations import memory_json
from vault.api.schema import MemorySchema
from vault.content.drafts import CubeDraft
from vault.content.tool_calls import ToolCall
from vault.cubes.selectors import cubes_view
from vault.cubes.writer.builder import texts_index
from vault.tools.rules import NEAR
from vault.tools.selectors import CallQuery, RecalledCall, tool_calls_recall
from vault.tools.services import tool_call_add, tool_call_draft
from vault.vocabulary import Sensitivity, ToolOutcome

LONGEST_NAME = 200
LONGEST_ERROR = 2_000
LONGEST_DURATION = 7 * 24 * 3600 * 1000
OF_CALL = ("name", "arguments", "outcome", "result", "error", "duration_ms")


class ToolCallInput(DescribedInput):
    """A call of a tool, and its outcome."""

    name = TextField(max_length=LONGEST_NAME, help_text="Of the tool.")
    arguments = MetadataField(required=False)
    outcome = OneOfField(ToolOutcome)
    result = ContentField(required=False, allow_blank=True, help_text="What the tool answered.")
    error = TextField(max_length=LONGEST_ERROR, required=False, allow_blank=True)
    duration_ms = WholeField(required=False, min_value=0, max_value=LONGEST_DURATION)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        MetadataField().to_internal_value({**attrs.get("metadata", {}), "arguments": attrs.get("arguments", {})})
        if len(attrs.get("result", "")) > settings.MAX_CONTENT_CHARACTERS // 2:
            raise serializers.ValidationError(
                {"result": [f"at most {settings.MAX_CONTENT_CHARACTERS // 2} characters"]}
            )
        return super().validate(attrs)


class ToolCallQueryInput(StrictSerializer):
    """The tool calls to recall. Without `arguments`, the newest are returned."""

    blank_is_absent = True

    name = TextField(max_length=LONGEST_NAME, required=False)
    arguments = MetadataField(required=False)
    outcome = OneOfField(ToolOutcome, required=False)
    namespaces = serializers.ListField(child=TextField(max_length=200), required=False, max_length=100)
    min_similarity = NumberField(
        min_value=0, max_value=1, required=False, help_text=f"Of the arguments, 0 to 1. Default: {NEAR}."
    )
    top_k = WholeField(required=False, min_value=1, max_value=settings.MAX_TOP_K, help_text="Default: 10.")


class ToolCallAddedSchema(Schema):
    results = MemorySchema(many=True)


class RecalledCallSchema(Schema):
    memory = MemorySchema(source="view")
    similarity = serializers.FloatField(min_value=0, max_value=1, help_text="Of the arguments; 1: the same.")

    def make_similarity(self, call: RecalledCall) -> float:
        return round(call.similarity, 4)


class ToolCallsSchema(Schema):
    results = RecalledCallSchema(many=True)
    failed_before = serializers.BooleanField(help_text="One of these calls failed.")


class ToolCallsView(ApiView):
    address_of_made = MEMORIES

    @of_memories("memories_tool_calls_add", ToolCallAddedSchema, status=201, request=ToolCallInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Store a tool call with its arguments, outcome, duration and error."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        draft = _read_draft(self.read_body())
        with self.once() as once:
            if once.reply is None:
                texts = texts_index(actor.tenant_id, [draft])
                with acting(actor):
                    added = tool_call_add(actor=actor, draft=draft, texts=texts)
                    shown = [memory_json(view) for view in cubes_view(actor=actor, cube_ids=[added.cube.id])]
                    once.store(Reply(201, {"results": shown}, shows=(added.cube.id,)))
        return once.response()


class ToolCallSearchView(ApiView):
    @of_memories("memories_tool_calls_search", ToolCallsSchema, request=ToolCallQueryInput)
    def post(self, request: Request) -> object:
        """Recall tool calls by name, arguments and outcome, the most similar first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        body["namespaces"] = tuple(body.get("namespaces", ()))
        found = tool_calls_recall(actor=actor, query=CallQuery(**body))
        return {"results": found, "failed_before": any(call.is_failure for call in found)}


def _read_draft(body: dict[str, Any]) -> CubeDraft:
    call = ToolCall(**{name: body.pop(name) for name in OF_CALL if name in body})
    body.pop("semantic_type", None)
    for name, kind in (("tags", tuple), ("sensitivity", Sensitivity)):
        if name in body:
            body[name] = kind(body[name])
    return tool_call_draft(call, CubeDraft(content="", **body))

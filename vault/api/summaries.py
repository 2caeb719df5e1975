"""namespaces/{id}/summary/ and conversations/{id}/summary/ of the REST API."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.schema import NullTextField, Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.database import acting
from vault.api.descriptions import of_memories
from vault.chat.selectors import conversation_get
from vault.lifecycle.summaries import SummaryView, conversation_summary, namespace_summary
from vault.namespaces.selectors import namespace_get


class SummaryLineSchema(Schema):
    text = serializers.CharField()
    memory_id = serializers.UUIDField()


class SummarySchema(Schema):
    sentences = SummaryLineSchema(
        source="lines", many=True, help_text="Those of memories that the caller may read; may be empty."
    )
    memories = serializers.IntegerField(
        help_text="Memories that the summary was made of, and that the caller may read."
    )
    model = NullTextField(help_text="That chose the sentences; null: none.")
    made_at = serializers.DateTimeField(source="at", allow_null=True, help_text="Null: nothing is summed up yet.")


class NamespaceSummaryView(ApiView):
    @of_memories("namespaces_summary", SummarySchema, may=[404])
    def get(self, request: Request, namespace_id: UUID) -> Response:
        """Read the summary of a namespace: sentences quoted from the present versions of its memories."""
        actor = self.actor()
        with acting(actor):
            namespace_get(actor=actor, namespace_id=namespace_id)
            refuse_unknown_parameters(request)
            return Response(_summary_json(namespace_summary(actor=actor, namespace_id=namespace_id)))


class ConversationSummaryView(ApiView):
    @of_memories("conversations_summary", SummarySchema, may=[404])
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """Read the summary of one of the caller's own conversations: sentences of its messages."""
        actor = self.actor()
        with acting(actor):
            conversation_get(actor=actor, conversation_id=conversation_id)
            refuse_unknown_parameters(request)
            return Response(_summary_json(conversation_summary(actor=actor, conversation_id=conversation_id)))


def _summary_json(view: SummaryView | None) -> dict[str, Any]:
    return SummarySchema.json(view or {"lines": [], "memories": 0, "model": "", "at": None})

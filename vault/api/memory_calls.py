"""memory-calls/ of the REST contract: what a text asks of the memory."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.fields import StrictSerializer
from governance.api.views import ApiView, asked_only
from governance.vocabulary import Permission
from vault.api.described import of_memories
from vault.api.fields import ContentField
from vault.api.inputs import read
from vault.api.schema import Schema
from vault.chat.calls import call_read, last_questions
from vault.reader.rules import Intent, MemoryCall
from vault.reader.rules.calls import ALL, OWN


class MemoryCallInput(StrictSerializer):
    """A text in English or Chinese."""

    text = ContentField()
    session_id = serializers.UUIDField(
        required=False, help_text="Id of a conversation of the caller's, whose last questions complete a follow-up."
    )


class TimeRangeSchema(Schema):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="The first moment after the range.")


class MemoryCallSchema(Schema):
    intent = serializers.ChoiceField(choices=list(Intent), help_text="`chat` where the text asks for nothing else.")
    query = serializers.CharField(allow_blank=True, help_text="What it is about; empty: everything.")
    rewritten = serializers.CharField(help_text="The text with the names that its pronouns stand for.")
    entities = serializers.ListField(child=serializers.CharField(), help_text="People, places and things it names.")
    time_range = TimeRangeSchema(allow_null=True)
    scope = serializers.ChoiceField(choices=[OWN, ALL], help_text="`own`: what the speaker said of themselves.")
    task = serializers.CharField(allow_blank=True)
    anchors = serializers.ListField(child=serializers.CharField(), help_text="The entities of `query`.")
    confidence = serializers.FloatField(min_value=0, max_value=1)


class MemoryCallReplySchema(Schema):
    call = MemoryCallSchema()


class MemoryCallsView(ApiView):
    @of_memories("memories_calls_read", MemoryCallReplySchema, request=MemoryCallInput, may=[404])
    def post(self, request: Request) -> Response:
        """Interpret a text as a request to the memory: intent, query, entities, time range. Nothing is carried out."""
        actor = self.actor()
        authorize(actor, Permission.CONVERSATION_USE)
        asked_only(request)
        body = read(MemoryCallInput, request)
        past = last_questions(actor=actor, conversation_id=body["session_id"]) if "session_id" in body else []
        call = call_read(actor=actor, text=body["text"], past=past)
        return Response({"call": _call_json(call)})


def _call_json(call: MemoryCall) -> dict[str, Any]:
    start, end = call.time_range or (None, None)
    return {
        "intent": call.intent,
        "query": call.query,
        "rewritten": call.rewritten,
        "entities": call.entities,
        "time_range": {"start": start, "end": end} if call.time_range else None,
        "scope": call.scope,
        "task": call.task,
        "anchors": call.anchors,
        "confidence": call.confidence,
    }

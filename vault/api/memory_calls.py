"""memory-calls/ of the REST API: a text is read as a request to the memory and, on demand, carried out."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE
from governance.api.fields import FlagField, StrictSerializer
from governance.api.schema import Schema
from governance.api.views import ApiView
from governance.idempotency.services import Reply
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.fields import ContentField
from vault.api.inputs import make_label_field
from vault.api.representations import memory_json
from vault.api.schema import MemorySchema
from vault.chat.calls import CallOutcome, CallPlace, call_execute, call_read, last_questions
from vault.reader.rules import Intent, MemoryCall
from vault.reader.rules.calls import ALL, OWN


class MemoryCallInput(StrictSerializer):
    """A text in English or Chinese."""

    text = ContentField()
    session_id = make_label_field(
        help_text="The caller's own name for a session, which new memories get; or the id of a conversation of the "
        "caller's, whose last questions complete a follow-up."
    )
    persona = make_label_field(help_text="Id or name of the persona that speaks, whose memories are meant.")
    execute = FlagField(default=False, help_text="Carry the call out. A deletion lists first what would go.")
    confirm = serializers.CharField(
        required=False, max_length=4_000, help_text="Token of a `confirmation`: deletes what it lists."
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
    argument = serializers.CharField(
        allow_blank=True, help_text="Of a `tag`, the tag; of an `update` of a note, its new text; else empty."
    )
    task = serializers.CharField(allow_blank=True)
    anchors = serializers.ListField(child=serializers.CharField(), help_text="The entities of `query`.")
    confidence = serializers.FloatField(min_value=0, max_value=1)


class CallResultSchema(Schema):
    memories = MemorySchema(many=True, help_text="Stored by `add` and `update`; else those that the text is about.")
    deleted = serializers.ListField(child=serializers.UUIDField())


class ConfirmationSchema(Schema):
    token = serializers.CharField(help_text="Send it back as `confirm`, with the same text, within ten minutes.")
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())


class MemoryCallReplySchema(Schema):
    call = MemoryCallSchema()
    result = CallResultSchema(required=False, help_text="With `execute`.")
    confirmation = ConfirmationSchema(required=False, help_text="Of a `delete` that was not confirmed.")


class MemoryCallsView(ApiView):
    @of_memories(
        "memories_calls_read", MemoryCallReplySchema, request=MemoryCallInput, parameters=[ONCE], may=[404, 423]
    )
    def post(self, request: Request) -> Response:
        """Interpret a text as a request to the memory: intent, query, entities, time range.

        With `execute` the request is carried out. A `delete` first returns a `confirmation`, and deletes its memories
        once its token is sent as `confirm`. An `update` stores the correction as a new memory next to the corrected
        one. `archive`, `restore`, `freeze`, `unfreeze`, `promote`, `fuse`, `tag`, `rollback` and `audit` only list
        the memories that they are about: each has an endpoint of its own. A text with such a request is never stored.
        """
        actor = self.actor()
        authorize(actor, Permission.CONVERSATION_USE)
        body = self.read_body()
        place = CallPlace(body.get("persona", ""), body.get("session_id", ""))
        if place.persona:
            persona_get(actor=actor, reference=place.persona)
        past = last_questions(actor=actor, conversation_id=place.conversation_id) if place.conversation_id else []
        reading = call_read(actor=actor, text=body["text"], past=past)
        call = reading.call
        if not body["execute"]:
            return Response({"call": _call_json(call)})
        with self.once() as once:
            if once.reply is None:
                call_execute(
                    actor=actor,
                    text=body["text"],
                    reading=reading,
                    place=place,
                    confirm=body.get("confirm", ""),
                    within=lambda outcome: once.store(_call_reply(call, outcome)),
                )
        return once.response()


def _call_reply(call: MemoryCall, outcome: CallOutcome) -> Reply:
    body: dict[str, Any] = {"call": _call_json(call), "result": _result_json(outcome)}
    if outcome.confirmation is not None:
        ids = [str(cube_id) for cube_id in outcome.confirmation.ids]
        body["confirmation"] = {"token": outcome.confirmation.token, "count": len(ids), "ids": ids}
    return Reply(200, body, shows=tuple(view.cube.id for view in outcome.memories))


def _result_json(outcome: CallOutcome) -> dict[str, Any]:
    return {
        "memories": [memory_json(view) for view in outcome.memories],
        "deleted": [str(cube_id) for cube_id in outcome.deleted],
    }


def _call_json(call: MemoryCall) -> dict[str, Any]:
    start, end = call.time_range or (None, None)
    return {
        "intent": call.intent,
        "query": call.query,
        "rewritten": call.rewritten,
        "entities": call.entities,
        "time_range": {"start": start, "end": end} if call.time_range else None,
        "scope": call.scope,
        "argument": call.argument,
        "task": call.task,
        "anchors": call.anchors,
        "confidence": call.confidence,
    }

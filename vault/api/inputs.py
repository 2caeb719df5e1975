"""Bodies of requests: checked shapes, turned into the dataclasses that services take."""

from dataclasses import replace
from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request

from governance.api.fields import StrictSerializer, TextField
from governance.errors import FieldError, Invalid
from vault.api.fields import ContentField, MetadataField, refuse_deep
from vault.cubes.drafts import CubeChanges, CubeDraft
from vault.reader.services import Message, messages_read
from vault.retrieval.queries import SearchQuery
from vault.vocabulary import AccessLevel, Layer, MemoryType, MessageRole, SearchMode, SemanticType, Sensitivity

LONGEST_LABEL = 200
LONGEST_TTL = 100 * 365 * 24 * 3600


def _label(**options: Any) -> TextField:
    return TextField(max_length=LONGEST_LABEL, required=False, **options)


class Tags(serializers.ListField):
    """At most 50 tags of 1 to 100 characters. Tags are labels, stored in the clear."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_length=100), max_length=50, **options)


class DescribedInput(StrictSerializer):
    """What may be said of any memory that is written."""

    namespace = TextField(required=False, help_text="Path; made on demand. Default: the principal's private one.")
    persona = _label(help_text="Id or name of a persona.")
    subject = _label(help_text="The tenant's own reference of the human whom this is about.")
    session_id = _label()
    task_id = _label()
    tags = Tags(required=False)
    title = TextField(max_length=500, required=False, allow_blank=True)
    metadata = MetadataField(required=False)
    event_time = serializers.DateTimeField(required=False, allow_null=True)
    valid_from = serializers.DateTimeField(required=False, allow_null=True)
    valid_to = serializers.DateTimeField(required=False, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    ttl_seconds = serializers.IntegerField(required=False, min_value=1, max_value=LONGEST_TTL)
    sensitivity = serializers.ChoiceField(choices=list(Sensitivity), required=False)
    importance = serializers.FloatField(min_value=0, max_value=1, required=False)
    semantic_type = serializers.ChoiceField(choices=list(SemanticType), required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("expires_at") and attrs.get("ttl_seconds"):
            raise serializers.ValidationError({"ttl_seconds": ["give expires_at or ttl_seconds, not both"]})
        return attrs


class ToolCalls(serializers.ListField):
    """What an assistant asked of its tools, as JSON; kept as metadata is, and no longer than that."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.JSONField(), max_length=100, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        calls: list[Any] = super().to_internal_value(data)
        MetadataField().to_internal_value({"tool_calls": calls})
        return calls


class MessageInput(StrictSerializer):
    role = serializers.ChoiceField(choices=list(MessageRole))
    name = _label()
    content = ContentField(allow_blank=True)
    timestamp = serializers.DateTimeField(required=False)
    message_id = _label()
    tool_calls = ToolCalls(required=False)
    tool_call_id = _label()
    metadata = MetadataField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["content"].strip() and not attrs.get("tool_calls"):
            raise serializers.ValidationError({"content": ["write something, or give tool_calls"]})
        return attrs


class MemoryInput(DescribedInput):
    """One memory as `content`, or a conversation as `messages`."""

    content = ContentField(required=False)
    messages = MessageInput(many=True, required=False, allow_empty=False)
    infer = serializers.BooleanField(required=False)
    allow_duplicates = serializers.BooleanField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("content" in attrs) == ("messages" in attrs):
            raise serializers.ValidationError({"content": ["give content or messages, and not both"]})
        if len(attrs.get("messages", ())) > settings.MAX_ITEMS_PER_CALL:
            raise serializers.ValidationError({"messages": [f"at most {settings.MAX_ITEMS_PER_CALL} a call"]})
        return super().validate(attrs)


class BulkInput(StrictSerializer):
    items = MemoryInput(many=True, allow_empty=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        total = sum(len(item.get("messages", (1,))) for item in attrs["items"])
        if len(attrs["items"]) > settings.MAX_ITEMS_PER_CALL or total > settings.MAX_ITEMS_PER_CALL:
            raise serializers.ValidationError({"items": [f"at most {settings.MAX_ITEMS_PER_CALL}, messages summed"]})
        return attrs


class ChangesInput(StrictSerializer):
    content = ContentField(required=False)
    title = TextField(max_length=500, required=False, allow_blank=True)
    tags = Tags(required=False)
    metadata = MetadataField(required=False)
    semantic_type = serializers.ChoiceField(choices=list(SemanticType), required=False)
    namespace = TextField(required=False)
    persona = _label(allow_null=True)
    subject = _label(allow_null=True)
    sensitivity = serializers.ChoiceField(choices=list(Sensitivity), required=False)
    access_level = serializers.ChoiceField(
        choices=list(AccessLevel), required=False, help_text="read_only: only its owner and who has a grant change it."
    )
    importance = serializers.FloatField(min_value=0, max_value=1, required=False)
    priority = serializers.FloatField(min_value=0, max_value=1, required=False)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    valid_from = serializers.DateTimeField(required=False, allow_null=True)
    valid_to = serializers.DateTimeField(required=False, allow_null=True)
    event_time = serializers.DateTimeField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class SearchInput(StrictSerializer):
    query = ContentField()
    top_k = serializers.IntegerField(min_value=1, max_value=settings.MAX_TOP_K, required=False)
    mode = serializers.ChoiceField(choices=list(SearchMode), required=False)
    namespaces = serializers.ListField(child=TextField(), required=False, max_length=100)
    personas = serializers.ListField(child=TextField(), required=False, max_length=100)
    session_id = _label()
    task_id = _label()
    layers = serializers.ListField(child=serializers.ChoiceField(choices=list(Layer)), required=False)
    types = serializers.ListField(child=serializers.ChoiceField(choices=list(MemoryType)), required=False)
    filters = serializers.JSONField(required=False)
    as_of = serializers.DateTimeField(required=False)
    min_score = serializers.FloatField(min_value=0, max_value=1, required=False)
    include_archived = serializers.BooleanField(required=False)
    explain = serializers.BooleanField(required=False)

    def validate_filters(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class ConversationInput(StrictSerializer):
    title = TextField(max_length=200, required=False, allow_blank=True)
    persona = _label()
    agent_persona = _label()
    model = TextField(max_length=100, required=False, allow_blank=True)


class TitleInput(StrictSerializer):
    title = TextField(max_length=200)


class TurnInput(StrictSerializer):
    content = ContentField()


def drafts_of(body: dict[str, Any]) -> list[CubeDraft]:
    """The drafts that one memory body asks for."""
    content = body.get("content", "")
    common = CubeDraft(content=content, **_common(body))
    if "messages" not in body:
        return [common]
    messages = [Message(**message) for message in body["messages"]]
    return messages_read(messages, infer=body.get("infer", True), common=common)


def drafts_of_bulk(body: dict[str, Any]) -> tuple[list[CubeDraft], list[int]]:
    """All drafts of a bulk body, and for each the index of the item that it came from."""
    drafts: list[CubeDraft] = []
    origins: list[int] = []
    for index, item in enumerate(body["items"]):
        found = drafts_of(item)
        offset = len(drafts)
        drafts += [_shifted(draft, offset) for draft in found]
        origins += [index] * len(found)
    return drafts, origins


def changes_of(body: dict[str, Any]) -> CubeChanges:
    if "tags" in body:
        body = body | {"tags": tuple(body["tags"])}
    return CubeChanges(**body)


def search_of(body: dict[str, Any]) -> SearchQuery:
    asked = {name: value for name, value in body.items() if name != "explain"}
    for name in ("namespaces", "personas", "layers", "types"):
        if name in asked:
            asked[name] = tuple(asked[name])
    if "mode" in asked:
        asked["mode"] = SearchMode(asked["mode"])
    return SearchQuery(**asked)


def read(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The checked body. Raises Invalid or TooLarge."""
    try:
        data = request.data
    except RecursionError as error:  # of Python's own JSON parser
        raise Invalid("The body is nested too deeply.") from error
    if not isinstance(data, dict):
        raise Invalid(errors=[FieldError("body", "a JSON object is needed")])
    form = kind(data=data)
    form.is_valid(raise_exception=True)
    body: dict[str, Any] = form.validated_data
    return body


def _common(body: dict[str, Any]) -> dict[str, Any]:
    names = {*DescribedInput().fields, "allow_duplicates"}
    common = {name: value for name, value in body.items() if name in names}
    if "tags" in common:
        common["tags"] = tuple(common["tags"])
    return common


def _shifted(draft: CubeDraft, offset: int) -> CubeDraft:
    return draft if draft.parent is None else replace(draft, parent=draft.parent + offset)

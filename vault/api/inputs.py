"""Request bodies: serializers, and their conversion to the dataclasses that services take."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from rest_framework import serializers

from governance.actor import Actor
from governance.api.descriptions import share_form
from governance.api.fields import FlagField, NumberField, OneOfField, StrictSerializer, TextField, WholeField
from governance.api.problems import field_errors
from governance.errors import TooLarge
from vault.api.fields import (
    ContentField,
    EventField,
    FiltersField,
    MetadataField,
    MomentField,
    OffsetField,
    PathField,
    PersonaField,
)
from vault.content.drafts import CubeChanges, CubeDraft
from vault.layers.search import ContextOrder
from vault.reader.categories import add_categories
from vault.reader.message_calls import split_tool_calls
from vault.reader.message_shapes import OMITTED, read_shape
from vault.reader.model_reader import messages_statements
from vault.reader.services import Message, draft_content, messages_read
from vault.retrieval.queries import SearchQuery
from vault.vocabulary import (
    AccessLevel,
    Layer,
    MemoryType,
    MessageRole,
    Preference,
    SearchMode,
    SemanticType,
    Sensitivity,
)

LONGEST_LABEL, LONGEST_DESCRIPTION = 200, 1_000
LONGEST_TTL = 100 * 365 * 24 * 3600
VALID_FROM = "True from then on; only a search with `as_of` looks at it."
VALID_TO = (
    "True until just before then; only a search with `as_of` looks at it. In the past it hides nothing by itself."
)
RAISES_GOALS = "Whether answers recall a goal that a question touches. Default: true."
EXPIRES = "From then on the memory answers 404. In the future."


def make_label_field(**options: Any) -> TextField:
    return TextField(max_length=LONGEST_LABEL, required=False, **options)


def _make_as_of_field() -> MomentField:
    return MomentField(
        required=False,
        help_text="A time, or a date: its first moment in UTC. Only what was known and true then, in the words of "
        "then. Without it validity is not looked at.",
    )


class Tags(serializers.ListField):
    """At most 50 tags of 1 to 100 characters. Tags are stored as plain text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_length=100), max_length=50, **options)


class DescribedInput(StrictSerializer):
    """The common fields of written memories."""

    blank_is_absent = True

    namespace = TextField(required=False, help_text="Path; made on demand. Default: the principal's private one.")
    persona = make_label_field(help_text="Id or name of a persona.")
    subject = make_label_field(help_text="The tenant's own reference of the human whom this is about.")
    session_id = make_label_field(help_text="The caller's own name for a session: what it holds keeps its order.")
    task_id = make_label_field()
    tags = Tags(required=False)
    title = TextField(max_length=500, required=False, allow_blank=True)
    metadata = MetadataField(required=False)
    event_time = OffsetField(
        required=False, allow_null=True, help_text="When it happened, or was said. Its offset tells the speaker's day."
    )
    valid_from = MomentField(required=False, allow_null=True, help_text=VALID_FROM)
    valid_to = MomentField(required=False, allow_null=True, help_text=VALID_TO)
    expires_at = MomentField(required=False, allow_null=True, help_text=EXPIRES)
    ttl_seconds = WholeField(
        required=False, min_value=1, max_value=LONGEST_TTL, help_text="Instead of expires_at: seconds from now."
    )
    sensitivity = OneOfField(Sensitivity, required=False, help_text="Default: internal.")
    importance = NumberField(min_value=0, max_value=1, required=False, help_text="0 to 1. Default: 0.5.")
    priority = NumberField(min_value=0, max_value=1, required=False, help_text="0 to 1. Default: 0.")
    semantic_type = OneOfField(
        SemanticType, required=False, help_text="Default: fact; of messages, what is read from them."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("expires_at") and attrs.get("ttl_seconds"):
            raise serializers.ValidationError({"ttl_seconds": ["give expires_at or ttl_seconds, not both"]})
        return attrs


class ToolCalls(serializers.ListField):
    """The tool calls of an assistant as JSON, with the limits of metadata."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.JSONField(), max_length=100, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        calls: list[Any] = super().to_internal_value(data)
        MetadataField().to_internal_value({"tool_calls": calls})
        return calls


class ReadMessages(list[dict[str, Any]]):
    """Messages that can be stored. skipped: the errors of the others, by their place."""

    skipped: dict[str, Any]


class MessageListInput(serializers.ListSerializer[Any]):
    """A list of which bad messages are left out; without a good one they are errors."""

    def to_internal_value(self, data: Any) -> ReadMessages:
        if not isinstance(data, list) or not data:
            return ReadMessages(super().to_internal_value(data))
        form = share_form(MessageInput)
        found, skipped = ReadMessages(), dict[str, Any]()
        for index, item in enumerate(data):
            try:
                found.append(form.run_validation(item))
            except serializers.ValidationError as fault:
                skipped[str(index)] = fault.detail
            except TooLarge as fault:
                if len(data) == 1:
                    raise
                skipped[str(index)] = {"content": [fault.detail]}
        if not found:
            raise serializers.ValidationError(skipped)
        found.skipped = skipped
        return found


class MessageInput(StrictSerializer):
    """One message, also as agents hold it: see Messages of agents at the top."""

    blank_is_absent = True

    role = OneOfField(MessageRole, help_text="Also `developer`, which is `system`.")
    name = make_label_field(help_text="Who said it: the memory's `speaker`. Default: the role.")
    content = ContentField(allow_blank=True)
    timestamp = OffsetField(
        required=False, help_text="When it was said: the memory's `event_time`. Its offset tells the speaker's day."
    )
    message_id = make_label_field(
        help_text="With `session_id`, makes the message known: sent again, even with other content, it is not stored "
        "but answered with `duplicate: true` and the text that was stored first."
    )
    tool_calls = ToolCalls(required=False)
    tool_call_id = make_label_field()
    metadata = MetadataField(required=False)

    class Meta:
        list_serializer_class = MessageListInput

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(read_shape(data) if isinstance(data, Mapping) else data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["content"].strip() and not attrs.get("tool_calls"):
            omitted = attrs.get("metadata", {}).get(OMITTED)
            told = f"a text is needed beside {', '.join(omitted)}" if omitted else "write something, or give tool_calls"
            raise serializers.ValidationError({"content": [told]})
        return attrs


class CategoriesField(serializers.DictField):
    """At most 50 descriptions of categories, by names that are tags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_length=LONGEST_DESCRIPTION, allow_blank=True), **options)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        found: dict[str, str] = super().to_internal_value(data)
        Tags().run_validation(list(found))
        return found


OF_CONTENT = frozenset({"layer", "speaker"})  # fields that messages cannot share


class MemoryInput(DescribedInput):
    """One memory as `content`, or a conversation as `messages`."""

    content = ContentField(required=False)
    messages = MessageInput(many=True, required=False, allow_empty=False)
    infer = FlagField(
        required=False,
        help_text="Of `messages` alone. Default true: what a user states in a message beside other things becomes "
        "memories of its own. false: each message is one memory, as it is.",
    )
    categories = CategoriesField(
        required=False,
        help_text="Descriptions by name. Each memory gets as tags the names of those that share a word with it.",
    )
    speaker = make_label_field(help_text="Who said it. Of `content` alone; a message has a `name`.")
    layer = OneOfField(Layer, required=False, help_text="Of `content` alone. Default: long_term.")
    allow_duplicates = FlagField(
        required=False,
        help_text="Default false: `content` that its namespace and persona hold already is answered with the memory "
        "that is there and `duplicate: true`. true: it is stored again. Of `content` alone.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("content" in attrs) == ("messages" in attrs):
            fault = "give content or messages, and not both" if "content" in attrs else "give content or messages"
            raise serializers.ValidationError({"content": [fault]})
        if "messages" in attrs and (alone := attrs.keys() & OF_CONTENT):
            told = ["give it with content: each message has its own"]
            raise serializers.ValidationError(dict.fromkeys(alone, told))
        if len(attrs.get("messages", ())) > settings.MAX_ITEMS_PER_CALL:
            raise serializers.ValidationError({"messages": [f"at most {settings.MAX_ITEMS_PER_CALL} a call"]})
        if skipped := getattr(attrs.get("messages"), "skipped", None):
            attrs["skipped"] = skipped
        return super().validate(attrs)


class BulkInput(StrictSerializer):
    items = MemoryInput(many=True, allow_empty=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        total = sum(len(item.get("messages", (1,))) for item in attrs["items"])
        if len(attrs["items"]) > settings.MAX_ITEMS_PER_CALL or total > settings.MAX_ITEMS_PER_CALL:
            raise serializers.ValidationError({"items": [f"at most {settings.MAX_ITEMS_PER_CALL}, messages summed"]})
        faults: dict[str, Any] = {
            str(index): {"messages": item["skipped"]} for index, item in enumerate(attrs["items"]) if "skipped" in item
        }
        if faults:
            raise serializers.ValidationError({"items": faults})
        return attrs


class ChangesInput(StrictSerializer):
    content = ContentField(required=False)
    title = TextField(max_length=500, required=False, allow_blank=True)
    tags = Tags(required=False)
    metadata = MetadataField(required=False)
    semantic_type = OneOfField(SemanticType, required=False)
    namespace = TextField(required=False)
    persona = make_label_field(allow_null=True)
    subject = make_label_field(allow_null=True)
    sensitivity = OneOfField(Sensitivity, required=False)
    access_level = OneOfField(
        AccessLevel, required=False, help_text="read_only: only its owner and who has a grant change it."
    )
    importance = NumberField(min_value=0, max_value=1, required=False)
    priority = NumberField(min_value=0, max_value=1, required=False)
    expires_at = MomentField(required=False, allow_null=True, help_text=EXPIRES)
    valid_from = MomentField(required=False, allow_null=True, help_text=VALID_FROM)
    valid_to = MomentField(required=False, allow_null=True, help_text=VALID_TO)
    event_time = EventField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class SearchInput(StrictSerializer):
    blank_is_absent = True

    query = ContentField()
    top_k = WholeField(min_value=1, max_value=settings.MAX_TOP_K, required=False, help_text="Default: 10.")
    mode = OneOfField(
        SearchMode,
        required=False,
        help_text="Default: hybrid, which weighs words, meaning and context together. dense: by meaning; lexical: by "
        "words; tag: by the tags that the question names; graph: over links between memories and rare names that they "
        "share. memoryos: the layers of one persona, `personas` or the caller's own. Each is told under Searching at "
        "the top.",
    )
    namespaces = serializers.ListField(
        child=PathField(), required=False, max_length=100, help_text="Exact paths, without what lies below them."
    )
    personas = serializers.ListField(
        child=PersonaField(),
        required=False,
        max_length=100,
        help_text="Ids or names; memories of any of them, and beside them those of `namespaces`.",
    )
    session_id = make_label_field()
    task_id = make_label_field()
    layers = serializers.ListField(child=OneOfField(Layer), required=False, max_length=100)
    types = serializers.ListField(child=OneOfField(MemoryType), required=False, max_length=100)
    filters = FiltersField(required=False)
    as_of = _make_as_of_field()
    min_score = NumberField(min_value=0, max_value=1, required=False, help_text="Default: 0.")
    include_archived = FlagField(required=False, help_text="Default: false.")
    prefer = OneOfField(
        Preference,
        required=False,
        help_text="official: of what fits, statements of trusted packs first; personal: the organisation's own. A "
        "statement whose validity has ended comes after all that fit.",
    )
    explain = FlagField(
        required=False,
        help_text="Default: false. true: each result tells its `score_parts`, which are explained there. `mode: tag` "
        "has none: all are 0.",
    )
    provenance = FlagField(required=False, help_text="Default: false. true: a signed manifest comes with the answer.")


class RestoreInput(StrictSerializer):
    expires_at = MomentField(required=False, help_text="Of an expired memory: when it expires from now on.")


class ContextInput(StrictSerializer):
    blank_is_absent = True

    query = ContentField()
    token_budget = WholeField(min_value=1, max_value=100_000, required=False, help_text="Default: 2,000.")
    persona = make_label_field(
        help_text="Id or name of the persona whose layers come first. Default: the caller's own."
    )
    session_id = make_label_field(
        help_text="Whose queue and working set come first. Default: the queue of the newest conversation."
    )
    order = serializers.ChoiceField(
        choices=list(ContextOrder),
        required=False,
        help_text="`stable`: profile and preloaded memories first, for a prefix cache. Default: relevance.",
    )
    namespaces = serializers.ListField(
        child=PathField(),
        required=False,
        max_length=100,
        help_text="Only memories in these; with `persona`, its memories and those in these.",
    )
    filters = FiltersField(required=False)
    as_of = _make_as_of_field()


class ConversationInput(StrictSerializer):
    title = TextField(max_length=200, required=False, allow_blank=True)
    persona = make_label_field()
    agent_persona = make_label_field()
    model = TextField(max_length=100, required=False, allow_blank=True)
    raises_goals = FlagField(required=False, help_text=RAISES_GOALS)


class ConversationChangesInput(StrictSerializer):
    title = TextField(max_length=200, required=False)
    agent_persona = make_label_field(allow_null=True, help_text="Id or name; null: no persona.")
    model = TextField(max_length=100, required=False, allow_blank=True)
    raises_goals = FlagField(required=False, help_text=RAISES_GOALS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class TurnInput(StrictSerializer):
    content = ContentField()
    adapter = serializers.UUIDField(
        required=False,
        help_text="Id in `forms/`: an approved adapter for this question alone, in place of a mounted one.",
    )
    provenance = serializers.BooleanField(required=False, help_text="Add a signed manifest to the answer.")


class RedactInput(StrictSerializer):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class AcceptInput(StrictSerializer):
    redact_history = serializers.BooleanField(required=False)
    content = ContentField(required=False, help_text="Of a conflict of a sync: another text than either.")


def make_drafts(body: dict[str, Any], actor: Actor | None = None) -> list[CubeDraft]:
    """Return the drafts of one memory body. actor: if given, a language model reads the messages for this actor."""
    return add_categories(_read_drafts(body, actor), body.get("categories", {}))


def _read_drafts(body: dict[str, Any], actor: Actor | None) -> list[CubeDraft]:
    content = body.get("content", "")
    common = CubeDraft(content=content, **_common_fields(body))
    if "messages" not in body:
        return [draft_content(common)]
    messages = split_tool_calls([Message(**message) for message in body["messages"]])
    infer = body.get("infer", True)
    chosen = messages_statements(actor=actor, messages=messages, common=common) if actor and infer else {}
    return messages_read(messages, infer=infer, common=common, chosen=chosen, may_repeat=infer)


def skipped_json(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a body that were left out, by their place, with their errors."""
    return [
        {
            "index": int(index),
            "errors": [
                {"field": error.field, "message": error.message} for error in field_errors(detail, f"messages.{index}")
            ],
        }
        for index, detail in body.get("skipped", {}).items()
    ]


def drafts_of_bulk(body: dict[str, Any]) -> tuple[list[CubeDraft], list[int]]:
    """Return the drafts of a bulk body, and for each draft the index of its item."""
    drafts: list[CubeDraft] = []
    origins: list[int] = []
    for index, item in enumerate(body["items"]):
        found = make_drafts(item)
        offset = len(drafts)
        drafts += [_shift_parent(draft, offset) for draft in found]
        origins += [index] * len(found)
    return drafts, origins


def make_changes(body: dict[str, Any]) -> CubeChanges:
    if "tags" in body:
        body = body | {"tags": tuple(body["tags"])}
    return CubeChanges(**body)


def make_search(body: dict[str, Any]) -> SearchQuery:
    asked = {name: value for name, value in body.items() if name not in {"explain", "provenance"}}
    for name in ("namespaces", "personas", "layers", "types"):
        if name in asked:
            asked[name] = tuple(asked[name])
    if "mode" in asked:
        asked["mode"] = SearchMode(asked["mode"])
    if "prefer" in asked:
        asked["prefer"] = Preference(asked["prefer"])
    return SearchQuery(**asked)


def _common_fields(body: dict[str, Any]) -> dict[str, Any]:
    names = {*share_form(DescribedInput).fields, *OF_CONTENT, "allow_duplicates"}
    common = {name: value for name, value in body.items() if name in names}
    if "tags" in common:
        common["tags"] = tuple(common["tags"])
    return common


def _shift_parent(draft: CubeDraft, offset: int) -> CubeDraft:
    return draft if draft.parent is None else replace(draft, parent=draft.parent + offset)

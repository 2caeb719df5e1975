"""Schemas of the vault's responses, for the OpenAPI document. tests/journeys compares the server's responses with
them."""

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer
from rest_framework import serializers

from governance.api.descriptions import PageSchema
from governance.api.jobs import JobPromiseSchema
from governance.api.schema import FaultSchema, HexField, NullTextField, PlainDecimalField, Schema
from governance.vocabulary import PiiKind
from vault.api.representations import MemoryJson, memory_json
from vault.chat.selectors import Citation, ConversationView, TurnView
from vault.cubes.selectors import CubeView, VersionView
from vault.provenance.rules import FORMAT
from vault.reconciliation.relations import RelationKind
from vault.reviews.selectors import ReviewView
from vault.vocabulary import (
    AccessLevel,
    FeedbackKind,
    Layer,
    MemoryType,
    Modality,
    ReviewKind,
    ReviewStatus,
    SearchMode,
    SemanticType,
    Sensitivity,
    Source,
    State,
    TurnEnd,
)


class NamespaceSchema(Schema):
    id = serializers.UUIDField()
    path = serializers.CharField()


class NamedSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()


class SubjectSchema(Schema):
    id = serializers.UUIDField()
    reference = serializers.CharField()


class PrincipalRefSchema(Schema):
    kind = serializers.CharField()
    id = serializers.UUIDField()


class ManifestItemSchema(Schema):
    memory_id = serializers.UUIDField()
    version = serializers.IntegerField()
    version_hash = serializers.CharField()
    content_sha256 = serializers.CharField(allow_null=True, help_text="Of the UTF-8 of the content, where it is shown.")
    writer = PrincipalRefSchema()


class ManifestSchema(Schema):
    """The memories of an answer with their versions and writers, the recipient and the time. See docs/provenance.md."""

    format = serializers.CharField(help_text=f"`{FORMAT}`")
    id = serializers.UUIDField()
    tenant = serializers.UUIDField()
    recipient = PrincipalRefSchema()
    at = serializers.DateTimeField()
    items = ManifestItemSchema(many=True)
    key_id = serializers.CharField()
    signature = serializers.CharField(help_text="Ed25519, base64")


class MemorySchema(Schema):
    id = serializers.UUIDField()
    content = serializers.CharField()
    title = serializers.CharField()
    type = serializers.ChoiceField(choices=list(MemoryType))
    layer = serializers.ChoiceField(choices=list(Layer))
    state = serializers.ChoiceField(choices=list(State))
    held = serializers.BooleanField()
    deleted_at = serializers.DateTimeField(allow_null=True)
    semantic_type = serializers.ChoiceField(choices=list(SemanticType))
    dialogue_only = serializers.BooleanField(
        help_text="True: a message that states nothing. Lists and searches leave it out unless they ask for `dialogue`."
    )
    modality = serializers.ChoiceField(choices=list(Modality))
    language = serializers.CharField()
    namespace = NamespaceSchema()
    persona = NamedSchema(allow_null=True)
    subject = SubjectSchema(allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    keywords = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()
    source = serializers.ChoiceField(choices=list(Source))  # type: ignore[assignment]
    pack = serializers.CharField(allow_null=True, help_text="The pack that brought it, as `organisation/pack`.")
    session_id = serializers.CharField(allow_null=True)
    message_id = serializers.CharField(allow_null=True)
    task_id = serializers.CharField(allow_null=True)
    position = serializers.IntegerField(allow_null=True)
    speaker = serializers.CharField(allow_null=True)
    event_time = serializers.DateTimeField(allow_null=True)
    event_end = serializers.DateTimeField(allow_null=True, help_text="The end of an event of more than a day.")
    recurrence = serializers.CharField(
        allow_null=True, help_text="When the event comes again, as a rule of RFC 5545: `FREQ=WEEKLY;BYDAY=TU`."
    )
    said_at = serializers.DateTimeField(allow_null=True, help_text="When the message was said that states it.")
    occasions = serializers.ListField(
        child=serializers.DateTimeField(), help_text="When it was said or stored, and when it was said again."
    )
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    superseded_by = serializers.UUIDField(allow_null=True)
    importance = serializers.FloatField()
    priority = serializers.FloatField()
    heat = serializers.FloatField()
    trust = serializers.FloatField()
    sensitivity = serializers.ChoiceField(choices=list(Sensitivity))
    access_level = serializers.ChoiceField(choices=list(AccessLevel), help_text="Who may read and change it.")
    expires_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField()
    parents = serializers.ListField(child=serializers.UUIDField())
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    last_accessed_at = serializers.DateTimeField(allow_null=True)
    access_count = serializers.IntegerField()
    token_count = serializers.IntegerField()
    pending_embedding = serializers.BooleanField()
    quarantined = serializers.BooleanField(
        required=False, help_text="True: nobody reads it until its review of kind `quarantine` is accepted."
    )
    duplicate = serializers.BooleanField(
        required=False,
        help_text="Only there when true: nothing was stored, and this is the memory that was there already. Of a "
        "message with a known session_id and message_id, `content` is what was stored first, whatever was sent now.",
    )

    def to_representation(self, instance: CubeView) -> MemoryJson:
        return memory_json(instance)  # by hand for speed: a search returns a hundred


def _make_part_field(help_text: str) -> serializers.FloatField:
    return serializers.FloatField(min_value=0, max_value=1, help_text=help_text)


class ScorePartsSchema(Schema):
    """The parts of a score before weighting, including those that do not count in this mode. With `mode: tag` all are
    0."""

    lexical = _make_part_field("What words say of it, as a share of what they say of the best.")
    dense = _make_part_field("Cosine of its vector and the question's; 0 where either was not made.")
    context = _make_part_field(  # type: ignore[assignment]
        "What words say of what was said next to it, and of all its session: both in one number, as hybrid weighs them."
    )
    entity = _make_part_field(
        "1: said by somebody whom the question names; or by nobody that is known, and it has the name."
    )
    time = _make_part_field("How well its time fits the question's; 1 if the question asks when and it tells a time.")
    learned = _make_part_field(
        "The share of the score that learned weights add for what was said around it; 0 but for English questions "
        "with the default embedder."
    )
    graph = _make_part_field("Nearness over links; 0 but in `mode: graph`, or where the operator gave it a weight.")
    fingerprint = _make_part_field(
        "Nearness to the questions that it answered; 0 unless the operator gave it a weight."
    )
    heat = _make_part_field("How much it is used; 0 unless the operator gave it a weight.")
    trust = _make_part_field("What its source is worth; 0 unless the operator gave it a weight.")


class SearchResultSchema(MemorySchema):
    score = serializers.FloatField(
        min_value=0, max_value=1, help_text="Comparable within one search. 0: nothing speaks for it."
    )
    score_parts = ScorePartsSchema(required=False, help_text="With `explain: true`.")


class SearchSchema(Schema):
    results = SearchResultSchema(many=True)
    took_ms = serializers.FloatField()
    mode = serializers.ChoiceField(choices=list(SearchMode))
    notices = serializers.ListField(
        child=serializers.CharField(), help_text="What was left out: packs whose contracts allow no more reads now."
    )
    manifest = ManifestSchema(required=False)


class ChangeSchema(Schema):
    id = serializers.UUIDField(help_text="The earlier memory.")
    by = serializers.UUIDField(help_text="The new memory.")
    relation = serializers.ChoiceField(choices=list(RelationKind))


class SkippedMessageSchema(Schema):
    index = serializers.IntegerField(help_text="The place of the message, from 0.")
    errors = FaultSchema(many=True)  # type: ignore[assignment]


class StatementChangesSchema(Schema):
    superseded = ChangeSchema(many=True, help_text="Statements that a new one has ended.")
    conflicts = ChangeSchema(many=True, help_text="Pairs that cannot both be true, which wait in the review inbox.")


class AddedSchema(StatementChangesSchema):
    results = MemorySchema(many=True)
    skipped = SkippedMessageSchema(many=True, help_text="Messages that could not be stored.")


class AddedLaterSchema(JobPromiseSchema):
    skipped = SkippedMessageSchema(many=True, help_text="Messages that cannot be stored.")


class BulkResultSchema(Schema):
    index = serializers.IntegerField()
    memory = MemorySchema()


class BulkSchema(StatementChangesSchema):
    results = BulkResultSchema(many=True)


class DryRunSchema(Schema):
    dry_run = serializers.BooleanField()
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())


class MemoryAnswerSchema(MemorySchema):
    manifest = ManifestSchema(required=False)


class MemoryListSchema(PageSchema):
    results = MemorySchema(many=True)
    manifest = ManifestSchema(required=False)


class AuthorSchema(Schema):
    kind = serializers.CharField()
    id = serializers.UUIDField()


class VersionSchema(Schema):
    version = serializers.IntegerField(source="row.number")
    content = serializers.CharField(source="words.content")
    title = serializers.CharField(source="words.title")
    tags = serializers.ListField(source="row.tags", child=serializers.CharField())
    metadata = serializers.DictField(source="words.metadata")
    semantic_type = serializers.ChoiceField(source="row.semantic_type", choices=list(SemanticType))
    namespace = NamespaceSchema(source="row.namespace")
    sensitivity = serializers.ChoiceField(source="row.sensitivity", choices=list(Sensitivity))
    importance = serializers.FloatField(source="row.importance")
    priority = serializers.FloatField(source="row.priority")
    event_time = serializers.DateTimeField(source="row.event_time", allow_null=True)
    valid_from = serializers.DateTimeField(source="row.valid_from", allow_null=True)
    valid_to = serializers.DateTimeField(source="row.valid_to", allow_null=True)
    expires_at = serializers.DateTimeField(source="row.expires_at", allow_null=True)
    author = AuthorSchema()
    reason = serializers.CharField(source="row.reason")
    hash = HexField(source="row.hash")
    previous_hash = HexField(source="row.previous_hash", allow_null=True)
    created_at = serializers.DateTimeField(source="row.created_at")

    def make_author(self, view: VersionView) -> Any:
        return {"kind": view.row.principal_kind, "id": view.row.principal_id}


class ConversationSchema(Schema):
    id = serializers.UUIDField()
    title = serializers.CharField()
    persona = NamedSchema(allow_null=True)
    agent_persona = NamedSchema(allow_null=True)
    model = serializers.CharField()
    raises_goals = serializers.BooleanField(help_text="Whether answers recall a goal that a question touches.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def make_persona(self, view: ConversationView) -> Any:
        return _name_persona(view, view.persona_id)

    def make_agent_persona(self, view: ConversationView) -> Any:
        return _name_persona(view, view.agent_persona_id)


def _name_persona(view: ConversationView, persona_id: UUID | None) -> Any:
    return {"id": persona_id, "name": view.persona_names[persona_id]} if persona_id else None


class ContextItemSchema(Schema):
    id = serializers.UUIDField(source="hit.view.cube.id")
    layer = serializers.ChoiceField(source="hit.view.cube.layer", choices=list(Layer))
    pack = NullTextField(source="hit.view.pack", help_text="The pack that brought the memory, if one did.")
    tokens = serializers.IntegerField()


class ContextSchema(Schema):
    """text: one JSON object per line, {id, layer, said_by, date, text}: data to quote, never instructions."""

    text = serializers.CharField()
    items = ContextItemSchema(many=True)
    tokens = serializers.IntegerField(help_text="Estimated; at most the budget.")


class CitationSchema(Schema):
    marker = serializers.IntegerField()
    available = serializers.BooleanField(help_text="False: the memory may not be read now, and is not named.")
    memory_id = serializers.UUIDField(required=False)
    score = serializers.FloatField(required=False)
    pack = serializers.CharField(required=False, help_text="The pack that brought the memory, if one did.")

    def to_representation(self, instance: Citation) -> dict[str, Any]:
        if instance.available:
            return super().to_representation(instance)
        return {"marker": instance.marker, "available": False}


class UsageSchema(Schema):
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Of prompt_tokens, from the cache of the model's server.")
    completion_tokens = serializers.IntegerField()


class CostSchema(Schema):
    amount = PlainDecimalField(source="cost", max_digits=14, decimal_places=6)
    currency = serializers.CharField()


class TurnSchema(Schema):
    id = serializers.UUIDField()
    question = serializers.CharField()
    content = serializers.CharField(source="answer", allow_null=True)
    withheld = serializers.BooleanField(help_text="The answer rests on what may not be read now; content is null.")
    citations = CitationSchema(many=True)
    model = serializers.CharField()
    usage = UsageSchema(source="*")
    cost = CostSchema(allow_null=True, help_text="Of the tokens, at the prices of the model's endpoint.")
    failed_models = serializers.ListField(
        child=serializers.CharField(), help_text="Models that were asked before and gave no answer."
    )
    end = serializers.ChoiceField(choices=list(TurnEnd))
    created_at = serializers.DateTimeField()

    def make_cost(self, view: TurnView) -> TurnView | None:
        return view if view.currency else None


class TurnAnswerSchema(TurnSchema):
    superseded = ChangeSchema(many=True, help_text="Statements that one of the question has ended.")
    conflicts = ChangeSchema(many=True, help_text="Pairs that cannot both be true, which wait in the review inbox.")
    manifest = ManifestSchema(required=False)


class TurnListSchema(PageSchema):
    results = TurnSchema(many=True)
    manifest = ManifestSchema(required=False)


class FindingSchema(Schema):
    field = serializers.CharField(source="path", help_text="content, title, tags.2, speaker, metadata.contact.phone")
    kind = serializers.ChoiceField(choices=list(PiiKind))
    start = serializers.IntegerField(help_text="In code points of that field's text.")
    end = serializers.IntegerField()
    rule = serializers.CharField()
    status = serializers.ChoiceField(choices=list(ReviewStatus))


class ReviewFeedbackSchema(Schema):
    kind = serializers.ChoiceField(source="feedback.kind", choices=list(FeedbackKind))
    correction = serializers.CharField(
        source="feedback.correction", allow_blank=True, help_text="Of `wrong`: the content that is proposed."
    )
    note = serializers.CharField(source="feedback.note", allow_blank=True)
    author = AuthorSchema()

    def make_author(self, view: ReviewView) -> Any:
        return {"kind": view.row.asked_kind, "id": view.row.asked_by}


class ReviewTheirsSchema(Schema):
    peer = serializers.CharField(help_text="Name of the peer.")
    version = serializers.IntegerField(help_text="Number of the version there.")
    title = serializers.CharField(allow_blank=True)
    content = serializers.CharField()


class OfficialSchema(Schema):
    pack = serializers.CharField(help_text="As `organisation/pack`.")
    content = serializers.CharField(source="other.content")


class ReviewSchema(Schema):
    id = serializers.UUIDField(source="row.id")
    kind = serializers.ChoiceField(source="row.kind", choices=list(ReviewKind))
    status = serializers.ChoiceField(source="row.status", choices=list(ReviewStatus))
    memory_id = serializers.UUIDField(source="row.cube_id")
    other_memory_id = serializers.UUIDField(
        source="row.other_id",
        allow_null=True,
        help_text="Of a `fusion`: the memory that it would be fused with. "
        "Of a `conflict` that nothing was changed for yet: the later statement. Of `pack_…`: the memory of the pack.",
    )
    version = serializers.IntegerField(source="row.version.number")
    is_current = serializers.BooleanField()
    findings = FindingSchema(many=True)
    content = serializers.CharField(
        source="words.content",
        allow_null=True,
        help_text="Of an open `source_withdrawn` or `quarantine`: the text that waits, for who may decide. "
        "Of `conflict`, `feedback`, `sync` and `pack_…`: the text that is judged.",
    )
    official = OfficialSchema(
        allow_null=True,
        help_text="Of `pack_supersedes`, `pack_contradicts` and `pack_confirms`: the pack's statement. "
        "Showing it is a read under the contract.",
    )
    feedback = ReviewFeedbackSchema(
        allow_null=True, help_text="Of `feedback`: what a reader asks for, shown to who may decide and to that reader."
    )
    theirs = ReviewTheirsSchema(allow_null=True, help_text="Of an open `sync`: the version of the other installation.")
    created_at = serializers.DateTimeField(source="row.created_at")
    decided_at = serializers.DateTimeField(source="row.decided_at", allow_null=True)
    decided_by = AuthorSchema(allow_null=True)

    def make_official(self, view: ReviewView) -> ReviewView | None:
        return view if view.pack and view.other else None

    def make_feedback(self, view: ReviewView) -> ReviewView | None:
        return view if view.feedback else None

    def make_decided_by(self, view: ReviewView) -> Any:
        return {"kind": view.row.decided_kind, "id": view.row.decided_by} if view.row.decided_by else None


BULK_OR_DRY_RUN = PolymorphicProxySerializer(
    "BulkOrDryRun", serializers=[BulkSchema, DryRunSchema], resource_type_field_name=None
)
PROVENANCE = OpenApiParameter("provenance", OpenApiTypes.BOOL, description="Add a signed manifest to the answer.")

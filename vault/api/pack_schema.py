"""Requests and responses of packs/ and their versions."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from governance.api.descriptions import PageSchema
from governance.api.fields import OneOfField, StrictSerializer, TextField
from governance.api.schema import Schema
from vault.api.fields import refuse_deep
from vault.store.scan import Leaving
from vault.store.services import (
    LONGEST_NAME,
    MOST_ACCEPTED,
    MOST_IDS,
    MOST_NAMES,
)
from vault.vocabulary import FindingRule, PackState, PackTopic, SemanticType, SubjectRule, Treatment

if TYPE_CHECKING:
    from vault.models import Pack, PackVersion

PACK_TYPE = "application/vnd.memos.mempack+zip"
LISTED = ("authors", "keywords")


class Labels(serializers.ListField):
    """At most 50 short texts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_length=100), max_length=50, **options)


class PackChangesInput(StrictSerializer):
    """The texts of a pack, which others read."""

    title = TextField(max_length=120, required=False)
    description = TextField(max_length=300, required=False, allow_blank=True)
    readme = TextField(max_length=20_000, required=False, allow_blank=True, help_text="Markdown.")
    licence = TextField(max_length=60, required=False, allow_blank=True, help_text="As an SPDX identifier: CC-BY-4.0.")
    topic = OneOfField(PackTopic, required=False)
    authors = Labels(required=False)
    keywords = Labels(required=False)


class PackInput(PackChangesInput):
    """A new pack. Others find it as `organisation/name`."""

    name = TextField(max_length=LONGEST_NAME, help_text="Lower-case letters, digits and hyphens; it never changes.")
    title = TextField(max_length=120)


class ChoiceInput(StrictSerializer):
    """The memories of a version, and the treatment of those that may not be published unchanged."""

    ids = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=MOST_IDS, allow_empty=False)
    filters = serializers.JSONField(required=False, help_text="As in a search.")
    findings = OneOfField(
        FindingRule, required=False, help_text="Of personal data and secrets. Default: block the version."
    )
    subjects = OneOfField(SubjectRule, required=False, help_text="Of memories about data subjects. Default: drop.")
    names = serializers.ListField(
        child=TextField(max_length=100),
        required=False,
        max_length=MOST_NAMES,
        help_text="More names to replace in memories about data subjects.",
    )

    def validate_filters(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(value)
        return value


class VersionInput(ChoiceInput):
    """The next version of a pack, and its memories."""

    version = TextField(max_length=20, help_text="As 1.4.0; it never changes, unless the scan blocks it.")
    changelog = TextField(max_length=2000, required=False, allow_blank=True)
    accepted = serializers.ListField(
        child=TextField(max_length=500),
        required=False,
        max_length=MOST_ACCEPTED,
        help_text="What may leave of `undecided` of the preview.",
    )
    adapter = serializers.UUIDField(
        required=False,
        help_text="Id in `forms/` of an approved adapter: it leaves with the memories that it was trained on.",
    )
    preview_read = serializers.BooleanField(
        required=False,
        help_text="True: a person has read the preview of all that leaves. Only then a pack says `de-identified`.",
    )


class WhyInput(StrictSerializer):
    reason = TextField(max_length=300)


class ReportSchema(Schema):
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Memories by how they entered.")
    dropped = serializers.DictField(child=serializers.IntegerField(), help_text="Dropped ones by reason.")
    reworded = serializers.IntegerField(help_text="With a wording that a subscriber proposed.")
    marked = serializers.IntegerField(help_text="With a sentence in two wordings.")
    blocked = serializers.ListField(
        child=serializers.DictField(), help_text="The first 100 that block it: `memory_id` and `kinds` of findings."
    )
    capped = serializers.BooleanField(required=False, help_text="More matched than a pack may hold.")
    data_subjects = serializers.CharField(required=False, help_text="As in the manifest.")
    de_identification = serializers.DictField(required=False, allow_null=True, help_text="As in the manifest.")


class PackVersionSchema(Schema):
    id = serializers.UUIDField()
    version = serializers.CharField(source="number")
    state = serializers.ChoiceField(choices=list(PackState))
    changelog = serializers.CharField()
    reason = serializers.CharField(help_text="Why it was deprecated or yanked.")
    count = serializers.IntegerField(help_text="Its memories.")
    size = serializers.IntegerField(help_text="Bytes of its file.")
    digest = serializers.CharField(help_text="SHA-256 of its memories, in hex.")
    key_id = serializers.CharField(help_text="Of the key that signed it.")
    languages = serializers.ListField(child=serializers.CharField())
    report = serializers.DictField(help_text="Of the scan: counts, reasons and the ids that block it.")
    created_at = serializers.DateTimeField()
    published_at = serializers.DateTimeField(allow_null=True)


class PackSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    readme = serializers.CharField()
    licence = serializers.CharField()
    topic = serializers.ChoiceField(choices=list(PackTopic))
    authors = serializers.ListField(child=serializers.CharField())
    keywords = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class PackWithVersionSchema(PackSchema):
    newest = PackVersionSchema(allow_null=True)

    def to_representation(self, instance: "tuple[Pack, PackVersion | None]") -> dict[str, Any]:
        pack, newest = instance
        return PackSchema.json(pack) | {"newest": PackVersionSchema.json(newest) if newest else None}


class PackListSchema(PageSchema):
    results = PackWithVersionSchema(many=True)


class PackItemSchema(Schema):
    id = serializers.UUIDField(help_text="Of the memory in the pack; the same in every version.")
    content = serializers.CharField()
    title = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    semantic_type = serializers.ChoiceField(choices=list(SemanticType))
    language = serializers.CharField()


class MarkSchema(Schema):
    field = serializers.CharField(help_text="`content`, `title`, `tags.0` …, or `second`: the second wording.")
    kind = serializers.CharField(help_text="What the placeholder stands for.")
    start = serializers.IntegerField()
    end = serializers.IntegerField()


class UndecidedSchema(MarkSchema):
    kind = serializers.CharField(help_text="`name`, `number`, `date` or `address`.")
    text = serializers.CharField()


class LeavingSchema(Schema):
    memory_id = serializers.UUIDField(source="cube_id")
    treatment = serializers.ChoiceField(choices=list(Treatment))
    reasons = serializers.ListField(child=serializers.CharField())
    item = PackItemSchema(allow_null=True)
    replaced = MarkSchema(many=True, help_text="In the texts as they leave, of memories about data subjects.")
    undecided = UndecidedSchema(
        many=True, help_text="Names, numbers, full dates and parts of addresses that no rule decided."
    )

    def make_replaced(self, leaving: Leaving) -> Any:
        return [{"field": name, **asdict(mark)} for name, marks in leaving.marks.items() for mark in marks]

    def make_undecided(self, leaving: Leaving) -> Any:
        return [{"field": name, **asdict(each)} for name, found in leaving.undecided.items() for each in found]


class PackPreviewSchema(Schema):
    results = LeavingSchema(many=True)
    undecided = serializers.ListField(
        child=serializers.CharField(), help_text="The distinct ones. Send those that may leave as `accepted`."
    )


class DeIdentificationSchema(Schema):
    rules = serializers.CharField()
    detector = serializers.CharField()
    memories = serializers.IntegerField()
    replaced = serializers.DictField(child=serializers.IntegerField())
    undecided = serializers.IntegerField()
    confirmed = serializers.BooleanField()


class ItemsSchema(Schema):
    results = PackItemSchema(many=True)


class PackVerdictSchema(Schema):
    name = serializers.CharField(source="manifest.name")
    version = serializers.CharField(source="manifest.version")
    title = serializers.CharField(source="manifest.title")
    count = serializers.IntegerField(source="manifest.count")
    digest = serializers.CharField(source="manifest.digest")
    key_id = serializers.CharField(source="manifest.key_id")
    signed_here = serializers.BooleanField(
        source="is_own", help_text="By this installation's key; another's is for its owner to confirm."
    )
    data_subjects = serializers.CharField(
        source="manifest.proved_statement",
        help_text="`none`, `names-replaced`, `de-identified`, or `reference-replaced` of a file from an older release.",
    )
    de_identification = DeIdentificationSchema(source="manifest.de_identification", allow_null=True)

"""Requests and responses of publications/."""

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from governance.api.descriptions import PageSchema
from governance.api.fields import FlagField, OneOfField, StrictSerializer, TextField, WholeField
from governance.api.schema import Schema
from vault.api.pack_schema import PackItemSchema
from vault.store.catalogue import CatalogueOrder, Offer
from vault.store.excerpts import EXTRACT
from vault.store.publications import (
    MOST_TENANTS,
)
from vault.store.ratings import LONGEST_RATING, MOST_STARS
from vault.store.reports import LONGEST_REPORT
from vault.store.rules import Terms, terms_load
from vault.store.trials import MOST_QUESTIONS
from vault.vocabulary import PackTopic, PublicationState, QuotaPeriod, ReportReason, Visibility

if TYPE_CHECKING:
    from vault.models import Listing, Publication

LONGEST_TEXT = 200
FILTERS = ("q", "topic", "language", "order")
PARAMETERS = [
    OpenApiParameter(
        "q",
        str,
        description="Words that title, description, name, publisher or keywords have, or what a pack is about.",
    ),
    OpenApiParameter("topic", str, enum=[*PackTopic]),
    OpenApiParameter("language", str, description="As `en` or `zh`."),
    OpenApiParameter("order", str, enum=[*CatalogueOrder], description="Default: best with `q`, else used."),
]


class TermsInput(StrictSerializer):
    """The terms of a contract."""

    reads = WholeField(
        min_value=1, max_value=10**9, required=False, allow_null=True, help_text="In each period. Default: no limit."
    )
    period = OneOfField(QuotaPeriod, required=False, help_text="Default: month.")
    days = WholeField(
        min_value=1, max_value=36_500, required=False, allow_null=True, help_text="Of validity. Default: no end."
    )
    purposes = serializers.ListField(child=TextField(max_length=200), max_length=20, required=False)
    price = TextField(max_length=100, required=False, allow_blank=True, help_text="As recorded; nothing is charged.")
    export = FlagField(required=False, help_text="Subscribers may export memories of the pack. Default: false.")


class PublicationInput(StrictSerializer):
    pack_version = serializers.UUIDField(help_text="The id of a ready version.")
    visibility = OneOfField(Visibility, required=False, help_text="Default: tenant.")
    tenants = serializers.ListField(
        child=TextField(max_length=63),
        max_length=MOST_TENANTS,
        required=False,
        help_text="Short names of organisations, of the visibility tenants.",
    )
    terms = TermsInput(required=False)


class TryInput(StrictSerializer):
    queries = serializers.ListField(
        child=TextField(max_length=1_000),
        max_length=MOST_QUESTIONS,
        required=False,
        help_text="Default: your own last questions in the chat.",
    )


class TriedMemorySchema(Schema):
    text = serializers.CharField(help_text=f"Of a pack's memory the first {EXTRACT} characters.")
    score = serializers.FloatField(help_text="Cosine with the question.")
    of_pack = serializers.BooleanField(source="is_of_pack")


class TriedQuestionSchema(Schema):
    query = serializers.CharField(source="question")
    without = TriedMemorySchema(many=True)
    with_pack = TriedMemorySchema(many=True)
    added = serializers.IntegerField(source="pack_count", help_text="Memories of the pack among the best.")


class TrySchema(Schema):
    results = TriedQuestionSchema(source="questions", many=True)
    shown = serializers.IntegerField(help_text="Memories of the pack that your organisation was shown in all trials.")
    limit = serializers.IntegerField(help_text="How many a trial shows at most.")


class TermsSchema(Schema):
    reads = serializers.IntegerField(allow_null=True)
    period = serializers.ChoiceField(choices=list(QuotaPeriod))
    days = serializers.IntegerField(allow_null=True)
    purposes = serializers.ListField(child=serializers.CharField())
    price = serializers.CharField()
    export = serializers.BooleanField()


class PublicationSchema(Schema):
    """A publication as its publisher sees it."""

    id = serializers.UUIDField()
    pack = serializers.UUIDField(source="pack_id")
    name = serializers.CharField(source="pack.name")
    state = serializers.ChoiceField(choices=list(PublicationState))
    version = serializers.CharField(source="version.number", allow_null=True, help_text="The newest that others find.")
    waiting = serializers.CharField(
        source="waiting.number", allow_null=True, help_text="The one that waits for another member's approval."
    )
    visibility = serializers.ChoiceField(choices=list(Visibility))
    tenants = serializers.ListField(child=serializers.UUIDField())
    terms = TermsSchema()
    reason = serializers.CharField(help_text="Why it was rejected, hidden or banned.")
    subscribers = serializers.IntegerField()
    published_at = serializers.DateTimeField(allow_null=True)

    def make_terms(self, row: "Publication") -> Terms:
        return terms_load(row.terms)


class ListingSchema(Schema):
    """A publication as others find it."""

    id = serializers.UUIDField()
    name = serializers.CharField(source="full_name", help_text="As `organisation/pack`.")
    publisher = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    licence = serializers.CharField()
    topic = serializers.ChoiceField(choices=list(PackTopic))
    keywords = serializers.ListField(child=serializers.CharField())
    languages = serializers.ListField(child=serializers.CharField())
    version = serializers.CharField(source="number")
    count = serializers.IntegerField(help_text="Memories of this version.")
    digest = serializers.CharField()
    key_id = serializers.CharField()
    terms = TermsSchema()
    rating = serializers.FloatField(allow_null=True, help_text="Average of 1 to 5.")
    ratings = serializers.IntegerField()
    subscribers = serializers.IntegerField()
    published_at = serializers.DateTimeField()

    def make_rating(self, row: "Listing") -> float | None:
        return row.rating or None


class OfferVersionSchema(Schema):
    version = serializers.CharField(source="number")
    state = serializers.CharField()
    changelog = serializers.CharField()
    reason = serializers.CharField()
    count = serializers.IntegerField()
    published_at = serializers.DateTimeField()


class OfferSchema(ListingSchema):
    """A publication with its texts, versions and some of its memories."""

    readme = serializers.CharField()
    authors = serializers.ListField(child=serializers.CharField())
    versions = OfferVersionSchema(many=True)
    samples = PackItemSchema(many=True)

    def to_representation(self, instance: Offer) -> dict[str, Any]:
        return ListingSchema.json(instance.listing) | {
            "readme": instance.readme,
            "authors": list(instance.authors),
            "versions": [OfferVersionSchema.json(row) for row in instance.versions],
            "samples": [PackItemSchema.json(item) for item in instance.samples],
        }


class RatingInput(StrictSerializer):
    stars = WholeField(min_value=1, max_value=MOST_STARS)
    text = TextField(max_length=LONGEST_RATING, required=False, allow_blank=True, help_text="Others read it.")


class RatingSchema(Schema):
    organisation = serializers.CharField(help_text="Of the member who rated.")
    stars = serializers.IntegerField(help_text="1 to 5.")
    text = serializers.CharField()
    version = serializers.CharField(source="number", help_text="The one that was installed.")
    rated_at = serializers.DateTimeField()


class ReportInput(StrictSerializer):
    reason = OneOfField(ReportReason)
    text = TextField(max_length=LONGEST_REPORT, required=False, allow_blank=True, help_text="The operator reads it.")


class ReportSchema(Schema):
    id = serializers.UUIDField()
    publication = serializers.UUIDField(source="publication_id")
    reason = serializers.ChoiceField(choices=list(ReportReason))
    text = serializers.CharField()
    reported_at = serializers.DateTimeField(source="created_at")


class PublicationListSchema(PageSchema):
    results = PublicationSchema(many=True)

"""publications/ of the REST contract: what a tenant offers, and the catalogue of what it finds."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.described import ONCE, PAGE, PageSchema, described
from governance.api.fields import OneOfField, StrictSerializer, TextField, WholeField
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, asked_only
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.packs import PackItemSchema, WhyInput, item_json
from vault.api.schema import Schema
from vault.store.catalogue import (
    ORDERS,
    CatalogueOrder,
    CatalogueQuery,
    Offer,
    catalogue_list,
    listing_get,
    offer_get,
)
from vault.store.publishing import (
    MOST_TENANTS,
    PublicationDraft,
    publication_approve,
    publication_create,
    publication_get,
    publication_reject,
    publications_list,
    tenants_named,
)
from vault.store.rules import Terms, terms_json, terms_stored
from vault.store.trying import EXTRACT, MOST_QUESTIONS, TriedQuestion, publication_try
from vault.vocabulary import PackTopic, PublicationState, QuotaPeriod, Visibility

if TYPE_CHECKING:
    from vault.models import Listing, Publication

LONGEST_TEXT = 200
FILTERS = ("q", "topic", "language", "order")
PARAMETERS = [
    OpenApiParameter("q", str, description="Words that title, description, name, publisher or keywords have."),
    OpenApiParameter("topic", str, enum=[*PackTopic]),
    OpenApiParameter("language", str, description="As `en` or `zh`."),
    OpenApiParameter("order", str, enum=[*CatalogueOrder], description="Default: used."),
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
    of_pack = serializers.BooleanField()


class TriedQuestionSchema(Schema):
    query = serializers.CharField()
    without = TriedMemorySchema(many=True)
    with_pack = TriedMemorySchema(many=True)
    added = serializers.IntegerField(help_text="Memories of the pack among the best.")


class TrySchema(Schema):
    results = TriedQuestionSchema(many=True)


class TermsSchema(Schema):
    reads = serializers.IntegerField(allow_null=True)
    period = serializers.ChoiceField(choices=list(QuotaPeriod))
    days = serializers.IntegerField(allow_null=True)
    purposes = serializers.ListField(child=serializers.CharField())
    price = serializers.CharField()


class PublicationSchema(Schema):
    """A publication, as its publisher sees it."""

    id = serializers.UUIDField()
    pack = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=list(PublicationState))
    version = serializers.CharField(allow_null=True, help_text="The newest that others find.")
    waiting = serializers.CharField(allow_null=True, help_text="The one that waits for another member's approval.")
    visibility = serializers.ChoiceField(choices=list(Visibility))
    tenants = serializers.ListField(child=serializers.UUIDField())
    terms = TermsSchema()
    reason = serializers.CharField(help_text="Why it was rejected, hidden or banned.")
    subscribers = serializers.IntegerField()
    published_at = serializers.DateTimeField(allow_null=True)


class ListingSchema(Schema):
    """A publication, as others find it."""

    id = serializers.UUIDField()
    name = serializers.CharField(help_text="As `organisation/pack`.")
    publisher = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    licence = serializers.CharField()
    topic = serializers.ChoiceField(choices=list(PackTopic))
    keywords = serializers.ListField(child=serializers.CharField())
    languages = serializers.ListField(child=serializers.CharField())
    version = serializers.CharField()
    count = serializers.IntegerField(help_text="Memories of this version.")
    digest = serializers.CharField()
    key_id = serializers.CharField()
    terms = TermsSchema()
    rating = serializers.FloatField(allow_null=True, help_text="Average of 1 to 5.")
    ratings = serializers.IntegerField()
    subscribers = serializers.IntegerField()
    published_at = serializers.DateTimeField()


class OfferVersionSchema(Schema):
    version = serializers.CharField()
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


class ListingListSchema(PageSchema):
    results = ListingSchema(many=True)


class PublicationListSchema(PageSchema):
    results = PublicationSchema(many=True)


class PublicationsView(ApiView):
    @described("publications_list", ListingListSchema, parameters=[*PARAMETERS, *PAGE])
    def get(self, request: Request) -> Response:
        """The catalogue: publications that the organisation may find."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        query = _query(request)
        pages = CursorPages(request, ORDERS[query.order], also_known=FILTERS)
        return pages.envelope([listing_json(row) for row in catalogue_list(actor=actor, query=query, pages=pages)])

    @described(
        "publications_create",
        PublicationSchema,
        status=201,
        request=PublicationInput,
        parameters=[ONCE],
        may=[404, 409],
    )
    def post(self, request: Request) -> Response:
        """Offer a version of a pack. Beyond the organisation another member approves it first, if there is one."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        asked_only(request)
        body = read(PublicationInput, request)
        draft = PublicationDraft(
            version_id=body["pack_version"],
            visibility=Visibility(body.get("visibility", Visibility.TENANT)),
            tenants=tenants_named(tuple(body.get("tenants", ()))),
            terms=_terms(body.get("terms", {})),
        )
        return self.post_once(lambda: Reply(201, publication_json(publication_create(actor=actor, draft=draft))))


class OwnPublicationsView(ApiView):
    @described("publications_own", PublicationListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """Publications that the organisation made, newest first, also those that wait for an approval."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        pages = CursorPages(request)
        return pages.envelope([publication_json(row) for row in publications_list(actor=actor, pages=pages)])


class PublicationView(ApiView):
    @described("publications_read", OfferSchema, may=[404])
    def get(self, request: Request, publication_id: UUID) -> Response:
        """One publication, with its texts, versions and some of its memories."""
        actor = self.actor()
        with self.after(lambda: listing_get(actor=actor, publication_id=publication_id)):
            asked_only(request)
        return Response(offer_json(offer_get(actor=actor, publication_id=publication_id)))


class PublicationTryView(ApiView):
    @described("publications_try", TrySchema, request=TryInput, may=[404], memories=True)
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Try a pack before subscribing: the best memories for your questions without it and with it, side by side.

        Nothing is installed, and no read is counted.
        """
        actor = self.actor()

        def ask() -> None:
            listing_get(actor=actor, publication_id=publication_id)
            authorize(actor, Permission.STORE_MANAGE)

        with self.after(ask):
            asked_only(request)
            queries = tuple(read(TryInput, request).get("queries", ()))
        tried = publication_try(actor=actor, publication_id=publication_id, questions=queries)
        return Response({"results": [tried_json(one) for one in tried]})


class PublicationApproveView(ApiView):
    @described("publications_approve", PublicationSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Let others find the version that waits. Another member than the one who offered it approves."""
        actor = self.actor()

        def ask() -> None:
            publication_get(actor=actor, publication_id=publication_id)

        with self.after(ask):
            asked_only(request)
        return self.post_once(
            lambda: Reply(200, publication_json(publication_approve(actor=actor, publication_id=publication_id))),
            ask=ask,
        )


class PublicationRejectView(ApiView):
    @described("publications_reject", PublicationSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Refuse the version that waits; what was published before stays."""
        actor = self.actor()

        def ask() -> None:
            publication_get(actor=actor, publication_id=publication_id)

        with self.after(ask):
            asked_only(request)
            reason = read(WhyInput, request)["reason"]

        def call() -> Reply:
            row = publication_reject(actor=actor, publication_id=publication_id, reason=reason)
            return Reply(200, publication_json(row))

        return self.post_once(call, ask=ask)


def _query(request: Request) -> CatalogueQuery:
    asked = request.query_params
    text, topic, order = asked.get("q", ""), asked.get("topic", ""), asked.get("order", CatalogueOrder.USED)
    if len(text) > LONGEST_TEXT or "\x00" in text:
        raise Invalid(errors=[FieldError("q", f"at most {LONGEST_TEXT} characters, and no NUL")])
    if topic and topic not in set(PackTopic):
        raise Invalid(errors=[FieldError("topic", f"one of {', '.join(PackTopic)} is needed")])
    if order not in set(CatalogueOrder):
        raise Invalid(errors=[FieldError("order", f"one of {', '.join(CatalogueOrder)} is needed")])
    language = asked.get("language", "")
    if len(language) > 8 or "\x00" in language:
        raise Invalid(errors=[FieldError("language", "as en or zh")])
    return CatalogueQuery(
        text=text,
        topics=(PackTopic(topic),) if topic else (),
        languages=(language,) if language else (),
        order=CatalogueOrder(order),
    )


def _terms(body: dict[str, Any]) -> Terms:
    return Terms(
        reads=body.get("reads"),
        period=QuotaPeriod(body.get("period", QuotaPeriod.MONTH)),
        days=body.get("days"),
        purposes=tuple(dict.fromkeys(body.get("purposes", ()))),
        price=body.get("price", ""),
    )


def publication_json(row: "Publication") -> dict[str, Any]:
    return {
        "id": str(row.id),
        "pack": str(row.pack_id),
        "name": row.pack.name,
        "state": row.state,
        "version": row.version.number if row.version else None,
        "waiting": row.waiting.number if row.waiting else None,
        "visibility": row.visibility,
        "tenants": [str(one) for one in row.tenants],
        "terms": terms_json(terms_stored(row.terms)),
        "reason": row.reason,
        "subscribers": row.subscribers,
        "published_at": time_json(row.published_at),
    }


def listing_json(row: "Listing") -> dict[str, Any]:
    names = ("publisher", "title", "description", "licence", "topic", "keywords", "languages", "count")
    return {
        "id": str(row.id),
        "name": row.full_name,
        **{name: getattr(row, name) for name in names},
        "version": row.number,
        "digest": row.digest,
        "key_id": row.key_id,
        "terms": row.terms,
        "rating": row.rating,
        "ratings": row.ratings,
        "subscribers": row.subscribers,
        "published_at": time_json(row.published_at),
    }


def tried_json(one: TriedQuestion) -> dict[str, Any]:
    sides = {"without": one.without, "with_pack": one.with_pack}
    shown = {
        name: [{"text": memory.text, "score": memory.score, "of_pack": memory.is_of_pack} for memory in side]
        for name, side in sides.items()
    }
    return {"query": one.question, **shown, "added": one.added}


def offer_json(offer: Offer) -> dict[str, Any]:
    return {
        **listing_json(offer.listing),
        "readme": offer.readme,
        "authors": list(offer.authors),
        "versions": [
            {
                "version": row.number,
                "state": row.state,
                "changelog": row.changelog,
                "reason": row.reason,
                "count": row.count,
                "published_at": time_json(row.published_at),
            }
            for row in offer.versions
        ],
        "samples": [item_json(item) for item in offer.samples],
    }

"""publications/ of the REST API: a tenant's own offers, and the catalogue of offers that it can find."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.pages import CursorPages, show_page
from governance.api.views import ApiView
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from vault.api.pack_schema import WhyInput
from vault.api.store_schema import (
    ListingSchema,
    OfferSchema,
    PublicationInput,
    PublicationListSchema,
    PublicationSchema,
    TryInput,
    TrySchema,
)
from vault.store.catalogue import (
    ORDERS,
    CatalogueOrder,
    CatalogueQuery,
    catalogue_list,
    catalogue_search,
    listing_get,
    offer_get,
)
from vault.store.publications import (
    PublicationDraft,
    publication_approve,
    publication_create,
    publication_get,
    publication_reject,
    publications_list,
    tenant_ids_of_slugs,
)
from vault.store.rules import Terms
from vault.store.trials import publication_try
from vault.vocabulary import PackTopic, QuotaPeriod, Visibility

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


class PublicationsView(ApiView):
    @describe("publications_list", page_of(ListingSchema), parameters=[*PARAMETERS, *PAGE])
    def get(self, request: Request) -> object:
        """Search the catalogue of publications that the organisation may find."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        query = _read_query(request)
        pages = CursorPages(request, ORDERS[query.order], also_known=FILTERS)
        wanted = catalogue_search(actor=actor, query=query)
        return pages.envelope(catalogue_list(actor=actor, wanted=wanted, pages=pages))

    @describe(
        "publications_create",
        PublicationSchema,
        status=201,
        request=PublicationInput,
        parameters=[ONCE],
        may=[404, 409],
    )
    def post(self, request: Request) -> Response:
        """Offer a version of a pack. If others can find it, another member must approve first, if there is one."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        body = self.read_body()
        draft = PublicationDraft(
            version_id=body["pack_version"],
            visibility=Visibility(body.get("visibility", Visibility.TENANT)),
            tenants=tenant_ids_of_slugs(tuple(body.get("tenants", ()))),
            terms=_make_terms(body.get("terms", {})),
        )
        return self.post_once(lambda: publication_create(actor=actor, draft=draft))


class OwnPublicationsView(ApiView):
    @describe("publications_own", PublicationListSchema, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the organisation's own publications, including those that wait for approval, newest first."""
        authorize(self.actor(), Permission.STORE_MANAGE)
        return show_page(self, publications_list)


class PublicationView(ApiView):
    @describe("publications_read", OfferSchema, may=[404])
    def get(self, request: Request, publication_id: UUID) -> object:
        """Read one publication, with its texts, versions and some of its memories."""
        actor = self.actor()
        self.read_body(lambda: listing_get(actor=actor, publication_id=publication_id))
        return offer_get(actor=actor, publication_id=publication_id)


class PublicationTryView(ApiView):
    @describe("publications_try", TrySchema, request=TryInput, may=[404], memories=True)
    def post(self, request: Request, publication_id: UUID) -> object:
        """Try a pack before subscribing: return the best memories for your questions without it and with it.

        Nothing is installed, and no read is counted. Your organisation is shown a tenth of the pack, and at least three
        memories, in all calls together; beyond that, only what it was shown before.
        """
        actor = self.actor()

        def ask() -> None:
            listing_get(actor=actor, publication_id=publication_id)
            authorize(actor, Permission.STORE_MANAGE)

        queries = tuple(self.read_body(ask).get("queries", ()))
        return publication_try(actor=actor, publication_id=publication_id, questions=queries)


class PublicationApproveView(ApiView):
    @describe("publications_approve", PublicationSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Approve the waiting version, so that others can find it. The member who offered it cannot approve it."""
        actor = self.actor()
        self.read_body(lambda: publication_get(actor=actor, publication_id=publication_id))
        return self.post_once(
            lambda: publication_approve(actor=actor, publication_id=publication_id),
        )


class PublicationRejectView(ApiView):
    @describe("publications_reject", PublicationSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Reject the waiting version. The version published before stays."""
        actor = self.actor()
        reason = self.read_body(lambda: publication_get(actor=actor, publication_id=publication_id))["reason"]

        def call() -> object:
            return publication_reject(actor=actor, publication_id=publication_id, reason=reason)

        return self.post_once(call)


def _read_query(request: Request) -> CatalogueQuery:
    asked = request.query_params
    text, topic, order = asked.get("q", ""), asked.get("topic", ""), asked.get("order", CatalogueOrder.BEST)
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
        chosen=CatalogueOrder(order),
    )


def _make_terms(body: dict[str, Any]) -> Terms:
    return Terms(
        reads=body.get("reads"),
        period=QuotaPeriod(body.get("period", QuotaPeriod.MONTH)),
        days=body.get("days"),
        purposes=tuple(dict.fromkeys(body.get("purposes", ()))),
        price=body.get("price", ""),
        export=body.get("export", False),
    )

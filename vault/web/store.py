"""The MemStore: a catalogue of packs, and the page of one pack. Both work without JavaScript."""

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.pages import First
from governance.vocabulary import Permission
from governance.web.pages import draw, page, see_other
from governance.web.paging import Numbered, number_or_none
from vault.store.catalogue import (
    CatalogueOrder,
    CatalogueQuery,
    catalogue_facets,
    catalogue_list,
    listing_named,
    offer_get,
)
from vault.store.rating import may_rate, rating_own, rating_remove, rating_write, ratings_list
from vault.store.rules import terms_stored
from vault.vocabulary import PackState, PackTopic
from vault.web.labels import SEMANTIC_TYPES
from vault.web.markdown import markdown_html
from vault.web.store_forms import RatingForm
from vault.web.store_words import (
    ORDERS,
    PACK_MARKS,
    PACK_STATES,
    PERIODS,
    TOPICS,
    ShownListing,
    colour_of,
    icon_of,
    language_name,
    languages_named,
)

if TYPE_CHECKING:
    from vault.models import Listing, PackVersion

PACKS = 24  # of one page
RATINGS = 20
LONGEST_TEXT = 200
LONGEST_LANGUAGE = 8
MOST_PAGES = 1_000
Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True)
class Option:
    """A value of a facet. without: the address of the list when it is not chosen."""

    value: str
    label: str | Promise
    count: int
    is_chosen: bool
    without: str


@dataclass(frozen=True)
class Facet:
    name: str
    label: str | Promise
    options: tuple[Option, ...]


@dataclass(frozen=True)
class ShownVersion:
    row: "PackVersion"
    state: Promise
    mark: str
    is_newest: bool


@require_http_methods(["GET", "HEAD"])
@page
def store(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """The catalogue: `q`, `topic`, `language`, `order` and `page` of the address."""
    authorize(actor, Permission.MEMORY_READ)
    query = _query(request.GET)
    number = min(number_or_none(request.GET.get("page", "")) or 1, MOST_PAGES)
    pages = Numbered(size=PACKS, number=number)
    with acting(actor):
        found = catalogue_list(actor=actor, query=query, pages=pages)
        counts = catalogue_facets(actor=actor, query=query)
    context = {
        "packs": [shown_listing(actor, row) for row in found],
        "facets": _facets(query, counts, request.GET),
        "total": sum(count for topic, count in counts["topics"].items() if not query.topics or topic in query.topics),
        "query": query,
        "may_manage": is_allowed(actor, Permission.STORE_MANAGE),
        "orders": ORDERS.items(),
        "next_address": _address(request.GET, page=str(number + 1)) if pages.has_more else "",
        "previous_address": _address(request.GET, page=str(number - 1)) if number > 1 else "",
    }
    return draw(request, "vault/store/store.html", context)


@require_http_methods(["GET", "HEAD"])
@page
def pack(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """One publication: README, samples, versions, ratings, terms, and why it can be trusted."""
    return draw_pack(request, actor, publisher, name)


@require_POST
@page
def rate(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """Rate the pack, or with `remove` take one's rating back."""
    listing = listing_named(actor=actor, publisher=publisher, name=name)
    back = see_other(f"{reverse('store_pack', args=[publisher, name])}#ratings")
    if "remove" in request.POST:
        rating_remove(actor=actor, publication_id=listing.id)
        return back
    form = RatingForm(request.POST)
    if not form.is_valid():
        return draw_pack(request, actor, publisher, name, form)
    rating_write(
        actor=actor,
        publication_id=listing.id,
        stars=int(form.cleaned_data["stars"]),
        text=form.cleaned_data["text"],
    )
    return back


def draw_pack(
    request: HttpRequest, actor: Actor, publisher: str, name: str, form: RatingForm | None = None
) -> HttpResponse:
    """The page of a pack. form: a rating with faults."""
    listing = listing_named(actor=actor, publisher=publisher, name=name)
    offer = offer_get(actor=actor, publication_id=listing.id)
    versions = [
        ShownVersion(
            row, PACK_STATES[PackState(row.state)], PACK_MARKS[PackState(row.state)], row.id == listing.version_id
        )
        for row in offer.versions
    ]
    terms = terms_stored(listing.terms)
    context = {
        "shown": shown_listing(actor, listing),
        "offer": offer,
        "readme": readme_html(offer.readme),
        "samples": [(item, SEMANTIC_TYPES[item.semantic_type]) for item in offer.samples],
        "versions": versions,
        "current": next(one for one in versions if one.is_newest),
        "yanked": sum(one.row.state == PackState.YANKED for one in versions),
        "terms": terms,
        "period": PERIODS[terms.period],
        "may_manage": is_allowed(actor, Permission.STORE_MANAGE),
        **_rating_context(actor, listing, form),
    }
    return draw(request, "vault/store/pack.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY if form else 200)


def _rating_context(actor: Actor, listing: "Listing", form: RatingForm | None) -> dict[str, Any]:
    """The newest ratings, and the form for who may rate."""
    found: dict[str, Any] = {
        "ratings": ratings_list(actor=actor, publication_id=listing.id, pages=First(RATINGS)) if listing.ratings else []
    }
    if may_rate(actor=actor, publication_id=listing.id):
        own = rating_own(actor=actor, publication_id=listing.id)
        initial = {"stars": own.stars, "text": own.text} if own else {}
        found |= {"own_rating": own, "rating_form": form or RatingForm(initial=initial)}
    return found


def readme_html(text: str) -> SafeString:
    """Clean HTML without links and pictures. The page has its own first heading, so that a README's is a second."""
    html = markdown_html(text, ()).replace("<h1>", "<h2>").replace("</h1>", "</h2>")
    return mark_safe(html)  # nh3 has cleaned it


def shown_listing(actor: Actor, row: "Listing") -> ShownListing:
    topic = PackTopic(row.topic)
    return ShownListing(
        row=row,
        icon=icon_of(topic),
        colour=colour_of(topic),
        topic=str(TOPICS[topic]),
        languages=languages_named(row.languages),
        is_own=row.publisher_id == actor.tenant_id,
    )


def _query(given: QueryDict) -> CatalogueQuery:
    """Raises Invalid for a text that is too long; an unknown topic, language or order is left out."""
    text = given.get("q", "").strip()
    if len(text) > LONGEST_TEXT or "\x00" in text:
        raise Invalid(errors=[FieldError("q", f"at most {LONGEST_TEXT} characters, and no NUL")])
    languages = [one for one in given.getlist("language") if one.isalnum() and len(one) <= LONGEST_LANGUAGE]
    orders = _members(CatalogueOrder, given.getlist("order"))
    return CatalogueQuery(
        text=text,
        topics=_members(PackTopic, given.getlist("topic")),
        languages=tuple(dict.fromkeys(languages)),
        order=orders[-1] if orders else CatalogueOrder.USED,
    )


def _members(kind: type[Kind], texts: list[str]) -> tuple[Kind, ...]:
    return tuple(kind(text) for text in dict.fromkeys(texts) if text in set(kind))


def _facets(query: CatalogueQuery, counts: dict[str, dict[str, int]], given: QueryDict) -> list[Facet]:
    """The values that occur, and those that are chosen."""
    topics = [one for one in PackTopic if counts["topics"].get(one) or one in query.topics]
    spoken = sorted({*counts["languages"], *query.languages})
    return [
        Facet(
            "topic",
            _("Topic"),
            tuple(
                Option(
                    one, TOPICS[one], counts["topics"].get(one, 0), one in query.topics, _without(given, "topic", one)
                )
                for one in topics
            ),
        ),
        Facet(
            "language",
            _("Language"),
            tuple(
                Option(
                    one,
                    language_name(one),
                    counts["languages"].get(one, 0),
                    one in query.languages,
                    _without(given, "language", one),
                )
                for one in spoken
            ),
        ),
    ]


def _without(given: QueryDict, name: str, value: str) -> str:
    rest = [(key, one) for key, some in given.lists() for one in some if key != "page" and (key, one) != (name, value)]
    return f"?{urlencode(rest)}"


def _address(given: QueryDict, *, page: str) -> str:
    rest = [(key, one) for key, some in given.lists() for one in some if key != "page"]
    return f"?{urlencode([*rest, ('page', page)])}"

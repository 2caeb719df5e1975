"""The catalogue of the MemStore. It works without JavaScript."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from governance.web.pages import draw, safe_page
from governance.web.pagination import Numbered, number_or_none
from vault.store.catalogue import CatalogueOrder, CatalogueQuery, catalogue_facets, catalogue_list, catalogue_search
from vault.store.subscriptions import subscriptions_live
from vault.vocabulary import PackTopic
from vault.web.store_words import ORDERS, TOPICS, language_name, make_shown_listing

PACKS = 24  # of one page
UPDATES = 3  # newest updates shown above the catalogue
LONGEST_TEXT = 200
LONGEST_LANGUAGE = 8
MOST_PAGES = 1_000
Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True)
class Option:
    """A value of a facet. without: the address of the list without this value."""

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


@safe_page
def store(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the catalogue, by `q`, `topic`, `language`, `order` and `page` of the query string."""
    authorize(actor, Permission.MEMORY_READ)
    query = _read_query(request.GET)
    number = min(number_or_none(request.GET.get("page", "")) or 1, MOST_PAGES)
    pages = Numbered(size=PACKS, number=number)
    wanted = catalogue_search(actor=actor, query=query)
    with acting(actor):
        found = catalogue_list(actor=actor, wanted=wanted, pages=pages)
        counts = catalogue_facets(actor=actor, wanted=wanted)
        installed = subscriptions_live(actor=actor)
        may_manage = is_allowed(actor, Permission.STORE_MANAGE)
    context = {
        "packs": [make_shown_listing(actor, row, installed.get(row.id)) for row in found],
        "facets": _make_facets(query, counts, request.GET),
        "total": sum(count for topic, count in counts["topics"].items() if not query.topics or topic in query.topics),
        "query": query,
        "may_manage": may_manage,
        "updates": [view for view in installed.values() if view.row.available][:UPDATES],
        "installed": len(installed),
        "orders": ORDERS.items(),
        "next_address": _page_address(request.GET, page=str(number + 1)) if pages.has_more else "",
        "previous_address": _page_address(request.GET, page=str(number - 1)) if number > 1 else "",
    }
    return draw(request, "vault/store/store.html", context)


def _read_query(given: QueryDict) -> CatalogueQuery:
    """Read the query; unknown topics, languages and orders are ignored. Raises Invalid for a text that is too long."""
    text = given.get("q", "").strip()
    if len(text) > LONGEST_TEXT or "\x00" in text:
        raise Invalid(errors=[FieldError("q", f"at most {LONGEST_TEXT} characters, and no NUL")])
    languages = [
        language for language in given.getlist("language") if language.isalnum() and len(language) <= LONGEST_LANGUAGE
    ]
    orders = _read_members(CatalogueOrder, given.getlist("order"))
    return CatalogueQuery(
        text=text,
        topics=_read_members(PackTopic, given.getlist("topic")),
        languages=tuple(dict.fromkeys(languages)),
        chosen=orders[-1] if orders else CatalogueOrder.BEST,
    )


def _read_members(kind: type[Kind], texts: list[str]) -> tuple[Kind, ...]:
    return tuple(kind(text) for text in dict.fromkeys(texts) if text in set(kind))


def _make_facets(query: CatalogueQuery, counts: dict[str, dict[str, int]], given: QueryDict) -> list[Facet]:
    """Return the facets with the values that occur or are chosen."""
    topics = [topic for topic in PackTopic if counts["topics"].get(topic) or topic in query.topics]
    spoken = sorted({*counts["languages"], *query.languages})
    return [
        Facet(
            "topic",
            _("Topic"),
            tuple(
                Option(
                    topic,
                    TOPICS[topic],
                    counts["topics"].get(topic, 0),
                    topic in query.topics,
                    _address_without(given, "topic", topic),
                )
                for topic in topics
            ),
        ),
        Facet(
            "language",
            _("Language"),
            tuple(
                Option(
                    language,
                    language_name(language),
                    counts["languages"].get(language, 0),
                    language in query.languages,
                    _address_without(given, "language", language),
                )
                for language in spoken
            ),
        ),
    ]


def _address_without(given: QueryDict, name: str, value: str) -> str:
    rest = [
        (key, value_)
        for key, some in given.lists()
        for value_ in some
        if key != "page" and (key, value_) != (name, value)
    ]
    return f"?{urlencode(rest)}"


def _page_address(given: QueryDict, *, page: str) -> str:
    rest = [(key, value) for key, some in given.lists() for value in some if key != "page"]
    return f"?{urlencode([*rest, ('page', page)])}"

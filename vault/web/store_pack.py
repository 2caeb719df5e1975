"""The page of one pack: texts, terms, ratings, and the subscription form. It works without JavaScript."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.errors import Conflict, Invalid
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import Permission
from governance.web.pages import draw, post_page, safe_page, see_other
from vault.store.catalogue import listing_get_by_name, offer_get
from vault.store.ratings import may_rate, rating_own, rating_remove, rating_write, ratings_list
from vault.store.rules import terms_load
from vault.store.subscriptions import subscription_create, subscriptions_live
from vault.vocabulary import PackState
from vault.web.labels import SEMANTIC_TYPES
from vault.web.markdown import markdown_html
from vault.web.store_forms import RatingForm, SubscribeForm
from vault.web.store_words import PACK_MARKS, PACK_STATES, PERIODS, make_shown_listing

if TYPE_CHECKING:
    from governance.models import Persona
    from vault.models import Listing, PackVersion

RATINGS = 20
PERSONAS = 200  # that the form offers


@dataclass(frozen=True)
class ShownVersion:
    row: "PackVersion"
    state: Promise
    mark: str
    is_newest: bool


@safe_page
def pack(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """Show one publication: README, samples, versions, ratings, terms, and facts about its trustworthiness."""
    return _draw_page(request, actor, listing_get_by_name(actor=actor, publisher=publisher, name=name))


@post_page
def subscribe(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """Accept the terms and install the pack."""
    authorize(actor, Permission.STORE_MANAGE)
    listing = listing_get_by_name(actor=actor, publisher=publisher, name=name)
    form = _subscribe_form(actor, listing, request.POST)
    if form.is_valid():
        try:
            made = subscription_create(actor=actor, draft=form.draft(listing))
            return see_other(reverse("store_subscription", args=[made.view.row.id]))
        except Invalid as failure:
            form.blame(failure)
        except Conflict:
            form.add_error(None, _("Your organisation has this pack, or its namespace, already."))
    return _draw_page(request, actor, listing, subscribe_form=form)


@post_page
def rate(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """Rate the pack, or with `remove` delete the reader's rating."""
    listing = listing_get_by_name(actor=actor, publisher=publisher, name=name)
    back = see_other(f"{reverse('store_pack', args=[publisher, name])}#ratings")
    if "remove" in request.POST:
        rating_remove(actor=actor, publication_id=listing.id)
        return back
    form = RatingForm(request.POST)
    if not form.is_valid():
        return _draw_page(request, actor, listing, rating_form=form)
    rating_write(
        actor=actor,
        publication_id=listing.id,
        stars=int(form.cleaned_data["stars"]),
        text=form.cleaned_data["text"],
    )
    return back


def readme_html(text: str) -> SafeString:
    """Return a README as clean HTML without links and pictures. Its first heading becomes one of the second level."""
    html = markdown_html(text, ()).replace("<h1>", "<h2>").replace("</h1>", "</h2>")
    return mark_safe(html)  # nh3 has cleaned it


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    listing: "Listing",
    *,
    rating_form: RatingForm | None = None,
    subscribe_form: SubscribeForm | None = None,
) -> HttpResponse:
    """Draw the page of a pack. rating_form, subscribe_form: a submitted form with errors."""
    offer = offer_get(actor=actor, publication_id=listing.id)
    versions = [_make_shown_version(row, listing) for row in offer.versions]
    terms = terms_load(listing.terms)
    subscription = subscriptions_live(actor=actor).get(listing.id)
    may_manage = is_allowed(actor, Permission.STORE_MANAGE)
    if may_manage and subscription is None:
        subscribe_form = subscribe_form or _subscribe_form(actor, listing)
    context = {
        "shown": make_shown_listing(actor, listing, subscription),
        "offer": offer,
        "readme": readme_html(offer.readme),
        "samples": [(item, SEMANTIC_TYPES[item.semantic_type]) for item in offer.samples],
        "versions": versions,
        "current": next(version for version in versions if version.is_newest),
        "yanked": sum(version.row.state == PackState.YANKED for version in versions),
        "terms": terms,
        "period": PERIODS[terms.period],
        "may_manage": may_manage,
        "subscribe_form": subscribe_form,
        **_rating_context(actor, listing, rating_form),
    }
    is_faulty = rating_form or (subscribe_form and subscribe_form.errors)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_faulty else HTTPStatus.OK
    return draw(request, "vault/store/pack.html", context, status=status)


def _make_shown_version(row: "PackVersion", listing: "Listing") -> ShownVersion:
    state = PackState(row.state)
    return ShownVersion(row, PACK_STATES[state], PACK_MARKS[state], row.id == listing.version_id)


def _rating_context(actor: Actor, listing: "Listing", form: RatingForm | None) -> dict[str, Any]:
    """Return the context with the newest ratings, and the form if the actor may rate."""
    found: dict[str, Any] = {
        "ratings": ratings_list(actor=actor, publication_id=listing.id, pages=First(RATINGS)) if listing.ratings else []
    }
    if may_rate(actor=actor, publication_id=listing.id):
        own = rating_own(actor=actor, publication_id=listing.id)
        initial = {"stars": own.stars, "text": own.text} if own else {}
        found |= {"own_rating": own, "rating_form": form or RatingForm(initial=initial)}
    return found


def _subscribe_form(actor: Actor, listing: "Listing", given: QueryDict | None = None) -> SubscribeForm:
    return SubscribeForm(
        given,
        number=listing.number,
        purposes=terms_load(listing.terms).purposes,
        personas=_list_personas(actor),
        initial={"delivery": "pull"},
    )


def _list_personas(actor: Actor) -> Sequence["Persona"]:
    if not is_allowed(actor, Permission.PERSONA_UPDATE):
        return []
    return personas_list(actor=actor, pages=First(PERSONAS))

"""The inbox: reviews with two buttons each. Redaction cannot be undone, so it needs a confirmation."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.views.decorators.http import require_http_methods

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.apikeys.selectors import apikeys_list
from governance.database import acting
from governance.errors import Conflict
from governance.vocabulary import Permission
from governance.web.pages import draw, page, see_other, wants_part
from governance.web.pagination import Newest, NewestOf, uuid_or_none
from vault.reviews.quarantine import writer_memories, writer_quarantine
from vault.reviews.selectors import review_get, review_view, reviews_list
from vault.reviews.services import review_accept, review_accept_ask, review_reject
from vault.store.proposals import Proposal, Side, answered_proposals_list, proposals_list
from vault.store.publications import publications_waiting
from vault.vocabulary import ProposalState, ReviewKind, ReviewStatus, Visibility
from vault.web.findings import make_shown_review
from vault.web.store_forms import VISIBILITIES

if TYPE_CHECKING:
    from vault.models import Publication

REVIEWS = 30  # of one page
KEYS = 200  # newest keys that the form offers


@dataclass(frozen=True)
class OfferWaiting:
    row: "Publication"
    visibility: Promise
    is_mine: bool  # and needs another member


@require_http_methods(["GET", "HEAD"])
@page
def reviews(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    decided = request.GET.get("status") == "rejected"
    take = Newest(size=REVIEWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    with acting(actor):
        found = reviews_list(
            actor=actor,
            kind=ReviewKind.PII if decided else None,
            status=ReviewStatus.REJECTED if decided else ReviewStatus.OPEN,
            pages=take,
        )
        context = {
            "reviews": [make_shown_review(view) for view in found],
            "older": take.older,
            "decided": decided,
            "may_decide": is_allowed(actor, Permission.MEMORY_UPDATE),
            "offers": _list_offers(actor) if not decided else [],
            **(_list_proposals(actor) if not decided else {}),
            "may_quarantine": is_allowed(actor, Permission.APIKEY_MANAGE),
        }
        return draw(request, "vault/reviews/reviews.html", context)


def _list_proposals(actor: Actor) -> dict[str, list[Proposal]]:
    """Return the pack changes that subscribers propose, and answers to own proposals; empty without the right to
    decide."""
    if not is_allowed(actor, Permission.STORE_MANAGE):
        return {}
    pages, state = NewestOf(REVIEWS, ""), ProposalState.OPEN
    return {
        "proposals": proposals_list(actor=actor, side=Side.RECEIVED, pages=pages, state=state),
        "answers": answered_proposals_list(actor=actor, pages=NewestOf(REVIEWS, "")),
    }


def _list_offers(actor: Actor) -> list[OfferWaiting]:
    """Return the publications that wait for another member; empty without the right to approve them."""
    if not is_allowed(actor, Permission.STORE_MANAGE):
        return []
    found = publications_waiting(actor=actor, pages=NewestOf(REVIEWS, ""))
    return [
        OfferWaiting(row, VISIBILITIES[Visibility(row.visibility)], row.requested_by_id == actor.member_id)
        for row in found
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def quarantine(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET lists the keys and counts the memories of the chosen key; POST starts the job."""
    authorize(actor, Permission.APIKEY_MANAGE)
    chosen = uuid_or_none((request.POST if request.method == "POST" else request.GET).get("writer", ""))
    if request.method == "POST" and chosen is not None:
        return see_other(reverse("job", args=[writer_quarantine(actor=actor, writer_id=chosen).id]))
    context = {
        "keys": apikeys_list(actor=actor, pages=Newest(size=KEYS, key="id", cursor=None)),
        "chosen": chosen,
        "found": writer_memories(actor=actor, writer_id=chosen) if chosen else None,
        "is_missing": request.method == "POST",
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if request.method == "POST" else HTTPStatus.OK
    return draw(request, "vault/reviews/quarantine.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def accept(request: HttpRequest, actor: Actor, review_id: UUID) -> HttpResponseBase:
    """GET previews the redaction with counts; POST redacts, or accepts the proposal of another kind of review.

    `content`: the text that settles a sync conflict, if it is neither of the two.
    """
    conflict: Conflict | None = None
    if request.method == "POST":
        try:
            redact_history = request.POST.get("redact_history") == "on"
            content = request.POST.get("content")
            review_accept(actor=actor, review_id=review_id, redact_history=redact_history, content=content)
            return see_other(reverse("reviews"))
        except Conflict as fault:
            conflict = fault  # decided meanwhile: the page below says so, with 409
    review_accept_ask(actor=actor, review_id=review_id)
    view = review_get(actor=actor, review_id=review_id)
    if view.row.kind == ReviewKind.FEEDBACK and conflict is not None:
        raise conflict
    if view.row.kind != ReviewKind.PII:
        if conflict is not None and view.row.status == ReviewStatus.OPEN:
            raise conflict
        return see_other(reverse("reviews"))
    status = HTTPStatus.OK if view.row.status == ReviewStatus.OPEN else HTTPStatus.CONFLICT
    return draw(request, "vault/reviews/accept.html", {"shown": make_shown_review(view)}, status=status)


@require_http_methods(["POST"])
@page
def reject(request: HttpRequest, actor: Actor, review_id: UUID) -> HttpResponseBase:
    review = review_reject(actor=actor, review_id=review_id)
    if not wants_part(request):
        return see_other(reverse("reviews"))
    shown = make_shown_review(review_view(actor=actor, review=review))
    return draw(request, "vault/reviews/_review.html", {"shown": shown, "may_decide": True})

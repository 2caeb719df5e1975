"""The inbox: reviews with two buttons each. Redaction cannot be undone, so it needs a confirmation."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.apikeys.selectors import apikeys_list
from governance.database import acting
from governance.errors import Conflict
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, NewestOf, uuid_or_none
from governance.web.undo import put_message
from vault.reviews.quarantine import writer_memories, writer_quarantine
from vault.reviews.selectors import decisions_count, review_get, review_view, reviews_count, reviews_list
from vault.reviews.services import (
    is_reopenable,
    review_accept,
    review_accept_ask,
    review_reject,
    review_reject_ask,
    review_reopen,
)
from vault.store.proposals import Side, answered_proposals_list, proposals_list
from vault.store.publications import publications_waiting
from vault.vocabulary import ProposalState, ReviewKind, ReviewStatus, Visibility
from vault.web.findings import ShownReview, make_shown_review
from vault.web.form_proposals import proposals_shown
from vault.web.labels import REVIEW_KINDS
from vault.web.memory_forms import ContentField
from vault.web.store_forms import VISIBILITIES, DeclineForm, RefusalForm

if TYPE_CHECKING:
    from vault.models import Publication, Review

REVIEWS = 30  # of one page
STORE = "store"  # stands for the case of all offers and proposals of packs
FORMS = "forms"  # stands for the case of all proposals of caches and adapters
# The tabs: name in the address, words, and kinds of reviews.
GROUPS: dict[str, tuple[Promise, frozenset[ReviewKind]]] = {
    "conflicts": (
        _("Conflicts"),
        frozenset({ReviewKind.CONFLICT, ReviewKind.SYNC, ReviewKind.PACK_CONTRADICTS, ReviewKind.PACK_SUPERSEDES}),
    ),
    "fusion": (_("Fusion"), frozenset({ReviewKind.FUSION, ReviewKind.PACK_CONFIRMS})),
    "pii": (_("Personal data"), frozenset({ReviewKind.PII})),
    "quarantine": (_("Quarantine"), frozenset({ReviewKind.QUARANTINE})),
    "feedback": (_("Feedback"), frozenset({ReviewKind.FEEDBACK})),
    "sources": (_("Removed sources"), frozenset({ReviewKind.SOURCE_WITHDRAWN})),
}
# Before a decision without undo: the question, its consequence, and the button.
QUESTIONS: dict[tuple[ReviewKind, ReviewStatus], tuple[Promise, Promise, Promise]] = {
    (ReviewKind.SOURCE_WITHDRAWN, ReviewStatus.ACCEPTED): (
        _("Keep this memory?"),
        _("The text stays. The content of earlier versions is removed. This cannot be undone."),
        _("Keep"),
    ),
    (ReviewKind.SOURCE_WITHDRAWN, ReviewStatus.REJECTED): (
        _("Delete this memory?"),
        _("The memory can be restored only after the memories that it was made from."),
        _("Delete"),
    ),
    (ReviewKind.QUARANTINE, ReviewStatus.REJECTED): (
        _("Delete this memory?"),
        _("This cannot be undone."),
        _("Delete"),
    ),
}
# The messages after those decisions.
DECIDED: dict[tuple[ReviewKind, ReviewStatus], Promise] = {
    (ReviewKind.SOURCE_WITHDRAWN, ReviewStatus.ACCEPTED): _("The memory stays. Its earlier versions were removed."),
    (ReviewKind.SOURCE_WITHDRAWN, ReviewStatus.REJECTED): _("The memory was deleted"),
    (ReviewKind.QUARANTINE, ReviewStatus.REJECTED): _("The memory was deleted"),
}
KEYS = 200  # newest keys that the form offers


@dataclass(frozen=True)
class OfferWaiting:
    row: "Publication"
    visibility: Promise
    is_mine: bool  # and needs another member
    form: PageForm  # to refuse it


class WriterForm(PageForm):
    """The key whose memories go into quarantine."""

    writer = forms.UUIDField(
        label=_("API key"),
        widget=forms.Select(),
        error_messages=dict.fromkeys(("required", "invalid"), _("Choose a key.")),
    )


class SettlementForm(PageForm):
    """The text that settles a conflict of a sync, if it is neither of the two."""

    content = ContentField(label=_("Text of the memory"), rows=4)


@safe_page
def reviews(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """The reviews that wait, and the chosen one beside them: `case`, an id or `store`; without it the first."""
    return draw_inbox(request, actor, request.GET.get("case", ""), {})


def draw_inbox(request: HttpRequest, actor: Actor, wanted: str, refused: Mapping[UUID, PageForm]) -> HttpResponseBase:
    """Draw the inbox. wanted: the case to show; refused: the form with errors about a review, or an offer or a proposal
    of a pack, by its id."""
    decided = request.GET.get("status") == "rejected"
    group = request.GET.get("kind", "") if request.GET.get("kind") in GROUPS and not decided else ""
    take = Newest(size=REVIEWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    with acting(actor):
        found = reviews_list(
            actor=actor,
            kind=ReviewKind.PII if decided else GROUPS[group][1] if group else None,
            status=ReviewStatus.REJECTED if decided else ReviewStatus.OPEN,
            pages=take,
        )
        shown = [make_shown_review(view) for view in found]
        store = _list_store(actor, refused) if not decided and not group else {}
        groups = _describe_groups(actor)
        context = {
            "reviews": shown,
            "older": take.older,
            **_describe_day(actor, groups[0][2]),
            "decided": decided,
            "group": group,
            "groups": groups,
            "may_make": is_allowed(actor, Permission.MEMORY_CREATE),
            "may_decide": is_allowed(actor, Permission.MEMORY_UPDATE),
            "may_quarantine": is_allowed(actor, Permission.APIKEY_MANAGE),
            **store,
            "form_proposals": (proposed := proposals_shown(actor) if not decided and not group else []),
            "waiting": sum(len(rows) for rows in store.values()),
            **_choose_case(wanted, shown, has_store=any(store.values()), has_forms=bool(proposed)),
        }
        if (case := context["case"]) and case.is_sync:
            initial = {"content": case.view.words.content if case.view.words else ""}
            context["settlement"] = refused.get(case.view.row.id) or SettlementForm(initial=initial)
        status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK
        return draw(request, "vault/reviews/reviews.html", context, status=status)


def _describe_groups(actor: Actor) -> list[tuple[str, Promise, int]]:
    """Return the groups of kinds that have open reviews: (name, words, number)."""
    counts = reviews_count(actor=actor)
    numbers = [(name, words, sum(counts.get(kind, 0) for kind in kinds)) for name, (words, kinds) in GROUPS.items()]
    return [("", _("All"), sum(counts.values())), *(group for group in numbers if group[2])]


def _describe_day(actor: Actor, waiting: int) -> dict[str, Any]:
    """Return how many reviews were decided since the reader's midnight, of those and the ones that wait."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    done = decisions_count(actor=actor, since=midnight)
    return {"done": done, "whole": done + waiting, "percent": 100 * done // (done + waiting) if done else 0}


def _choose_case(wanted: str, shown: list[ShownReview], *, has_store: bool, has_forms: bool) -> dict[str, Any]:
    """Return the case to show and the one after it. is_chosen: the address names it; shows_forms: it is that of all
    proposals of caches and adapters."""
    if has_forms and (wanted == FORMS or not (shown or has_store)):
        first = shown[0] if shown else None
        return {"case": None, "next_case": first, "is_chosen": wanted == FORMS, "shows_forms": True}
    at = next((at for at, one in enumerate(shown) if str(one.view.row.id) == wanted), None)
    if has_store and at is None:
        return {"case": None, "next_case": shown[0] if shown else None, "is_chosen": wanted == STORE}
    at = at or 0
    return {
        "case": shown[at] if shown else None,
        "next_case": shown[at + 1] if at + 1 < len(shown) else None,
        "is_chosen": any(str(one.view.row.id) == wanted for one in shown),
    }


def _list_store(actor: Actor, refused: Mapping[UUID, PageForm]) -> dict[str, Any]:
    return {"offers": _list_offers(actor, refused), **_list_proposals(actor, refused)}


def _list_proposals(actor: Actor, refused: Mapping[UUID, PageForm]) -> dict[str, list[Any]]:
    """Return the pack changes that subscribers propose, each with the form to decline it, and answers to own proposals;
    empty without the right to decide."""
    if not is_allowed(actor, Permission.STORE_MANAGE):
        return {}
    pages, state = NewestOf(REVIEWS, ""), ProposalState.OPEN
    found = proposals_list(actor=actor, side=Side.RECEIVED, pages=pages, state=state)
    return {
        "proposals": [(one, refused.get(one.row.id) or DeclineForm(auto_id=f"{one.row.id}_%s")) for one in found],
        "answers": answered_proposals_list(actor=actor, pages=NewestOf(REVIEWS, "")),
    }


def _list_offers(actor: Actor, refused: Mapping[UUID, PageForm]) -> list[OfferWaiting]:
    """Return the publications that wait for another member; empty without the right to approve them."""
    if not is_allowed(actor, Permission.STORE_MANAGE):
        return []
    found = publications_waiting(actor=actor, pages=NewestOf(REVIEWS, ""))
    return [
        OfferWaiting(
            row,
            VISIBILITIES[Visibility(row.visibility)],
            is_mine=row.requested_by_id == actor.member_id,
            form=refused.get(row.id) or RefusalForm(auto_id=f"{row.id}_%s"),
        )
        for row in found
    ]


@form_page
def quarantine(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET lists the keys and counts the memories of the chosen key; POST starts the job."""
    authorize(actor, Permission.APIKEY_MANAGE)
    keys = apikeys_list(actor=actor, pages=Newest(size=KEYS, key="id", cursor=None))
    asked = request.GET if "writer" in request.GET else None
    form = WriterForm(request.POST if request.method == "POST" else asked, auto_id="%s")
    form.fields["writer"].widget.choices = [
        (key.id, f"{key.name} (mos_{key.prefix}_…, {key.member_email})") for key in keys
    ]
    chosen = form.cleaned_data["writer"] if form.is_valid() else None
    if request.method == "POST" and chosen is not None:
        return see_other(reverse("job", args=[writer_quarantine(actor=actor, writer_id=chosen).id]))
    found = writer_memories(actor=actor, writer_id=chosen) if chosen else None
    context = {"form": form, "has_keys": bool(keys), "chosen": chosen, "found": found}
    return draw(request, "vault/reviews/quarantine.html", context, status=form.status)


@form_page
def accept(request: HttpRequest, actor: Actor, review_id: UUID) -> HttpResponseBase:
    """GET previews the redaction with counts; POST redacts, or accepts the proposal of another kind of review.

    `content`: the text that settles a sync conflict, if it is neither of the two.
    """
    conflict: Conflict | None = None
    if request.method == "POST":
        if question := _ask_first(request, actor, review_id, ReviewStatus.ACCEPTED):
            return question
        form = SettlementForm(request.POST) if "content" in request.POST else None
        if form is not None and not form.is_valid():
            review_accept_ask(actor=actor, review_id=review_id)
            return draw_inbox(request, actor, str(review_id), {review_id: form})
        try:
            redact_history = request.POST.get("redact_history") == "on"
            content = form.cleaned_data["content"] if form else None
            review = review_accept(actor=actor, review_id=review_id, redact_history=redact_history, content=content)
            return _see_next(request, review)
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


@post_page
def reject(request: HttpRequest, actor: Actor, review_id: UUID) -> HttpResponseBase:
    if question := _ask_first(request, actor, review_id, ReviewStatus.REJECTED):
        return question
    review = review_reject(actor=actor, review_id=review_id)
    if not wants_part(request):
        return _see_next(request, review)
    shown = make_shown_review(review_view(actor=actor, review=review))
    return draw(request, "vault/reviews/_review.html", {"shown": shown, "may_decide": True})


def _ask_first(request: HttpRequest, actor: Actor, review_id: UUID, decision: ReviewStatus) -> HttpResponseBase | None:
    """Return the question before a decision that erases something for good; None for another, and once confirmed."""
    if request.POST.get("confirmed") == "yes":
        return None
    ask = review_accept_ask if decision is ReviewStatus.ACCEPTED else review_reject_ask
    ask(actor=actor, review_id=review_id)
    row = review_get(actor=actor, review_id=review_id).row
    words = QUESTIONS.get((ReviewKind(row.kind), decision))
    if words is None or row.status != ReviewStatus.OPEN:
        return None
    title, consequence, button = words
    context = {
        "title": title,
        "consequence": consequence,
        "button": button,
        "asked": request.POST,
        "back": f"{reverse('reviews')}?case={review_id}",
    }
    return draw(request, "vault/reviews/question.html", context)


@post_page
def reopen(request: HttpRequest, actor: Actor, review_id: UUID) -> HttpResponseBase:
    """Undo a decision that the reader has just made, and show the review again."""
    review_reopen(actor=actor, review_id=review_id)
    return see_other(f"{reverse('reviews')}?case={review_id}")


def _see_next(request: HttpRequest, review: "Review") -> HttpResponseBase:
    """Lead to the next review of the list, with a message that undoes the decision where that can be done."""
    words = _("Accepted: %(kind)s.") if review.status == ReviewStatus.ACCEPTED else _("Rejected: %(kind)s.")
    kind = ReviewKind(review.kind)
    put_message(
        request,
        str(DECIDED.get((kind, ReviewStatus(review.status)), words)) % {"kind": REVIEW_KINDS[kind]},
        address=reverse("review_reopen", args=[review.id]) if is_reopenable(review) else "",
    )
    asked = {name: value for name in ("kind", "case") if (value := request.POST.get(name))}
    return see_other(reverse("reviews") + (f"?{urlencode(asked)}" if asked else ""))

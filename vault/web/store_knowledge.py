"""A pack as a source of knowledge: trust, comparison with own memories, and proposals to its publisher."""

from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.pages import First
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from vault.cubes.selectors import cube_get
from vault.store.proposals import (
    LONGEST_REASON,
    LONGEST_TEXT,
    ProposalDraft,
    Side,
    proposal_accept,
    proposal_ask,
    proposal_create,
    proposal_decline,
    proposals_list,
)
from vault.store.subscriptions import subscription_compare, subscription_get, subscription_update
from vault.web.reviews import STORE, draw_inbox
from vault.web.store_forms import DeclineForm

PROPOSALS = 50  # of each side


class ProposalForm(PageForm):
    """Another wording of a memory, with a reason."""

    content = forms.CharField(
        label=_("The text as you would word it"),
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto"}),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"})
    )


@post_page
def trust(request: HttpRequest, actor: Actor, subscription_id: UUID) -> HttpResponseBase:
    """Set whether the pack is trusted; with `compare`, start a comparison with own memories."""
    if "compare" in request.POST:
        return see_other(reverse("job", args=[subscription_compare(actor=actor, subscription_id=subscription_id).id]))
    is_trusted = request.POST.get("trusted") == "yes"
    subscription_update(actor=actor, subscription_id=subscription_id, is_trusted=is_trusted)
    return see_other(reverse("store_subscription", args=[subscription_id]))


@form_page
def propose(request: HttpRequest, actor: Actor, subscription_id: UUID, memory_id: UUID) -> HttpResponseBase:
    """GET shows the form; POST proposes another wording of an installed memory to the publisher."""
    authorize(actor, Permission.STORE_MANAGE)
    view = subscription_get(actor=actor, subscription_id=subscription_id)
    form = ProposalForm(values_of(request))

    def propose_text() -> None:
        draft = ProposalDraft(memory_id, form.cleaned_data["content"], form.cleaned_data["reason"])
        proposal_create(actor=actor, subscription_id=subscription_id, draft=draft)

    if form.is_done_by(propose_text):
        return see_other(reverse("store_proposals"))
    if not form.is_bound:
        form.initial = {"content": cube_get(actor=actor, cube_id=memory_id).words.content}
    context = {"subscription": view.row, "memory_id": memory_id, "form": form}
    return draw(request, "vault/store/propose.html", context, status=form.status)


@safe_page
def proposals(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the proposed changes of packs, received and sent, newest first."""
    received, sent = (
        proposals_list(actor=actor, side=side, pages=First(PROPOSALS)) for side in (Side.RECEIVED, Side.SENT)
    )
    context = {"received": [(one, DeclineForm(auto_id=f"{one.row.id}_%s")) for one in received], "sent": sent}
    return draw(request, "vault/store/proposals.html", context)


@post_page
def proposal_decide(request: HttpRequest, actor: Actor, proposal_id: UUID) -> HttpResponseBase:
    """Accept a proposal, or with `decline` decline it for a reason."""
    proposal_ask(actor=actor, proposal_id=proposal_id)
    if "decline" in request.POST:
        form = DeclineForm(request.POST, auto_id=f"{proposal_id}_%s")
        if not form.is_valid():
            return draw_inbox(request, actor, STORE, {proposal_id: form})
        proposal_decline(actor=actor, proposal_id=proposal_id, **form.cleaned_data)
    else:
        proposal_accept(actor=actor, proposal_id=proposal_id)
    return see_other(reverse("reviews"))

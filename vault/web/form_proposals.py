"""Proposals of caches, adapters and text in the inbox: with the reason in words, accepted, declined and taken back."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from governance.web.pages import post_page, see_other
from governance.web.undo import put_message
from vault.conversion.proposals import (
    ProposalView,
    proposal_accept,
    proposal_decline,
    proposal_reopen,
    proposals_list,
)
from vault.vocabulary import MemoryType, ProposalState

TITLES: dict[MemoryType, Promise] = {
    MemoryType.ACTIVATION: gettext_lazy("Keep these memories as a cache"),
    MemoryType.PARAMETER: gettext_lazy("Train an adapter of these memories"),
    MemoryType.PLAINTEXT: gettext_lazy("Use these memories as text again"),
}
BUTTONS: dict[MemoryType, Promise] = {
    MemoryType.ACTIVATION: gettext_lazy("Make the cache"),
    MemoryType.PARAMETER: gettext_lazy("Train the adapter"),
    MemoryType.PLAINTEXT: gettext_lazy("Erase the cache or adapter"),
}


@dataclass(frozen=True)
class ShownProposal:
    """A proposal with its reason in words."""

    view: ProposalView

    @property
    def title(self) -> Promise:
        return TITLES[self.view.kind]

    @property
    def button(self) -> Promise:
        return BUTTONS[self.view.kind]

    @property
    def reason(self) -> str:
        figures = self.view.figures
        if self.view.kind is MemoryType.ACTIVATION:
            text, cache = (f"{figures[name]:.2f}" for name in ("text_seconds", "form_seconds"))
            return _(
                "In %(turns)s of the last %(of_turns)s prompts, about %(tokens)s tokens, unchanged for %(days)s days."
                " First word: %(text)s s as text, %(cache)s s as a cache."
            ) % {**figures, "text": text, "cache": cache}
        if self.view.kind is MemoryType.PARAMETER:
            return _("Their cache was used %(uses)s times, and they have not changed for %(days)s days.") % figures
        if figures["is_stale"]:
            return _("One of the memories was changed, so the cache or adapter is not used any more.")
        return _("The cache or adapter was not used in %(days)s days.") % figures


def proposals_shown(actor: Actor) -> list[ShownProposal]:
    """Return the open proposals for those who may decide them; empty without that right."""
    if not is_allowed(actor, Permission.MEMORY_CREATE):
        return []
    return [ShownProposal(view) for view in proposals_list(actor=actor)]


@post_page
def decide(request: HttpRequest, actor: Actor, form_proposal_id: UUID) -> HttpResponseBase:
    """Accept or decline a proposal, or take the decision back; `action` says which."""
    match request.POST.get("action", ""):
        case "accept":
            view = proposal_accept(actor=actor, proposal_id=form_proposal_id)
            words = _("Accepted: %(kind)s.")
        case "decline":
            view = proposal_decline(actor=actor, proposal_id=form_proposal_id)
            words = _("Rejected: %(kind)s.")
        case "reopen":
            proposal_reopen(actor=actor, proposal_id=form_proposal_id)
            return see_other(f"{reverse('reviews')}?case=forms")
        case _:
            raise Invalid(errors=[FieldError("action", "accept, decline or reopen")])
    can_undo = view.kind is not MemoryType.PLAINTEXT or view.status is ProposalState.DECLINED
    address = reverse("form_proposal", args=[view.id]) if can_undo else ""
    put_message(request, words % {"kind": TITLES[view.kind]}, address=address, action="reopen")
    return see_other(f"{reverse('reviews')}?case=forms")

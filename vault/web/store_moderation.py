"""Reports of packs: readers write them, operators of the installation decide them."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.actor import Actor
from governance.errors import Conflict, Invalid
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from vault.store.catalogue import listing_get_by_name
from vault.store.moderation import DISMISSED, Decision, ReportView, report_decide, reports_list
from vault.store.reports import report_write
from vault.vocabulary import PublicationState, ReportReason
from vault.web.store_forms import DecisionForm, ReportForm
from vault.web.store_own import PUBLICATION_MARKS, PUBLICATION_STATES
from vault.web.store_words import REPORT_REASONS, make_shown_listing

DECISIONS: dict[str, Promise] = {
    Decision.HIDE: gettext_lazy("hidden"),
    Decision.BAN: gettext_lazy("banned"),
    Decision.SHOW: gettext_lazy("shown again"),
    DISMISSED: gettext_lazy("left as it was"),
}


@dataclass(frozen=True)
class ShownReport:
    view: ReportView
    reason: Promise
    state: Promise
    mark: str
    decision: Promise | str

    @property
    def is_stopped(self) -> bool:
        return self.view.state in {PublicationState.HIDDEN, PublicationState.BANNED}


@form_page
def report(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """GET shows a form that reports the pack to the operator; POST sends it."""
    listing = listing_get_by_name(actor=actor, publisher=publisher, name=name)
    form = ReportForm(request.POST if request.method == "POST" else None)
    is_sent = False
    if form.is_bound and form.is_valid():
        reason, text = ReportReason(form.cleaned_data["reason"]), form.cleaned_data["text"]
        try:
            report_write(actor=actor, publication_id=listing.id, reason=reason, text=text)
            is_sent = True
        except Conflict:
            form.add_error(None, _("Your report of this pack waits for the operator already."))
    context = {"shown": make_shown_listing(actor, listing), "form": form, "is_sent": is_sent}
    status = form.status
    return draw(request, "vault/store/report.html", context, status=status)


@safe_page
def moderation(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the open reports, or with `decided` the decided ones. Raises NotFound unless the reader is an operator."""
    return _draw_page(request, actor)


@post_page
def decide(request: HttpRequest, actor: Actor, tenant_id: UUID, report_id: UUID) -> HttpResponseBase:
    """Apply `decision`: hide the pack, ban it, show it again, or dismiss the report."""
    form = DecisionForm(request.POST, auto_id=f"{report_id}_%s")
    if not form.is_valid():
        return _draw_page(request, actor, {report_id: form})
    try:
        report_decide(actor=actor, tenant_id=tenant_id, report_id=report_id, **form.cleaned_data)
    except Invalid as failure:
        form.blame(failure)
        return _draw_page(request, actor, {report_id: form})
    return see_other(reverse("store_moderation"))


def _draw_page(request: HttpRequest, actor: Actor, refused: Mapping[UUID, DecisionForm] | None = None) -> HttpResponse:
    """Draw the reports. refused: the form of a report with its errors."""
    is_decided, refused = "decided" in request.GET, refused or {}
    found = reports_list(actor=actor, is_decided=is_decided)
    reports = [
        (_make_shown_report(view), refused.get(view.row.id) or DecisionForm(auto_id=f"{view.row.id}_%s"))
        for view in found
    ]
    status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK
    context = {"reports": reports, "is_decided": is_decided}
    return draw(request, "vault/store/moderation.html", context, status=status)


def _make_shown_report(view: ReportView) -> ShownReport:
    return ShownReport(
        view=view,
        reason=REPORT_REASONS[ReportReason(view.row.reason)],
        state=PUBLICATION_STATES[view.state],
        mark=PUBLICATION_MARKS[view.state],
        decision=DECISIONS.get(view.row.decision, ""),
    )

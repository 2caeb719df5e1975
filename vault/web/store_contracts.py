"""The publisher's pages: subscribers of the organisation's packs, their reads, invoices, revocations."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.text_values import read_month
from governance.vocabulary import Permission
from governance.web.pages import draw, post_page, safe_page, see_other
from governance.web.pagination import NewestOf
from vault.store.contracts import (
    contract_allow,
    contract_get,
    contract_invoice,
    contract_reads,
    contract_revoke,
    contracts_list,
)
from vault.web.store_forms import RevocationForm
from vault.web.store_words import make_shown_agreement

CONTRACTS, READS = 50, 20  # of one page


@safe_page
def contracts(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the contracts of the organisation's publications, newest first."""
    authorize(actor, Permission.STORE_MANAGE)
    take = NewestOf(CONTRACTS, request.GET.get("before", ""))
    found = contracts_list(actor=actor, pages=take)
    context = {"contracts": [make_shown_agreement(view) for view in found], "older": take.older}
    return draw(request, "vault/store/contracts.html", context)


@safe_page
def contract(request: HttpRequest, actor: Actor, contract_id: UUID) -> HttpResponseBase:
    """Show one contract with the reads that its subscriber reported."""
    return _draw_page(request, actor, contract_id)


@post_page
def revoke(request: HttpRequest, actor: Actor, contract_id: UUID) -> HttpResponseBase:
    """Revoke the contract, for a reason that the subscriber reads."""
    contract_get(actor=actor, contract_id=contract_id)
    form = RevocationForm(request.POST)
    if form.is_done_by(lambda: contract_revoke(actor=actor, contract_id=contract_id, **form.cleaned_data)):
        return see_other(reverse("store_contract", args=[contract_id]))
    return _draw_page(request, actor, contract_id, form)


@post_page
def allow(request: HttpRequest, actor: Actor, contract_id: UUID) -> HttpResponseBase:
    """Allow the subscriber of a revoked contract to subscribe again."""
    contract_allow(actor=actor, contract_id=contract_id)
    return see_other(reverse("store_contract", args=[contract_id]))


@safe_page
def invoice(request: HttpRequest, actor: Actor, contract_id: UUID) -> HttpResponseBase:
    """Return the invoice of a `month` such as 2026-11, by default the present one, as a Markdown file."""
    contract_get(actor=actor, contract_id=contract_id)
    made = contract_invoice(actor=actor, contract_id=contract_id, month=read_month(request.GET.get("month", "")))
    disposition = f'attachment; filename="invoice-{made.bill.number}.md"'
    headers = {"Content-Disposition": disposition}
    return HttpResponse(made.document, content_type="text/markdown; charset=utf-8", headers=headers)


def _draw_page(
    request: HttpRequest, actor: Actor, contract_id: UUID, form: RevocationForm | None = None
) -> HttpResponse:
    view, form = contract_get(actor=actor, contract_id=contract_id), form or RevocationForm()
    take = NewestOf(READS, request.GET.get("before", ""))
    context = {
        "shown": make_shown_agreement(view),
        "reads": contract_reads(actor=actor, contract_id=contract_id, pages=take),
        "older": take.older,
        "form": form,
    }
    return draw(request, "vault/store/contract.html", context, status=form.status)

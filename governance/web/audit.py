"""Pages for auditors: the audit log, one entry, verification, checkpoints, reports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.http import urlencode

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit import verifier
from governance.audit.reading.histogram import entries_histogram
from governance.audit.reading.queries import FILTERS, AuditQuery, query_read
from governance.audit.reading.reports import changes_csv
from governance.audit.reading.selectors import (
    checkpoint_get,
    checkpoints_list,
    entries_list,
    entry_get,
    filters_resolve,
    log_summary,
    names_of,
    permission_changes,
    public_key_get,
    verify,
)
from governance.audit.reading.unusual import unusual_reading
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission, Verb
from governance.web.audit_days import chips_of, days_of, period_choices, times_to_utc
from governance.web.audit_lines import OBJECTS_OF_ONE, lines_of
from governance.web.audit_words import sentence_of
from governance.web.charts import stacked_bars_of
from governance.web.faults import fault_texts
from governance.web.pages import draw, form_page, safe_page, wants_part
from governance.web.pagination import Newest, number_or_none, uuid_or_none
from governance.web.verb_words import OUTCOMES, verb_groups

if TYPE_CHECKING:
    from governance.models import AuditEntry

ROWS = 50  # of one page
KINDS = {"reads": True, "writes": False}


@safe_page
def audit_log(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    query, faults = _query(actor, times_to_utc(request.GET.dict()))
    kind = request.GET.get("kind", "")
    query = replace(query, is_reading=KINDS.get(kind))
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    entries = entries_list(actor=actor, query=query, pages=take) if not faults else []
    context = {
        **_list(actor, request, entries, take),
        "faults": fault_texts(faults),
        "verbs": [*Verb],
        "verb_groups": verb_groups(Verb),
        "outcomes": OUTCOMES,
        "kind": kind if kind in KINDS else "",
        "chips": chips_of(actor, request.GET),
        "periods": period_choices(timezone.localdate()),
        "summary": log_summary(actor=actor),
        **({} if faults or wants_part(request) else _chart(actor, query)),
    }
    template = "governance/audit/_entries.html" if wants_part(request) else "governance/audit/list.html"
    return draw(request, template, context, status=_status(faults))


def _chart(actor: Actor, query: AuditQuery) -> dict[str, Any]:
    found = entries_histogram(actor=actor, query=query)
    kinds = (("is-on", found.writes), ("", found.reads), ("is-bad", found.refused))
    return {"histogram": found, "columns": stacked_bars_of(kinds), "totals": [sum(numbers) for _name, numbers in kinds]}


@safe_page
def audit_entry(request: HttpRequest, actor: Actor, entry_id: UUID) -> HttpResponseBase:
    view = entry_get(actor=actor, entry_id=entry_id)
    entry = view.entry
    line = lines_of(actor, [entry], objects=OBJECTS_OF_ONE)[0]
    context = {
        "line": line,
        "sentence": sentence_of(line),
        "outcome": OUTCOMES.get(entry.outcome, entry.outcome),
        "seal": view.seal
        and {
            "seq": view.seal.seq,
            "entry_hash": bytes(view.seal.entry_hash).hex(),
            "chain_hash": bytes(view.seal.chain_hash).hex(),
        },
        "before_hash": bytes(entry.before_hash).hex() if entry.before_hash is not None else "",
        "after_hash": bytes(entry.after_hash).hex() if entry.after_hash is not None else "",
    }
    return draw(request, "governance/audit/entry.html", context)


@form_page
def audit_verify(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Verify the audit log after a POST, because it reads every entry. A long log is verified in several requests."""
    authorize(actor, Permission.AUDIT_READ)
    found = None
    if request.method == "POST":
        found = verify(actor=actor, after=number_or_none(request.POST.get("after", "")) or 0)
    template = "governance/audit/_verification.html" if wants_part(request) else "governance/audit/verify.html"
    return draw(request, template, {"found": found})


@safe_page
def audit_checkpoints(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    take = Newest(size=ROWS, key="seq", cursor=number_or_none(request.GET.get("before", "")))
    checkpoints = checkpoints_list(actor=actor, pages=take)
    return draw(request, "governance/audit/checkpoints.html", {"checkpoints": checkpoints, "older": take.older})


@safe_page
def audit_checkpoint(request: HttpRequest, actor: Actor, checkpoint_id: UUID) -> HttpResponseBase:
    view = checkpoint_get(actor=actor, checkpoint_id=checkpoint_id)
    return download(f"{view.text}\n", f"checkpoint-{view.seq}.json", "application/json")


@safe_page
def audit_key(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    return download(f"{public_key_get(actor=actor).text()}\n", "public-key.json", "application/json")


@safe_page
def audit_verifier(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Download the verifier, for use on another machine."""
    authorize(actor, Permission.AUDIT_READ)
    return download(Path(verifier.__file__).read_text(encoding="utf-8"), "verifier.py", "text/x-python")


@safe_page
def audit_unusual(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    found = unusual_reading(actor=actor)
    names = names_of(actor=actor, ids=[reading.id for reading in found])
    return draw(
        request, "governance/audit/unusual.html", {"found": [(reading, names.get(reading.id)) for reading in found]}
    )


@safe_page
def audit_changes(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the changes of access rights between two times."""
    query, faults = _query(actor, times_to_utc(_period(request)))
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    entries = permission_changes(actor=actor, query=query, pages=take) if not faults else []
    context = {
        **_list(actor, request, entries, take),
        "faults": fault_texts(faults),
        "period": urlencode(_period(request)),
        "detailed": True,
    }
    return draw(request, "governance/audit/changes.html", context, status=_status(faults))


@safe_page
def audit_changes_csv(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.AUDIT_READ)
    text = changes_csv(actor=actor, query=query_read(times_to_utc(_period(request))))
    return download(text, "permission-changes.csv", "text/csv; charset=utf-8")


def download(text: str, name: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _list(actor: Actor, request: HttpRequest, entries: "Sequence[AuditEntry]", take: Newest) -> dict[str, object]:
    asked = {name: request.GET.get(name, "") for name in (*FILTERS, "kind")}
    lines = lines_of(actor, entries)
    older = {name: value for name, value in asked.items() if value} | {"before": str(take.older)}
    return {
        "lines": lines,
        "days": days_of(lines, reader=actor.principal_id),
        "asked": asked,
        "since": asked["from"],
        "older": urlencode(older) if take.older else "",
    }


def _query(actor: Actor, asked: Mapping[str, str]) -> tuple[AuditQuery, Sequence[FieldError]]:
    """Return the query of a list, and its faults; a reader without the right to read the audit log sees no faults."""
    authorize(actor, Permission.AUDIT_READ)
    try:
        return query_read(filters_resolve(actor=actor, asked=asked)), ()
    except Invalid as failure:
        return AuditQuery(), failure.errors


def _period(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET[name] for name in ("from", "to") if request.GET.get(name)}


def _status(faults: Sequence[FieldError]) -> int:
    return HTTPStatus.UNPROCESSABLE_ENTITY if faults else HTTPStatus.OK

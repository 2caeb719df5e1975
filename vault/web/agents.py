"""The page of an agent, which is an API key: its requests, its last calls, live, and what each of them received."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.apikeys.requests import (
    is_key_log_readable,
    key_days_list,
    key_request_newest_id,
    key_requests_list,
)
from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import entries_by_day, entries_list, entry_get, newest_entry_id
from governance.database import acting
from governance.errors import NotFound
from governance.object_names import names_find
from governance.pages import First
from governance.vocabulary import Permission, Verb
from governance.web.audit_lines import Line, lines_of
from governance.web.audit_words import Sentence, sentence_of
from governance.web.charts import bars_of, chart_of
from governance.web.pages import draw, safe_page, wants_part
from governance.web.pagination import Newest
from vault.cubes.selectors import CubeView
from vault.layers.search import Origin, context_line
from vault.listing.selectors import memories_choose
from vault.overview.key_costs import key_costs_by_day
from vault.vocabulary import Layer
from vault.web.labels import LAYERS

if TYPE_CHECKING:
    from governance.models import AuditEntry

CALLS = 20  # shown
REQUESTS = 12  # shown
DAYS = 30  # of the use over time
RECEIVING = (Verb.CONTEXT_READ, Verb.MEMORY_SEARCHED, Verb.MEMORY_READ, Verb.TURN_CREATED)
ORIGINS: dict[str, Promise] = {
    Origin.QUESTION: _("fits the question"),
    Origin.PRELOADED: _("preloaded"),
    Origin.LAYER: _("from the layers"),
    Origin.NEAR: _("near"),
}


@dataclass(frozen=True)
class Call:
    """A call of the agent. tokens, budget: of a context; parts: (origin, tokens) of it."""

    line: Line
    sentence: Sentence
    tokens: int | None
    budget: int | None
    parts: tuple[tuple[str | Promise, int], ...]


@dataclass(frozen=True)
class Received:
    """A memory that a call received, as the model got it. view: None if the reader may not read it."""

    origin: str | Promise
    layer: str | Promise
    tokens: int | None
    view: CubeView | None
    text: str


@safe_page
def agent(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    """Show the requests and the last calls of a key: calls to auditors, requests to those who may read them.

    The page polls its main part, which is sent only if there is something new.
    """
    may_audit, may_log = is_allowed(actor, Permission.AUDIT_READ), is_key_log_readable(actor=actor, key_id=key_id)
    if not may_log:
        authorize(actor, Permission.AUDIT_READ)
    query = AuditQuery(principal=key_id)
    newest = [newest_entry_id(actor=actor, query=query)] if may_audit else []
    newest += [key_request_newest_id(actor=actor, key_id=key_id)] if may_log else []
    since = ".".join(map(str, newest))
    if wants_part(request) and request.GET.get("since") == since:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    with acting(actor):
        context = {
            "name": names_find(actor.tenant_id, [key_id])[key_id],
            "key_id": key_id,
            "newest": since,
            "since": timezone.localdate() - timedelta(days=DAYS - 1),
            "days": DAYS,
            **(_describe_log(actor, key_id) if may_log else {}),
            **(_describe_calls(actor, query) if may_audit else {}),
        }
        template = "vault/agents/_calls.html" if wants_part(request) else "vault/agents/agent.html"
        return draw(request, template, context)


def _describe_calls(actor: Actor, query: AuditQuery) -> dict[str, Any]:
    entries = entries_list(actor=actor, query=query, pages=Newest(size=CALLS, key="id"), verbs=RECEIVING)
    reads = entries_by_day(actor=actor, query=query, verbs=RECEIVING, days=DAYS)
    calls = [_make_call(line) for line in lines_of(actor, entries)]
    return {"may_audit": True, "calls": calls, "reads": sum(reads), "bars": bars_of(reads, every="is-on")}


def _describe_log(actor: Actor, key_id: UUID) -> dict[str, Any]:
    days = key_days_list(actor=actor, key_id=key_id, days=DAYS)
    costs = key_costs_by_day(actor=actor, key_id=key_id, days=DAYS)
    bands = (("fill-mid", [day.p50 for day in days]), ("fill-long", [max(day.p95 - day.p50, 0) for day in days]))
    busy = [day for day in days if day.requests]
    return {
        "may_log": True,
        "requests": key_requests_list(actor=actor, key_id=key_id, pages=First(REQUESTS)),
        "count": sum(day.requests for day in days),
        "errors": sum(day.errors for day in days),
        "request_bars": bars_of([day.requests for day in days], every="is-on"),
        "error_bars": bars_of([day.errors for day in days], every="is-bad"),
        "latency": chart_of(bands) if busy else None,
        "last_day": busy[-1] if busy else None,
        "costs": [
            (name, sum(spent), bars_of([float(cost) for cost in spent], every="is-on")) for name, spent in costs.items()
        ],
    }


@safe_page
def call(request: HttpRequest, actor: Actor, key_id: UUID, entry_id: UUID) -> HttpResponseBase:
    """Show what a call received: each memory as it was then, for readers who may read it."""
    entry = entry_get(actor=actor, entry_id=entry_id).entry
    if key_id not in {entry.principal_id, entry.member_id} or entry.verb not in RECEIVING:
        raise NotFound
    may_read = entry.object_type == "memory" and is_allowed(actor, Permission.MEMORY_READ)
    ids = [*entry.object_ids] if entry.object_type == "memory" else []
    with acting(actor):
        views = (
            {view.cube.id: view for view in memories_choose(actor=actor, ids=ids, as_of=entry.at)} if may_read else {}
        )
        parts: Sequence[tuple[str, str, int | None]] = _parts(entry) or [("", "", None)] * len(ids)
        rows = [_receive(part, views.get(memory_id)) for memory_id, part in zip(ids, parts, strict=True)]
        return draw(request, "vault/agents/_received.html", {"rows": rows})


def _make_call(line: Line) -> Call:
    detail: dict[str, Any] = line.entry.detail if line.entry.verb == Verb.CONTEXT_READ else {}
    items = _parts(line.entry)
    by_origin = {origin: sum(tokens for name, _layer, tokens in items if name == origin) for origin in ORIGINS}
    parts = tuple((ORIGINS[origin], tokens) for origin, tokens in by_origin.items() if tokens)
    return Call(line, sentence_of(line), detail.get("tokens"), detail.get("budget"), parts)


def _parts(entry: "AuditEntry") -> list[tuple[str, str, int]]:
    """Return origin, layer and tokens of each memory of a context, in order; nothing for other calls."""
    texts = entry.detail.get("items", "").split() if entry.verb == Verb.CONTEXT_READ else []
    return [(origin, layer, int(tokens)) for origin, layer, tokens in (text.split(":") for text in texts)]


def _receive(part: tuple[str, str, int | None], view: CubeView | None) -> Received:
    origin, layer, tokens = part
    text = context_line(view) if view else ""
    return Received(ORIGINS.get(origin, ""), LAYERS[Layer(layer)] if layer else "", tokens, view, text)

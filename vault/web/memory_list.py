"""The list of memories: searched while typing, narrowed by facets, with a pane for one memory."""

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.gzip import gzip_page

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import DomainError, Invalid, NotFound
from governance.keys.services import token_maker
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from governance.web.pages import draw, safe_page, wants_part
from governance.web.pagination import uuid_or_none
from vault.cubes.selectors import CubeView
from vault.listing.endings import Ending, endings_find, has_ended
from vault.listing.facets import count_facets, facets_count
from vault.listing.queries import MemoryQuery, Order, query_read
from vault.listing.selectors import memories_page
from vault.listing.views import views_list
from vault.vocabulary import SearchMode
from vault.web.facets import chips_make, facets_make
from vault.web.memory_forms import ViewForm
from vault.web.memory_reader import inactive_context, reader_context
from vault.web.memory_rows import rows_make

COLUMNS: dict[str, Promise] = {
    "speaker": _("Speaker"),
    "type": _("Type"),
    "layer": _("Layer"),
    "heat": _("Heat"),
    "state": _("State"),
    "expires": _("Expires"),
    "tags": _("Tags"),
    "changed": _("Changed"),
}
ORDERS: dict[Order, Promise] = {
    Order.BEST: _("Best match"),
    Order.NEWEST: _("Newest first"),
    Order.OLDEST: _("Oldest first"),
    Order.EXPIRING: _("Expiring first"),
}
MODES: dict[SearchMode, Promise] = {
    SearchMode.HYBRID: _("Hybrid search"),
    SearchMode.LEXICAL: _("By words"),
    SearchMode.DENSE: _("By meaning"),
    SearchMode.GRAPH: _("By links"),
    SearchMode.TAG: _("By tags"),
}
SESSION_COLUMNS = "memory_columns"


def _name_personas(actor: Actor, query: MemoryQuery) -> dict[str, str]:
    """Return the names of the personas that the filter names by id, as far as the actor may know them."""
    names: dict[str, str] = {}
    for value in query.chosen.get("persona", ()):
        if uuid_or_none(value) is not None:
            with suppress(Invalid):
                names[value] = persona_get(actor=actor, reference=value).name
    return names


@gzip_page
@safe_page
def memories(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the page; a script gets only the rows and facets, or the next rows."""
    authorize(actor, Permission.MEMORY_READ)
    return draw_list(request, actor, request.GET, ViewForm())


def draw_list(request: HttpRequest, actor: Actor, asked: QueryDict, view_form: ViewForm) -> HttpResponseBase:
    """Draw the list that an address asks for, and the form that saves it as a view."""
    query, fault = _read_query(actor, asked)
    after = uuid_or_none(request.GET.get("after", ""))
    with acting(actor):
        context = _list_context(request, actor, query, after) | {"fault": fault}
        if wants_part(request) and after:
            return draw(request, "vault/memories/_rows.html", context)
        counted = count_facets(context["page"].views) if query.text else facets_count(actor=actor, query=query)
        names = _name_personas(actor, query)
        context |= {"facets": facets_make(counted, query, names), "chips": chips_make(query, list_address, names)}
        if wants_part(request):
            response = draw(request, "vault/memories/_results.html", context | {"is_part": True})
            response["HX-Replace-Url"] = list_address(query)
            return response
        view_form.initial = {"query": context["address"]}
        context |= _frame_context(request, actor) | {"view_form": view_form}
        return draw(request, "vault/memories/list.html", context, status=view_form.status)


def list_address(query: MemoryQuery, **more: str) -> str:
    """Return the address of the list with `query`, without empty parameters."""
    parts = query_parameters(query) | {name: [value] for name, value in more.items() if value}
    return f"{reverse('memories')}?{urlencode(parts, doseq=True)}" if parts else reverse("memories")


def query_parameters(query: MemoryQuery) -> dict[str, list[str]]:
    parts = {name: list(values) for name, values in query.chosen.items() if values}
    if query.text:
        parts["q"] = [query.text]
    if query.after:
        parts["created_after"] = [f"{query.after:%Y-%m-%d}"]
    if query.before:
        parts["created_before"] = [f"{query.before:%Y-%m-%d}"]
    if query.order is not Order.BEST:
        parts["order"] = [query.order]
    if query.mode is not SearchMode.HYBRID:
        parts["mode"] = [query.mode]
    if query.inactive:
        parts["inactive"] = ["true"]
    return parts


def curl_command(query: MemoryQuery, base: str) -> str:
    """Return the curl command of the API call with the same result."""
    key = '-H "Authorization: Bearer $KEY"'
    if query.text:
        body = {"query": query.text, "mode": query.mode, "top_k": 50, "filters": query.filters_shown()}
        words = shlex.quote(json.dumps(body, ensure_ascii=False))
        return f'curl {key} -H "Content-Type: application/json" -d {words} {base}search/'
    chosen = {name: values for name, values in query_parameters(query).items() if name not in {"order", "mode"}}
    asked = urlencode(chosen, doseq=True)
    return f"curl {key} {shlex.quote(f'{base}?{asked}')}" if asked else f"curl {key} {base}"


def _read_query(actor: Actor, asked: QueryDict) -> tuple[MemoryQuery, Invalid | None]:
    """Read the query. On errors, return the query without filters, and the errors."""
    try:
        query = query_read({name: asked.getlist(name) for name in asked})
        query.condition(token_maker(actor.tenant_id))
        return query, None
    except Invalid as fault:
        return MemoryQuery(), fault


def _list_context(request: HttpRequest, actor: Actor, query: MemoryQuery, after: UUID | None) -> dict[str, Any]:
    found = memories_page(actor=actor, query=query, after=after)
    return {
        "query": query,
        "page": found,
        "rows": rows_make(found, query.text, _find_endings(actor, query, found.views)),
        "next_address": list_address(query, after=str(found.next)) if found.next else "",
        "address": list_address(query),
        "columns": _read_columns(request),
        "column_names": COLUMNS,
        "orders": ORDERS,
        "modes": MODES,
        "has_time": bool(found.hits),
        "may_publish": is_allowed(actor, Permission.STORE_MANAGE),
        "curl": curl_command(query, request.build_absolute_uri(f"{get_script_prefix()}api/v1/memories/")),
    }


def _find_endings(actor: Actor, query: MemoryQuery, views: Sequence[CubeView]) -> Mapping[UUID, Ending]:
    """Return the ends of those in the list that are not active."""
    if not query.inactive and not query.ended:
        return {}
    return endings_find(actor, [view for view in views if query.inactive or has_ended(view.cube)])


def _frame_context(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Return the context around the list, which is not loaded again while the reader types."""
    selected = uuid_or_none(request.GET.get("selected", ""))
    return {
        "views": views_list(actor=actor),
        "may_add": is_allowed(actor, Permission.MEMORY_CREATE),
        "may_change": is_allowed(actor, Permission.MEMORY_UPDATE),
        "may_delete": is_allowed(actor, Permission.MEMORY_DELETE),
        **(_reader_context_or_none(request, actor, selected) if selected else {}),
    }


def _reader_context_or_none(request: HttpRequest, actor: Actor, memory_id: UUID) -> dict[str, Any]:
    try:
        return {"reader": reader_context(request, actor, memory_id)}
    except NotFound:
        return _inactive_context_or_none(actor, memory_id)
    except DomainError:
        return {}  # the selected memory no longer exists; the list is shown without the pane


def _inactive_context_or_none(actor: Actor, memory_id: UUID) -> dict[str, Any]:
    try:
        return {"reader": inactive_context(actor, memory_id)}
    except NotFound:
        return {}


def _read_columns(request: HttpRequest) -> list[str]:
    """Return the columns chosen in this browser session."""
    if "columns" in request.GET:
        request.session[SESSION_COLUMNS] = [column for column in COLUMNS if column in request.GET.getlist("columns")]
    chosen: list[str] = request.session.get(SESSION_COLUMNS, list(COLUMNS))
    return chosen

"""The suggestions under the search field of every page: memories, actions, pages."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.vocabulary import Permission
from governance.web.navigation import Link, navigation_of, settings_of
from governance.web.pages import draw, safe_page
from vault.listing.queries import LONGEST_TEXT, MemoryQuery
from vault.listing.selectors import memories_page
from vault.web.memory_rows import rows_make

MEMORIES, PAGES = 6, 6  # shown


@safe_page
def palette(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the suggestions, a part of a page. Without words it shows the newest memories. Writes: AuditEntry."""
    text = request.GET.get("q", "").strip()[:LONGEST_TEXT].replace("\x00", "")
    pages = _find_pages(actor, text)
    page_found = memories_page(actor=actor, query=MemoryQuery(text=text), size=MEMORIES)
    context = {
        "text": text,
        "rows": rows_make(page_found, text)[:MEMORIES],
        "total": len(page_found.views),
        "is_nearest": page_found.is_nearest,
        "all_address": f"{reverse('memories')}?{urlencode({'q': text})}",
        "actions": _list_actions(actor, text),
        "pages": pages,
        "pages_first": bool(pages) and bool(text) and (page_found.is_nearest or _names_a_page(pages, text)),
    }
    return draw(request, "shared/_palette_list.html", context)


def _list_actions(actor: Actor, text: str) -> list[Link]:
    actions = []
    if is_allowed(actor, Permission.MEMORY_CREATE):
        label = _("Add memory “%(text)s”") % {"text": text} if text else _("Add a memory")
        actions.append(Link(label, f"{reverse('memory_add')}?{urlencode({'content': text})}", "plus", "n", False))
    if is_allowed(actor, Permission.CONVERSATION_USE):
        label = _("Ask the chat about “%(text)s”") % {"text": text} if text else _("Ask the chat")
        actions.append(Link(label, f"{reverse('chat')}?{urlencode({'q': text})}", "message-circle", "", False))
    return actions


def _find_pages(actor: Actor, text: str) -> list[Link]:
    links = [link for group in navigation_of(actor, "") for link in group.links] + settings_of(actor, "")
    if is_allowed(actor, Permission.MEMORY_DELETE):
        label = _("Not active: trash, deleted, expired, archived")
        links.append(Link(label, f"{reverse('memories')}?inactive=true", "trash", "", False))
    return [link for link in links if text.casefold() in link.label.casefold()][:PAGES]


def _names_a_page(pages: Sequence[Link], text: str) -> bool:
    """Return whether the text begins a word in the name of a page: its reader wants to go there."""
    words = (word for link in pages for word in [str(link.label), *str(link.label).split()])
    return any(word.casefold().startswith(text.casefold()) for word in words)

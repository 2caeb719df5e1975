"""The bell in the top bar: the number of open items for the reader, with links to the pages that solve them."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission
from governance.web.pages import draw, safe_page, wants_part
from vault.overview.attention import attention_list
from vault.overview.selectors import SOON, overview_get
from vault.web.overview import make_line


@safe_page
def notices(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the page of open items; a script gets only the mark on the bell."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found = overview_get(actor=actor, days=SOON)
        waiting = attention_list(actor=actor, overview=found)
        lines = [line for item in waiting if (line := make_line(item, found))]
        template = "vault/overview/_bell.html" if wants_part(request) else "vault/overview/notices.html"
        return draw(request, template, {"waiting": lines})

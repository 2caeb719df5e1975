"""The page that simulates a search as a key, a member or a persona."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from governance.access.decisions.services import authorize
from governance.access.grants.overview import principals_to_choose
from governance.actor import Actor, CallContext
from governance.errors import Forbidden, Invalid
from governance.vocabulary import Channel, Permission
from governance.web.access_words import KINDS
from governance.web.pages import draw, safe_page
from vault.listing.recall import Recall, recall_simulate
from vault.web.memory_rows import row_make


@safe_page
def recall(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the search results with those that the chosen principal would get. Raises Forbidden."""
    authorize(actor, Permission.GRANT_MANAGE)
    chosen, text = request.GET.get("as", ""), request.GET.get("q", "")
    purpose = request.GET.get("purpose", "")[:200]
    context: dict[str, Any] = {
        "holders": [
            (f"{principal.kind}:{principal.id}", KINDS[principal.kind], principal.name)
            for principal in principals_to_choose(actor=actor)
        ],
        "chosen": chosen,
        "text": text,
        "purpose": purpose,
        "may_manage_access": True,
    }
    kind, _separator, principal = chosen.partition(":")
    if principal:
        asked = CallContext(channel=Channel.API, purpose=purpose)
        try:
            recall_result = recall_simulate(actor=actor, kind=kind, principal=principal, text=text, context=asked)
            context |= {"found": recall_result, "rows": _make_rows(recall_result, text)}
        except (Forbidden, Invalid) as failure:
            context["fault"] = failure.detail
    return draw(request, "vault/recall.html", context)


def _make_rows(recall_result: Recall, text: str) -> list[tuple[Any, bool]]:
    return [(row_make(view, text), is_reachable) for view, is_reachable in recall_result.found]

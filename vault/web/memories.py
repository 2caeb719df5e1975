"""One memory: a page of its own, and the pane beside a chat; both include the same file."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from governance.actor import Actor
from governance.database import acting
from governance.web.pages import draw, page, wants_part
from governance.web.paging import Newest, number_or_none
from vault.cubes.selectors import cube_get, versions_list
from vault.reviews.selectors import findings_list
from vault.web.findings import marked
from vault.web.holds import keeping_context
from vault.web.labels import labels_of

VERSIONS = 20  # of one page


@require_http_methods(["GET", "HEAD"])
@page
def memory(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    in_pane = wants_part(request)
    template = "vault/memories/_memory.html" if in_pane else "vault/memories/memory.html"
    with acting(actor):  # one transaction for all that the page reads
        view = cube_get(actor=actor, cube_id=memory_id)
        take = Newest(size=VERSIONS, key="number", cursor=number_or_none(request.GET.get("before", "")))
        context = {
            "memory": view,
            "labels": labels_of(view.cube),
            "pieces": marked(view.words.content, findings_list(actor=actor, cube_id=memory_id)),
            "metadata": metadata_lines(view.words.metadata),
            "versions": versions_list(actor=actor, cube_id=memory_id, paginate=take),
            "versions_older": take.older,
            "in_pane": in_pane,
            **keeping_context(actor, view),
        }
        return draw(request, template, context)


def metadata_lines(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The caller's JSON object, one line for each name; what is not a plain text is shown as JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
        for name, value in metadata.items()
    ]

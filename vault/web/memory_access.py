"""Readers of a memory, past and possible, as far as the actor may know them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.access.grants.selectors import GrantFilter, grants_list
from governance.actor import Actor
from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import entries_by_day, entries_list
from governance.database import acting
from governance.vocabulary import Outcome, Permission, Verb
from governance.web.audit_lines import Line, lines_of
from governance.web.charts import bars_of
from governance.web.grant_lines import describe_grants
from governance.web.pages import draw, safe_page, wants_part
from governance.web.pagination import Newest, NewestMerged
from vault.cubes.lookup import cube_target, locate_readable
from vault.cubes.selectors import CubeView

GRANTS, READERS = 6, 8  # shown
DAYS = 30  # of the use over time
USES = (Verb.MEMORY_READ, Verb.MEMORY_SEARCHED, Verb.TURN_CREATED)  # being listed does not count as use
READINGS: dict[str, Promise] = {
    Verb.MEMORY_READ: _("Opened"),
    Verb.MEMORY_SEARCHED: _("Found by a search"),
    Verb.MEMORY_LISTED: _("Seen in a list"),
    Verb.VERSIONS_READ: _("Versions compared"),
    Verb.TURN_CREATED: _("Used in a chat answer"),
    Verb.PROVENANCE_READ: _("Origin read"),
    Verb.ACCESS_DENIED: _("Refused"),
}


def access_context(actor: Actor, view: CubeView) -> dict[str, Any]:
    """Return the context with the grants, for actors who may share the memory. Use inside `acting`.
    Writes: AuditEntry?."""
    return {"grants": _list_grants(actor, view), "may_audit": is_allowed(actor, Permission.AUDIT_READ)}


@safe_page
def readers(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Show the past readers of the memory, as a part of its page, or as a page without JavaScript."""
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        locate_readable(actor, memory_id)
        lines = [(READINGS.get(line.entry.verb, line.entry.verb), line) for line in _list_readers(actor, memory_id)]
        asked = AuditQuery(object_id=memory_id, outcome=Outcome.DONE)
        reads = entries_by_day(actor=actor, query=asked, verbs=USES, days=DAYS)
        context = {
            "lines": lines,
            "memory_id": memory_id,
            "reads": sum(reads),
            "bars": bars_of(reads, every="is-on"),
            "since": timezone.localdate() - timedelta(days=DAYS - 1),
        }
        template = "vault/memories/_readers.html" if wants_part(request) else "vault/memories/readers.html"
        return draw(request, template, context)


def _list_grants(actor: Actor, view: CubeView) -> Any:
    if not is_allowed(actor, Permission.ACCESS_SHARE, cube_target(view.cube)):
        return None
    wanted = GrantFilter(object_type="memory", object_id=view.cube.id)
    found = grants_list(actor=actor, wanted=wanted, pages=NewestMerged(GRANTS, ""))
    return describe_grants(actor, found)


def _list_readers(actor: Actor, memory_id: UUID) -> list[Line]:
    """Return the newest audit entries of readings, including denied ones."""
    take = Newest(size=READERS * 4, key="id")
    entries = entries_list(actor=actor, query=AuditQuery(object_id=memory_id), pages=take)
    reads = [entry for entry in entries if entry.verb in READINGS or entry.outcome == Outcome.DENIED]
    return lines_of(actor, reads[:READERS])

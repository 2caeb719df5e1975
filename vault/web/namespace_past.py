"""A namespace at an earlier time: its memories then, their changes since, and a restoration after a preview."""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid
from governance.object_names import names_find
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page, see_other
from governance.web.pagination import uuid_or_none
from vault.cubes.past import PastSummary
from vault.jobs.restoration import (
    PastEventKind,
    PastMemory,
    namespace_past,
    namespace_restore_ask,
    namespace_restore_later,
    namespace_restore_preview,
)
from vault.listing.selectors import memories_choose
from vault.namespaces.selectors import namespace_get
from vault.vocabulary import PastChange

CHANGES: dict[PastChange, tuple[Promise, str]] = {
    PastChange.UNCHANGED: (gettext_lazy("unchanged"), ""),
    PastChange.CHANGED: (gettext_lazy("changed since"), "chip-warn"),
    PastChange.DELETED: (gettext_lazy("deleted since"), "chip-bad"),
    PastChange.ADDED: (gettext_lazy("added since"), "chip-ok"),
    PastChange.RESTORED: (gettext_lazy("restored since"), "chip-ok"),
}
EXPIRED: tuple[Promise, str] = (gettext_lazy("expired since"), "chip-bad")
EVENTS: dict[PastEventKind, Promise] = {
    PastEventKind.DELETED: gettext_lazy("deleted"),
    PastEventKind.RESTORED: gettext_lazy("restored"),
    PastEventKind.EXPIRED: gettext_lazy("expired"),
}
OBSTACLES: dict[str, Promise] = {
    "held": gettext_lazy("A hold keeps them"),
    "expired": gettext_lazy("They have expired"),
    "redacted": gettext_lazy("Their former content was redacted"),
    "not_found": gettext_lazy("They were deleted too long ago"),
}

USUAL: tuple[tuple[Promise, timedelta], ...] = (
    (gettext_lazy("An hour ago"), timedelta(hours=1)),
    (gettext_lazy("A day ago"), timedelta(days=1)),
    (gettext_lazy("A week ago"), timedelta(days=7)),
)


@form_page
def past(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """GET shows the namespace at the time `at`; POST previews its restoration, and with `confirmed` starts it."""
    given = request.POST if request.method == "POST" else request.GET
    text = given.get("at", "")
    try:
        at = _parse_time(text)
        if request.method != "POST":
            return _draw_past(request, actor, namespace_id, at, text)
        if "confirmed" in given:
            job = namespace_restore_later(actor=actor, namespace_id=namespace_id, as_of=at)
            return see_other(reverse("job", args=[job.id]))
        summary = namespace_restore_preview(actor=actor, namespace_id=namespace_id, as_of=at)
    except Invalid:
        fault = _("Choose a time in the past.")
        return _draw_past(request, actor, namespace_id, timezone.now(), text, fault=fault)
    return _draw_past(request, actor, namespace_id, at, text, summary=summary)


def _draw_past(
    request: HttpRequest,
    actor: Actor,
    namespace_id: UUID,
    at: datetime,
    text: str,
    *,
    fault: str = "",
    summary: PastSummary | None = None,
) -> HttpResponseBase:
    after = uuid_or_none(request.GET.get("after", ""))
    with acting(actor):
        found = namespace_past(actor=actor, namespace_id=namespace_id, as_of=at, after=after)
        context: dict[str, Any] = {
            "namespace": namespace_get(actor=actor, namespace_id=namespace_id).view.namespace,
            "rows": [_describe_memory(memory) for memory in found.memories],
            "next": found.next,
            "at": text or at.isoformat(),
            "local": _format_local(at),
            "moment": at,
            "usual": [(words, _format_local(timezone.now() - ago)) for words, ago in USUAL],
            "fault": fault,
            "may_restore": _may_restore(actor, namespace_id),
            "summary": summary,
            **_name_those_that_stay(actor, summary),
            "counts": _list_counts(summary),
            "obstacles": [(OBSTACLES[code], count) for code, count in summary.obstacles.items()] if summary else [],
        }
        status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
        return draw(request, "vault/namespaces/past.html", context, status=status)


def _describe_memory(memory: PastMemory) -> tuple[PastMemory, Promise, str, list[tuple[Promise, datetime]]]:
    """Return a memory with the words and class of its change, and its events since in words."""
    words, mark = CHANGES[memory.change]
    if memory.change is not PastChange.DELETED and memory.events and memory.events[-1].kind is PastEventKind.EXPIRED:
        words, mark = EXPIRED
    return memory, words, mark, [(EVENTS[event.kind], event.at) for event in memory.events]


def _name_those_that_stay(actor: Actor, summary: PastSummary | None) -> dict[str, Any]:
    """Return the held memories by their words, and the purged ones by namespace and time."""
    if summary is None:
        return {}
    views = memories_choose(actor=actor, ids=list(summary.held))
    names = names_find(actor.tenant_id, {purge.namespace_id for purge in summary.purges})
    return {
        "held": [(view.cube.id, view.words.title or view.words.content) for view in views],
        "held_unnamed": len(summary.held) - len(views),
        "purged": [(names.get(purge.namespace_id), purge.at) for purge in summary.purges],
    }


def _format_local(at: datetime) -> str:
    """Format a time for a browser's date and time field."""
    return timezone.localtime(at).strftime("%Y-%m-%dT%H:%M:%S")


def _list_counts(summary: PastSummary | None) -> list[tuple[Promise, int]]:
    if summary is None:
        return []
    return [(CHANGES[change][0], count) for change, count in summary.counts.items() if change != PastChange.UNCHANGED]


def _may_restore(actor: Actor, namespace_id: UUID) -> bool:
    if not is_allowed(actor, Permission.MEMORY_UPDATE):
        return False
    try:
        namespace_restore_ask(actor=actor, namespace_id=namespace_id)
    except Forbidden:
        return False
    return True


def _parse_time(text: str) -> datetime:
    """Read a browser's date and time, in the reader's time zone; empty: now. Raises Invalid."""
    if not text:
        return timezone.now()
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(errors=[FieldError("at", _("choose one"))]) from error
    return found if found.tzinfo else found.replace(tzinfo=timezone.get_current_timezone())

"""Peers: namespaces of other installations that are synchronized with local ones, and their sync jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict, DomainError, FieldError, Invalid
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import Permission
from governance.web.faults import fault_texts
from governance.web.job_words import STATUSES, error_words
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from vault.exchange.sync.peers import (
    PeerDraft,
    PeerView,
    peer_create,
    peer_get,
    peer_remove,
    peer_schedule,
    peer_sync,
    peer_update,
)
from vault.exchange.sync.wire import FOREIGN, KEY_UNKNOWN, NAMESPACE_UNKNOWN
from vault.listing.selectors import paths_list
from vault.vocabulary import SyncDirection

DIRECTIONS: dict[SyncDirection, Promise] = {
    SyncDirection.BOTH: gettext_lazy("Both ways"),
    SyncDirection.PULL: gettext_lazy("From there to here"),
    SyncDirection.PUSH: gettext_lazy("From here to there"),
}
RHYTHMS: dict[str, Promise] = {
    "": gettext_lazy("Only by hand"),
    "*/15 * * * *": gettext_lazy("Every 15 minutes"),
    "0 * * * *": gettext_lazy("Every hour"),
    "0 3 * * *": gettext_lazy("Every day at 03:00 UTC"),
}
COUNTS: dict[str, Promise] = {
    "received": gettext_lazy("%(n)s new here"),
    "updated_here": gettext_lazy("%(n)s updated here"),
    "deleted_here": gettext_lazy("%(n)s deleted here"),
    "sent": gettext_lazy("%(n)s new there"),
    "updated_there": gettext_lazy("%(n)s updated there"),
    "deleted_there": gettext_lazy("%(n)s deleted there"),
    "kept": gettext_lazy("%(n)s changed on one side and deleted on the other; they stay"),
    "conflicts": gettext_lazy("%(n)s changed on both sides; they wait in the review inbox"),
}
REASONS: dict[str, Promise] = {
    "secret": gettext_lazy("holds a secret"),
    "policy": gettext_lazy("a sharing policy keeps it here"),
    "not_shared": gettext_lazy("confidential, from a pack, or in another namespace now"),
    "held": gettext_lazy("a hold keeps it as it is"),
    "gone": gettext_lazy("not readable here"),
    "pii_refused": gettext_lazy("personal data is refused here"),
    "other_conflict": gettext_lazy("another conflict of the memory waits"),
}
FAILURES: dict[str, Promise] = {
    KEY_UNKNOWN: gettext_lazy("The other installation does not know the API key. Change the key, then sync again."),
    NAMESPACE_UNKNOWN: gettext_lazy("The other installation has no such namespace, or the key may not read it."),
    FOREIGN: gettext_lazy("The other installation answers what this one does not understand. Compare their versions."),
}
FIELDS = ("name", "address", "key", "namespace", "remote_namespace", "direction")


@dataclass(frozen=True)
class ShownSync:
    """The newest sync of a peer. notes: sentences about its results."""

    view: JobView
    mark: str
    status: Promise
    error: str
    notes: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        return self.view.status in OPEN

    @property
    def percent(self) -> int:
        return int(self.view.progress * 100)


@dataclass(frozen=True)
class ShownPeer:
    view: PeerView
    direction: Promise
    rhythm: Promise | str
    sync: ShownSync | None


def make_shown_peer(view: PeerView) -> ShownPeer:
    last = _make_shown_sync(view.last_job) if view.last_job else None
    return ShownPeer(view, DIRECTIONS[view.direction], RHYTHMS.get(view.cron, view.cron), last)


@form_page
def peer_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.OPERATIONS_MANAGE)
    if request.method != "POST":
        return _draw_form(request, actor)
    given = {name: request.POST.get(name, "").strip() for name in FIELDS}
    try:
        direction = SyncDirection(given.pop("direction"))
    except ValueError:
        return _draw_form(request, actor, [FieldError("direction", _("Choose a direction."))])
    try:
        made = peer_create(actor=actor, draft=PeerDraft(**given, direction=direction))
    except Invalid as fault:
        return _draw_form(request, actor, fault.errors)
    except Conflict as fault:
        return _draw_form(request, actor, [FieldError("name", fault.detail)])
    return see_other(reverse("sync_peer", args=[made.id]))


@safe_page
def peer(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    """Show one peer; htmx gets only its last sync while one runs."""
    if wants_part(request):
        context = {"peer": make_shown_peer(peer_get(actor=actor, peer_id=peer_id))}
        return draw(request, "vault/exchange/_sync.html", context)
    return _draw_page(request, actor, peer_id)


@post_page
def peer_run(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    """Start a sync. If one runs already, the page says so."""
    try:
        peer_sync(actor=actor, peer_id=peer_id)
    except Conflict as fault:
        return _draw_page(request, actor, peer_id, [FieldError("", fault.detail)], HTTPStatus.CONFLICT)
    return see_other(reverse("sync_peer", args=[peer_id]))


@post_page
def peer_change(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    """Change direction and schedule, and the key if a new one is given."""
    peer_get(actor=actor, peer_id=peer_id)
    key, cron = request.POST.get("key", "").strip(), request.POST.get("cron", "").strip()
    try:
        changes: dict[str, Any] = {"direction": SyncDirection(request.POST.get("direction", ""))}
    except ValueError:
        return _draw_page(request, actor, peer_id, [FieldError("direction", _("Choose a direction."))])
    try:
        view = peer_update(actor=actor, peer_id=peer_id, changes=changes | ({"key": key} if key else {}))
        if cron != view.cron:
            peer_schedule(actor=actor, peer_id=peer_id, cron=cron)
    except Invalid as fault:
        return _draw_page(request, actor, peer_id, fault.errors)
    return see_other(reverse("sync_peer", args=[peer_id]))


@post_page
def peer_end(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    peer_remove(actor=actor, peer_id=peer_id)
    return see_other(reverse("exchange"))


def _draw_form(request: HttpRequest, actor: Actor, faults: Sequence[FieldError] = ()) -> HttpResponseBase:
    context = {
        "asked": {name: request.POST.get(name, "") for name in FIELDS if name != "key"},
        "directions": DIRECTIONS,
        "places": paths_list(actor=actor),
        "faults": fault_texts(faults),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if faults else HTTPStatus.OK
    return draw(request, "vault/exchange/peer_new.html", context, status=status)


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    peer_id: UUID,
    faults: Sequence[FieldError] = (),
    status: int = HTTPStatus.UNPROCESSABLE_ENTITY,
) -> HttpResponseBase:
    shown = make_shown_peer(peer_get(actor=actor, peer_id=peer_id))
    rhythms: dict[str, Promise | str] = {**RHYTHMS, shown.view.cron: shown.rhythm}
    context = {
        "peer": shown,
        "directions": DIRECTIONS,
        "rhythms": rhythms,
        "faults": fault_texts(faults),
    }
    return draw(request, "vault/exchange/peer.html", context, status=status if faults else HTTPStatus.OK)


def _make_shown_sync(view: JobView) -> ShownSync:
    mark, status = STATUSES[view.status]
    result = view.result if isinstance(view.result, Mapping) else {}
    return ShownSync(view, mark, status, _describe_failure(view), tuple(_make_notes(result.get("counts", {}), view)))


def _describe_failure(view: JobView) -> str:
    """Return the reason of a failed sync, as the peer reported it."""
    if view.error is None or view.error.get("code") == DomainError.code:
        return error_words(view)
    detail = str(view.error.get("detail", ""))
    return str(FAILURES.get(detail, detail))


def _make_notes(counts: Mapping[str, Any], view: JobView) -> list[str]:
    notes = [str(words) % {"n": counts[name]} for name, words in COUNTS.items() if counts.get(name)]
    left_out = counts.get("left_out", {})
    notes += [
        _("%(n)s left out: %(reason)s") % {"n": count, "reason": REASONS.get(reason, reason)}
        for reason, count in left_out.items()
    ]
    if not notes and view.status not in OPEN and not view.error:
        notes.append(_("Nothing had changed."))
    return notes

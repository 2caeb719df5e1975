"""Peers: namespaces of other installations that are synchronized with local ones, and their sync jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict, DomainError
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import Permission
from governance.web.job_words import STATUSES, error_words
from governance.web.page_forms import PageForm, values_of
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
from vault.namespaces.rules import LONGEST_PATH
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


class PeerForm(PageForm):
    """A peer to add."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    address = forms.CharField(
        label=gettext_lazy("Address of the other installation"),
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "https://memos.example"}),
    )
    key = forms.CharField(
        label=gettext_lazy("API key of the other installation"),
        max_length=500,
        help_text=gettext_lazy("Made there under API keys, with the scopes memories:read and memories:write."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    namespace = forms.CharField(
        label=gettext_lazy("Namespace here"),
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"placeholder": "/team/notes", "list": "peer-places"}),
    )
    remote_namespace = forms.CharField(
        label=gettext_lazy("Namespace there"),
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"placeholder": "/team/notes"}),
    )
    direction = forms.ChoiceField(label=gettext_lazy("Direction"), choices=list(DIRECTIONS.items()))

    def draft(self) -> PeerDraft:
        return PeerDraft(**self.cleaned_data | {"direction": SyncDirection(self.cleaned_data["direction"])})


class PeerChangeForm(PageForm):
    """Direction, schedule and key of a peer. rhythms: the schedules to choose from, with that of the peer."""

    direction = forms.ChoiceField(label=gettext_lazy("Direction"), choices=list(DIRECTIONS.items()))
    cron = forms.ChoiceField(label=gettext_lazy("Runs"), required=False)
    key = forms.CharField(
        label=gettext_lazy("New API key of the other installation"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("Leave it empty to keep the present key."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict | None, view: PeerView) -> None:
        super().__init__(data, initial={"direction": view.direction, "cron": view.cron})
        field = self.fields["cron"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = list({**RHYTHMS, view.cron: RHYTHMS.get(view.cron, view.cron)}.items())

    def changes(self) -> dict[str, Any]:
        """Return direction and key, without a key if none is given."""
        key = self.cleaned_data["key"]
        return {"direction": SyncDirection(self.cleaned_data["direction"])} | ({"key": key} if key else {})


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
    form = PeerForm(values_of(request))
    made = form.made_by(lambda: peer_create(actor=actor, draft=form.draft()))
    if made is not None:
        return see_other(reverse("sync_peer", args=[made.id]))
    context = {"form": form, "places": paths_list(actor=actor)}
    return draw(request, "vault/exchange/peer_new.html", context, status=form.status)


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
        return _draw_page(request, actor, peer_id, {"detail": fault.detail}, HTTPStatus.CONFLICT)
    return see_other(reverse("sync_peer", args=[peer_id]))


@post_page
def peer_change(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    """Change direction and schedule, and the key if a new one is given."""
    view = peer_get(actor=actor, peer_id=peer_id)
    form = PeerChangeForm(request.POST, view)

    def change() -> bool:
        peer_update(actor=actor, peer_id=peer_id, changes=form.changes())
        if form.cleaned_data["cron"] != view.cron:
            peer_schedule(actor=actor, peer_id=peer_id, cron=form.cleaned_data["cron"])
        return True

    if form.made_by(change):
        return see_other(reverse("sync_peer", args=[peer_id]))
    return _draw_page(request, actor, peer_id, {"form": form}, form.status)


@post_page
def peer_end(request: HttpRequest, actor: Actor, peer_id: UUID) -> HttpResponseBase:
    peer_remove(actor=actor, peer_id=peer_id)
    return see_other(reverse("exchange"))


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    peer_id: UUID,
    more: Mapping[str, Any] | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    view = peer_get(actor=actor, peer_id=peer_id)
    context = {"peer": make_shown_peer(view), "form": PeerChangeForm(None, view), **(more or {})}
    return draw(request, "vault/exchange/peer.html", context, status=status)


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

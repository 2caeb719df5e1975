"""The organisation's own packs: versions, files, withdrawals, and pending approvals."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.vocabulary import Permission
from governance.web.page_forms import values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from governance.web.pagination import NewestOf
from vault.store.files import LARGEST_FILE, PackInvalid
from vault.store.publications import (
    publication_approve,
    publication_find,
    publication_get,
    publication_reject,
    publications_list,
    version_remove,
    version_yank,
)
from vault.store.selectors import (
    Verdict,
    file_verify,
    pack_get,
    packs_list,
    version_file,
    version_get,
    version_items,
    versions_list,
)
from vault.store.services import pack_remove, pack_update, version_deprecate
from vault.vocabulary import PackState, PackTopic, PublicationState, Visibility
from vault.web.labels import SEMANTIC_TYPES
from vault.web.reviews import STORE, draw_inbox
from vault.web.store_forms import VISIBILITIES, PackForm, ReasonForm, RefusalForm, initial_values
from vault.web.store_publish import reasons_translate
from vault.web.store_words import PACK_MARKS, PACK_STATES, topic_colour, topic_icon

if TYPE_CHECKING:
    from vault.models import Pack, PackVersion, Publication

PACK_TYPE = "application/vnd.memos.mempack+zip"
PACKS, VERSIONS, ITEMS = 50, 50, 200  # of one page
PUBLICATION_STATES: dict[PublicationState, Promise] = {
    PublicationState.WAITING: _("waits for an approval"),
    PublicationState.PUBLISHED: _("published"),
    PublicationState.REJECTED: _("rejected"),
    PublicationState.HIDDEN: _("hidden by the operator"),
    PublicationState.BANNED: _("banned by the operator"),
}
PUBLICATION_MARKS: dict[PublicationState, str] = {
    PublicationState.WAITING: "state-waiting",
    PublicationState.PUBLISHED: "state-activated",
    PublicationState.REJECTED: "state-failed",
    PublicationState.HIDDEN: "state-archived",
    PublicationState.BANNED: "state-failed",
}


@dataclass(frozen=True)
class ShownPack:
    pack: "Pack"
    icon: str
    colour: int
    newest: "PackVersion | None"
    newest_state: str
    publication: "Publication | None"
    state: str
    mark: str
    visibility: str


@dataclass(frozen=True)
class OwnVersion:
    """A version with the possible actions. blocked: (memory id, reasons) of the memories that block it."""

    row: "PackVersion"
    state: Promise
    mark: str
    blocked: tuple[tuple[str, str], ...]
    is_offered: bool
    is_waiting: bool

    @property
    def is_ready(self) -> bool:
        return self.row.state == PackState.READY

    @property
    def may_withdraw(self) -> bool:
        return self.row.state in {PackState.READY, PackState.DEPRECATED}


@safe_page
def own_packs(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the organisation's own packs with their publications, and a form that checks a file."""
    authorize(actor, Permission.STORE_MANAGE)
    return _draw_own_packs(request, actor)


@post_page
def check(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Check an uploaded pack file. Nothing of it is stored."""
    authorize(actor, Permission.STORE_MANAGE)
    upload = request.FILES.get("file")
    if upload is None or upload.size is None or upload.size > LARGEST_FILE:
        return _draw_own_packs(request, actor, fault=_("Choose a .mempack file of at most 16 MB."))
    try:
        verdict = file_verify(actor=actor, content=upload.read())
    except PackInvalid as failure:
        return _draw_own_packs(request, actor, fault=failure.detail or failure.title)
    return _draw_own_packs(request, actor, verdict=verdict)


@form_page
def own_pack(request: HttpRequest, actor: Actor, pack_id: UUID) -> HttpResponseBase:
    """Show one of the organisation's packs with its versions; POST changes its texts."""
    pack = pack_get(actor=actor, pack_id=pack_id)
    form = _make_form(pack, values_of(request))
    if form.is_done_by(lambda: pack_update(actor=actor, pack_id=pack_id, changes=form.changes())):
        return see_other(reverse("store_own_pack", args=[pack_id]))
    return _draw_pack(request, actor, pack, form)


def _make_form(pack: "Pack", data: QueryDict | None = None) -> PackForm:
    form = PackForm(data, initial=initial_values(pack))
    form.fields["name"].disabled = True
    return form


def _draw_pack(
    request: HttpRequest, actor: Actor, pack: "Pack", form: PackForm, withdrawn: tuple[str, ReasonForm] | None = None
) -> HttpResponseBase:
    """Draw the page of a pack. withdrawn: the number of a version, with the refused form to withdraw it."""
    publication = publication_find(actor=actor, pack_id=pack.id)
    rows = versions_list(actor=actor, pack_id=pack.id, pages=NewestOf(VERSIONS, ""))
    refused = dict([withdrawn]) if withdrawn else {}
    context = {
        "shown": _make_shown_pack(pack, rows[0] if rows else None, publication),
        "form": form,
        "versions": [
            (_make_own_version(row, publication), refused.get(row.number) or ReasonForm(auto_id=f"{row.id}_%s"))
            for row in rows
        ],
        "is_scanning": any(row.state == PackState.SCANNING for row in rows),
    }
    status = max(shown.status for shown in (form, *refused.values()))
    return draw(request, "vault/store/own_pack.html", context, status=status)


@safe_page
def version(request: HttpRequest, actor: Actor, pack_id: UUID, number: str) -> HttpResponseBase:
    """Show the memories of a version, as its readers get them."""
    row = version_get(actor=actor, pack_id=pack_id, number=number)
    items = version_items(actor=actor, version_id=row.id).items
    shown = [(item, SEMANTIC_TYPES[item.semantic_type]) for item in items[:ITEMS]]
    return draw(request, "vault/store/version.html", {"version": row, "items": shown, "total": len(items)})


@safe_page
def version_download(request: HttpRequest, actor: Actor, pack_id: UUID, number: str) -> HttpResponseBase:
    row = version_get(actor=actor, pack_id=pack_id, number=number)
    content = version_file(actor=actor, version_id=row.id)
    disposition = f'attachment; filename="{row.pack.name}-{row.number}.mempack"'
    return HttpResponse(content, content_type=PACK_TYPE, headers={"Content-Disposition": disposition})


@post_page
def version_withdraw(request: HttpRequest, actor: Actor, pack_id: UUID, number: str) -> HttpResponseBase:
    """Deprecate the version, or with `yank` yank it, for a reason that subscribers read; with `delete`, delete it."""
    row = version_get(actor=actor, pack_id=pack_id, number=number)
    if "delete" in request.POST:
        version_remove(actor=actor, version_id=row.id)
        return see_other(reverse("store_own_pack", args=[pack_id]))
    form = ReasonForm(request.POST, auto_id=f"{row.id}_%s")
    withdraw = version_yank if "yank" in request.POST else version_deprecate
    if form.is_done_by(lambda: withdraw(actor=actor, version_id=row.id, **form.cleaned_data)):
        return see_other(reverse("store_own_pack", args=[pack_id]))
    pack = pack_get(actor=actor, pack_id=pack_id)
    return _draw_pack(request, actor, pack, _make_form(pack), (number, form))


@post_page
def pack_delete(request: HttpRequest, actor: Actor, pack_id: UUID) -> HttpResponseBase:
    pack_remove(actor=actor, pack_id=pack_id)
    return see_other(reverse("store_own"))


@post_page
def decide(request: HttpRequest, actor: Actor, publication_id: UUID) -> HttpResponseBase:
    """Approve the waiting version, or with `reject` refuse it for a reason."""
    publication_get(actor=actor, publication_id=publication_id)
    if "reject" in request.POST:
        form = RefusalForm(request.POST, auto_id=f"{publication_id}_%s")
        if not form.is_valid():
            return draw_inbox(request, actor, STORE, {publication_id: form})
        publication_reject(actor=actor, publication_id=publication_id, **form.cleaned_data)
    else:
        publication_approve(actor=actor, publication_id=publication_id)
    return see_other(reverse("reviews"))


def _draw_own_packs(
    request: HttpRequest, actor: Actor, *, verdict: Verdict | None = None, fault: str | Promise = ""
) -> HttpResponseBase:
    packs = packs_list(actor=actor, pages=NewestOf(PACKS, ""))
    offers = {
        publication.pack_id: publication for publication in publications_list(actor=actor, pages=NewestOf(PACKS, ""))
    }
    context = {
        "packs": [_make_shown_pack(pack, newest, offers.get(pack.id)) for pack, newest in packs],
        "verdict": verdict,
        "fault": fault,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
    return draw(request, "vault/store/own.html", context, status=status)


def _make_shown_pack(pack: "Pack", newest: "PackVersion | None", publication: "Publication | None") -> ShownPack:
    topic = PackTopic(pack.topic)
    state = PublicationState(publication.state) if publication else None
    if publication and publication.waiting_id:
        state = PublicationState.WAITING
    return ShownPack(
        pack=pack,
        icon=topic_icon(topic),
        colour=topic_colour(topic),
        newest=newest,
        newest_state=str(PACK_STATES[PackState(newest.state)]) if newest else "",
        publication=publication,
        state=str(PUBLICATION_STATES[state]) if state else "",
        mark=PUBLICATION_MARKS[state] if state else "",
        visibility=str(VISIBILITIES[Visibility(publication.visibility)]) if publication else "",
    )


def _make_own_version(row: "PackVersion", publication: "Publication | None") -> OwnVersion:
    state = PackState(row.state)
    blocked = tuple(
        (memory["memory_id"], ", ".join(reasons_translate(memory["kinds"]))) for memory in row.report.get("blocked", [])
    )
    return OwnVersion(
        row=row,
        state=PACK_STATES[state],
        mark=PACK_MARKS[state],
        blocked=blocked if state is PackState.BLOCKED else (),
        is_offered=publication is not None and publication.version_id == row.id,
        is_waiting=publication is not None and publication.waiting_id == row.id,
    )

"""Publishing of a pack in steps: its texts, its memories with their treatment, then the offer of a version.

The choice of memories, made in the list of memories, is stored in the session until another choice is made.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
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
from governance.errors import Conflict, Invalid
from governance.policies.selectors import publish_approval
from governance.vocabulary import Permission, PersonalKind, PiiKind
from governance.web.pages import draw, form_page, see_other
from governance.web.pagination import NewestOf, uuid_or_none
from vault.deidentification.deidentifier import Mark, Undecided
from vault.forms.selectors import adapters_offered
from vault.listing.selectors import paths_list
from vault.store.numbers import Number, number_read
from vault.store.publications import PublicationDraft, publication_create, publication_find, tenant_ids_of_slugs
from vault.store.scan import Leaving, LeavingRules
from vault.store.selectors import pack_get, packs_list, version_get, versions_list
from vault.store.services import (
    MOST_ACCEPTED,
    MOST_IDS,
    MOST_NAMES,
    PREVIEWED,
    VersionDraft,
    pack_create,
    version_build,
    version_preview,
)
from vault.vocabulary import PackState, Treatment, Visibility
from vault.web.labels import PII_KINDS
from vault.web.memory_actions import draft_read
from vault.web.memory_forms import chosen_read
from vault.web.store_forms import OfferForm, PackForm, VersionForm

CHOICE = "pack_choice"  # of the session
CONFIRM, ACCEPT, REPLACE = "confirm", "accept", "replace"  # fields about the preview
PACKS, VERSIONS = 50, 50  # that the forms offer or look at
FIRST = "1.0.0"
TREATMENTS: dict[Treatment, Promise] = {
    Treatment.AS_IS: gettext_lazy("leaves unchanged"),
    Treatment.REDACTED: gettext_lazy("leaves redacted"),
    Treatment.ANONYMISED: gettext_lazy("leaves anonymised"),
    Treatment.DROPPED: gettext_lazy("stays here"),
    Treatment.BLOCKED: gettext_lazy("stops the version"),
}
CHIPS: dict[Treatment, str] = {
    Treatment.AS_IS: "chip-ok",
    Treatment.REDACTED: "chip-accent",
    Treatment.ANONYMISED: "chip-accent",
    Treatment.DROPPED: "chip-soft",
    Treatment.BLOCKED: "chip-bad",
}
REASONS: dict[str, Promise] = {
    "pack": gettext_lazy("came with another pack"),
    "type": gettext_lazy("has no text"),
    "sensitivity": gettext_lazy("is confidential or restricted"),
    "policy": gettext_lazy("a policy forbids publishing it"),
    "subject": gettext_lazy("is about a person"),
    "length": gettext_lazy("is too long once names are replaced"),
    "pack_text": gettext_lazy("the texts of the pack name the person"),
    PersonalKind.PERSON: gettext_lazy("name"),
    PersonalKind.RELATIVE: gettext_lazy("relation"),
    PersonalKind.ADDRESS: gettext_lazy("address"),
    PersonalKind.BIRTH_DATE: gettext_lazy("date of birth"),
    PersonalKind.NUMBER: gettext_lazy("number of a person"),
}
PARTS: dict[str, Promise] = {
    "title": gettext_lazy("Title"),
    "content": gettext_lazy("Text"),
    "second": gettext_lazy("Second wording"),
    "tags": gettext_lazy("Tag"),
}
UNDECIDED: dict[str, Promise] = {
    "name": gettext_lazy("name"),
    "number": gettext_lazy("number"),
    "date": gettext_lazy("date"),
    "address": gettext_lazy("address"),
}


@dataclass(frozen=True)
class Piece:
    """A part of a text as it leaves. label: what was replaced here, or what is undecided; empty elsewhere."""

    text: str
    label: str = ""
    is_undecided: bool = False


@dataclass(frozen=True)
class ShownLeaving:
    """A decision in words. parts: the labelled texts of an anonymised memory, in pieces."""

    leaving: Leaving
    treatment: Promise
    chip: str
    reasons: str
    parts: tuple[tuple[str, tuple[Piece, ...]], ...] = ()


@dataclass(frozen=True)
class ShownUndecided:
    """A text that no rule decided, the memory that has it, and what the form says of it."""

    text: str
    kind: Promise
    memory_id: UUID
    is_accepted: bool
    is_replaced: bool


@form_page
def publish(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the first step: a new pack, or an existing one. The list of memories posts its selection here."""
    authorize(actor, Permission.STORE_MANAGE)
    if request.POST.get("choose") == "yes":
        _store_choice(request)
        return see_other(reverse("store_publish"))
    form = PackForm(request.POST or None, initial={"topic": "other"})
    if request.method == "POST" and form.is_valid():
        try:
            made = pack_create(actor=actor, draft=form.draft())
            return see_other(reverse("store_build", args=[made.id]))
        except Invalid as failure:
            form.blame(failure)
        except Conflict:
            form.add_error("name", _("You have a pack of this name. Choose another, or add a version to it above."))
    context = {
        "form": form,
        "choice": _describe_choice(request),
        "packs": packs_list(actor=actor, pages=NewestOf(PACKS, "")),
    }
    return draw(request, "vault/store/publish.html", context, status=form.status)


@form_page
def build(request: HttpRequest, actor: Actor, pack_id: UUID) -> HttpResponseBase:
    """Show the second step: the treatment of each memory. POST builds the version, or with `check` previews again."""
    pack = pack_get(actor=actor, pack_id=pack_id)
    if request.method != "POST" and _store_query_choice(request):
        return see_other(reverse("store_build", args=[pack_id]))
    if "choice" in request.GET:
        request.session.pop(CHOICE, None)
    initial = {"version": _next_number(actor, pack_id), "findings": "block", "subjects": "drop"}
    form = VersionForm(request.POST if request.method == "POST" else None, initial=initial)
    adapters = [(str(each.id), each.title) for each in adapters_offered(actor=actor) if not each.pack]
    form.offer_adapters(adapters)
    draft = _read_draft(request, form)
    if request.method == "POST" and form.is_valid() and draft is not None:
        draft = _remove_ticked(request, actor, pack_id, draft)
        try:
            if "check" not in request.POST:
                version_build(actor=actor, pack_id=pack_id, draft=draft)
                return see_other(reverse("store_own_pack", args=[pack_id]))
        except Invalid as failure:
            form.blame(failure)
        except Conflict as failure:
            form.add_error("version", failure.detail)
    decided = version_preview(actor=actor, pack_id=pack_id, draft=draft) if draft is not None else []
    counted = Counter(leaving.treatment for leaving in decided)
    context = {
        "pack": pack,
        "form": form,
        "choice": _describe_choice(request),
        "leaving": [_make_shown_leaving(leaving) for leaving in decided],
        "counts": [(TREATMENTS[kind], CHIPS[kind], counted[kind]) for kind in Treatment if counted[kind]],
        "is_blocked": bool(counted[Treatment.BLOCKED]),
        "leaves": sum(leaving.item is not None for leaving in decided),
        "is_cut": len(decided) >= PREVIEWED,
        "undecided": _list_undecided(request, decided),
        "is_anonymised": bool(counted[Treatment.ANONYMISED]),
        "is_confirmed": CONFIRM in request.POST,
        "replaced": request.POST.getlist(REPLACE)[:MOST_NAMES],
        "paths": paths_list(actor=actor) if draft is None else [],
    }
    return draw(request, "vault/store/build.html", context, status=form.status)


@form_page
def offer(request: HttpRequest, actor: Actor, pack_id: UUID, number: str) -> HttpResponseBase:
    """Show the last step: the readers of the version, and the terms."""
    version = version_get(actor=actor, pack_id=pack_id, number=number)
    published = publication_find(actor=actor, pack_id=pack_id)
    initial = {"visibility": published.visibility if published else Visibility.TENANT, "period": "month"}
    form = OfferForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            draft = PublicationDraft(
                version_id=version.id,
                visibility=form.visibility_chosen(),
                tenants=tenant_ids_of_slugs(form.cleaned_data["tenants"]),
                terms=form.terms(),
            )
            publication_create(actor=actor, draft=draft)
            return see_other(reverse("store_own_pack", args=[pack_id]))
        except Invalid as failure:
            form.blame(failure)
        except Conflict as failure:
            form.add_error(None, failure.detail)
    context = {"version": version, "form": form, "approval": publish_approval(actor=actor)}
    return draw(request, "vault/store/offer.html", context, status=form.status)


def _store_choice(request: HttpRequest) -> None:
    """Store the chosen memories in the session. Raises Invalid for a search, which has no fixed set of memories."""
    ids = list(chosen_read(request.POST))[:MOST_IDS]
    chosen = draft_read(request.POST, "export", ids)
    if chosen.filters is None:
        request.session[CHOICE] = {"ids": [str(cube_id) for cube_id in chosen.ids]}
    else:
        request.session[CHOICE] = {"filters": chosen.filters}


def _store_query_choice(request: HttpRequest) -> bool:
    """Store the namespace and tag of the form as the choice, and return whether there were any."""
    asked = {"namespace": request.GET.get("namespace", ""), "tags": request.GET.get("tag", "")}
    filters = {name: text.strip() for name, text in asked.items() if text.strip()}
    if filters:
        request.session[CHOICE] = {"filters": filters}
    return bool(filters)


def _describe_choice(request: HttpRequest) -> dict[str, Any] | None:
    """Return the choice in words, or None. count: number of selected memories, None for a query; query: its
    conditions."""
    choice = request.session.get(CHOICE)
    if not choice or not (choice.get("ids") or choice.get("filters")):
        return None
    filters = {name: value for name, value in choice.get("filters", {}).items() if isinstance(value, str)}
    return {"count": len(choice["ids"]) if "ids" in choice else None, "query": ", ".join(filters.values())}


def _read_draft(request: HttpRequest, form: VersionForm) -> VersionDraft | None:
    """Return the version of the form with the memories chosen in the session; None if none are chosen."""
    if _describe_choice(request) is None:
        return None
    choice = request.session[CHOICE]
    draft = VersionDraft(
        number=FIRST, ids=tuple(UUID(text) for text in choice.get("ids", ())), filters=choice.get("filters")
    )
    if not form.is_bound or not form.is_valid():
        return draft
    said = form.cleaned_data
    rules = _read_rules(request, form)
    return replace(draft, number=said["version"], changelog=said["changelog"], rules=rules, adapter=said["adapter"])


def _read_rules(request: HttpRequest, form: VersionForm) -> LeavingRules:
    """Return the rules of the form, with what its sender accepts and replaces of the preview."""
    accepted = frozenset(request.POST.getlist(ACCEPT)[:MOST_ACCEPTED])
    names = tuple(request.POST.getlist(REPLACE)[:MOST_NAMES])
    return replace(form.rules(), names=names, accepted=accepted, is_read=CONFIRM in request.POST)


def _remove_ticked(request: HttpRequest, actor: Actor, pack_id: UUID, draft: VersionDraft) -> VersionDraft:
    """Return the draft without the ticked memories. A query of few memories becomes a list of ids."""
    out = {cube_id for cube_id in (uuid_or_none(text) for text in request.POST.getlist("out")) if cube_id}
    if not out:
        return draft
    ids = draft.ids
    if draft.filters is not None:
        ids = tuple(leaving.cube_id for leaving in version_preview(actor=actor, pack_id=pack_id, draft=draft))
        if len(ids) >= PREVIEWED:
            raise Invalid(_("The query matches too many memories to leave out single ones: narrow it."))
    rest = tuple(cube_id for cube_id in ids if cube_id not in out)
    if not rest:
        raise Invalid(_("Nothing would be left."))
    request.session[CHOICE] = {"ids": [str(cube_id) for cube_id in rest]}
    return replace(draft, ids=rest, filters=None)


def _next_number(actor: Actor, pack_id: UUID) -> str:
    """Return the number of a blocked version, else the next minor version."""
    rows = versions_list(actor=actor, pack_id=pack_id, pages=NewestOf(VERSIONS, ""))
    blocked = [row.number for row in rows if row.state == PackState.BLOCKED]
    if blocked:
        return blocked[0]
    newest = max((number_read(row.number) for row in rows), default=None)
    return str(Number(newest.major, newest.minor + 1, 0)) if newest else FIRST


def _make_shown_leaving(leaving: Leaving) -> ShownLeaving:
    return ShownLeaving(
        leaving,
        TREATMENTS[leaving.treatment],
        CHIPS[leaving.treatment],
        ", ".join(reasons_translate(leaving.reasons)),
        tuple(_shown_parts(leaving)) if leaving.treatment is Treatment.ANONYMISED else (),
    )


def _shown_parts(leaving: Leaving) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """Yield the texts of an anonymised memory as they leave, each with its label."""
    item = leaving.item
    if item is None:
        return
    texts = {"title": item.title, "content": item.content, **{f"tags.{at}": tag for at, tag in enumerate(item.tags)}}
    if leaving.wordings is not None:
        texts["second"] = leaving.wordings.content
    for name, text in texts.items():
        if text:
            label = str(PARTS[name.partition(".")[0]])
            yield label, tuple(_pieces(text, leaving.marks.get(name, ()), leaving.undecided.get(name, ())))


def _pieces(text: str, marks: Iterable[Mark], undecided: Iterable[Undecided]) -> Iterator[Piece]:
    """Cut a text at its placeholders and at what is undecided."""
    found = [(mark.start, mark.end, reasons_translate([mark.kind])[0], False) for mark in marks]
    found += [(each.start, each.end, str(UNDECIDED[each.kind]), True) for each in undecided]
    at = 0
    for start, end, label, is_undecided in sorted(found):
        if start >= at:
            yield Piece(text[at:start])
            yield Piece(text[start:end], label, is_undecided)
            at = end
    yield Piece(text[at:])


def _list_undecided(request: HttpRequest, decided: Iterable[Leaving]) -> list[ShownUndecided]:
    """Return the distinct texts that no rule decided, with what the form says of each."""
    accepted, replaced = set(request.POST.getlist(ACCEPT)), set(request.POST.getlist(REPLACE))
    found: dict[str, ShownUndecided] = {}
    for leaving in decided:
        for each in chain.from_iterable(leaving.undecided.values()):
            shown = ShownUndecided(
                each.text, UNDECIDED[each.kind], leaving.cube_id, each.text in accepted, each.text in replaced
            )
            found.setdefault(each.text, shown)
    return list(found.values())


def reasons_translate(reasons: tuple[str, ...] | list[str]) -> list[str]:
    """Return the reasons of a scan and the kinds of findings in the reader's language."""
    return [str(REASONS[reason]) if reason in REASONS else str(PII_KINDS[PiiKind(reason)]) for reason in reasons]

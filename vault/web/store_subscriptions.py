"""The organisation's subscriptions: list, details, changes, upgrades after a comparison, and removal."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.errors import Conflict, Invalid
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import Permission
from governance.web.page_forms import ConfirmationForm, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from governance.web.pagination import NewestOf, uuid_or_none
from vault.chat.selectors import conversations_list
from vault.cubes.differences import Edit, TextChange, text_difference
from vault.cubes.selectors import cube_get
from vault.namespaces.mounts import MountDraft, mount_create
from vault.store.installed_packs import installed_get, offered_versions_list, origin_get
from vault.store.selections import selection_open
from vault.store.subscriptions import (
    reads_list,
    subscription_end,
    subscription_get,
    subscription_update,
    subscription_upgrade,
    subscriptions_list,
)
from vault.store.upgrades import ChangeKind, MemoryChange, override_remove, override_set, upgrade_plan
from vault.web.store_forms import ComingForm, RewordForm
from vault.web.store_words import make_shown_agreement

if TYPE_CHECKING:
    from vault.store.subscriptions import SubscriptionView

SUBSCRIPTIONS, READS = 50, 20  # of one page
SHOWN_CHANGES = 200
PERSONAS, CONVERSATIONS = 100, 20  # offered by the mount form
KINDS: dict[ChangeKind, Promise] = {
    ChangeKind.ADDED: gettext_lazy("New"),
    ChangeKind.CHANGED: gettext_lazy("Changed"),
    ChangeKind.REMOVED: gettext_lazy("Removed"),
}


@dataclass(frozen=True)
class ShownChange:
    change: MemoryChange
    kind: Promise
    pieces: tuple[TextChange, ...]


@safe_page
def subscriptions_page(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the subscriptions of the organisation, including ended ones, newest first."""
    take = NewestOf(SUBSCRIPTIONS, request.GET.get("before", ""))
    found = subscriptions_list(actor=actor, pages=take)
    context = {
        "subscriptions": [make_shown_agreement(view) for view in found],
        "older": take.older,
        "may_manage": is_allowed(actor, Permission.STORE_MANAGE),
    }
    return draw(request, "vault/store/installed.html", context)


@form_page
def subscription(request: HttpRequest, actor: Actor, subscription_id: UUID) -> HttpResponseBase:
    """GET shows one subscription: contract, reads, mounts and versions. POST changes its range and delivery."""
    view = subscription_get(actor=actor, subscription_id=subscription_id)
    if request.method != "POST":
        return _draw_page(request, actor, view)
    authorize(actor, Permission.STORE_MANAGE)
    form = _coming_form(view, request)
    if not form.is_valid():
        return _draw_page(request, actor, view, form=form)
    subscription_update(
        actor=actor,
        subscription_id=subscription_id,
        range=form.cleaned_data["range"],
        delivery=form.delivery_chosen(),
        selection=form.selection(),
    )
    return _redirect_back(subscription_id)


@post_page
def mount(request: HttpRequest, actor: Actor, subscription_id: UUID) -> HttpResponseBase:
    """Mount the pack for the persona or conversation in `place`: `persona ID` or `conversation ID`."""
    view = subscription_get(actor=actor, subscription_id=subscription_id)
    kind, _space, text = request.POST.get("place", "").partition(" ")
    place = uuid_or_none(text)
    if place is None or kind not in {"persona", "conversation"}:
        return _draw_page(request, actor, view, mount_fault=_("Choose a persona or a conversation."))
    ids = {f"{kind}_id": place}
    try:
        mount_create(actor=actor, draft=MountDraft(namespace=view.row.namespace.path, **ids))  # type: ignore[arg-type]
    except Conflict:
        return _draw_page(request, actor, view, mount_fault=_("It is mounted there already."))
    return _redirect_back(subscription_id)


@form_page
def upgrade(request: HttpRequest, actor: Actor, subscription_id: UUID) -> HttpResponseBase:
    """GET compares the installed version with `version`, the newest by default; POST installs it."""
    view = subscription_get(actor=actor, subscription_id=subscription_id)
    authorize(actor, Permission.STORE_MANAGE)
    if request.method == "POST":
        number = request.POST.get("version", "")
        subscription_upgrade(actor=actor, subscription_id=subscription_id, number=number)
        return _redirect_back(subscription_id)
    plan = upgrade_plan(actor=actor, subscription_id=subscription_id, number=request.GET.get("version", ""))
    wanted = request.GET.get("kind", "")
    changes = [change for change in plan.changes if wanted in {"", change.kind}]
    context = {
        "shown": make_shown_agreement(view),
        "plan": plan,
        "changes": [_make_shown_change(change) for change in changes[:SHOWN_CHANGES]],
        "matching": len(changes),
        "kinds": [(kind, KINDS[kind], plan.count(kind)) for kind in ChangeKind],
        "kind": wanted,
        "counts": {str(kind): plan.count(kind) for kind in ChangeKind},
        "versions": offered_versions_list(actor=actor, subscription_id=subscription_id),
    }
    return draw(request, "vault/store/upgrade.html", context)


@form_page
def reword(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Replace the wording of a pack's memory for the organisation, or with `restore` go back to the pack's wording."""
    origin = origin_get(actor=actor, memory_id=memory_id)
    subscription_id = origin.subscription_id
    if "restore" in request.POST:
        override_remove(actor=actor, subscription_id=subscription_id, memory_id=memory_id)
        return _redirect_back(subscription_id)
    content = "" if request.method == "POST" else cube_get(actor=actor, cube_id=memory_id).words.content
    given = request.POST if request.method == "POST" else None
    form = RewordForm(given, longest=settings.MAX_CONTENT_CHARACTERS, initial={"content": content})
    if form.is_bound and form.is_valid():
        try:
            new = form.cleaned_data["content"]
            override_set(actor=actor, subscription_id=subscription_id, memory_id=memory_id, content=new)
            return _redirect_back(subscription_id)
        except Invalid as failure:
            form.blame(failure)
    context = {"form": form, "origin": origin, "memory_id": memory_id}
    return draw(request, "vault/store/reword.html", context, status=_response_status(form.errors))


@form_page
def end(request: HttpRequest, actor: Actor, subscription_id: UUID) -> HttpResponseBase:
    """GET counts the memories to remove; POST removes the subscription if the name of the pack is typed."""
    view = subscription_get(actor=actor, subscription_id=subscription_id)
    authorize(actor, Permission.STORE_MANAGE)
    form = ConfirmationForm(values_of(request), name="name", word=view.row.name)
    if form.is_valid():
        subscription_end(actor=actor, subscription_id=subscription_id)
        return _redirect_back(subscription_id)
    context = {
        "shown": make_shown_agreement(view),
        "installed": installed_get(actor=actor, subscription_id=subscription_id),
        "form": form,
    }
    return draw(request, "vault/store/end.html", context, status=form.status)


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    view: "SubscriptionView",
    *,
    form: ComingForm | None = None,
    mount_fault: str = "",
) -> HttpResponse:
    subscription_id = view.row.id
    shown, may_manage = make_shown_agreement(view), is_allowed(actor, Permission.STORE_MANAGE)
    context: dict[str, Any] = {
        "shown": shown,
        "installed": installed_get(actor=actor, subscription_id=subscription_id),
        "may_manage": may_manage,
        "versions": offered_versions_list(actor=actor, subscription_id=subscription_id) if shown.is_live else [],
        "mount_fault": mount_fault,
    }
    if may_manage:
        take = NewestOf(READS, request.GET.get("before", ""))
        context["reads"] = reads_list(actor=actor, subscription_id=subscription_id, pages=take)
        context["older"] = take.older
    if may_manage and shown.is_live:
        context["form"] = form or _coming_form(view)
        context["places"] = _list_mount_places(actor)
    return draw(request, "vault/store/subscription.html", context, status=_response_status(mount_fault or form))


def _list_mount_places(actor: Actor) -> dict[str, list[tuple[UUID, str]]]:
    """Return the personas and conversations that a pack may be mounted for, by kind."""
    found: dict[str, list[tuple[UUID, str]]] = {}
    if is_allowed(actor, Permission.PERSONA_UPDATE):
        personas = personas_list(actor=actor, pages=First(PERSONAS))
        found["persona"] = [(persona.id, persona.name) for persona in personas]
    if is_allowed(actor, Permission.CONVERSATION_USE):
        conversations = conversations_list(actor=actor, pages=First(CONVERSATIONS))
        found["conversation"] = [
            (conversation.id, conversation.title or _("New conversation")) for conversation in conversations
        ]
    return found


def _coming_form(view: "SubscriptionView", request: HttpRequest | None = None) -> ComingForm:
    row = view.row
    given = request.POST if request else None
    number = row.number or "1.0.0"
    selection = selection_open(row)
    initial = {"delivery": row.delivery, "tags": ", ".join(selection.tags), "query": selection.query}
    return ComingForm(given, number=number, range=row.range, initial=initial)


def _make_shown_change(change: MemoryChange) -> ShownChange:
    if change.kind is ChangeKind.CHANGED:
        return ShownChange(change, KINDS[change.kind], text_difference(change.before, change.after).changes)
    edit = Edit.INSERT if change.kind is ChangeKind.ADDED else Edit.DELETE
    return ShownChange(change, KINDS[change.kind], (TextChange(edit, change.after or change.before),))


def _redirect_back(subscription_id: UUID) -> HttpResponse:
    return see_other(reverse("store_subscription", args=[subscription_id]))


def _response_status(fault: object) -> int:
    return HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK

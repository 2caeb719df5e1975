"""API keys: created, renamed, bound, rotated and revoked; a key's text is shown once."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse

from governance.access.grants.selectors import objects_readable
from governance.actor import Actor
from governance.apikeys.selectors import KeyView, apikey_get, apikeys_list, key_view
from governance.apikeys.services import KeyChanges, apikey_revoke, apikey_rotate, apikey_update
from governance.errors import Conflict, FieldError, Invalid
from governance.members.selectors import member_get, members_list
from governance.pages import First
from governance.tenants.bonds import BONDS, KeyBonds
from governance.tenants.services import apikey_create
from governance.text_values import read_uuid
from governance.time_range import check_moment
from governance.vocabulary import Scope
from governance.web.faults import fault_texts
from governance.web.pages import draw, form_page, post_page, see_other, wants_part

MOST = 200  # of one page; more are in the API
CHOICES = 60  # of what a key can be bound to
LONGEST_NAME = 100


@form_page
def keys(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the tenant's keys; POST creates a key and shows it once."""
    if request.method != "POST":
        return _page(request, actor)
    try:
        member_id = read_uuid(request.POST.get("member", ""), "member", "choose a member")
        made = apikey_create(
            actor=actor,
            member=member_get(actor=actor, member_id=member_id),
            scopes=_scopes(request),
            name=request.POST.get("name", "")[:LONGEST_NAME],
            expires_at=_moment(request.POST.get("expires", "")),
            bonds=_bonds(request.POST),
        )
    except Invalid as failure:
        context = {"faults": fault_texts(failure.errors), "asked": _read_form(request.POST)}
        return _page(request, actor, context, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _page(request, actor, {"made": made.text})


@form_page
def key_edit(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    """Show one key: its name, its end and its bindings; POST changes them."""
    view = key_view(apikey_get(actor=actor, key_id=key_id))
    if request.method != "POST":
        return _edit(request, actor, view)
    try:
        apikey_update(actor=actor, key_id=key_id, changes=_changes(request.POST, view))
    except (Invalid, Conflict) as failure:
        return _edit(request, actor, view, failure, _read_form(request.POST))
    return see_other(reverse("keys"))


@post_page
def key_rotate(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    hours = request.POST.get("hours", "")
    overlap = int(hours) * 3600 if hours.isdecimal() and len(hours) < 5 else settings.KEY_OVERLAP_SECONDS
    try:
        made = apikey_rotate(actor=actor, key_id=key_id, overlap=timedelta(seconds=overlap))
    except (Invalid, Conflict) as failure:
        return _edit(request, actor, key_view(apikey_get(actor=actor, key_id=key_id)), failure)
    return _page(request, actor, {"made": made.text, "rotated": made.view})


@post_page
def key_revoke(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    apikey_revoke(actor=actor, key_id=key_id)
    if not wants_part(request):
        return see_other(reverse("keys"))
    return draw(request, "governance/settings/_keys.html", _keys(actor))


def _choices(actor: Actor) -> dict[str, list[str]]:
    """Return the choices for a key's bindings; others can be typed."""
    return {
        name: objects_readable(actor=actor, object_type=kind, most=CHOICES)
        for name, kind in (("personas", "persona"), ("paths", "namespace"))
    }


def _edit(
    request: HttpRequest,
    actor: Actor,
    view: KeyView,
    failure: Invalid | Conflict | None = None,
    asked: dict[str, Any] | None = None,
) -> HttpResponseBase:
    context = {
        "key": view,
        "asked": asked or _describe_key(view),
        "faults": fault_texts(failure.errors) if failure else [],
        "detail": failure.detail if failure and not failure.errors else "",
        "hours": settings.KEY_OVERLAP_SECONDS // 3600,
        **_choices(actor),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if failure else HTTPStatus.OK
    return draw(request, "governance/settings/key.html", context, status=status)


def _describe_key(view: KeyView) -> dict[str, Any]:
    """Return the form's initial values from a key."""
    return {
        "name": view.name,
        "expires": view.expires_at.date().isoformat() if view.expires_at else "",
        "persona": view.persona.name if view.persona else "",
        "namespaces": "\n".join(view.namespaces),
        "purpose": view.purpose,
    }


def _read_form(form: QueryDict) -> dict[str, Any]:
    """Return the submitted values, to be shown again with errors."""
    names = ("name", "member", "expires", "persona", "namespaces", "purpose")
    typed = {name: form.get(name, "") for name in names} | {"namespaces": "\n".join(_bonds(form).namespaces)}
    return typed | {"scopes": form.getlist("scopes")}


def _bonds(form: QueryDict) -> KeyBonds:
    lines = dict.fromkeys(line.strip() for text in form.getlist("namespaces") for line in text.splitlines())
    return KeyBonds(
        persona=form.get("persona", "").strip() or None,
        namespaces=tuple(line for line in lines if line),
        purpose=form.get("purpose", "").strip(),
    )


def _changes(form: QueryDict, view: KeyView) -> KeyChanges:
    """Return the submitted bindings that differ from the key's. Raises Invalid."""
    bonds, shown = _bonds(form), _describe_key(view)
    before = KeyBonds(shown["persona"] or None, view.namespaces, view.purpose)
    bound = {name for name in BONDS if name in form and getattr(bonds, name) != getattr(before, name)}
    return KeyChanges(
        given=frozenset({"name", "expires_at"} | bound),
        name=form.get("name", "")[:LONGEST_NAME],
        expires_at=_moment(form.get("expires", "")),
        bonds=bonds,
    )


def _page(
    request: HttpRequest, actor: Actor, more: dict[str, Any] | None = None, *, status: int = HTTPStatus.OK
) -> HttpResponseBase:
    context = {
        **_keys(actor),
        "members": members_list(actor=actor, pages=First(MOST)),
        "scopes": list(Scope),
        "asked": {"member": str(actor.member_id)},
        **_choices(actor),
        **(more or {}),
    }
    return draw(request, "governance/settings/keys.html", context, status=status)


def _keys(actor: Actor) -> dict[str, Any]:
    return {
        "keys": apikeys_list(actor=actor, pages=First(MOST)),
        "now": datetime.now(tz=UTC),
    }


def _scopes(request: HttpRequest) -> list[Scope]:
    names = request.POST.getlist("scopes")
    if not names or not set(names) <= set(Scope):
        raise Invalid(errors=[FieldError("scopes", "choose one at least")])
    return [Scope(name) for name in names]


def _moment(text: str) -> datetime | None:
    """Return the end of a day in UTC; None for an empty field."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(f"{text}T23:59:59+00:00")
    except ValueError as error:
        raise Invalid(errors=[FieldError("expires", "a date such as 2027-01-31")]) from error
    return check_moment(moment, "expires")

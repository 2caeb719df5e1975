"""API keys: created, renamed, bound, rotated and revoked; a key's text is shown once."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from governance.access.grants.selectors import objects_readable
from governance.actor import Actor
from governance.apikeys.selectors import KeyView, apikey_get, apikeys_list, key_view
from governance.apikeys.services import KeyChanges, apikey_revoke, apikey_rotate, apikey_update
from governance.members.selectors import member_get, members_list
from governance.pages import First
from governance.tenants.bonds import BONDS, LONGEST_PURPOSE, KeyBonds
from governance.tenants.services import apikey_create
from governance.time_range import check_moment
from governance.vocabulary import Scope
from governance.web.page_forms import LinesInput, PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other, wants_part

MOST = 200  # of one page; more are in the API
CHOICES = 60  # of what a key can be bound to
LONGEST_NAME = 100
SCOPES = [(scope, format_html("<code>{}</code>", scope)) for scope in Scope]


class KeyForm(PageForm):
    """Name, end and bindings of a key."""

    field_names = {"expires_at": "expires"}

    name = forms.CharField(label=_("Name"), required=False, max_length=LONGEST_NAME)
    expires = forms.DateField(
        label=_("Works until (may be left empty)"),
        required=False,
        input_formats=["%Y-%m-%d"],
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": _("Write a date, as in 2027-01-31.")},
    )
    persona = forms.CharField(
        label=_("A persona: an assistant, or one of the member's; its name or id"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"list": "key-personas"}),
    )
    namespaces = forms.CharField(
        label=_("Namespaces with their subtrees, one a line. The key writes to the first."),
        required=False,
        widget=LinesInput(attrs={"rows": 3, "placeholder": "/team/notes"}),
    )
    purpose = forms.CharField(label=_("A purpose: of all its calls"), required=False, max_length=LONGEST_PURPOSE)

    def ends(self) -> datetime | None:
        """Return the end of the chosen day in UTC. Raises Invalid."""
        day = self.cleaned_data["expires"]
        return check_moment(datetime.combine(day, time(23, 59, 59), UTC), "expires") if day else None

    def bonds(self) -> KeyBonds:
        values = self.cleaned_data
        return KeyBonds(values["persona"] or None, tuple(values["namespaces"].splitlines()), values["purpose"])

    def changes(self) -> KeyChanges:
        """Return name and end, and the bindings that were sent and differ from the initial ones. Raises Invalid."""
        bound = BONDS & set(self.data) & set(self.changed_data)
        return KeyChanges(
            given=frozenset({"name", "expires_at"} | bound),
            name=self.cleaned_data["name"],
            expires_at=self.ends(),
            bonds=self.bonds(),
        )


class NewKeyForm(KeyForm):
    """A key to create."""

    member = forms.UUIDField(
        label=_("Member"), widget=forms.Select(), error_messages={"invalid": _("Choose a member.")}
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=SCOPES,
        widget=forms.CheckboxSelectMultiple(),
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Choose at least one.")),
    )


class RotationForm(PageForm):
    """The time that the former secret of a key still works."""

    field_names = {"overlap_seconds": "hours"}

    hours = forms.IntegerField(
        label=_("Hours during which both work"), min_value=0, max_value=settings.KEY_LONGEST_OVERLAP_SECONDS // 3600
    )


@form_page
def keys(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the tenant's keys; POST creates a key and shows it once."""
    form = NewKeyForm(values_of(request), initial={"member": actor.member_id})
    made = form.made_by(
        lambda: apikey_create(
            actor=actor,
            member=member_get(actor=actor, member_id=form.cleaned_data["member"]),
            scopes=[Scope(name) for name in form.cleaned_data["scopes"]],
            name=form.cleaned_data["name"],
            expires_at=form.ends(),
            bonds=form.bonds(),
        )
    )
    return _page(request, actor, {"made": made.text}) if made else _page(request, actor, {"form": form})


@form_page
def key_edit(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    """Show one key: its name, its end and its bindings; POST changes them."""
    view = key_view(apikey_get(actor=actor, key_id=key_id))
    form = KeyForm(values_of(request), initial=_describe_key(view))
    if form.is_done_by(lambda: apikey_update(actor=actor, key_id=key_id, changes=form.changes())):
        return see_other(reverse("keys"))
    return _edit(request, actor, view, {"form": form})


@post_page
def key_rotate(request: HttpRequest, actor: Actor, key_id: UUID) -> HttpResponseBase:
    view, rotation = key_view(apikey_get(actor=actor, key_id=key_id)), RotationForm(request.POST)
    made = rotation.made_by(
        lambda: apikey_rotate(actor=actor, key_id=key_id, overlap=timedelta(hours=rotation.cleaned_data["hours"]))
    )
    if made is None:
        return _edit(request, actor, view, {"rotation": rotation})
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


def _edit(request: HttpRequest, actor: Actor, view: KeyView, forms: Mapping[str, PageForm]) -> HttpResponseBase:
    shown = {
        "form": KeyForm(initial=_describe_key(view)),
        "rotation": RotationForm(initial={"hours": settings.KEY_OVERLAP_SECONDS // 3600}),
        **forms,
    }
    status = max(form.status for form in shown.values())
    return draw(request, "governance/settings/key.html", {"key": view, **shown, **_choices(actor)}, status=status)


def _describe_key(view: KeyView) -> dict[str, Any]:
    """Return the form's initial values from a key."""
    return {
        "name": view.name,
        "expires": view.expires_at.date() if view.expires_at else None,
        "persona": view.persona.name if view.persona else "",
        "namespaces": "\n".join(view.namespaces),
        "purpose": view.purpose,
    }


def _page(request: HttpRequest, actor: Actor, more: Mapping[str, Any]) -> HttpResponseBase:
    form = more.get("form") or NewKeyForm(initial={"member": actor.member_id})
    members = members_list(actor=actor, pages=First(MOST))
    form.fields["member"].widget.choices = [(member.id, member.email) for member in members]
    context = {**_keys(actor), "form": form, **_choices(actor), **more}
    return draw(request, "governance/settings/keys.html", context, status=form.status)


def _keys(actor: Actor) -> dict[str, Any]:
    return {
        "keys": apikeys_list(actor=actor, pages=First(MOST)),
        "now": datetime.now(tz=UTC),
    }

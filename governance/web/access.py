"""Pages of access: the grants on one object, and all grants of the reader."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import is_allowed
from governance.access.grants.overview import MemberAccess, access_overview, principals_to_choose
from governance.access.grants.rehearsal import AccessChange, grant_rehearse
from governance.access.grants.selectors import (
    GrantFilter,
    access_check,
    find_object_by_name,
    grant_get,
    grants_list,
    grants_list_at,
    objects_readable,
)
from governance.access.grants.services import GrantDraft, grant_create, grant_revoke
from governance.access.grants.views import GrantView
from governance.actor import Actor, CallContext
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid, NotFound
from governance.object_names import names_find
from governance.text_values import read_local_time
from governance.vocabulary import Action, Channel, Effect, GranteeKind, Permission
from governance.web.access_words import ACTIONS, CHANNELS, EFFECTS, describe_holders
from governance.web.decision_words import change_words, mark_of, rule_words
from governance.web.grant_lines import about_of, describe_grants
from governance.web.page_forms import LocalTimeField, PageForm, values_of
from governance.web.pages import draw, form_page, post_page, refusal_sentence, safe_page, see_other
from governance.web.pagination import NewestMerged, NewestOf
from governance.web.undo import find_deed, put_message

MEMBERS, GRANTS = 50, 50  # of one page
PATHS = 200  # suggested
BY_COMMAS = ("purpose", "address")  # fields


class GrantForm(PageForm):
    """A grant to give. path: of its namespace, on the list of all grants."""

    field_names = {"principal": "holder", "daily": "begins", "from": "begins", "name": "path"}

    path = forms.CharField(label=gettext_lazy("On the namespace"), widget=forms.Select())
    holder = forms.CharField(
        label=gettext_lazy("Who"),
        help_text=gettext_lazy("Everybody who may use a shared assistant gets what you grant to it."),
        widget=forms.Select(),
    )
    effect = forms.TypedChoiceField(label=gettext_lazy("Effect"), choices=list(EFFECTS.items()), coerce=Effect)
    action = forms.TypedChoiceField(label=gettext_lazy("What"), choices=list(ACTIONS.items()), coerce=Action)
    expires_at = LocalTimeField(label=gettext_lazy("Until"), required=False)
    purpose = forms.CharField(label=gettext_lazy("Purposes, by commas"), required=False)
    channel = forms.MultipleChoiceField(
        label=gettext_lazy("Channels"),
        required=False,
        choices=list(CHANNELS.items()),
        widget=forms.CheckboxSelectMultiple(),
    )
    address = forms.CharField(
        label=gettext_lazy("Networks, by commas"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "10.0.0.0/8"}),
    )
    begins = forms.TimeField(
        label=gettext_lazy("Every day from (UTC)"), required=False, widget=forms.TimeInput(attrs={"type": "time"})
    )
    until = forms.TimeField(
        label=gettext_lazy("until (UTC)"), required=False, widget=forms.TimeInput(attrs={"type": "time"})
    )

    def offer(self, holders: list[tuple[str, Promise, str]], paths: Sequence[str] | None = None) -> None:
        """Offer the receivers of grants, and the namespaces if the grant is not on a given object."""
        self.fields["holder"].widget.choices = [(value, f"{kind}: {name}") for value, kind, name in holders]
        if paths is not None:
            self.fields["path"].widget.choices = [(path, path) for path in paths]

    def draft(self, object_type: str, object_id: UUID) -> GrantDraft:
        """Return the grant on an object. Raises Invalid."""
        values = self.cleaned_data
        kind, _separator, holder = values["holder"].partition(":")
        if kind not in set(GranteeKind):
            raise Invalid(errors=[FieldError("holder", _("choose one"))])
        return GrantDraft(
            holder_kind=GranteeKind(kind),
            holder=holder,
            object_type=object_type,
            object_id=object_id,
            action=values["action"],
            effect=values["effect"],
            expires_at=values["expires_at"],
            conditions=self._conditions(),
        )

    def _conditions(self) -> dict[str, Any]:
        values = self.cleaned_data
        listed = {name: [word for part in values[name].split(",") if (word := part.strip())] for name in BY_COMMAS}
        listed["channel"] = values["channel"]
        conditions: dict[str, Any] = {name: found for name, found in listed.items() if found}
        hours = {"from": values["begins"], "until": values["until"]}
        daily = {name: f"{time:%H:%M}" if time else "" for name, time in hours.items()}
        return conditions | ({"daily": daily} if any(hours.values()) else {})


@form_page
def access_list(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the grants: all for those who manage them, else those given and received. POST gives one on a namespace."""
    take, form = NewestMerged(GRANTS, request.GET.get("before", "")), GrantForm(values_of(request))

    def give() -> None:
        place = find_object_by_name(actor=actor, object_type="namespace", name=form.cleaned_data["path"])
        grant_create(actor=actor, draft=form.draft("namespace", place))

    try:
        if form.is_done_by(give):
            put_message(request, _("The grant was given."))
            return see_other(reverse("access_list"))
    except Forbidden as denial:
        form.add_error(None, refusal_sentence(request, denial))
        return _list(request, actor, take, form, status=HTTPStatus.FORBIDDEN)
    return _list(request, actor, take, form, status=form.status)


@safe_page
def access_ask(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Redirect from the path of a namespace to its access page."""
    path = request.GET.get("path", "").strip()
    try:
        found = find_object_by_name(actor=actor, object_type="namespace", name=path)
    except (NotFound, Invalid):
        take = NewestMerged(GRANTS, "")
        return _list(request, actor, take, GrantForm(), path=path, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("access_object", args=["namespace", found]))


def _list(
    request: HttpRequest,
    actor: Actor,
    take: NewestMerged,
    form: GrantForm,
    *,
    path: str = "",
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    with acting(actor):
        may_manage = is_allowed(actor, Permission.GRANT_MANAGE)
        holders = principals_to_choose(actor=actor) if may_manage else []
        grants = grants_list(actor=actor, wanted=GrantFilter(), pages=take)
        paths = objects_readable(actor=actor, object_type="namespace", most=PATHS)
        form.offer(describe_holders(holders), paths)
        context = {
            "grants": describe_grants(actor, grants),
            "older": take.older,
            "paths": paths,
            "path": path,
            "unknown": status != HTTPStatus.OK and not form.errors,
            "may_manage_access": may_manage,
            "holders": holders,
            "form": form,
        }
    return draw(request, "governance/access/list.html", context, status=status)


@form_page
def access_object(request: HttpRequest, actor: Actor, object_type: str, object_id: UUID) -> HttpResponseBase:
    """GET shows members with their rights and the reasons in a context; POST creates a grant."""
    form = GrantForm(values_of(request))
    del form.fields["path"]
    try:
        if "preview" in request.POST:
            context = _read_context(request)
            changes = form.made_by(
                lambda: grant_rehearse(actor=actor, draft=form.draft(object_type, object_id), context=context)
            )
            return _show(request, actor, object_type, object_id, form, changes=changes)
        if form.is_done_by(lambda: grant_create(actor=actor, draft=form.draft(object_type, object_id))):
            return see_other(reverse("access_object", args=[object_type, object_id]))
    except Forbidden as denial:
        form.add_error(None, refusal_sentence(request, denial))
        return _show(request, actor, object_type, object_id, form, status=HTTPStatus.FORBIDDEN)
    return _show(request, actor, object_type, object_id, form)


@post_page
def grant_remove(request: HttpRequest, actor: Actor, grant_id: UUID) -> HttpResponseBase:
    with acting(actor):
        grant = grant_get(actor=actor, grant_id=grant_id)
        grant_revoke(actor=actor, grant_id=grant_id)
    put_message(request, _("The grant was revoked."), address=reverse("grant_again"), fields=_grant_fields(grant))
    if request.POST.get("from") == "list":
        return see_other(reverse("access_list"))
    return see_other(reverse("access_object", args=[grant.object_type, grant.object_id]))


@post_page
def grant_again(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Give again a grant that was revoked in this browser."""
    deed = find_deed(request)
    if deed is None:
        return see_other(reverse("access_list"))
    fields = deed["fields"]
    ends = datetime.fromisoformat(fields["expires_at"]) if fields["expires_at"] else None
    draft = GrantDraft(
        holder_kind=GranteeKind(fields["holder_kind"]),
        holder=fields["holder"],
        object_type=fields["object_type"],
        object_id=UUID(fields["object_id"]),
        action=Action(fields["action"]),
        effect=Effect(fields["effect"]),
        expires_at=ends,
        conditions=fields["conditions"],
    )
    grant_create(actor=actor, draft=draft)
    return see_other(reverse("access_object", args=[draft.object_type, draft.object_id]))


def _grant_fields(grant: GrantView) -> dict[str, Any]:
    """Return a grant as the session stores it, until it may be given again."""
    return {
        "holder_kind": grant.holder.kind,
        "holder": str(grant.holder.id),
        "object_type": grant.object_type,
        "object_id": str(grant.object_id),
        "action": grant.action,
        "effect": grant.effect,
        "expires_at": grant.expires_at.isoformat() if grant.expires_at else "",
        "conditions": dict(grant.conditions),
    }


def _show(
    request: HttpRequest,
    actor: Actor,
    object_type: str,
    object_id: UUID,
    form: GrantForm,
    *,
    status: HTTPStatus | None = None,
    changes: Sequence[AccessChange] | None = None,
) -> HttpResponseBase:
    context = _read_context(request)
    members, grants = NewestOf(MEMBERS, request.GET.get("m", "")), NewestMerged(GRANTS, request.GET.get("g", ""))
    at, time_fault = _read_as_of(request)
    with acting(actor):  # one transaction for all that the page reads
        overview = access_overview(
            actor=actor,
            object_type=object_type,
            object_id=object_id,
            context=context,
            pages=members,
            is_giving=True,
        )
        shown: dict[str, Any] = {
            "overview": overview,
            "members": [_describe_member(member) for member in overview.members],
            "changes": None if changes is None else [change_words(change) for change in changes],
            **_simulate(request, actor, object_type, object_id, context),
            "about": about_of(object_type, names_find(actor.tenant_id, [object_id]).get(object_id)),
            "grants": describe_grants(actor, _list_grants(actor, object_type, object_id, at, grants)),
            "past": at,
            "as_of": request.GET.get("as_of", ""),
            "time_fault": time_fault,
            "form": form,
            "members_older": members.older,
            "grants_older": grants.older,
            "actions": ACTIONS.items(),
            "channels": CHANNELS.items(),
            "context": context,
        }
        form.offer(describe_holders(overview.holders))
        return draw(request, "governance/access/object.html", shown, status=status or form.status)


def _list_grants(
    actor: Actor, object_type: str, object_id: UUID, at: datetime | None, pages: NewestMerged
) -> list[GrantView]:
    """Return the grants on an object: a page of the present ones, or all that stood at a time."""
    if at is not None:
        return grants_list_at(actor=actor, object_type=object_type, object_id=object_id, at=at)
    wanted = GrantFilter(object_type=object_type, object_id=object_id)
    return grants_list(actor=actor, wanted=wanted, pages=pages)


def _read_as_of(request: HttpRequest) -> tuple[datetime | None, str]:
    """Return the time in the query, or what is wrong with it."""
    try:
        return read_local_time(request.GET.get("as_of", ""), "expires_at", _("choose one")), ""
    except Invalid:
        return None, _("Choose a time in the past.")


def _describe_member(member: MemberAccess) -> tuple[MemberAccess, list[tuple[str, str]], str]:
    """Return a member with the mark and the reason of each right, and the reason for reading or not."""
    decided = [(mark_of(decision), rule_words(decision)) for decision in member.decisions]
    return member, decided, rule_words(member.decisions[0])


def _simulate(
    request: HttpRequest, actor: Actor, object_type: str, object_id: UUID, context: CallContext
) -> dict[str, Any]:
    """Return the input of the access simulator and its result."""
    kind, _separator, principal = request.GET.get("as", "").partition(":")
    action = request.GET.get("action", "")
    shown: dict[str, Any] = {"sim": {"as": request.GET.get("as", ""), "action": action}}
    if not principal or action not in set(Action):
        return shown
    try:
        checked = access_check(
            actor=actor,
            kind=kind,
            principal=principal,
            action=Action(action),
            object_type=object_type,
            object_id=object_id,
            context=context,
        )
    except (Forbidden, Invalid) as failure:
        return shown | {"sim_fault": failure.detail}
    named = describe_grants(actor, [grant for grant in (checked.grant or checked.beside,) if grant])
    return shown | {"checked": checked, "sim_why": rule_words(checked.decision), "sim_grants": named}


def _read_context(request: HttpRequest) -> CallContext:
    """Return the context for which rights are shown: that of a browser unless the query names another."""
    channel = request.GET.get("channel", "")
    return CallContext(
        channel=Channel(channel) if channel in set(Channel) else Channel.WEB,
        purpose=request.GET.get("purpose", "")[:200],
    )

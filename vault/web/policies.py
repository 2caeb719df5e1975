"""Policies: the list, one with what it would do before it is saved, its versions; quotas with what is used of them."""

import json
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from governance.access.decisions.services import authorize, is_allowed
from governance.access.grants.sharing import grants_forbidden
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Invalid, NotFound, VersionConflict
from governance.naming import Name, id_called, named_in, names_find
from governance.policies.rules import Quota, document_json
from governance.policies.selectors import PolicyView, policies_list, policy_get, policy_versions
from governance.policies.services import PolicyChanges, PolicyDraft, policy_change, policy_create
from governance.vocabulary import HolderKind, Measure, Permission, PolicyKind
from governance.web.access_words import KINDS as GRANTEES
from governance.web.grant_lines import about_of
from governance.web.pages import draw, page, see_other, wants_part
from governance.web.paging import Newest, number_or_none, uuid_or_none
from vault.policies.rules import Effect, Outcome
from vault.policies.selectors import QuotaView, quotas_list
from vault.policies.simulating import policy_simulate
from vault.web.policy_forms import FORMS, KINDS, MEANT, PolicyForm, initial_of

SHOWN = 50  # of one page
EFFECTS = {
    Effect.EXPIRES_AT_ONCE: _("would expire at once"),
    Effect.EXPIRES_NEWLY: _("would expire, and would not now"),
    Effect.EXPIRES_SOONER: _("would expire sooner"),
    Effect.EXPIRES_LATER: _("would expire later, or never"),
    Effect.WRITE_REFUSED: _("written lately, would have been refused"),
    Effect.WRITE_ALLOWED: _("written lately, would no longer be refused"),
    Effect.READER_LOSES: _("could no longer be read for this purpose"),
    Effect.READER_GAINS: _("could be read for this purpose, and cannot now"),
    Effect.SHARING_NARROWED: _("could be shared with fewer"),
    Effect.SHARING_WIDENED: _("could be shared with more"),
    Effect.GRANT_FORBIDDEN: _("grants would be forbidden, and hold until they are revoked"),
    Effect.PII_CHANGES: _("written lately, would be treated otherwise if personal data is in it"),
    Effect.QUOTA_REACHED: _("could not add any more"),
}
HOLDERS = {
    HolderKind.TENANT: _("Organisation"),
    HolderKind.MEMBER: _("Member"),
    HolderKind.API_KEY: _("API key"),
}
WHOSE = {
    HolderKind.TENANT: _("the whole organisation"),
    HolderKind.MEMBER: _("each member"),
    HolderKind.API_KEY: _("each API key"),
}
MEASURES = {
    Measure.MEMORIES: _("Memories"),
    Measure.BYTES: _("Bytes"),
    Measure.REQUESTS: _("Requests a minute"),
    Measure.MODEL_TOKENS: _("Model tokens a month"),
}


@require_http_methods(["GET", "HEAD"])
@page
def policies(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    take = Newest(size=SHOWN, key="policy_id", cursor=uuid_or_none(request.GET.get("before", "")))
    views = policies_list(actor=actor, pages=take)
    names = _names(actor, {one for view in views for one in _holder_ids(view)})
    context = {
        "policies": [(view, named_in(view.name, names), KINDS[view.kind], _about(view, names)) for view in views],
        "older": take.older,
        "kinds": [(kind, KINDS[kind], MEANT[kind]) for kind in PolicyKind],
        "may_change": is_allowed(actor, Permission.POLICY_MANAGE),
    }
    return draw(request, "vault/policies/policies.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def policy_new(request: HttpRequest, actor: Actor, kind: str) -> HttpResponseBase:
    """A form of this kind; POST says what saving would do, or saves."""
    authorize(actor, Permission.POLICY_MANAGE)
    if kind not in set(PolicyKind):
        raise NotFound
    form = FORMS[PolicyKind(kind)](request.POST if request.method == "POST" else None)
    return _answer(request, actor, form, None) if request.method == "POST" else _form(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def policy(request: HttpRequest, actor: Actor, policy_id: UUID) -> HttpResponseBase:
    """One policy, to be read, or changed by those who may."""
    view = policy_get(actor=actor, policy_id=policy_id)
    form_class = FORMS[view.kind]
    if request.method == "POST":
        authorize(actor, Permission.POLICY_MANAGE)
        return _answer(request, actor, form_class(request.POST), view)
    names = _names(actor, _holder_ids(view))
    initial = initial_of(view.kind, view.document, names)
    form = form_class(initial={**initial, "name": view.name, "enabled": view.enabled, "version": view.version})
    more = _forbidden(actor) if view.kind is PolicyKind.SHARING else {}
    more["name"] = named_in(view.name, names)
    return _form(request, form, view, may_change=is_allowed(actor, Permission.POLICY_MANAGE), more=more)


def _forbidden(actor: Actor) -> dict[str, Any]:
    """The grants that sharing policies forbid and that were given before."""
    count, grants = grants_forbidden(actor=actor, most=SHOWN)
    names = _names(actor, {one.object_id for one in grants})
    shown = [(one, about_of(one.object_type, names.get(one.object_id)), GRANTEES[one.holder.kind]) for one in grants]
    return {"forbidden": shown, "forbidden_count": count}


@require_http_methods(["GET", "HEAD"])
@page
def versions(request: HttpRequest, actor: Actor, policy_id: UUID) -> HttpResponseBase:
    take = Newest(size=SHOWN, key="number", cursor=number_or_none(request.GET.get("before", "")))
    views = policy_versions(actor=actor, policy_id=policy_id, pages=take)
    names = _names(actor, {one for view in views for one in (view.author_id, *_holder_ids(view))})
    policy = policy_get(actor=actor, policy_id=policy_id)
    shown = [(view, _text(view), _about(view, names), names.get(view.author_id)) for view in views]
    context = {"versions": shown, "older": take.older, "policy": policy, "name": named_in(policy.name, names)}
    return draw(request, "vault/policies/versions.html", context)


@require_http_methods(["GET", "HEAD"])
@page
def quotas(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    views = quotas_list(actor=actor)
    names = _names(actor, {view.holder.id for view in views})
    rows = [(HOLDERS[view.holder.kind], names.get(view.holder.id), _measures(view)) for view in views]
    context = {"quotas": rows, "may_change": is_allowed(actor, Permission.POLICY_MANAGE)}
    return draw(request, "vault/policies/quotas.html", context)


def _measures(view: QuotaView) -> list[tuple[Any, int | None, int | None, int | None]]:
    """(measure, used, limit, percent) of one holder; requests are counted by the minute, and not shown."""
    rows = []
    for measure in Measure:
        used, limit = view.used.get(measure), view.limits.of(measure)
        percent = min(100, used * 100 // max(1, limit)) if used is not None and limit is not None else None
        rows.append((MEASURES[measure], used, limit, percent))
    return rows


def _answer(request: HttpRequest, actor: Actor, form: PolicyForm, view: PolicyView | None) -> HttpResponseBase:
    if view is not None:
        form.fields["name"].required = False
    if not form.is_valid():
        return _form(request, form, view)
    try:
        if "simulate" in request.POST:
            effects = _simulated(actor, form, view)
            names = _names(actor, {one for effect in effects for one in effect.sample_ids})
            return _form(request, form, view, effects=effects, more={"names": names})
        saved = _saved(actor, form, view)
    except (Invalid, Conflict, VersionConflict) as failure:
        form.blame(failure if isinstance(failure, Invalid) else Invalid(failure.detail))
        return _form(request, form, view)
    return see_other(reverse("policy", args=[saved.id]))


def _saved(actor: Actor, form: PolicyForm, view: PolicyView | None) -> PolicyView:
    said = form.cleaned_data
    if view is None:
        return policy_create(actor=actor, draft=_draft(actor, form, said["name"]))
    changes = PolicyChanges(_document(actor, form), enabled=said["enabled"], reason=said["reason"])
    return policy_change(actor=actor, policy_id=view.id, expected_versions=[said["version"]], changes=changes)


def _simulated(actor: Actor, form: PolicyForm, view: PolicyView | None) -> list[Outcome]:
    return policy_simulate(
        actor=actor,
        draft=_draft(actor, form, view.name if view else form.cleaned_data["name"]),
        replaces=view.id if view else None,
        days=settings.POLICY_SIMULATED_DAYS,
    )


def _draft(actor: Actor, form: PolicyForm, name: str) -> PolicyDraft:
    said = form.cleaned_data
    return PolicyDraft(form.kind, name, _document(actor, form), enabled=said["enabled"], reason=said["reason"])


def _form(
    request: HttpRequest,
    form: PolicyForm,
    view: PolicyView | None,
    *,
    effects: list[Outcome] | None = None,
    may_change: bool = True,
    more: dict[str, Any] | None = None,
) -> HttpResponseBase:
    context = {
        "form": form,
        "policy": view,
        "kind": KINDS[form.kind],
        "meant": MEANT[form.kind],
        "effects": None if effects is None else [_told(one, (more or {})["names"]) for one in effects],
        "days": settings.POLICY_SIMULATED_DAYS,
        "may_change": may_change,
        "action": request.path,
        **(more or {}),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound and form.errors else HTTPStatus.OK
    part = wants_part(request) and request.method == "POST"
    return draw(request, "vault/policies/_form.html" if part else "vault/policies/policy.html", context, status=status)


def _document(actor: Actor, form: PolicyForm) -> dict[str, Any]:
    """What the form says, with the id of the member or key that it names. Raises Invalid."""
    document = form.document()
    holder = document.get("holder", {})
    if holder.get("id"):
        with acting(actor):
            found = id_called(actor.tenant_id, holder["id"], field="holder.id", kinds=[holder["kind"]])
        document["holder"] = {**holder, "id": str(found)}
    return document


def _names(actor: Actor, ids: Collection[UUID]) -> Mapping[UUID, Name]:
    with acting(actor):
        return names_find(actor.tenant_id, ids)


def _holder_ids(view: PolicyView) -> list[UUID]:
    document = view.document
    return [document.holder.id] if isinstance(document, Quota) and document.holder.id else []


def _about(view: PolicyView, names: Mapping[UUID, Name]) -> str | Promise:
    """Whose use it limits, or where; empty: everywhere."""
    document = view.document
    if isinstance(document, Quota):
        named = document.holder.id and names.get(document.holder.id)
        return str(named) if named else WHOSE[document.holder.kind]
    return document.where.namespace


def _text(view: PolicyView) -> str:
    return json.dumps(document_json(view.kind, view.document), ensure_ascii=False, indent=2)


def _told(one: Outcome, names: Mapping[UUID, Name]) -> tuple[Outcome, Promise, list[tuple[UUID, Name | None]]]:
    """An effect, what it means, and some of those whom it meets with their names."""
    return one, EFFECTS[one.effect], [(id, names.get(id)) for id in one.sample_ids]

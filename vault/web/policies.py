"""Policies: the list, one with what it would do before it is saved, its versions; quotas with what is used of them."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from governance.actor import Actor
from governance.authz.services import authorize, is_allowed
from governance.errors import Conflict, Invalid, NotFound, VersionConflict
from governance.grants.sharing import grants_forbidden
from governance.policies.rules import document_json
from governance.policies.selectors import PolicyView, policies_list, policy_get, policy_versions
from governance.policies.services import PolicyChanges, PolicyDraft, policy_change, policy_create
from governance.vocabulary import HolderKind, Measure, Permission, PolicyKind
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
    views = policies_list(actor=actor, paginate=take)
    context = {
        "policies": [(view, KINDS[view.kind]) for view in views],
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
    initial = initial_of(view.kind, view.document)
    form = form_class(initial={**initial, "name": view.name, "enabled": view.enabled, "version": view.version})
    more = _forbidden(actor) if view.kind is PolicyKind.SHARING else {}
    return _form(request, form, view, may_change=is_allowed(actor, Permission.POLICY_MANAGE), more=more)


def _forbidden(actor: Actor) -> dict[str, Any]:
    """The grants that sharing policies forbid and that were given before."""
    count, grants = grants_forbidden(actor=actor, most=SHOWN)
    return {"forbidden": grants, "forbidden_count": count}


@require_http_methods(["GET", "HEAD"])
@page
def versions(request: HttpRequest, actor: Actor, policy_id: UUID) -> HttpResponseBase:
    take = Newest(size=SHOWN, key="number", cursor=number_or_none(request.GET.get("before", "")))
    views = policy_versions(actor=actor, policy_id=policy_id, paginate=take)
    context = {"versions": [(view, document_json(view.kind, view.document)) for view in views], "older": take.older}
    return draw(
        request, "vault/policies/versions.html", context | {"policy": policy_get(actor=actor, policy_id=policy_id)}
    )


@require_http_methods(["GET", "HEAD"])
@page
def quotas(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    rows = [(HOLDERS[view.holder.kind], view.holder.id, _measures(view)) for view in quotas_list(actor=actor)]
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
            return _form(request, form, view, effects=_simulated(actor, form, view))
        saved = _saved(actor, form, view)
    except (Invalid, Conflict, VersionConflict) as failure:
        form.blame(failure if isinstance(failure, Invalid) else Invalid(failure.detail))
        return _form(request, form, view)
    return see_other(reverse("policy", args=[saved.id]))


def _saved(actor: Actor, form: PolicyForm, view: PolicyView | None) -> PolicyView:
    said = form.cleaned_data
    if view is None:
        return policy_create(actor=actor, draft=_draft(form, said["name"]))
    changes = PolicyChanges(form.document(), enabled=said["enabled"], reason=said["reason"])
    return policy_change(actor=actor, policy_id=view.id, expected_versions=[said["version"]], changes=lambda: changes)


def _simulated(actor: Actor, form: PolicyForm, view: PolicyView | None) -> list[Outcome]:
    return policy_simulate(
        actor=actor,
        draft=_draft(form, view.name if view else form.cleaned_data["name"]),
        replaces=view.id if view else None,
        days=settings.POLICY_SIMULATED_DAYS,
    )


def _draft(form: PolicyForm, name: str) -> PolicyDraft:
    said = form.cleaned_data
    return PolicyDraft(form.kind, name, form.document(), enabled=said["enabled"], reason=said["reason"])


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
        "effects": None if effects is None else [(one, EFFECTS[one.effect]) for one in effects],
        "days": settings.POLICY_SIMULATED_DAYS,
        "may_change": may_change,
        "action": request.path,
        **(more or {}),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound and form.errors else HTTPStatus.OK
    part = wants_part(request) and request.method == "POST"
    return draw(request, "vault/policies/_form.html" if part else "vault/policies/policy.html", context, status=status)

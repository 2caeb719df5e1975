"""Policies: the list, one policy with a simulation before it is saved, its versions; quotas with their use."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.access.grants.sharing_policies import grants_forbidden
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Invalid, NotFound, VersionConflict
from governance.object_names import Name, find_id, names_find
from governance.policies.rules import Quota, document_json, document_read
from governance.policies.selectors import PolicyView, policies_list, policy_get, policy_versions
from governance.policies.services import PolicyChanges, PolicyDraft, policy_change, policy_create, terms
from governance.vocabulary import Measure, Permission, PolicyKind, QuotaTargetKind
from governance.web.access_words import KINDS as GRANTEES
from governance.web.grant_lines import about_of
from governance.web.pages import draw, form_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, number_or_none, uuid_or_none
from vault.listing.selectors import paths_list
from vault.policies.rules import Effect, Outcome
from vault.policies.selectors import QuotaView, quotas_list
from vault.policies.simulation import policy_simulate
from vault.web.policy_forms import FORMS, KINDS, MEANT, PolicyForm, initial_values
from vault.web.policy_words import describe_document, name_policy

SHOWN = 50  # of one page
NEARLY_FULL = 90  # percent
EFFECTS = {
    Effect.EXPIRES_AT_ONCE: _("would expire at once"),
    Effect.EXPIRES_NEWLY: _("would expire, and would not now"),
    Effect.EXPIRES_SOONER: _("would expire sooner"),
    Effect.EXPIRES_LATER: _("would expire later, or never"),
    Effect.WRITE_REFUSED: _("written recently, would have been refused"),
    Effect.WRITE_ALLOWED: _("written recently, would no longer be refused"),
    Effect.READER_LOSES: _("could no longer be read for this purpose"),
    Effect.READER_GAINS: _("could be read for this purpose, and cannot now"),
    Effect.SHARING_NARROWED: _("could be shared with fewer"),
    Effect.SHARING_WIDENED: _("could be shared with more"),
    Effect.GRANT_FORBIDDEN: _("grants would be forbidden, and stay valid until they are revoked"),
    Effect.PII_CHANGES: _("written recently, would be handled differently if they have personal data"),
    Effect.QUOTA_REACHED: _("could not add any more"),
    Effect.ADAPTER_REFUSED: _("adapters could no longer be approved or used"),
    Effect.ADAPTER_ALLOWED: _("adapters could be approved, and cannot now"),
}
HOLDERS = {
    QuotaTargetKind.TENANT: _("Organisation"),
    QuotaTargetKind.MEMBER: _("Member"),
    QuotaTargetKind.API_KEY: _("API key"),
}
MEASURES = {
    Measure.MEMORIES: _("Memories"),
    Measure.BYTES: _("Bytes"),
    Measure.REQUESTS: _("Requests a minute"),
    Measure.MODEL_TOKENS: _("Model tokens a month"),
}


@dataclass(frozen=True)
class ShownMeasure:
    """The use of one measure. used: None if it is not counted; limit: None if there is none."""

    label: Promise
    measure: Measure
    used: int | None
    limit: int | None

    @property
    def percent(self) -> int | None:
        if self.used is None or self.limit is None:
            return None
        return min(100, self.used * 100 // max(1, self.limit))

    @property
    def mark(self) -> str:
        return "is-bad" if self.percent is not None and self.percent >= NEARLY_FULL else ""

    @property
    def words(self) -> str:
        return f"{self.label}: {self.percent} %"

    @property
    def used_text(self) -> str:
        return self._text(self.used)

    @property
    def limit_text(self) -> str:
        return self._text(self.limit)

    def _text(self, amount: int | None) -> str:
        return filesizeformat(amount or 0) if self.measure is Measure.BYTES else f"{amount or 0:,}"


@safe_page
def policies(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    take = Newest(size=SHOWN, key="policy_id", cursor=uuid_or_none(request.GET.get("before", "")))
    views = policies_list(actor=actor, pages=take)
    names = _find_names(actor, {object_id for view in views for object_id in _quota_target_ids(view)})
    context = {
        "policies": [_describe_policy(view, names) for view in views],
        "older": take.older,
        "kinds": [(kind, KINDS[kind], MEANT[kind]) for kind in PolicyKind],
        "may_change": is_allowed(actor, Permission.POLICY_MANAGE),
    }
    return draw(request, "vault/policies/policies.html", context)


@form_page
def policy_new(request: HttpRequest, actor: Actor, kind: str) -> HttpResponseBase:
    """GET shows a form of this kind; POST simulates the policy, or saves it."""
    authorize(actor, Permission.POLICY_MANAGE)
    if kind not in set(PolicyKind):
        raise NotFound
    form = FORMS[PolicyKind(kind)](request.POST if request.method == "POST" else None)
    return (
        _answer_form(request, actor, form, None) if request.method == "POST" else _draw_form(request, actor, form, None)
    )


@form_page
def policy(request: HttpRequest, actor: Actor, policy_id: UUID) -> HttpResponseBase:
    """Show one policy. POST by an actor who may manage policies simulates a change, or saves it."""
    view = policy_get(actor=actor, policy_id=policy_id)
    form_class = FORMS[view.kind]
    if request.method == "POST":
        authorize(actor, Permission.POLICY_MANAGE)
        return _answer_form(request, actor, form_class(request.POST), view)
    names = _find_names(actor, _quota_target_ids(view))
    initial = initial_values(view.kind, view.document, names)
    form = form_class(initial={**initial, "name": view.name, "enabled": view.enabled, "version": view.version})
    more = _list_forbidden_grants(actor) if view.kind is PolicyKind.SHARING else {}
    more |= {
        "name": name_policy(view, names),
        "sentence": describe_document(view.document, names),
        "document": _format_document(view),
    }
    return _draw_form(request, actor, form, view, may_change=is_allowed(actor, Permission.POLICY_MANAGE), more=more)


def _list_forbidden_grants(actor: Actor) -> dict[str, Any]:
    """Return the existing grants that sharing policies forbid."""
    count, grants = grants_forbidden(actor=actor, most=SHOWN)
    names = _find_names(actor, {grant.object_id for grant in grants})
    shown = [
        (grant, about_of(grant.object_type, names.get(grant.object_id)), GRANTEES[grant.holder.kind])
        for grant in grants
    ]
    return {"forbidden": shown, "forbidden_count": count}


@safe_page
def versions(request: HttpRequest, actor: Actor, policy_id: UUID) -> HttpResponseBase:
    take = Newest(size=SHOWN, key="number", cursor=number_or_none(request.GET.get("before", "")))
    views = policy_versions(actor=actor, policy_id=policy_id, pages=take)
    names = _find_names(
        actor, {object_id for view in views for object_id in (view.author_id, *_quota_target_ids(view))}
    )
    policy = policy_get(actor=actor, policy_id=policy_id)
    shown = [
        (view, _format_document(view), describe_document(view.document, names), names.get(view.author_id))
        for view in views
    ]
    context = {"versions": shown, "older": take.older, "policy": policy, "name": name_policy(policy, names)}
    return draw(request, "vault/policies/versions.html", context)


@safe_page
def quotas(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    views = quotas_list(actor=actor, is_live=False)
    names = _find_names(actor, {view.holder.id for view in views})
    rows = [(HOLDERS[view.holder.kind], names.get(view.holder.id), _list_measures(view)) for view in views]
    counted_at = next((view.counted_at for view in views if view.counted_at), None)
    context = {"quotas": rows, "counted_at": counted_at, "may_change": is_allowed(actor, Permission.POLICY_MANAGE)}
    return draw(request, "vault/policies/quotas.html", context)


def _list_measures(view: QuotaView) -> list[ShownMeasure]:
    """Return the use of each measure. Requests are limited by the minute, so their use is not shown."""
    return [
        ShownMeasure(MEASURES[measure], measure, view.used.get(measure), view.limits.of(measure)) for measure in Measure
    ]


def _describe_policy(view: PolicyView, names: Mapping[UUID, Name]) -> tuple[PolicyView, str, Promise, str]:
    """Return a policy with its name, kind and description."""
    return view, name_policy(view, names), KINDS[view.kind], describe_document(view.document, names)


def _answer_form(request: HttpRequest, actor: Actor, form: PolicyForm, view: PolicyView | None) -> HttpResponseBase:
    if view is not None:
        form.fields["name"].required = False
    if not form.is_valid():
        return _draw_form(request, actor, form, view)
    try:
        if "simulate" in request.POST:
            effects = _simulate_policy(actor, form, view)
            names = _find_names(actor, {object_id for effect in effects for object_id in effect.sample_ids})
            return _draw_form(
                request, actor, form, view, effects=effects, more={"names": names, **_preview_document(actor, form)}
            )
        saved = _save_policy(actor, form, view)
    except (Invalid, Conflict, VersionConflict) as failure:
        form.blame(failure)
        return _draw_form(request, actor, form, view)
    return see_other(reverse("policy", args=[saved.id]))


def _save_policy(actor: Actor, form: PolicyForm, view: PolicyView | None) -> PolicyView:
    cleaned = form.cleaned_data
    if view is None:
        return policy_create(actor=actor, draft=_make_draft(actor, form, cleaned["name"]))
    changes = PolicyChanges(_read_document(actor, form), enabled=cleaned["enabled"], reason=cleaned["reason"])
    return policy_change(actor=actor, policy_id=view.id, expected_versions=[cleaned["version"]], changes=changes)


def _simulate_policy(actor: Actor, form: PolicyForm, view: PolicyView | None) -> list[Outcome]:
    return policy_simulate(
        actor=actor,
        draft=_make_draft(actor, form, view.name if view else form.cleaned_data["name"]),
        replaces=view.id if view else None,
        days=settings.POLICY_SIMULATED_DAYS,
    )


def _make_draft(actor: Actor, form: PolicyForm, name: str) -> PolicyDraft:
    cleaned = form.cleaned_data
    return PolicyDraft(
        form.kind, name, _read_document(actor, form), enabled=cleaned["enabled"], reason=cleaned["reason"]
    )


def _draw_form(
    request: HttpRequest,
    actor: Actor,
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
        "effects": None
        if effects is None
        else [_describe_outcome(outcome, (more or {})["names"]) for outcome in effects],
        "days": settings.POLICY_SIMULATED_DAYS,
        "may_change": may_change,
        "places": paths_list(actor=actor) if may_change and is_allowed(actor, Permission.MEMORY_READ) else [],
        "action": request.path,
        **(more or {}),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound and form.errors else HTTPStatus.OK
    part = wants_part(request) and request.method == "POST"
    return draw(request, "vault/policies/_form.html" if part else "vault/policies/policy.html", context, status=status)


def _preview_document(actor: Actor, form: PolicyForm) -> dict[str, str]:
    """Return the document and the description of a form that is not saved yet."""
    document = document_read(form.kind, _read_document(actor, form), terms())
    holder = document.holder.id if isinstance(document, Quota) else None
    names = _find_names(actor, [holder] if holder else [])
    text = json.dumps(document_json(form.kind, document), ensure_ascii=False, indent=2)
    return {"sentence": describe_document(document, names), "document": text}


def _read_document(actor: Actor, form: PolicyForm) -> dict[str, Any]:
    """Read the document from the form, with the id of the named member or key. Raises Invalid."""
    document = form.document()
    holder = document.get("holder", {})
    if holder.get("id"):
        with acting(actor):
            found = find_id(actor.tenant_id, holder["id"], field="holder.id", kinds=[holder["kind"]])
        document["holder"] = {**holder, "id": str(found)}
    return document


def _find_names(actor: Actor, ids: Collection[UUID]) -> Mapping[UUID, Name]:
    with acting(actor):
        return names_find(actor.tenant_id, ids)


def _quota_target_ids(view: PolicyView) -> list[UUID]:
    document = view.document
    return [document.holder.id] if isinstance(document, Quota) and document.holder.id else []


def _format_document(view: PolicyView) -> str:
    return json.dumps(document_json(view.kind, view.document), ensure_ascii=False, indent=2)


def _describe_outcome(
    outcome: Outcome, names: Mapping[UUID, Name]
) -> tuple[Outcome, Promise, list[tuple[UUID, Name | None]]]:
    """Return an outcome, the text of its effect, and some of the affected ids with their names."""
    return outcome, EFFECTS[outcome.effect], [(id, names.get(id)) for id in outcome.sample_ids]

"""Page of the sign-in rules: the tenant's own sign-in server, and the requirement of a second factor."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from governance.accounts.identities import (
    DEFAULT_ROLES,
    ProviderDraft,
    oidc_sign_in,
    provider_of,
    provider_remove,
    provider_save,
    rules_get,
    second_factor_require,
)
from governance.accounts.oidc import oidc_begin, oidc_end
from governance.actor import Actor
from governance.errors import Invalid, NotFound, Unauthenticated
from governance.vocabulary import RoleName
from governance.web.pages import answer_errors, draw, form_page, post_page, see_other
from governance.web.sessions import client_address, request_id
from governance.web.views import proceed


@form_page
def sign_in_rules(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the sign-in rules; POST registers the tenant's sign-in server."""
    if request.method != "POST":
        return _page(request, actor)
    try:
        provider_save(actor=actor, draft=_draft(request))
    except Invalid as failure:
        return _page(request, actor, {"fault": failure}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("sign_in_rules"))


@post_page
def second_factor_rule(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    second_factor_require(actor=actor, required=request.POST.get("required") == "yes")
    return see_other(reverse("sign_in_rules"))


@post_page
def provider_end(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    provider_remove(actor=actor)
    return see_other(reverse("sign_in_rules"))


@require_http_methods(["GET", "HEAD"])
@answer_errors
def oidc_go(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Redirect to the organisation's sign-in server. Used by a link, because CSP limits forms to our own pages."""
    provider = provider_of(slug)
    if provider is None:
        raise NotFound
    try:
        return oidc_begin(request, provider)
    except Unauthenticated as failure:
        return _draw_refusal(request, slug, failure)


@require_http_methods(["GET", "HEAD"])
@answer_errors
def oidc_return(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Handle the return from the sign-in server."""
    provider = provider_of(slug)
    if provider is None:
        raise NotFound
    try:
        claims = oidc_end(request, provider)
        first = oidc_sign_in(
            provider=provider, claims=claims, request_id=request_id(request), address=client_address(request)
        )
    except Unauthenticated as failure:
        return _draw_refusal(request, slug, failure)
    return proceed(request, first)


def _draw_refusal(request: HttpRequest, slug: str, failure: Unauthenticated) -> HttpResponseBase:
    context = {"slug": slug, "failure": failure}
    return draw(request, "governance/oidc_refused.html", context, status=HTTPStatus.FORBIDDEN)


def _draft(request: HttpRequest) -> ProviderDraft:
    role = request.POST.get("default_role", "")
    domains = request.POST.get("domains", "").replace(",", " ").lower().split()
    return ProviderDraft(
        issuer=request.POST.get("issuer", "").strip()[:500],
        client_id=request.POST.get("client_id", "").strip()[:200],
        domains=tuple(domain[:253] for domain in domains[:50]),
        default_role=RoleName(role) if role in set(DEFAULT_ROLES) else None,
        secret=request.POST.get("secret", ""),
    )


def _page(
    request: HttpRequest, actor: Actor, more: dict[str, Any] | None = None, *, status: int = HTTPStatus.OK
) -> HttpResponseBase:
    rules = rules_get(actor=actor)
    context = {
        "rules": rules,
        "provider": _draft(request) if request.method == "POST" else rules.provider,
        "default_roles": DEFAULT_ROLES,
        "sign_in_address": f"{settings.PUBLIC_URL}/sign-in/{rules.slug}/",
        "callback_address": f"{settings.PUBLIC_URL}/sign-in/{rules.slug}/callback/",
        **(more or {}),
    }
    return draw(request, "governance/settings/sign_in_rules.html", context, status=status)

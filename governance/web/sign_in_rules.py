"""Page of the sign-in rules: the tenant's own sign-in server, and the requirement of a second factor."""

from http import HTTPStatus

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from governance.accounts.identities import (
    DEFAULT_ROLES,
    LONGEST_SECRET,
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
from governance.errors import NotFound, Unauthenticated
from governance.vocabulary import RoleName
from governance.web.members import ROLES
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import answer_errors, draw, form_page, post_page, see_other
from governance.web.sessions import client_address, request_id
from governance.web.views import proceed

LONGEST_DOMAINS = 10_000


class ProviderForm(PageForm):
    """The sign-in server of a tenant."""

    issuer = forms.CharField(
        label=_("Issuer"), max_length=500, widget=forms.URLInput(attrs={"placeholder": "https://"})
    )
    client_id = forms.CharField(label=_("Client id"), max_length=200)
    secret = forms.CharField(
        label=_("Client secret"),
        required=False,
        strip=False,
        max_length=LONGEST_SECRET,
        help_text=_("Stored encrypted. Leave it empty to keep the current one."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    domains = forms.CharField(
        label=_("Allowed mail domains"),
        max_length=LONGEST_DOMAINS,
        widget=forms.TextInput(attrs={"placeholder": "example.org"}),
    )
    default_role = forms.TypedChoiceField(
        label=_("Role of newcomers"),
        required=False,
        choices=[("", _("none: only members may sign in")), *((role, ROLES[role]) for role in DEFAULT_ROLES)],
        coerce=RoleName,
        empty_value=None,
    )

    def draft(self) -> ProviderDraft:
        domains = self.cleaned_data["domains"].replace(",", " ").lower().split()
        return ProviderDraft(**self.cleaned_data | {"domains": tuple(domains)})


@form_page
def sign_in_rules(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the sign-in rules; POST registers the tenant's sign-in server."""
    form = ProviderForm(values_of(request))
    if form.is_done_by(lambda: provider_save(actor=actor, draft=form.draft())):
        return see_other(reverse("sign_in_rules"))
    rules = rules_get(actor=actor)
    form.fields["secret"].required = rules.provider is None
    if rules.provider:
        form.initial = vars(rules.provider) | {"domains": " ".join(rules.provider.domains)}
    context = {
        "rules": rules,
        "form": form,
        "sign_in_address": f"{settings.PUBLIC_URL}/sign-in/{rules.slug}/",
        "callback_address": f"{settings.PUBLIC_URL}/sign-in/{rules.slug}/callback/",
    }
    return draw(request, "governance/settings/sign_in_rules.html", context, status=form.status)


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

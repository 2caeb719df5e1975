"""Sign-in by a tenant's own OpenID Connect server: code flow with state, PKCE (S256) and nonce (OIDC Core 1.0 §3.1).

django-allauth implements the protocol. This module also checks that the issuer is the registered one, that a published
key signed the id token even if it came over TLS, and that the token has the nonce of this browser.
"""

from hmac import compare_digest
from typing import Any

from allauth.core.internal.deferred import jwt
from allauth.socialaccount.internal import jwtkit, statekit
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.crypto import get_random_string
from requests import RequestException

from governance.accounts.identities import Claims, ProviderSecret
from governance.errors import Unauthenticated
from governance.requests_adapter import AddressRefused, url_usable
from governance.transport import is_storable

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
LONGEST_CLAIM = 255
FAILURES = (OAuth2Error, RequestException, AttributeError, KeyError, RecursionError, TypeError, ValueError)


class TenantServer(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The registered sign-in server of one tenant."""

    def __init__(self, request: HttpRequest, provider: ProviderSecret) -> None:
        self.registered = provider
        super().__init__(request, str(provider.id))

    @property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        if config.get("issuer") != self.registered.issuer:
            raise OAuth2Error("the server calls itself by another name than it was registered with")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not url_usable(config[name]):
                raise AddressRefused(f"{name} is no address that may be called")
        return config

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return f"{settings.PUBLIC_URL}/sign-in/{self.registered.tenant_slug}/callback/"

    def claims(self, app: SocialApp, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the checked claims of the id token."""
        if jwt.get_unverified_header(id_token)["alg"] not in ALGORITHMS:
            raise OAuth2Error("the id token is not signed with a published key")
        found: dict[str, Any] = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.registered.issuer,
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        if not compare_digest(str(found["nonce"]), nonce):
            raise OAuth2Error("the id token is of another sign-in")
        if found.get("azp", app.client_id) != app.client_id:
            raise OAuth2Error("the id token is for another client")
        return found


class TenantProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """The provider class of allauth for the registered server."""

    pkce_enabled_default = True

    def __init__(self, request: HttpRequest, provider: ProviderSecret) -> None:
        self.registered = provider
        super().__init__(request, app=_app(provider))

    def get_oauth2_adapter(self, request: HttpRequest) -> TenantServer:
        return _server(request, self.registered)


def oidc_begin(request: HttpRequest, provider: ProviderSecret) -> HttpResponseRedirect:
    """Redirect the browser to the tenant's server. Raises Unauthenticated if the server cannot be reached."""
    nonce = get_random_string(32)
    try:
        server = _server(request, provider)
        login = TenantProvider(request, provider)
        pkce = login.get_pkce_params()
        verifier = pkce.pop("code_verifier")
        state = login.stash_redirect_state(request, "login", pkce_code_verifier=verifier, nonce=nonce)
        client = server.get_client(request, login.app)
        client.state = state
        address = client.get_redirect_url(server.authorize_url, login.get_scope(), {**pkce, "nonce": nonce})
    except FAILURES as error:
        raise Unauthenticated("The sign-in server of your organisation does not answer as it should.") from error
    return HttpResponseRedirect(address)


def oidc_end(request: HttpRequest, provider: ProviderSecret) -> Claims:
    """Return the server's claims about the returning person. Raises Unauthenticated on every error."""
    state = statekit.unstash_state(
        request, state_id=request.GET.get("state", ""), provider_id=TenantProvider(request, provider).sub_id
    )
    if state is None or "code" not in request.GET:
        raise Unauthenticated("This sign-in was not begun in this browser, or was given up.")
    try:
        server = _server(request, provider)
        app = _app(provider)
        client = server.get_client(request, app)
        answer = server.get_access_token_data(request, app, client, pkce_code_verifier=state["pkce_code_verifier"])
        found = server.claims(app, answer["id_token"], state["nonce"])
        return Claims(
            subject=_read_claim(found["sub"]),
            email=_read_claim(found.get("email", "")),
            email_verified=found.get("email_verified") is True,
        )
    except (*FAILURES, jwt.PyJWTError) as error:
        raise Unauthenticated("The sign-in server of your organisation did not vouch for you.") from error


def _read_claim(value: object) -> str:
    """Raises ValueError for what is too long, or cannot be stored."""
    text = str(value)
    if len(text) > LONGEST_CLAIM or not is_storable(text):
        raise ValueError("a claim cannot be read")
    return text


def _server(request: HttpRequest, provider: ProviderSecret) -> TenantServer:
    request.oidc_app = _app(provider)  # type: ignore[attr-defined]
    return TenantServer(request, provider)


def _app(provider: ProviderSecret) -> SocialApp:
    """Return the registration as allauth's model; it is never stored."""
    return SocialApp(
        provider=OpenIDConnectProvider.id,
        provider_id=str(provider.id),
        name=provider.tenant_slug,
        client_id=provider.client_id,
        secret=provider.secret,
        settings={"server_url": provider.issuer.rstrip("/"), "oauth_pkce_enabled": True},
    )

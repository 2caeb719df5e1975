"""OAuth 2.1 for hosts of MCP: metadata (RFC 9728, RFC 8414), registration (RFC 7591), codes with PKCE (RFC 7636).

The SDK's own handlers check the requests. A client is no row: its id is its signed registration. Its access token is an
API key of the member who consented; see `governance.accounts.connected_apps`.
"""

import asyncio
import re
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.core.signing import BadSignature, dumps, loads
from django.utils.crypto import salted_hmac
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.json_response import PydanticJSONResponse
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from governance.accounts.connected_apps import (
    CODE_SECONDS,
    LONGEST_NAME,
    AppCode,
    AppRequest,
    ClaimedKey,
    app_key_claim,
    read_app_code,
    sign_app_request,
)
from governance.database import release_connection
from governance.ids import uuid7
from governance.vocabulary import Scope

SCOPES = (Scope.MEMORIES_READ.value, Scope.MEMORIES_WRITE.value)
CLIENT_SALT, SECRET_SALT = "memos app", "memos app secret"
LONGEST_BODY = 64 * 1024  # bytes
MOST_URIS, LONGEST_URIS = 10, 800  # of one client; characters of all together
LONGEST_ADDRESS = 2800  # of the page that asks the member; sign-in keeps it in a cookie
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
WEB_HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
APP_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
# Private-use schemes contain a dot (RFC 8252 §7.1); these applications of MCP have shorter ones.
EDITORS = frozenset(
    {"cursor", "vscode", "vscode-insiders", "windsurf", "claude", "zed", "goose", "lmstudio", "raycast"}
)
ERROR_FIELDS = ("error", "error_description", "state")
AUTH_METHODS = ("none", "client_secret_post", "client_secret_basic")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource/mcp/"


class App(OAuthClientInformationFull):
    """A registered client."""

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """Return the scopes that exist here of those that are asked for, else all that an application can have."""
        asked = (requested_scope or "").split()
        return [scope for scope in SCOPES if scope in asked] or list(SCOPES)

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Take any port of a loopback address: a desktop application has another one each time (RFC 8252 §7.3)."""
        known = {_without_loopback_port(uri) for uri in self.redirect_uris or ()}
        if redirect_uri is not None and _without_loopback_port(redirect_uri) in known:
            return redirect_uri
        return super().validate_redirect_uri(redirect_uri)


class Code(AuthorizationCode):
    """A code of the SDK, with what it stands for here."""

    contents: Any


class Provider(OAuthAuthorizationServerProvider[Code, RefreshToken, AccessToken]):
    """The part of the SDK's authorization server that is the product's. base: the public address of the request."""

    def __init__(self, base: str, *, address: str = "") -> None:
        self._base = base
        self._address = address

    async def get_client(self, client_id: str) -> App | None:
        try:
            name, uris, method = loads(client_id.replace("~", ":"), salt=CLIENT_SALT)
        except BadSignature:
            return None
        secret = None if method == "none" else _secret_of(client_id)
        return App(
            client_id=client_id,
            client_name=name,
            redirect_uris=uris,
            token_endpoint_auth_method=method,
            client_secret=secret,
            grant_types=["authorization_code"],
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Put the signed registration into the place of the id. Raises RegistrationError."""
        uris = [str(uri) for uri in client_info.redirect_uris or ()]
        if len(uris) > MOST_URIS or len("".join(uris)) > LONGEST_URIS or not all(map(_is_usable, uris)):
            raise RegistrationError("invalid_redirect_uri", "Redirect to https, to this machine, or to an application.")
        method = client_info.token_endpoint_auth_method
        if method not in AUTH_METHODS:
            raise RegistrationError("invalid_client_metadata", f"token_endpoint_auth_method: {', '.join(AUTH_METHODS)}")
        name = _clean_name(client_info.client_name or "") or (urlsplit(uris[0]).hostname or "")[:LONGEST_NAME]
        signed = dumps([name, uris, method], salt=CLIENT_SALT, compress=True)
        client_info.client_id = signed.replace(":", "~")  # Basic authentication ends an id at its first colon
        client_info.client_secret = None if method == "none" else _secret_of(client_info.client_id)
        client_info.client_name, client_info.scope = name, " ".join(SCOPES)
        client_info.grant_types = ["authorization_code"]

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return the address of the page that asks the member. Raises AuthorizeError."""
        if params.resource and not is_resource(params.resource, self._base):
            raise AuthorizeError("invalid_target", f"The resource here is {self._base}/mcp/.")
        asked = AppRequest(
            client_id=client.client_id,
            name=client.client_name or "",
            redirect_uri=str(params.redirect_uri),
            is_uri_given=params.redirect_uri_provided_explicitly,
            challenge=params.code_challenge,
            scopes=params.scopes or list(SCOPES),
            resource=params.resource,
            state=params.state,
        )
        address = f"{self._base}/connect/?request={sign_app_request(asked)}"
        if len(address) > LONGEST_ADDRESS:
            raise AuthorizeError("invalid_request", "The request is too long: send a shorter state.")
        return address

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Code | None:
        found = read_app_code(authorization_code)
        if found is None:
            return None
        return Code(
            code=authorization_code,
            scopes=found.scopes,
            expires_at=time.time() + CODE_SECONDS,  # its signature has an age, which was checked
            client_id=found.client_id,
            code_challenge=found.challenge,
            redirect_uri=AnyUrl(found.redirect_uri),
            redirect_uri_provided_explicitly=found.is_uri_given,
            resource=found.resource,
            contents=found,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: Code
    ) -> OAuthToken:
        """Return the key as an access token. Raises TokenError at the second use of a code."""
        claimed = await asyncio.to_thread(_claim, authorization_code.contents, self._address)
        if claimed is None:
            raise TokenError("invalid_grant", "The code was used, or its key was revoked.")
        scope = " ".join(authorization_code.scopes)
        return OAuthToken(access_token=claimed.text, expires_in=claimed.seconds, scope=scope)

    # Access tokens are keys: their members renew and revoke them. No route asks for what follows.

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> None:
        return None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    async def load_access_token(self, token: str) -> None:
        return None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        raise NotImplementedError


def authorization_app() -> ASGIApp:
    """The endpoints, at their paths below the public address."""
    routes = [
        *[Route(f"/.well-known/oauth-protected-resource{path}", _describe_resource) for path in ("", "/mcp", "/mcp/")],
        *[
            Route(f"/.well-known/{name}{path}", _describe_server)
            for name in ("oauth-authorization-server", "openid-configuration")
            for path in ("", settings.FORCE_SCRIPT_NAME or "/mcp")
        ],
        Route("/oauth/register", _register, methods=["POST"]),
        Route("/oauth/authorize", _authorize, methods=["GET", "POST"]),
        Route("/oauth/token", _exchange, methods=["POST"]),
    ]
    return RequestBodyLimitMiddleware(Starlette(routes=routes), LONGEST_BODY)


def is_authorization_path(path: str) -> bool:
    return path.startswith(("/oauth/", "/.well-known/oauth-", "/.well-known/openid-configuration"))


def describe_challenge(request: Request) -> str:
    """Return the `WWW-Authenticate` of a request without a valid key: it tells where hosts learn to get one."""
    return f'Bearer resource_metadata="{base_of(request)}{RESOURCE_METADATA}", scope="{" ".join(SCOPES)}"'


def base_of(request: Request) -> str:
    """The public address, else the one of the request, whose Host was checked."""
    return settings.PUBLIC_URL if settings.PUBLIC_URL_IS_GIVEN else f"{request.url.scheme}://{request.headers['host']}"


async def _describe_resource(request: Request) -> Response:
    base = base_of(request)
    described = {
        "resource": f"{base}/mcp/",
        "authorization_servers": [base],
        "scopes_supported": SCOPES,
        "resource_name": "MemOS",
    }
    return PydanticJSONResponse(ProtectedResourceMetadata.model_validate(described))


async def _describe_server(request: Request) -> Response:
    base = base_of(request)
    described = {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"],
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "code_challenge_methods_supported": ["S256"],
    }
    return PydanticJSONResponse(OAuthMetadata.model_validate(described))


async def _register(request: Request) -> Response:
    return await RegistrationHandler(Provider(base_of(request)), ClientRegistrationOptions(enabled=True)).handle(
        request
    )


def is_resource(resource: str, base: str) -> bool:
    """Return whether a resource indicator (RFC 8707) names this server."""
    return resource.rstrip("/") in {base, f"{base}/mcp"}


async def _authorize(request: Request) -> Response:
    """Lead to the page that asks the member. Anybody may register an address, so none is sent an error (RFC 9700
    §4.11.2): that would make this server redirect everybody anywhere."""
    base = base_of(request)
    answer: Response = await AuthorizationHandler(Provider(base)).handle(request)
    target = answer.headers.get("location", "")
    if not target or target.startswith(f"{base}/"):
        return answer
    failure = dict(parse_qsl(urlsplit(target).query))
    return JSONResponse({name: failure[name] for name in ERROR_FIELDS if name in failure}, HTTPStatus.BAD_REQUEST)


async def _exchange(request: Request) -> Response:
    base, resource = base_of(request), (await request.form()).get("resource")
    if resource and not is_resource(str(resource), base):
        return JSONResponse({"error": "invalid_target"}, HTTPStatus.BAD_REQUEST)
    provider = Provider(base, address=request.client.host if request.client else "")
    answer: Response = await TokenHandler(provider, ClientAuthenticator(provider)).handle(request)
    return answer


def _claim(code: AppCode, address: str) -> ClaimedKey | None:
    """The claim in a thread of its own, since it waits for the database."""
    try:
        return app_key_claim(code=code, request_id=str(uuid7()), address=address)
    finally:
        release_connection()


def _secret_of(client_id: str) -> str:
    return salted_hmac(SECRET_SALT, client_id, algorithm="sha256").hexdigest()


def _clean_name(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable()).strip()[:LONGEST_NAME]


def _is_usable(uri: str) -> bool:
    """Return whether a code may go there: over TLS, to the person's own machine, or to an application on it."""
    parts = urlsplit(uri)
    if "#" in uri:
        return False
    if parts.scheme in {"http", "https"}:
        host = parts.netloc.rpartition(":")[0] if parts.port else parts.netloc
        return bool(WEB_HOST.fullmatch(host)) and (parts.scheme == "https" or host in LOOPBACK)
    return bool(APP_SCHEME.fullmatch(parts.scheme)) and ("." in parts.scheme or parts.scheme in EDITORS)


def _without_loopback_port(uri: AnyUrl) -> tuple[str, ...]:
    parts = urlsplit(str(uri))
    host = parts.netloc.rpartition(":")[0] if parts.port else parts.netloc
    netloc = host if parts.scheme == "http" and host in LOOPBACK else parts.netloc
    return (parts.scheme, netloc, parts.path, parts.query, parts.fragment)

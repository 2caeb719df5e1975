"""Authentication: from an HTTP request to an Actor. The principal decides the tenant, never the body."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from governance.accounts.key_refusals import key_refusal_count
from governance.actor import Actor, CallContext
from governance.errors import Forbidden, SecondFactorRequired, TooManyAttempts, Unauthenticated, Unavailable
from governance.failures import database_failure
from governance.ids import uuid7
from governance.tenants.selectors import actor_by_key
from governance.vocabulary import Channel
from governance.web.middleware import API
from governance.web.sessions import actor_of_session, client_address, request_id

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which imports this module through its settings

LONGEST_CONTEXT = 200
CHANNEL_OF_SCOPE = "memos.channel"  # set by the MCP server, inside the process: no header can claim it


def call_context(request: Request) -> CallContext:
    """Return the context of the call from the headers of the contract."""
    return CallContext(
        channel=getattr(request, "scope", {}).get(CHANNEL_OF_SCOPE, Channel.API),
        purpose=_header(request, "X-Memory-Purpose"),
        session=_header(request, "X-Memory-Session"),
        task=_header(request, "X-Memory-Task"),
        address=client_address(request),
    )


def body_limit(request: HttpRequest) -> int:
    """Return the largest body in bytes that the caller may send to this address, judged by the headers: the body is not
    read yet.

    A caller without a valid API key or session has the limit of anonymous calls. Raises Unavailable.
    """
    try:
        view = resolve(request.path_info).func
        if not _is_authenticated(request):
            return settings.BODY_BYTES_UNAUTHENTICATED
    except (Resolver404, Unauthenticated, SecondFactorRequired, TooManyAttempts):
        return settings.BODY_BYTES_UNAUTHENTICATED
    except DatabaseError as error:
        raise database_failure(error) or Unavailable() from error
    longest: int = getattr(getattr(view, "view_class", view), "longest_body", settings.BODY_BYTES)
    return longest


def _is_authenticated(request: HttpRequest) -> bool:
    """Return whether the headers prove a key or a session. Raises Unauthenticated; SecondFactorRequired."""
    request.request_id = str(uuid7())  # type: ignore[attr-defined]
    SessionMiddleware(_answer_empty).process_request(request)
    if not request.path_info.startswith(API) or "Authorization" not in request.headers:
        return actor_of_session(request, CallContext(channel=Channel.WEB)) is not None
    scheme, _, presented = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "bearer":
        return False
    _actor_by_key(request, presented, CallContext(channel=Channel.API, address=client_address(request)))
    return True


def _actor_by_key(request: HttpRequest, presented: str, context: CallContext) -> Actor:
    """Return the actor of an API key. Raises Unauthenticated; TooManyAttempts after many wrong keys, but never for
    a right one.
    """
    presented = presented.strip()
    try:
        return actor_by_key(presented=presented, request_id=request_id(request), context=context)
    except Unauthenticated:
        key_refusal_count(presented=presented, address=context.address)
        raise


def actor_of(request: Request) -> Actor:
    """Return the authenticated actor of the request. Raises Unauthenticated if there is none."""
    if not isinstance(request.user, Actor):
        raise Unauthenticated
    return request.user


class BearerKey(BaseAuthentication):
    """Authenticates by an API key in the header `Authorization: Bearer mos_<prefix>_<secret>`."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, presented = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated
        stated = call_context(request)
        actor = _actor_by_key(request, presented, stated)
        request.caller.actor = actor  # type: ignore[attr-defined]  # for the audit log, should the next line refuse
        _refuse_other_purpose(actor, stated)
        return actor, None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class Session(SessionAuthentication):
    """Authenticates by the browser's session, with a CSRF check."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        actor = actor_of_session(request, call_context(request))
        if actor is None:
            return None
        request.caller.actor = actor  # type: ignore[attr-defined]  # for the audit log, should the next line refuse
        try:
            self.enforce_csrf(request)
        except PermissionDenied as error:
            raise Forbidden("The CSRF token is missing or wrong.", rule="csrf") from error
        return actor, None


class IsActor(BasePermission):
    """Requires an authenticated actor. Services check its permissions."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.user, Actor)


class BearerKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = BearerKey
    name = "ApiKey"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "mos_<prefix>_<secret>"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = Session
    name = "Session"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


def _answer_empty(*_: object, **__: object) -> HttpResponse:
    """Return an empty response: stands in for the view of a middleware whose check alone is used."""
    return HttpResponse()


def _refuse_other_purpose(actor: Actor, stated: CallContext) -> None:
    """Raise Forbidden if the call names a purpose other than its key's."""
    if stated.purpose not in {"", actor.context.purpose}:
        raise Forbidden("The key is bound to another purpose.", rule="purpose")


def _header(request: Request, name: str) -> str:
    return request.headers.get(name, "")[:LONGEST_CONTEXT]

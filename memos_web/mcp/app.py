"""Serves `/mcp/` beside Django: MCP over streamable HTTP, for callers with an API key, and OAuth to get one."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memos_web.guards import LONGEST_BODY, Api, Guarded
from memos_web.mcp.authorization import authorization_app, describe_challenge, is_authorization_path
from memos_web.mcp.tools import mcp_server

PATHS = frozenset({"/mcp", "/mcp/"})
INVALID_REQUEST = -32600  # of JSON-RPC 2.0


class WithMcp:
    """An ASGI application: `/mcp/` is answered by the MCP server, everything else by `django`."""

    def __init__(self, django: Api) -> None:
        self._django = django
        self._streaming, self._plain = (_make_app(django, json_response=flag) for flag in (False, True))
        self._both = Starlette(lifespan=self._run_both)
        self._authorization = authorization_app()
        self._guarded = Guarded(self._choose, django, _fault, remembers_keys=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._both(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in PATHS and not is_authorization_path(path):
            await self._django(scope, receive, send)
        elif refusal := _find_refusal(Request(scope), is_page_allowed=path not in PATHS):
            await refusal(scope, receive, send)
        elif path in PATHS:
            answer = _with_challenge(send, describe_challenge(Request(scope)))
            await self._guarded({**scope, "path": "/mcp/", "root_path": ""}, receive, answer)
        else:
            await self._authorization({**scope, "path": path, "root_path": ""}, receive, send)

    @asynccontextmanager
    async def _run_both(self, _: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in (self._streaming, self._plain):
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def _choose(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as a stream of events, or as one JSON document if the client takes nothing else."""
        headers = MutableHeaders(scope=scope)
        headers.setdefault("accept", "application/json")
        takes_json, takes_events = check_accept_headers(Request(scope))
        app: ASGIApp = self._plain if takes_json and not takes_events else self._streaming
        await app(scope, receive, send)


def _make_app(django: Api, *, json_response: bool) -> Starlette:
    # Each request stands alone, so that any web process can answer it and no session can be taken over.
    return mcp_server(django).streamable_http_app(
        streamable_http_path="/mcp/",
        stateless_http=True,
        json_response=json_response,
        max_request_body_size=LONGEST_BODY,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # see _find_refusal
    )


def _find_refusal(request: Request, *, is_page_allowed: bool) -> Response | None:
    """The answer to a request for another host, or from a page of another site unless that `is_page_allowed`.

    A page can bring a browser to send requests here by a name of its own that leads to this address.
    """
    host = request.headers.get("host", "")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return _fault(HTTPStatus.MISDIRECTED_REQUEST, "", "Name the host of this address in MEMOS_ALLOWED_HOSTS.")
    origin = request.headers.get("origin")
    if not is_page_allowed and origin not in {None, f"{request.url.scheme}://{host}", *settings.CSRF_TRUSTED_ORIGINS}:
        return _fault(HTTPStatus.FORBIDDEN, "", "Pages of other sites cannot use this server.")
    return None


def _with_challenge(send: Send, challenge: str) -> Send:
    """A `send` whose 401 tells hosts how their person can sign in (RFC 9728 §5.1)."""

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.UNAUTHORIZED:
            MutableHeaders(scope=message)["www-authenticate"] = challenge
        await send(message)

    return answer


def _fault(status: HTTPStatus, _code: str, detail: str) -> Response:
    """An error of JSON-RPC for a request that is not read."""
    error = {"code": INVALID_REQUEST, "message": detail}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)

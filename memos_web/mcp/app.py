"""Serves `/mcp/` beside Django: MCP over streamable HTTP, for callers with an API key."""

import hashlib
from http import HTTPStatus

from cachetools import TTLCache
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from memos_web.mcp.rest import Rest
from memos_web.mcp.tools import mcp_server

PATHS = frozenset({"/mcp", "/mcp/"})
LONGEST_BODY = 4 * 1024 * 1024  # bytes: 1,000 messages of a conversation
# A key that was valid may list tools for so long before it is looked at again. Every call of a tool looks at it anyway.
REMEMBERED_SECONDS, MOST_REMEMBERED = 30, 20_000


class WithMcp:
    """An ASGI application: `/mcp/` is answered by the MCP server, everything else by `django`."""

    def __init__(self, django: ASGIApp) -> None:
        self._django = django
        # Each request stands alone, so that any web process can answer it and no session can be taken over. Its Host
        # is checked by Django, and it needs a key: a page of another site cannot make a browser send one.
        self._mcp = mcp_server(django).streamable_http_app(
            streamable_http_path="/mcp/",
            stateless_http=True,
            max_request_body_size=LONGEST_BODY,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._valid: TTLCache[bytes, bool] = TTLCache(MOST_REMEMBERED, REMEMBERED_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._mcp(scope, receive, send)
        elif scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) not in PATHS:
            await self._django(scope, receive, send)
        elif refusal := await self._refusal(Request(scope)):
            await refusal(scope, receive, send)
        else:
            await self._mcp({**scope, "path": "/mcp/", "root_path": ""}, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        """The answer of the REST API to this key where that is no success: 401, 400 for a wrong Host, 429, 503."""
        digest = hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
        if digest in self._valid:
            return None
        answer = await Rest(self._django, request).send("GET", "me/")
        if answer.status_code == HTTPStatus.OK:
            self._valid[digest] = True
            return None
        names = ("content-type", "www-authenticate", "retry-after")
        headers = {name: answer.headers[name] for name in names if name in answer.headers}
        return Response(answer.content, answer.status_code, headers)

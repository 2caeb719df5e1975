"""Serves `/mcp/` beside Django: MCP over streamable HTTP, for callers with an API key."""

from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from memos_web.inside import KeyGate
from memos_web.mcp.tools import mcp_server

PATHS = frozenset({"/mcp", "/mcp/"})
LONGEST_BODY = 4 * 1024 * 1024  # bytes: 1,000 messages of a conversation


class WithMcp:
    """An ASGI application: `/mcp/` is answered by the MCP server, everything else by `django`."""

    def __init__(self, django: ASGIApp) -> None:
        self._django = django
        self._gate = KeyGate(django)
        # Each request stands alone, so that any web process can answer it and no session can be taken over. Its Host
        # is checked by Django, and it needs a key: a page of another site cannot make a browser send one.
        self._mcp = mcp_server(django).streamable_http_app(
            streamable_http_path="/mcp/",
            stateless_http=True,
            max_request_body_size=LONGEST_BODY,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._mcp(scope, receive, send)
        elif scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) not in PATHS:
            await self._django(scope, receive, send)
        elif refusal := await self._gate.find_refusal(Request(scope)):
            await refusal(scope, receive, send)
        else:
            await self._mcp({**scope, "path": "/mcp/", "root_path": ""}, receive, send)

"""Serves `/mcp/` beside Django: MCP over streamable HTTP, for callers with an API key."""

from http import HTTPStatus

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from memos_web.guards import LONGEST_BODY, Api, Guarded
from memos_web.mcp.tools import mcp_server

PATHS = frozenset({"/mcp", "/mcp/"})
INVALID_REQUEST = -32600  # of JSON-RPC 2.0


class WithMcp:
    """An ASGI application: `/mcp/` is answered by the MCP server, everything else by `django`."""

    def __init__(self, django: Api) -> None:
        self._django = django
        # Each request stands alone, so that any web process can answer it and no session can be taken over. Its Host
        # is checked by Django, and it needs a key: a page of another site cannot make a browser send one.
        self._mcp: ASGIApp = mcp_server(django).streamable_http_app(
            streamable_http_path="/mcp/",
            stateless_http=True,
            max_request_body_size=LONGEST_BODY,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._guarded = Guarded(self._mcp, django, _fault)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._mcp(scope, receive, send)
        elif scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) not in PATHS:
            await self._django(scope, receive, send)
        else:
            await self._guarded({**scope, "path": "/mcp/", "root_path": ""}, receive, send)


def _fault(status: HTTPStatus, _code: str, detail: str) -> Response:
    """An error of JSON-RPC for a request that is not read."""
    error = {"code": INVALID_REQUEST, "message": detail}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)

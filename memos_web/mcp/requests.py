"""Requests before the SDK answers them: arguments of tools by name, and the list of resources."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ListResourcesResult, Resource, TextContent
from starlette.requests import Request
from starlette.types import ASGIApp

from governance.vocabulary import Channel
from memos_web.inside import Refused, Rest

RESOURCES = 50  # memories on a page of resources/list
LONGEST_NAME = 60  # characters of a memory that is listed without a title
JSON = "application/json"
FIXED = (
    Resource(uri="memos://memories", name="latest", title="Latest memories", mime_type=JSON),
    Resource(uri="memos://packs", name="packs", title="Installed packs", mime_type=JSON),
)

RequestContext = ServerRequestContext[ASGIApp, Request]


class Requests:
    """Middleware of the server. tools: the names of the arguments of each tool."""

    def __init__(self) -> None:
        self.tools: dict[str, frozenset[str]] = {}

    async def __call__(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        if ctx.method == "resources/list":
            return await list_resources(ctx)
        if ctx.method == "tools/call" and isinstance(ctx.params, Mapping):
            return await self._call_tool(ctx, ctx.params, call_next)
        return await call_next(ctx)

    async def _call_tool(self, ctx: RequestContext, params: Mapping[str, Any], call_next: CallNext) -> HandlerResult:
        """Refuse arguments that the tool has not; what is null or blank is left out."""
        known, given = self.tools.get(str(params.get("name"))), params.get("arguments")
        if known is None or not isinstance(given, Mapping):
            return await call_next(ctx)
        if unknown := sorted(set(map(str, given)) - known):
            text = f"{params['name']} has no argument {', '.join(unknown)}. It takes {', '.join(sorted(known))}."
            return CallToolResult(content=[TextContent(text=text)], is_error=True)
        arguments = {name: value for name, value in given.items() if value is not None and value not in ("", [""])}
        return await call_next(replace(ctx, params={**params, "arguments": arguments}))


async def list_resources(ctx: RequestContext) -> ListResourcesResult:
    """List the memories that were added last, a page at a time, after the lists that are resources themselves.

    A key that may not read memories gets those lists alone. Raises MCPError.
    """
    cursor = (ctx.params or {}).get("cursor")
    assert ctx.request is not None, "every transport of this server is HTTP"
    rest = Rest(ctx.lifespan_context, ctx.request, channel=Channel.MCP)
    try:
        page = await rest.call("GET", "memories/", query={"page_size": RESOURCES, "cursor": cursor})
    except Refused as refused:
        if refused.response.status_code == 403:
            return ListResourcesResult(resources=[*FIXED])
        detail = refused.problem.get("detail") or refused.problem["title"]
        raise MCPError(code=INVALID_PARAMS, message=f"{detail} ({refused.problem['code']})") from refused
    found = [_resource_of(memory) for memory in page["results"]]
    return ListResourcesResult(resources=found if cursor else [*FIXED, *found], next_cursor=cursor_of(page["next"]))


def cursor_of(following: str | None) -> str | None:
    """The cursor in the address of a next page."""
    return parse_qs(urlsplit(following).query)["cursor"][0] if following else None


def _resource_of(memory: dict[str, Any]) -> Resource:
    return Resource(
        uri=f"memos://memories/{memory['id']}",
        name=memory["id"],
        title=memory.get("title") or memory["content"][:LONGEST_NAME],
        mime_type=JSON,
    )

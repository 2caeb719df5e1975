"""`memos-mcp`: connects an MCP host that starts programs to the server's `/mcp/`.

It speaks MCP on standard input and output, and passes every request on. MEMOS_URL and MEMOS_API_KEY say where to.
"""

import os
import sys
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

TIMEOUT = 120.0  # seconds for one call


def main() -> None:
    """Exit code 2 without an address or a key, 1 where the server cannot be reached or refuses the key."""
    url, key = os.environ.get("MEMOS_URL", ""), os.environ.get("MEMOS_API_KEY", "")
    if not url or not key:
        sys.stderr.write("memos-mcp: set MEMOS_URL and MEMOS_API_KEY\n")
        raise SystemExit(2)
    try:
        anyio.run(_serve, f"{url.rstrip('/')}/mcp/", key)
    except* (MCPError, httpx2.HTTPError) as group:
        reason = next(iter(group.exceptions))
        sys.stderr.write(f"memos-mcp: {url} does not answer as expected: {reason}\n")
        raise SystemExit(1) from None


async def _serve(url: str, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http,
        Client(streamable_http_client(url, http_client=http)) as remote,
    ):
        server = pass_on(remote)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def pass_on(remote: Client) -> Server[Any]:
    """A server that asks `remote` for everything."""

    async def list_tools(_: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return await remote.list_tools(cursor=params.cursor if params else None)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        return await remote.call_tool(params.name, params.arguments, progress_callback=report)

    async def list_resources(_: Any, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await remote.list_resources(cursor=params.cursor if params else None)

    async def list_templates(_: Any, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return await remote.list_resource_templates(cursor=params.cursor if params else None)

    async def read_resource(_: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await remote.read_resource(str(params.uri))

    async def list_prompts(_: Any, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return await remote.list_prompts(cursor=params.cursor if params else None)

    async def get_prompt(_: Any, params: GetPromptRequestParams) -> GetPromptResult:
        return await remote.get_prompt(params.name, params.arguments)

    return Server(
        "memos",
        version=remote.server_info.version if remote.server_info else "",
        instructions=remote.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


if __name__ == "__main__":
    main()

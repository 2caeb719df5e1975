"""The tools of MemOS Web for an agent of Pydantic AI, by MCP: `memos_toolset`. Install the extra `pydantic-ai`."""

import os
from typing import Any

from pydantic_ai.mcp import MCPToolset

from memos_client.errors import MemosError


def memos_toolset(url: str | None = None, api_key: str | None = None, **options: Any) -> MCPToolset[Any]:
    """A toolset with all tools of the server, such as `add_memory` and `search_memories`.

    url and api_key default to MEMOS_URL and MEMOS_API_KEY; options: other arguments of MCPToolset. Raises MemosError
    without an address or a key.
    """
    url = url or os.environ.get("MEMOS_URL", "")
    api_key = api_key or os.environ.get("MEMOS_API_KEY", "")
    if not url or not api_key:
        raise MemosError("Give url and api_key, or set MEMOS_URL and MEMOS_API_KEY.")
    headers = {"Authorization": f"Bearer {api_key}", **options.pop("headers", {})}
    return MCPToolset(f"{url.rstrip('/')}/mcp/", headers=headers, **options)

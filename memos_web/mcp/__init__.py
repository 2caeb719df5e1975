"""The MCP server: the memory as tools and resources of an agent, at `/mcp/`."""

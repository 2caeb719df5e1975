"""MCP as agents use it: the real client of the protocol's SDK."""

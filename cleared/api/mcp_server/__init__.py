"""``cleared mcp``: the operations as tools for MCP clients. They may read, check and propose; a person decides."""

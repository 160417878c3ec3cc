"""The workspace for other programs: JSON-RPC and MCP.

It imports ``books`` and below. Begin with ``rpc.workspace_server`` and ``mcp_server.protocol_server``.
"""

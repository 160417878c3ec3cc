"""What programs may ask of a workspace: one table, of which RPC, MCP and the tools of a session are projections."""

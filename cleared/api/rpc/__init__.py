"""A workspace's reading primitives and commands as JSON-RPC 2.0, on standard streams or a Unix socket."""

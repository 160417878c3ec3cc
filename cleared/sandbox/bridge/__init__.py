"""The sandbox behind JSON-RPC 2.0 lines: a process that runs scripts for whoever holds the primitives."""

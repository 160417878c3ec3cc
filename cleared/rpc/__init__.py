"""JSON-RPC 2.0 lines: scripts for whoever holds the primitives (``bridge``), this workspace for any client
(``service``). Both are encodings of the one door, ``dispatch``."""

"""What a header can allow a script to do with tables, and how much of it."""

from __future__ import annotations

from cleared.primitives.registry.grants import Grant
from cleared.sandbox.header import HeaderKey
from cleared.sandbox.header_values import integer_reader, read_words


def list_grants() -> list[Grant]:
    """The grants of tables."""
    return [
        Grant("table.read", "read tables", "low"),
        Grant("table.write", "put and remove rows of tables", "high"),
    ]


def list_header_keys() -> list[HeaderKey]:
    """The budget of a run."""
    return [
        HeaderKey("max_rows", integer_reader(0, 10**9), lambda most: f"at most {most} rows of tables a run"),
        HeaderKey("tables", read_words, lambda names: f"only the tables {', '.join(names)}"),
    ]

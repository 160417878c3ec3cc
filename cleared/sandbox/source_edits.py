"""Where a node of the syntax tree stands in a script's text: one place is changed, every other byte stays."""

from __future__ import annotations

import ast


def find_span(source: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Where a node begins and ends, in characters; the syntax tree counts the bytes of a line."""
    lines = source.split("\n")

    def find_offset(line: int, column: int) -> int:
        start = sum(len(each) + 1 for each in lines[: line - 1])
        return start + len(lines[line - 1].encode("utf-8")[:column].decode("utf-8"))

    assert node.end_lineno is not None and node.end_col_offset is not None
    return find_offset(node.lineno, node.col_offset), find_offset(node.end_lineno, node.end_col_offset)


def indent_of(source: str, offset: int) -> str:
    """The blanks that the line of this place begins with."""
    line = source[source.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def find_line_end(source: str, offset: int) -> int:
    """Where the line of this place ends, without its line feed."""
    at = source.find("\n", offset)
    return at if at >= 0 else len(source)


def render_text(text: str) -> str:
    """A text as a script has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

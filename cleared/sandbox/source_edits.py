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


def prepend_item(source: str, node: ast.List, text: str) -> str:
    """The script with an item more before the others of a list, on a line of its own where the list begins so."""
    start, end = find_span(source, node)
    first = find_span(source, node.elts[0])[0] if node.elts else end - 1
    rest_of_line = source[start + 1 : source.find("\n", start + 1)]
    if "\n" in source[start + 1 : first] and (not rest_of_line.strip() or rest_of_line.strip().startswith("#")):
        at = source.index("\n", start + 1) + 1  # before a comment that belongs to the first item
        indent = indent_of(source, first) if node.elts else "    "
        return f"{source[:at]}{indent}{text},\n{source[at:]}"
    return f"{source[: start + 1]}{text}{', ' if node.elts else ''}{source[start + 1 :]}"


def remove_item(source: str, node: ast.Tuple) -> str:
    """The script without an item of a list, such as a row: with its line, where nothing else stands on it."""
    start, end = find_span(source, node)
    rest = source[end:]
    comma = len(rest) - len(rest.lstrip()) + 1 if rest.lstrip().startswith(",") else 0
    line_start, line_end = source.rfind("\n", 0, start) + 1, source.find("\n", end + comma)
    behind = source[end + comma : line_end if line_end >= 0 else len(source)]
    if not source[line_start:start].strip() and line_end >= 0 and (not behind.strip() or behind.lstrip()[0] == "#"):
        return source[:line_start] + source[line_end + 1 :]
    if comma:
        return source[:start] + source[end + comma :].lstrip(" ")
    before = source[:start].rstrip()
    return before.removesuffix(",") + source[end:]

"""Taking a branch of an ``if`` out of a script's text: its lines go, every other byte stays."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.source_edits import find_line_end, find_span, indent_of

_MAX_TEXT: Final = 80


class Branch(Struct, frozen=True):
    """What an ``if`` or ``elif`` does where its condition is true; ``is_other``: what follows where it is not."""

    node: ast.If
    is_other: bool = False

    @property
    def statements(self) -> list[ast.stmt]:
        return self.node.orelse if self.is_other else self.node.body

    def describe(self) -> str:
        """``"AWS" in desc``, or ``else of`` that."""
        return f"{'else of ' if self.is_other else ''}{ast.unparse(self.node.test)[:_MAX_TEXT]}"


def remove_branch(source: str, branch: Branch) -> str:
    """The script without a branch of it to which nothing comes: the same text where more than its lines would have to
    change, or where the script's result would be another one."""
    parsed = parse_script(source, "")
    if isinstance(parsed, Finding):
        return source
    tree = copy.deepcopy(parsed)  # others have the same one
    node = next((each for each in ast.walk(tree) if isinstance(each, ast.If) and _is_at(each, branch.node)), None)
    if node is None or (not branch.is_other and not node.orelse and node in _list_last(tree.body)):
        return source
    text = _cut_other(source, node) if branch.is_other else _cut_body(source, node)
    if not _replace(tree, node, node.body if branch.is_other else node.orelse):
        return source
    changed = parse_script(text, "")
    return source if isinstance(changed, Finding) or ast.dump(changed) != ast.dump(tree) else text


def _is_at(node: ast.If, other: ast.If) -> bool:
    return (node.lineno, node.col_offset) == (other.lineno, other.col_offset)


def _list_last(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of which one may be the script's result."""
    if block:
        yield block[-1]
        if isinstance(block[-1], ast.If):
            yield from _list_last(block[-1].body)
            yield from _list_last(block[-1].orelse)


def _replace(tree: ast.Module, node: ast.If, what: list[ast.stmt]) -> bool:
    """Put these statements in the place of an ``if``; False where none is left."""
    for parent in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and node in block:
                at = block.index(node)
                block[at : at + 1] = what
                return bool(block) or name == "orelse"
    return False


def _cut_other(source: str, node: ast.If) -> str:
    """The condition goes, too: it says nothing."""
    start, rest = find_span(source, node)[0], find_line_end(source, find_span(source, node)[1])
    if not source.startswith("elif", start):
        return source[: _line_start(source, start)] + _dedent(source, node, node.body) + source[rest:]
    end = find_line_end(source, find_span(source, node.body[-1])[1])
    return source[:start] + "else" + source[find_span(source, node.test)[1] : end] + source[rest:]


def _cut_body(source: str, node: ast.If) -> str:
    start = find_span(source, node)[0]
    begin = _line_start(source, start)
    end = find_line_end(source, find_span(source, node.body[-1])[1]) + 1
    if source.startswith("elif", start) or not node.orelse:
        return source[:begin] + source[end:]
    following = find_span(source, node.orelse[0])[0]
    if source.startswith("elif", following):
        return source[:begin] + source[end:following] + source[following + len("el") :]
    rest = find_line_end(source, find_span(source, node)[1])
    return source[:begin] + _dedent(source, node, node.orelse) + source[rest:]


def _dedent(source: str, node: ast.If, block: list[ast.stmt]) -> str:
    """The lines of a block of an ``if``, as far to the right as that is."""
    first, last = find_span(source, block[0])[0], find_span(source, block[-1])[1]
    outer, inner = indent_of(source, find_span(source, node)[0]), indent_of(source, first)
    lines = source[_line_start(source, first) : find_line_end(source, last)].split("\n")
    return "\n".join(outer + line.removeprefix(inner) if line.startswith(inner) else line for line in lines)


def _line_start(source: str, offset: int) -> int:
    return source.rfind("\n", 0, offset) + 1

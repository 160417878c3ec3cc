"""Keeps a script's result: the value of its last expression, also in a trailing ``if``/``elif``/``else``.

The interpreter has a result only where the very last statement is an expression, and the published example ends in an
``if``. So each such *tail expression* is rewritten to an assignment, on the same line. ``RewrittenScript`` maps
positions of the rewritten text back to the author's text.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator

RESULT = "__result__"
TAIL = "__tail__"


class RewrittenScript:
    """A script whose tail expressions are assignments, with a way back to the original positions.

    ``text`` is what the interpreter runs. It has the lines of ``original``; a line with a tail expression has
    ``__tail__ = n; __result__ = `` before it. ``tails[n]`` is that expression's 1-based line and column.
    """

    def __init__(self, original: str, tree: ast.Module) -> None:
        self._lines = original.split("\n")
        encoded = [line.encode("utf-8", "surrogatepass") for line in self._lines]
        self._inserted: dict[int, tuple[int, int]] = {}  # line index → byte offset, length (all of it ASCII)
        self.tails: list[tuple[int, int]] = []
        for number, node in enumerate(_find_tails(tree)):
            index, offset = node.lineno - 1, node.col_offset
            before = encoded[index][:offset]
            assignment = f"{TAIL} = {number}; {RESULT} = ".encode()
            encoded[index] = before + assignment + encoded[index][offset:]
            self._inserted[index] = (offset, len(assignment))
            self.tails.append((node.lineno, len(before.decode(errors="ignore")) + 1))
        self._encoded = encoded
        self._starts = [0]
        for line in encoded[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.text = b"\n".join(encoded).decode("utf-8", "surrogatepass")

    def original_position(self, offset: int) -> tuple[int, int]:
        """Original 1-based line and column of a UTF-8 byte offset into ``text``."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        within = offset - self._starts[index]
        prefix = self._encoded[index][:within].decode(errors="ignore")
        return index + 1, self.original_column(index + 1, len(prefix) + 1)

    def original_column(self, line: int, column: int) -> int:
        """Original 1-based column of a 1-based line and column of ``text``."""
        insertion = self._inserted.get(line - 1)
        if insertion is None:
            return column
        offset, length = insertion
        first = len(self._encoded[line - 1][:offset].decode(errors="ignore")) + 1
        return column if column < first else max(column - length, first)

    def original_line(self, line: int) -> str:
        """The original text of a 1-based line; empty past the end."""
        return self._lines[line - 1] if 1 <= line <= len(self._lines) else ""


def _find_tails(tree: ast.Module) -> Iterator[ast.Expr]:
    """The expression statements that can end the script, in the order of the text."""
    body: list[ast.stmt] = tree.body
    if len(body) == 1 and ast.get_docstring(tree, clean=False) is not None:
        return  # a header is not a result
    pending = [body]
    while pending:
        block = pending.pop()
        last = block[-1] if block else None
        if isinstance(last, ast.If):
            pending += [last.orelse, last.body]
        elif isinstance(last, ast.Expr) and not _is_ellipsis(last.value):
            yield last


def _is_ellipsis(value: ast.expr) -> bool:
    """``...`` is how an empty branch is written."""
    return isinstance(value, ast.Constant) and value.value is Ellipsis

"""What is new in a script, statement by statement: whatever the approved version does not have just so and there.

A *piece* is a simple statement, the head of a compound one (``if``, ``for``, ``def``), or one row of a literal table: a
new row can do as much as a new statement.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

_LEAST_ROWS: Final = 2
"""A literal with so many elements is a table."""


class Piece(Struct, frozen=True, eq=False):
    """``nodes``: all that belongs to it, but for the blocks below it and the rows of its table."""

    depth: int
    text: str
    line: int
    nodes: tuple[ast.AST, ...]
    row: tuple[ast.expr, ...] = ()
    """The parts of the row of a table that it is: an element, or a key and its value."""
    is_module_level: bool = False

    @property
    def is_row(self) -> bool:
        return bool(self.row)

    @property
    def bound_names(self) -> frozenset[str]:
        """The names that it gives a value or a function."""
        names = {n.id for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return frozenset(names | {n.name for n in self.nodes if isinstance(n, ast.FunctionDef)})

    @property
    def is_condition(self) -> bool:
        """Whether it decides what is done."""
        return any(isinstance(node, ast.If | ast.While | ast.IfExp | ast.BoolOp | ast.Compare) for node in self.nodes)


class ScriptChanges:
    """Two versions of a script, as syntax trees; ``old`` is None where the script is new."""

    def __init__(self, old: ast.Module | None, new: ast.Module) -> None:
        before = list(_list_pieces(_skip_header(old), 0)) if old is not None else []
        after = list(_list_pieces(_skip_header(new), 0))
        a, b = ([(piece.depth, piece.text) for piece in pieces] for pieces in (before, after))
        steps = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        self.added: list[Piece] = []
        self.removed: list[Piece] = []
        self.kept: list[Piece] = []
        self.steps: list[tuple[list[Piece], list[Piece]]] = []
        """What is gone, and what stands in its place."""
        for step, first, last, start, end in steps:
            if step == "equal":
                self.kept += after[start:end]
            else:
                self.steps.append((before[first:last], after[start:end]))
                self.removed += before[first:last]
                self.added += after[start:end]

    @cached_property
    def added_nodes(self) -> frozenset[int]:
        """``id`` of each node that is new."""
        return _mark_nodes(self.added)

    @cached_property
    def removed_nodes(self) -> frozenset[int]:
        """``id`` of each node that is gone."""
        return _mark_nodes(self.removed)

    @cached_property
    def removed_conditions(self) -> frozenset[int]:
        """``id`` of each node of a condition that is gone."""
        return _mark_nodes(piece for piece in self.removed if piece.is_condition)

    @cached_property
    def data_names(self) -> frozenset[str]:
        """Names of what is given another value at the level of the module: of tables with another row, too."""
        names = set()
        for piece in self.added:
            if piece.is_module_level:
                names |= {n.id for n in piece.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return frozenset(names)


def _mark_nodes(pieces: Iterable[Piece]) -> frozenset[int]:
    """Of statements and expressions: operators and the like are one object all over a tree."""
    return frozenset(id(n) for piece in pieces for n in piece.nodes if isinstance(n, ast.stmt | ast.expr))


def _skip_header(tree: ast.Module) -> list[ast.stmt]:
    return tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body


def _list_pieces(body: Sequence[ast.stmt], depth: int, *, in_function: bool = False) -> Iterator[Piece]:
    for statement in body:
        blocks = _find_blocks(statement)
        tables = [] if blocks else _find_tables(statement)
        apart = {id(node) for block in blocks for each in block for node in ast.walk(each)}
        apart |= {id(node) for table in tables for row in _rows_of(table) for part in row for node in ast.walk(part)}
        own = tuple(node for node in ast.walk(statement) if id(node) not in apart)
        is_module_level = depth == 0 and not in_function
        yield Piece(depth, _describe_head(statement, tables), statement.lineno, own, is_module_level=is_module_level)
        targets = tuple(node for node in own if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        for table in tables:
            for row in _rows_of(table):
                nodes = (*targets, *(node for part in row for node in ast.walk(part)))
                text = ": ".join(ast.unparse(part) for part in row)
                yield Piece(depth + 1, text, row[0].lineno, nodes, tuple(row), is_module_level)
        for number, block in enumerate(blocks):
            if number:
                yield Piece(depth, "else:", block[0].lineno, ())
            function = in_function or isinstance(statement, ast.FunctionDef)
            yield from _list_pieces(block, depth + 1, in_function=function)


def _find_blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", ())]
    return [block for block in blocks if isinstance(block, list) and block]


def _find_tables(statement: ast.stmt) -> list[ast.expr]:
    """The literal tables that a statement assigns, if they have several rows."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) or value is None:
        return []
    tables = [node for node in ast.walk(value) if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict)]
    inner = {id(node) for table in tables for node in ast.walk(table) if node is not table}
    return [table for table in tables if id(table) not in inner and len(_rows_of(table)) >= _LEAST_ROWS]


def _rows_of(table: ast.expr) -> list[list[ast.expr]]:
    if isinstance(table, ast.Dict):
        return [[part for part in pair if part is not None] for pair in zip(table.keys, table.values, strict=True)]
    return [[element] for element in getattr(table, "elts", ())]


def _describe_head(statement: ast.stmt, tables: Sequence[ast.expr]) -> str:
    """The text of a statement without the blocks and rows that are pieces of their own."""
    if isinstance(statement, ast.If | ast.While):
        return f"{type(statement).__name__.lower()} {ast.unparse(statement.test)}:"
    if isinstance(statement, ast.For):
        return f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}:"
    if isinstance(statement, ast.FunctionDef):
        return f"def {statement.name}({ast.unparse(statement.args)}):"
    if _find_blocks(statement):
        return ast.unparse(statement).split("\n", 1)[0]
    if tables:
        rows = {id(part) for table in tables for row in _rows_of(table) for part in row}
        kept = [
            ast.dump(node) for node in ast.iter_child_nodes(statement) if id(node) not in rows and node not in tables
        ]
        kinds = " ".join(type(table).__name__ for table in tables)  # a set drops what a list keeps
        return f"{type(statement).__name__} {kinds} {' '.join(kept)}"
    return ast.unparse(statement)

"""Marks in a script that say, in a dry run of their own, which of its branches were taken and which of its conditions
were true, and were false.

The marks are added to the syntax tree, so the marked script does what the script does, and says beside it what it
passed. Their name is a random one: the script cannot say that it passed what it did not.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterable
from typing import cast

from msgspec import Struct

# Functions whose results a condition may turn on, though they were the same in every dry run.
_CALCULATE = frozenset(("len", "int", "sum", "min", "max", "abs", "round"))
_HELPER = """
{seen} = {{}}
def {mark}(number, value=None):
    if number not in {seen}:
        {seen}[number] = True
        print("{mark} " + str(number))
    return value
def {varies}(number, value):
    if number not in {seen}:
        {seen}[number] = value
    elif {seen}[number] != value:
        {mark}(number + 1)
    return value
def {both}(number, value):
    {mark}(number if value else number + 1)
    return value
"""


class Mark(Struct, frozen=True):
    """A branch, or one of the two outcomes of a condition. ``nodes``: ``id`` of each node that runs only then; of an
    outcome, those of the condition."""

    file: str
    line: int
    text: str
    nodes: frozenset[int]
    names: frozenset[str] = frozenset()
    outcome: bool | None = None
    """Of a condition: which; None: a branch."""
    is_change: bool = False
    """Of a calculation: that it came to something else than the first time."""


class ReachMarks:
    """The marks of all scripts of an agent. ``nodes`` in them are those of the trees that were given."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._token = f"m_{secrets.token_hex(12)}"

    def mark_script(self, tree: ast.Module, file: str) -> str:
        """The source of the script with marks."""
        marked, copies = copy_tree(tree)
        original = {id(copied): was for was, copied in copies}
        _Marker(self, file, original).visit(marked)
        text = _HELPER.format(
            seen=f"{self._token}_s", mark=self._token, both=f"{self._token}_both", varies=f"{self._token}_varies"
        )
        helper = ast.parse(text)
        at = 1 if ast.get_docstring(tree, clean=False) is not None else 0
        marked.body[at:at] = helper.body
        return ast.unparse(ast.fix_missing_locations(marked)) + "\n"

    def read_reached(self, printed: Iterable[str]) -> set[int]:
        """The marks that a dry run passed, by their numbers, of what it printed."""
        lines = "".join(printed).splitlines()
        texts = (line.removeprefix(f"{self._token} ") for line in lines if line.startswith(f"{self._token} "))
        return {int(text) for text in texts if text.isdecimal()}

    def add_branch(self, file: str, nodes: list[ast.AST], line: int, text: str) -> ast.Call:
        self.marks.append(Mark(file, line, text, _identify(nodes)))
        return self._call(self._token, len(self.marks) - 1)

    def add_condition(self, file: str, condition: ast.expr, value: ast.expr) -> ast.Call:
        """``value``: the same in the copy."""
        nodes = _identify([condition])
        names = frozenset(node.id for node in ast.walk(condition) if isinstance(node, ast.Name))
        text = ast.unparse(condition)
        for outcome in (True, False):
            self.marks.append(Mark(file, condition.lineno, text, nodes, names, outcome))
        return self._call(f"{self._token}_both", len(self.marks) - 2, value)

    def add_calculation(self, file: str, calculation: ast.expr, value: ast.expr) -> ast.Call:
        """``value``: the same in the copy."""
        nodes, text = _identify([calculation]), ast.unparse(calculation)
        self.marks.append(Mark(file, calculation.lineno, text, frozenset()))  # the number of what it came to first
        self.marks.append(Mark(file, calculation.lineno, text, nodes, is_change=True))
        return self._call(f"{self._token}_varies", len(self.marks) - 2, value)

    def add_value(self, file: str, original: ast.expr, value: ast.expr) -> ast.Call:
        """A branch that is an expression."""
        call = self.add_branch(file, [original], original.lineno, ast.unparse(original))
        call.args.append(value)
        return call

    def _call(self, name: str, number: int, *more: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), *more], [])


def copy_tree(tree: ast.Module) -> tuple[ast.Module, list[tuple[ast.AST, ast.AST]]]:
    """A copy without places in the text, and each node with its copy. Standard Python's ``deepcopy`` takes five times
    as long."""
    copies: list[tuple[ast.AST, ast.AST]] = []

    def copy_value(value: object) -> object:
        if isinstance(value, list):
            return [copy_value(each) for each in value]
        if not isinstance(value, ast.AST):
            return value
        made = type(value)(*(copy_value(getattr(value, name, None)) for name in value._fields))
        copies.append((value, made))
        return made

    return cast(ast.Module, copy_value(tree)), copies


def _identify(nodes: Iterable[ast.AST]) -> frozenset[int]:
    return frozenset(id(n) for each in nodes for n in ast.walk(each) if isinstance(n, ast.stmt | ast.expr))


def _is_slice(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)


def _is_method_call(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and (isinstance(node.func, ast.Attribute) or _names(node.func) in _CALCULATE)


def _names(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


class _Marker(ast.NodeTransformer):
    def __init__(self, marks: ReachMarks, file: str, original: dict[int, ast.AST]) -> None:
        self._marks, self._file, self._original = marks, file, original

    def generic_visit(self, node: ast.AST) -> ast.AST:
        was = self._original.get(id(node))
        super().generic_visit(node)
        if isinstance(was, ast.If | ast.For | ast.While | ast.FunctionDef | ast.Try | ast.ExceptHandler | ast.With):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(was, name, None)
                if block:
                    getattr(node, name).insert(0, self._mark_block(block))
        if isinstance(was, ast.If | ast.While | ast.IfExp):
            node.test = self._mark_condition(was.test, node.test)  # type: ignore[attr-defined]
        if isinstance(was, ast.IfExp):
            node.body = self._marks.add_value(self._file, was.body, node.body)  # type: ignore[attr-defined]
            node.orelse = self._marks.add_value(self._file, was.orelse, node.orelse)  # type: ignore[attr-defined]
        elif isinstance(was, ast.BoolOp):
            pairs = zip(was.values, node.values, strict=True)  # type: ignore[attr-defined]
            node.values = [self._mark_condition(one, other) for one, other in pairs]  # type: ignore[attr-defined]
        elif isinstance(was, ast.comprehension):
            pairs = zip(was.ifs, node.ifs, strict=True)  # type: ignore[attr-defined]
            node.ifs = [self._mark_condition(one, other) for one, other in pairs]  # type: ignore[attr-defined]
        elif isinstance(was, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            node.elt = self._marks.add_value(self._file, was.elt, node.elt)  # type: ignore[attr-defined]
        elif isinstance(was, ast.BinOp) or _is_slice(was) or _is_method_call(was):
            return self._marks.add_calculation(self._file, was, node)  # type: ignore[arg-type]
        elif isinstance(was, ast.Lambda):
            node.body = self._marks.add_value(self._file, was.body, node.body)  # type: ignore[attr-defined]
        elif isinstance(was, ast.Compare):
            return self._marks.add_condition(self._file, was, node)  # type: ignore[arg-type]
        return node

    def _mark_block(self, block: list[ast.stmt]) -> ast.stmt:
        first = block[0]
        text = ast.unparse(first).split("\n", 1)[0]
        return ast.Expr(self._marks.add_branch(self._file, list(block), first.lineno, text))

    def _mark_condition(self, was: ast.expr, now: ast.expr) -> ast.expr:
        """A comparison is marked where it stands."""
        return now if isinstance(was, ast.Compare) else self._marks.add_condition(self._file, was, now)

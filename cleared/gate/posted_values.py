"""How a script comes to what it posts: by values that it names, between which it decides, or by working them out.

Dry runs show what a script decides: each condition has two outcomes. They cannot show all that a calculation may come
to: ``3000 + 200 * text.count("X")`` is the same each time until it is not. So what works out a posted value is named.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from cleared.gate.script_changes import Piece, ScriptChanges
from cleared.primitives.registry.primitive import Effect, Param, Primitive

_TEXTS: Final = frozenset(("str", "None", "list[str]", "tuple[str, ...]"))
_AMOUNT: Final = "Decimal"
_KEEPS: Final = frozenset(("Decimal", "str", "abs", "round"))
_ADDS: Final = frozenset(("append", "extend", "insert", "add", "update", "setdefault"))
_REORDERS: Final = frozenset(("sort", "reverse", "pop", "remove", "clear", "popitem", "discard"))
_ELSEWHERE: Final = frozenset(("config_get", "state_get"))
"""What they give can be another value tomorrow, without a change of the script."""
_COUNTS: Final = frozenset(("len", "sum", "str", "abs"))
_FOLDS: Final = frozenset(("upper", "lower", "strip", "split"))
_GIVERS: Final = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.comprehension),
    *(ast.Call, ast.FunctionDef),
)
"""What can give a name its value."""
_LINEAR: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_BUILT_IN: Final = frozenset(dir(builtins))


class PostedValues:
    """Follows the names of one script that end in what it stages: in accounts, days, statuses, and in amounts."""

    def __init__(self, tree: ast.Module, registry: Mapping[str, Primitive], *, is_shared: bool) -> None:
        self._registry = registry
        nodes = list(ast.walk(tree))
        self._functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        self._expressions: dict[int, tuple[ast.expr, bool]] = {}
        """By identity: what is posted or becomes part of it, and whether only an amount."""
        self._names: dict[str, bool] = {}
        for node in nodes:
            if isinstance(node, ast.Call):
                for value, is_amount in self._list_staged(node):
                    self._add(value, is_amount)
        if is_shared and tree.body and isinstance(tree.body[-1], ast.Expr):
            self._add(tree.body[-1].value, False)
        givers = [node for node in nodes if isinstance(node, _GIVERS)]
        known = -1
        while known != len(self._names) + len(self._expressions):
            known = len(self._names) + len(self._expressions)
            for node in givers:
                self._follow(node)
        self._deciding = _find_deciding_names(tree)

    @property
    def names(self) -> Collection[str]:
        """The names whose values are posted."""
        return self._names

    def find_worked_out(self, changes: ScriptChanges) -> Iterator[Piece]:
        """The new pieces that work out something that is posted, or give a built-in name another meaning."""
        for piece in changes.added:
            bound = piece.bound_names
            found = [self._expressions[id(node)] for node in piece.nodes if id(node) in self._expressions]
            if piece.is_row:  # an element of a table that is posted from
                found += [
                    (n, False) for n in piece.nodes if isinstance(n, ast.expr) and not bound.isdisjoint(self._names)
                ]
            if not bound.isdisjoint(_BUILT_IN) or not all(self._is_plain(value, amount) for value, amount in found):
                yield piece

    def find_decided_by(self, changes: ScriptChanges) -> Iterator[Piece]:
        """The new pieces that work out a value on which a condition turns: dry runs show what the condition made of it,
        and not what it may come to."""
        for piece in changes.added:
            if not piece.bound_names.isdisjoint(self._deciding) or any(isinstance(n, ast.Return) for n in piece.nodes):
                values = [n.value for n in piece.nodes if isinstance(n, ast.Assign | ast.AugAssign | ast.Return)]
                if not all(value is None or self._is_read(value) for value in values):
                    yield piece

    def find_gone(self, changes: ScriptChanges) -> Iterator[Piece]:
        """Of the approved version: what left its way early, and what gave a posted name a value that nothing in its
        place gives."""
        for removed, added in changes.steps:
            bound = {name for piece in added for name in piece.bound_names}
            for piece in removed:
                leaves = any(isinstance(n, ast.Break | ast.Continue | ast.Return | ast.Raise) for n in piece.nodes)
                if leaves or (not piece.is_row and piece.bound_names & self._names.keys() - bound):
                    yield piece

    def _list_staged(self, call: ast.Call) -> Iterator[tuple[ast.expr, bool]]:
        primitive = self._registry.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if primitive is None or primitive.effect is not Effect.STAGE:
            return
        for position, value in enumerate(call.args):
            param = primitive.takes.params[position] if position < len(primitive.takes.params) else None
            if param is None or not _is_text(param):
                yield value, _is_amount(param)
        for keyword in call.keywords:
            param = primitive.takes.by_name.get(keyword.arg or "")
            if param is None or not _is_text(param):
                yield keyword.value, _is_amount(param)

    def _add(self, value: ast.expr, is_amount: bool) -> None:
        if id(value) in self._expressions:
            return
        self._expressions[id(value)] = (value, is_amount)
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and node.id not in self._registry:
                self._names[node.id] = self._names.get(node.id, True) and is_amount

    def _follow(self, node: ast.AST) -> None:
        """What gives one of the names its value is posted, too."""
        match node:
            case ast.Assign(targets=targets, value=value):
                self._follow_target(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                self._follow_target([target], value)
            case ast.NamedExpr(target=target, value=value):
                self._follow_target([target], value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._follow_target([target], value)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in _ADDS | _REORDERS:
                # It changes what its owner holds, as an assignment would.
                self._follow_target([owner], node)
            case ast.FunctionDef(name=name) if name in self._names:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        self._add(inner.value, self._names[name])

    def _follow_target(self, targets: list[ast.expr], value: ast.expr) -> None:
        if isinstance(value, ast.Name):  # two names of one list: what is put into one is in the other
            self._follow_alias(value.id, targets)
        names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        for name in sorted(names & self._names.keys()):
            self._add(value, self._names[name])

    def _follow_alias(self, name: str, targets: list[ast.expr]) -> None:
        if name in self._names:
            for target in targets:
                if isinstance(target, ast.Name):
                    self._names.setdefault(target.id, self._names[name])

    def _is_plain(self, value: ast.AST, is_amount: bool) -> bool:
        """Whether it is a value that the script names or was given, or one of several between which it decides."""
        match value:
            case ast.Constant() | ast.Name() | ast.Compare():
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_plain(body, is_amount) and self._is_plain(orelse, is_amount)
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return all(self._is_plain(part, is_amount) for part in parts)
            case ast.Dict(keys=keys, values=values):
                return all(part is not None and self._is_plain(part, is_amount) for part in [*keys, *values])
            case ast.Starred(value=inner) | ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner):
                return self._is_plain(inner, is_amount)
            case ast.Subscript(value=inner, slice=index):
                return (
                    not isinstance(index, ast.Slice)
                    and self._is_plain(inner, is_amount)
                    and self._is_plain(index, False)
                )
            case ast.BinOp(left=left, op=op, right=right):
                return (
                    is_amount and isinstance(op, _LINEAR) and self._is_plain(left, True) and self._is_plain(right, True)
                )
            case ast.Call(func=func, args=args, keywords=keywords):
                parts = [*args, *(keyword.value for keyword in keywords)]
                return self._is_known(func, is_amount) and all(self._is_plain(part, is_amount) for part in parts)
            case ast.ListComp(elt=inner, generators=generators) | ast.GeneratorExp(elt=inner, generators=generators):
                return self._is_plain(inner, is_amount) and all(self._is_plain(g.iter, is_amount) for g in generators)
        return False

    def _is_read(self, value: ast.expr) -> bool:
        """Whether a condition's value is plain, counted, or a text as it came in."""
        match value:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self._is_read(left) and self._is_read(right)
            case ast.Call(func=ast.Name(id=name), args=args) if name in _COUNTS:
                return all(self._is_read(part) for part in args)
            case ast.Call(func=ast.Attribute(value=text, attr=attr), args=[]) if attr in _FOLDS:
                return self._is_read(text)
        return self._is_plain(value, False)

    def _is_known(self, func: ast.expr, is_amount: bool) -> bool:
        """Whether a function gives what it was given, or is the script's own or a primitive, which are looked at."""
        if isinstance(func, ast.Name):
            known = func.id in self._functions or func.id in self._registry.keys() - _ELSEWHERE
            return known or (is_amount and func.id in _KEEPS)
        if not isinstance(func, ast.Attribute):
            return False
        return (func.attr == "get" and self._is_plain(func.value, is_amount)) or func.attr in _ADDS


def _is_text(param: Param) -> bool:
    return _TEXTS.issuperset(param.shape.stub.split(" | "))


def _is_amount(param: Param | None) -> bool:
    return param is not None and param.name == "amount" and _AMOUNT in param.shape.stub


def _find_deciding_names(tree: ast.Module) -> frozenset[str]:
    """The names in conditions, and those that give them their values."""
    tests: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            tests.append(node.test)
        elif isinstance(node, ast.comprehension):
            tests += node.ifs
    names = {n.id for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)}
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    known = -1
    while known != len(names):
        known = len(names)
        for node in assigned:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(n, ast.Name) and n.id in names for target in targets for n in ast.walk(target)):
                names |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
    return frozenset(names)

"""Branches to which nothing can ever come, as the text of a script alone shows.

One that merely was not taken yet may be wanted: it is named by ``gate.unused_code``, and nothing is proposed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from cleared.sandbox.branch_removal import Branch

_CALM: Final = (
    ast.Name,
    ast.Constant,
    ast.Subscript,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.expr_context,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
)
"""What gives the same when it is asked again, and changes nothing."""


def find_dead_branches(tree: ast.Module) -> Iterator[tuple[Branch, str]]:
    """Each, and why nothing comes to it, in one sentence."""
    inner = {each.orelse[0] for each in ast.walk(tree) if isinstance(each, ast.If) and _follows(each) is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node not in inner:
            yield from _find_in_chain(node)


def _follows(node: ast.If) -> ast.If | None:
    """The ``elif``, or the ``if`` that alone stands below ``else``: nothing is done between the two conditions."""
    inner = node.orelse[0] if len(node.orelse) == 1 else None
    return inner if isinstance(inner, ast.If) else None


def _find_in_chain(first: ast.If) -> Iterator[tuple[Branch, str]]:
    before: list[ast.If] = []
    node: ast.If | None = first
    while node is not None:
        known = _find_value(node.test)
        same = next((each for each in before if _implies(node.test, each.test)), None)
        if known is False:
            yield Branch(node), "Its condition is never true."
        elif known is True and node.orelse:
            yield Branch(node, is_other=True), "The condition before it is always true."
            return
        elif same is not None:
            yield Branch(node), f"Line {same.lineno} asks for that before it, and takes all that comes."
        before.append(node)
        node = _follows(node)


def _find_value(test: ast.expr) -> bool | None:
    """Whether a condition is true; None: that depends."""
    match test:
        case ast.Constant(value):
            return bool(value)
        case ast.UnaryOp(ast.Not(), inner):
            value = _find_value(inner)
            return None if value is None else not value
        case ast.BoolOp(operator, values):
            return _find_value_of(values, is_and=isinstance(operator, ast.And))
    return None


def _find_value_of(values: Sequence[ast.expr], *, is_and: bool) -> bool | None:
    for each in values:
        value = _find_value(each)
        if value is None:
            return None
        if value is not is_and:
            return value
    return is_and


def _implies(later: ast.expr, earlier: ast.expr) -> bool:
    """Whether one is true only where the other is. The other is asked first, so what it begins with is enough: whatever
    that raises was raised before."""
    parts, wanted = _split_and(later), _split_and(earlier)
    is_calm = all(isinstance(node, _CALM) for each in wanted for node in ast.walk(each))
    return is_calm and list(map(ast.dump, parts[: len(wanted)])) == list(map(ast.dump, wanted))


def _split_and(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]

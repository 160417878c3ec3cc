"""Changes of a script that make no difference: each is taken back alone, and what is left is run again.

Beside a change that shows, one that shows nothing yet could ride along: a row that waits for its text, a list that a
function fills. So each piece of a change has to show what it is for.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from cleared.gate.dry_run import DryRun
from cleared.gate.past_runs import DryRunInput
from cleared.gate.reach_marks import copy_tree
from cleared.gate.script_changes import Piece, ScriptChanges

_MOST_RUNS: Final = 400
"""Of one agent: a change of many lines is to be read, not tried for minutes."""

RunText = Callable[[str, DryRunInput], DryRun]
"""Runs the agent with this source of the script in question."""


class Reversal(Struct, frozen=True):
    """One piece of a change, and the script without it."""

    piece: Piece
    source: str


def list_reversals(new: ast.Module, changes: ScriptChanges) -> Iterator[Reversal]:
    """Each new piece taken back: to what stood in its place, else left out."""
    for removed, added in changes.steps:
        partners: Sequence[Piece | None] = removed if len(removed) == len(added) else [None] * len(added)
        for piece, partner in zip(added, partners, strict=True):
            if (source := _take_back(new, piece, partner)) is not None:
                yield Reversal(piece, source)


def list_removals(old: ast.Module | None, changes: ScriptChanges) -> Iterator[Reversal]:
    """Each piece of the approved version that has nothing in its place, left out of it; none where all is new."""
    if old is None:
        return
    for removed, added in changes.steps:
        for piece in removed if len(removed) != len(added) else ():
            if (source := _take_back(old, piece, None)) is not None:
                yield Reversal(piece, source)


class SilentSearch:
    """Looks for pieces without which everything would be the same, over the inputs of the dry runs."""

    def __init__(self, inputs: Sequence[DryRunInput]) -> None:
        self._inputs = inputs
        self._order = list(range(len(inputs)))
        """Those that told versions apart last come first: they will again."""
        self._left = _MOST_RUNS

    def find_silent(
        self, reversals: Iterable[Reversal], run: RunText, read_result: Callable[[int], DryRun]
    ) -> tuple[list[Piece], list[Piece]]:
        """The pieces that make no difference, and those for which no time was left. ``read_result``: by the number of
        the input, what came of the version that the reversals are of."""
        silent, untried = [], []
        for reversal in reversals:
            if self._left <= 0:
                untried.append(reversal.piece)
            elif not self._shows_difference(reversal.source, run, read_result):
                silent.append(reversal.piece)
        return silent, untried

    def _shows_difference(self, source: str, run: RunText, read_result: Callable[[int], DryRun]) -> bool:
        for number in list(self._order):
            self._left -= 1
            without, whole = run(source, self._inputs[number]), read_result(number)
            if without.effects != whole.effects or without.outputs != whole.outputs:
                self._order.remove(number)
                self._order.insert(0, number)
                return True
        return False


def _take_back(tree: ast.Module, piece: Piece, partner: Piece | None) -> str | None:
    """The source of the script with ``partner`` in the place of a piece, or without it; None where it is the head of a
    block that cannot be left out by itself: its conditions and its block are looked at by themselves."""
    if not piece.nodes:
        return None
    changed, pairs = copy_tree(tree)
    copies = {id(was): copied for was, copied in pairs}
    if piece.is_row:
        instead = partner.row if partner is not None and partner.is_row else ()
        done = _replace_row(changed, [copies[id(part)] for part in piece.row], instead)
    else:
        head = copies[id(piece.nodes[0])]
        other = partner.nodes[0] if partner is not None and not partner.is_row and partner.nodes else None
        done = _replace_statement(changed, head, other)
    return ast.unparse(ast.fix_missing_locations(changed)) + "\n" if done else None


def _replace_row(tree: ast.Module, row: Collection[ast.AST], instead: Sequence[ast.expr]) -> bool:
    first = next(iter(row))
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and any(each is first for each in (*node.keys, *node.values)):
            at = next(i for i, pair in enumerate(zip(node.keys, node.values, strict=True)) if first in pair)
            fits = len(instead) == (1 if node.keys[at] is None else 2)
            node.keys[at : at + 1] = ([None, *instead] if len(instead) == 1 else list(instead))[:1] if fits else []
            node.values[at : at + 1] = [instead[-1]] if fits else []
            return True
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and any(each is first for each in node.elts):
            at = next(i for i, each in enumerate(node.elts) if each is first)
            node.elts[at : at + 1] = list(instead) if len(instead) == 1 else []
            return bool(node.elts) or not isinstance(node, ast.Set)  # an empty set has no literal
    return False


def _replace_statement(tree: ast.Module, head: ast.AST, other: ast.AST | None) -> bool:
    if getattr(head, "body", None) is not None:
        return _replace_head(head, other)
    if getattr(other, "body", None) is not None:
        other = None
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and any(each is head for each in block):
                at = next(i for i, each in enumerate(block) if each is head)
                block[at] = copy.deepcopy(other) if other is not None else ast.Pass()
                return True
    return False


def _replace_head(head: ast.AST, other: ast.AST | None) -> bool:
    """A condition, a loop or a function's arguments as they were, over the block as it is."""
    match head, other:
        case (ast.If() | ast.While(), ast.If() | ast.While()):
            head.test = copy.deepcopy(other.test)
        case (ast.For(), ast.For()):
            head.target, head.iter = copy.deepcopy(other.target), copy.deepcopy(other.iter)
        case (ast.FunctionDef(), ast.FunctionDef()):
            head.args = copy.deepcopy(other.args)
        case _:
            return False
    return True

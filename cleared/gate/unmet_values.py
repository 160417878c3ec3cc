"""Texts, amounts and dates that are new in a script, as what comes in may be compared with them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

from msgspec import Struct

from cleared.base.short_text import quote_text
from cleared.gate.past_runs import DryRunInput
from cleared.gate.script_changes import Piece, ScriptChanges

_MOST_TEXTS: Final = 100
_MOST_AMOUNTS: Final = 6
_MOST_DATES: Final = 4
_MOST_WORDS: Final = 6
_ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")


class UnmetValues(Struct):
    """What is new in the text of scripts, and no dry run met."""

    texts: list[str] = []
    amounts: list[Decimal] = []
    dates: list[date] = []

    words: list[str] = []
    """Texts of the tables that were there before: a new condition may be about what they name."""

    def combine_texts(self) -> list[str]:
        """The texts, alone and beside what the tables name."""
        pairs = [f"{word} {text}" for text in self.texts[:3] for word in self.words]
        return [*self.texts, *pairs, *(f"{text} {word}" for text in self.texts[:3] for word in self.words)]

    def has_one_in(self, piece: Piece) -> bool:
        """Whether one of the texts or dates stands in this piece."""
        mine = {*self.texts, *map(str, self.dates)}
        return any(isinstance(n, ast.Constant) and n.value in mine for n in piece.nodes)

    def describe(self) -> list[str]:
        return [*(quote_text(text, 60) for text in self.texts), *map(str, self.amounts), *map(str, self.dates)]


def find_unmet_values(
    changes: Iterable[ScriptChanges], inputs: Iterable[DryRunInput], registry: Mapping[str, object]
) -> UnmetValues:
    """``registry``: the primitives; what is passed to them is only said, and compared with nothing."""
    met = _read_texts(inputs)
    texts: dict[str, None] = {}
    amounts: dict[Decimal, None] = {}
    dates: dict[date, None] = {}
    words: dict[str, None] = {}
    for each in changes:
        known = {n.value for piece in each.kept for n in piece.nodes if isinstance(n, ast.Constant)}
        for piece in each.kept:
            if piece.is_row:
                words |= dict.fromkeys(v for v in _matched_constants(piece, registry)[:1] if isinstance(v, str))
        for piece in (*each.added, *each.removed):
            for value in _matched_constants(piece, registry, known):
                if isinstance(value, str) and (day := _read_date(value)) is not None:
                    dates[day] = None
                elif isinstance(value, str):
                    if value.strip() and fold_text(value) not in met:
                        texts[value] = None
                elif piece.is_condition and (amount := _read_amount(value)) is not None:
                    amounts[amount] = None
    return UnmetValues(
        [*texts][:_MOST_TEXTS], [*amounts][:_MOST_AMOUNTS], [*dates][:_MOST_DATES], [*words][:_MOST_WORDS]
    )


def _matched_constants(piece: Piece, registry: Mapping[str, object], known: Collection[object] = ()) -> list[object]:
    """The constants of a piece that what comes in may be compared with: not what is only said, keys and results.

    ``known``: constants of what stays. In a dict within a row of a table these are the script's own words, such as
    ``{"money": "out"}``.
    """
    if not piece.nodes:
        return []
    apart: set[int] = set()
    if piece.is_row:
        inner = (n for node in piece.nodes if isinstance(node, ast.Dict) for n in ast.walk(node))
        apart |= {id(n) for n in inner if isinstance(n, ast.Constant) and n.value in known}
    for node in piece.nodes:
        is_said = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in registry
        if is_said or (isinstance(node, ast.Expr) and not _is_method_call(node.value)):
            apart |= {id(n) for n in ast.walk(node) if not isinstance(n, ast.Compare | ast.BoolOp)}
            # A text that another takes the place of is looked for in what comes in.
            apart -= {id(n) for each in ast.walk(node) for n in _list_sought(each)}
        elif isinstance(node, ast.Subscript):
            apart |= {id(n) for n in ast.walk(node.slice)}
    is_data = piece.is_row or piece.is_module_level
    compared = {id(n) for node in piece.nodes if isinstance(node, ast.Compare | ast.Call) for n in ast.walk(node)}
    if piece.is_condition:
        compared |= {id(n) for n in piece.nodes}
    found: list[object] = []
    for node in piece.nodes:
        if isinstance(node, ast.Constant) and id(node) not in apart and (is_data or id(node) in compared):
            found.append(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(folded := fold_constants(node), str):
            found.append(folded)
    return found


def _is_method_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _list_sought(node: ast.AST) -> list[ast.AST]:
    """What ``text.replace(SOUGHT, …)`` looks for."""
    match node:
        case ast.Call(func=ast.Attribute(attr="replace"), args=[sought, *_]):
            return [*ast.walk(sought)]
    return []


def fold_constants(node: ast.AST) -> object:
    """The value of an expression of constants; None for others."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return None
    one, other = fold_constants(node.left), fold_constants(node.right)
    if isinstance(one, str) and isinstance(other, str) and isinstance(node.op, ast.Add):
        return one + other
    if type(one) in (int, float) and type(other) in (int, float):
        a, b = Decimal(str(one)), Decimal(str(other))
        result = a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b
        return int(result) if result == int(result) else result
    return None


def _read_amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = abs(Decimal(str(value)))
    except InvalidOperation:
        return None
    return amount if 1 < amount < 10**9 else None


def _read_date(text: str) -> date | None:
    if not _ISO_DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text if len(text) > 7 else f"{text}-01")
    except ValueError:
        return None


def _read_texts(inputs: Iterable[DryRunInput]) -> str:
    """All that came in with the dry runs, to look texts up in."""
    parts = [data.decode("utf-8", "replace") for each in inputs for data in each.inputs.values()]
    parts += [json.dumps(each.event.payload, ensure_ascii=False) for each in inputs if each.event is not None]
    return fold_text("\n".join(parts))


def fold_text(text: str) -> str:
    return " ".join(text.upper().split())

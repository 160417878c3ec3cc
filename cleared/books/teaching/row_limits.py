"""What narrows a line of a vendor table: money in or out, one bank account, amounts from one to another; and how its
amount is split. In the script it is a dict behind the four columns:

    {"money": "out", "bank": 1010, "min": 10, "max": 500, "split": {5150: "20.00", 3200: "40%"}}
"""

from __future__ import annotations

import ast
import re
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, cast

from msgspec import Struct

from cleared.base.money import format_amount

Direction = Literal["", "in", "out"]
_KEYS: Final = frozenset(("money", "bank", "min", "max", "split"))
_PART: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?%?", re.ASCII)


class RowLimits(Struct, frozen=True):
    """Which bank lines a row is about beside its words; by itself all of them. Amounts are without their sign."""

    money: Direction = ""
    """Only money out, or only money in; empty: both."""
    bank: int | None = None
    """Only this bank account, by its account in the books."""
    least: Decimal | None = None
    most: Decimal | None = None
    split: tuple[tuple[int, str], ...] = ()
    """Account → what of the amount goes there, such as ``20.00`` or ``40%``; the rest to the row's own account."""

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    @property
    def scope(self) -> RowLimits:
        """The same without the split."""
        return RowLimits(self.money, self.bank, self.least, self.most)

    def fits(self, amount: Decimal, bank: int) -> bool:
        """Whether it lets a row count for a bank line. ``amount``: negative is money out."""
        size = abs(amount)
        return (
            self.money in ("", "out" if amount < 0 else "in")
            and self.bank in (None, bank)
            and (self.least is None or self.least <= size)
            and (self.most is None or size <= self.most)
        )

    def is_within(self, other: RowLimits) -> bool:
        """Whether the other lets count all that this one does."""
        return (
            other.money in ("", self.money)
            and other.bank in (None, self.bank)
            and (other.least is None or (self.least is not None and other.least <= self.least))
            and (other.most is None or (self.most is not None and self.most <= other.most))
        )

    def describe(self) -> str:
        """``money out, bank 1010, from 10, up to 500, split 5150 20.00``; empty where it limits nothing."""
        said = [f"money {self.money}"] if self.money else []
        said += [f"bank {self.bank}"] if self.bank is not None else []
        said += [f"from {_show_amount(self.least)}"] if self.least is not None else []
        said += [f"up to {_show_amount(self.most)}"] if self.most is not None else []
        return ", ".join([*said, *(f"split {account} {part}" for account, part in self.split)])

    def render(self) -> str:
        """It as the script has it."""
        parts = [f'"money": "{self.money}"'] if self.money else []
        parts += [f'"bank": {self.bank}'] if self.bank is not None else []
        parts += [f'"min": {_render_amount(self.least)}'] if self.least is not None else []
        parts += [f'"max": {_render_amount(self.most)}'] if self.most is not None else []
        if self.split:
            parts.append('"split": {' + ", ".join(f'{account}: "{part}"' for account, part in self.split) + "}")
        return "{" + ", ".join(parts) + "}"

    def texts(self) -> list[str]:
        """The texts that it brings into a script."""
        constants = [node.value for node in ast.walk(ast.parse(self.render())) if isinstance(node, ast.Constant)]
        return [value for value in constants if isinstance(value, str)]


NO_LIMITS: Final = RowLimits()
"""A row that is about all lines of its words."""


def _show_amount(amount: Decimal) -> str:
    """``10``, ``12.50``"""
    return str(int(amount)) if amount == amount.to_integral_value() else format_amount(amount)


def _render_amount(amount: Decimal) -> str:
    shown = _show_amount(amount)
    return shown if shown.isdecimal() else f'"{shown}"'


def is_part(text: str) -> bool:
    """Whether it says what part of an amount goes to an account: ``20.00``, or ``40%``; more than nothing."""
    return bool(_PART.fullmatch(text)) and Decimal(text.removesuffix("%")) > 0


def read_limits(node: ast.expr) -> RowLimits | None:
    """The limits that a dict of constants stands for; None for anything else."""
    try:
        value = ast.literal_eval(node)
        if not isinstance(value, dict) or not _KEYS.issuperset(value):
            return None
        money, bank, split = value.get("money", ""), value.get("bank"), value.get("split", {})
        if money not in ("", "in", "out") or not (bank is None or type(bank) is int) or not isinstance(split, dict):
            return None
        if not all(type(a) is int and isinstance(part, str) and is_part(part) for a, part in split.items()):
            return None
        least, most = (_read_amount(value[key]) if key in value else None for key in ("min", "max"))
        return RowLimits(cast(Direction, money), bank, least, most, tuple(split.items()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, InvalidOperation):
        return None


def _read_amount(value: object) -> Decimal:
    """Raises ``ValueError`` or ``InvalidOperation`` for what is no amount."""
    if type(value) not in (int, float, str):
        raise ValueError("an amount is a number")
    amount = Decimal(str(value))
    if not amount.is_finite() or amount < 0:
        raise ValueError("an amount is not negative")
    return amount

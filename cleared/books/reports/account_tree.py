"""Accounts with amounts as rows: headings above their accounts, each followed by its sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.books.index.current_books import AccountRow
from cleared.books.reports.report import Row

MAX_DEPTH: Final = 20
"""Of headings above an account; what has more stands on top."""
Amounts = tuple[Decimal, ...]


def add_amounts(parts: Iterable[Sequence[Decimal]], width: int, zero: Decimal) -> Amounts:
    """The sums, column by column."""
    listed = list(parts)
    return tuple(money.total([zero, *(part[n] for part in listed)]) for n in range(width))


def turn_sign(amount: Decimal, sign: int) -> Decimal:
    """The amount, or its opposite where ``sign`` is -1; never a negative zero."""
    return -amount if sign < 0 else amount


class AccountTree:
    """The accounts that have amounts, below their headings. ``amounts``: number → one for each column."""

    def __init__(
        self, accounts: Mapping[int, AccountRow], amounts: Mapping[int, Amounts], width: int, zero: Decimal
    ) -> None:
        self._accounts, self._amounts, self._width, self._zero = accounts, amounts, width, zero
        self._children: dict[int | None, list[int]] = {}
        shown: set[int] = set()
        for number in amounts:
            for account in self._list_line(number):
                shown.add(account)
        for number in accounts:  # in the order of the chart
            if number in shown:
                self._children.setdefault(self._find_parent(number), []).append(number)

    def list_rows(self, depth: int, key: str) -> tuple[list[Row], tuple[tuple[str, int], ...], Amounts]:
        """All rows, the keys of those on top, and the sum of all."""
        rows: list[Row] = []
        parts, sums = [], []
        for number in self._children.get(None, ()):
            top, amounts = self._add_account(rows, number, depth, key)
            parts.append((top, 1))
            sums.append(amounts)
        return rows, tuple(parts), add_amounts(sums, self._width, self._zero)

    def _add_account(self, rows: list[Row], number: int, depth: int, key: str) -> tuple[str, Amounts]:
        account, children = self._accounts[number], self._children.get(number, ())
        own, name = self._amounts.get(number), f"{key}.{number}"
        if not children:
            amounts = own or (self._zero,) * self._width
            rows.append(Row(account.account_name, amounts, depth=depth, account_id=number, key=name))
            return name, amounts
        rows.append(Row(account.account_name, kind="heading", depth=depth, account_id=number))
        parts, sums = [], []
        if own is not None:
            rows.append(Row(account.account_name, own, depth=depth + 1, account_id=number, key=f"{name}.own"))
            parts.append((f"{name}.own", 1))
            sums.append(own)
        for child in children:
            below, amounts = self._add_account(rows, child, depth + 1, key)
            parts.append((below, 1))
            sums.append(amounts)
        total = add_amounts(sums, self._width, self._zero)
        label = f"Total {account.account_name}"
        rows.append(Row(label, total, "total", depth, number, key=name, parts=tuple(parts)))
        return name, total

    def _find_parent(self, number: int) -> int | None:
        """The heading above an account, where it is of the same type; None where headings go round in a circle."""
        parent = self._accounts[number].parent_id
        seen = {number}
        above = parent
        while above is not None:
            if above in seen or len(seen) > MAX_DEPTH:
                return None
            seen.add(above)
            above = self._accounts[above].parent_id
        if parent is None or self._accounts[parent].account_type != self._accounts[number].account_type:
            return None
        return parent

    def _list_line(self, number: int) -> list[int]:
        line: list[int] = [number]
        parent = self._find_parent(number)
        while parent is not None:
            line.append(parent)
            parent = self._find_parent(parent)
        return line

"""Books of another program as they were read, before their accounts are found in the chart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import Struct, field

from cleared.books.bank_files.cell_values import AmountStyle

KEPT_KINDS: Final = ("opening", "closing")
"""Kinds of entries that our own exports name, and that stay."""
_SYMBOLS: Final = {
    "$": ("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD"),
    "€": ("EUR",),
    "£": ("GBP",),
    "¥": ("JPY", "CNY"),
}
_COMMODITY: Final = re.compile(r'"[^"]*"|[^\d\s.,+\-\'’()"]+')
_ACCOUNT_TYPES: Final = {
    "asset": "asset",
    "assets": "asset",
    "liability": "liability",
    "liabilities": "liability",
    "equity": "equity",
    "income": "revenue",
    "incomes": "revenue",
    "revenue": "revenue",
    "revenues": "revenue",
    "expense": "expense",
    "expenses": "expense",
}


class SourcePosting(NamedTuple):
    """One leg: the account as the other program names it; a credit is negative."""

    account: str
    amount: Decimal


class SourceEntry(NamedTuple):
    """One transaction."""

    line: int
    day: date
    description: str
    postings: tuple[SourcePosting, ...]
    counterparty: str = ""
    tags: str = ""
    notes: str = ""
    kind: str = ""
    """``opening`` or ``closing``, where the file says so."""


class SourceBalance(NamedTuple):
    """One row of a trial balance."""

    line: int
    account: str
    name: str
    amount: Decimal


class SourceBooks(Struct):
    """What a file holds: entries, or balances."""

    format: str
    entries: list[SourceEntry] = []
    balances: list[SourceBalance] = []
    types: dict[str, str] = {}
    """Account → its type, where the file declares it."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What was read over, in the plural → how many of it."""

    def list_accounts(self) -> dict[str, int]:
        """Each account with the line that names it first."""
        lines: dict[str, int] = {}
        for entry in self.entries:
            for posting in entry.postings:
                lines.setdefault(posting.account, entry.line)
        for row in self.balances:
            lines.setdefault(row.account, row.line)
        return lines

    def type_of(self, account: str) -> str:
        """The account's type: as declared, else by the first part of its name; empty where neither says it."""
        parts = account.split(":")
        for end in range(len(parts), 0, -1):
            declared = self.types.get(":".join(parts[:end]))
            if declared:
                return declared
        return _ACCOUNT_TYPES.get(parts[0].casefold(), "") if len(parts) > 1 else ""


class SourceAmounts:
    """Reads amounts of one currency. What may mean two things is refused."""

    def __init__(self, currency: str, places: int, decimal_mark: str = "") -> None:
        self.currency = currency
        self.places = places
        self.decimal_mark = decimal_mark
        """``.`` or ``,``; empty: by what an amount shows."""
        self._parsers: dict[tuple[str, str], Callable[[str, int], Decimal]] = {}

    def read_amount(self, text: str) -> Decimal:
        """``$1,234.56``, ``-12.50 EUR``. Raises ``ValueError`` with the reason."""
        commodities = _COMMODITY.findall(text)
        if any(not self.is_ours(each) for each in commodities) or len(commodities) > 1:
            raise ValueError(f"{text[:60]!r} is in {' '.join(commodities)[:30]}, the books are in {self.currency}")
        return self.read_number(_COMMODITY.sub("", text))

    def is_ours(self, commodity: str) -> bool:
        """Whether this code or symbol may be the currency of the books."""
        name = commodity.strip('"')
        return name == self.currency or self.currency in _SYMBOLS.get(name, ())

    def read_number(self, text: str) -> Decimal:
        """``1,234.56`` or ``(12.50)``. Raises ``ValueError`` with the reason."""
        number = text.strip()
        mark = self.decimal_mark or self._guess_mark(number)
        group = next((c for c in " '" if c in number.strip("+-() ")), "," if mark == "." else ".")
        key = mark, group
        if key not in self._parsers:
            self._parsers[key] = AmountStyle(mark, group).make_parser()
        return self._parsers[key](number, self.places)

    def _guess_mark(self, number: str) -> str:
        mark = find_decimal_mark(number)
        if mark or not set(number) & {".", ","}:
            return mark or "."
        if self.places != 3:
            raise ValueError(f"{number[:40]!r} may be a thousand times as much: say which mark is the decimal one")
        return "," if "," in number else "."


def find_decimal_mark(number: str) -> str:
    """The decimal mark that a number shows without a doubt; empty where it shows none."""
    points, commas = number.count("."), number.count(",")
    if points and commas:
        return max(".,", key=number.rindex)
    if max(points, commas) > 1:
        return "," if points else "."
    if not points and not commas:
        return ""
    return "" if re.search(r"[.,][0-9]{3}[^0-9]*$", number) else "," if commas else "."


def read_day(year: str, month: str, day: str) -> date | None:
    """The day; None where no calendar has it."""
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None

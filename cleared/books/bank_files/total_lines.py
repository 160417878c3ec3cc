"""Lines at the end of a table that are no transactions: totals and balances, such as ``Summe;;-49,10``.

They are told by their words, or by an amount that is the sum of the rows, and only where nothing follows but more of
them. What they say is held against the rows: a total that is none of theirs means that rows are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.books.bank_files.base import Fault, quote_text
from cleared.books.bank_files.cell_values import AmountParser, is_date
from cleared.books.ledger.bank_row import BankRow

_SUM_WORDS: Final = frozenset(
    {
        "total",
        "totals",
        "subtotal",
        "sum",
        "summe",
        "gesamt",
        "gesamtsumme",
        "gesamtbetrag",
        "zwischensumme",
        "suma",
        "totale",
        "somme",
        "totaal",
        "summa",
        "totalt",
        "razem",
        "итого",
    }
)
_BALANCE_WORDS: Final = frozenset(
    {
        "balance",
        "saldo",
        "endsaldo",
        "kontostand",
        "solde",
        "saldi",
        "sald",
        "schlusssaldo",
        "abschlusssaldo",
    }
)
_FILLERS: Final = frozenset(
    {
        "grand",
        "net",
        "amount",
        "amounts",
        "debits",
        "debit",
        "credits",
        "credit",
        "transactions",
        "rows",
        "entries",
        "of",
        "for",
        "the",
        "period",
        "per",
        "as",
        "at",
        "on",
        "closing",
        "ending",
        "final",
        "available",
        "current",
        "account",
        "der",
        "umsätze",
        "buchungen",
        "zum",
        "am",
        "neuer",
        "neu",
        "soll",
        "haben",
        "de",
        "du",
        "au",
        "al",
        "à",
        "usd",
        "eur",
        "gbp",
        "chf",
    }
)
MAX_TOTALS: Final = 20
"""More lines than that at the end of a table are rows that cannot be read."""
_WORD: Final = r"[^\W\d_]+"


class TrailingLine(Struct, frozen=True):
    """A line that is no transaction as it stands, and what is wrong with it as one."""

    line: int
    fields: Sequence[str]
    fault: Fault


def judge_total(trailing: TrailingLine, rows: Sequence[BankRow], parse: AmountParser, places: int) -> str | Fault:
    """What to say of a total line that is passed over; else why it is none."""
    cells = [cell.strip() for cell in trailing.fields if cell.strip()]
    numbers = [amount for cell in cells if (amount := _read_number(cell, parse, places)) is not None]
    words = [kind for cell in cells if (kind := _find_kind(cell)) is not None]
    if any(is_date(cell) for cell in cells) or not (words or numbers):
        return trailing.fault
    known = _list_sums(rows)
    shown = quote_text(" ".join(cells))
    if not words:
        alone = len(rows) > 1 and bool(numbers[-1]) and abs(numbers[-1]) == known["their sum"]
        return f"{shown} has no date and is their sum, so it is passed over" if alone else trailing.fault
    wrong = [number for number in numbers if abs(number) not in {*known.values(), Decimal(len(rows))}]
    if not numbers:
        return f"{shown} is passed over; it names no amount to compare with the rows"
    if not wrong:
        found = next((name for name, value in known.items() if value == abs(numbers[-1])), "their number")
        return f"{shown} is passed over; the rows agree with it ({found})"
    if "balance" in words and "their last balance" not in known:
        return f"{shown} is passed over; the rows state no balance to compare it with"
    said = f"{shown} looks like a total, and the rows do not agree with it"
    sums = ", ".join(f"{name} {money.format_amount(value)}" for name, value in known.items())
    return Fault(trailing.line, f"{said} ({sums}): some may be missing", trailing.fault.field)


def _find_kind(cell: str) -> str | None:
    """``sum`` or ``balance`` where the cell says only that; dates and numbers may stand in it, other words may not."""
    words = [word.casefold() for word in re.findall(_WORD, cell)]
    if not words or not set(words) <= _SUM_WORDS | _BALANCE_WORDS | _FILLERS:
        return None
    if not _BALANCE_WORDS.isdisjoint(words):
        return "balance"
    return None if _SUM_WORDS.isdisjoint(words) else "sum"


def _read_number(cell: str, parse: AmountParser, places: int) -> Decimal | None:
    try:
        return parse(cell, places)
    except ValueError:
        return None


def _list_sums(rows: Sequence[BankRow]) -> dict[str, Decimal]:
    """What a line below the rows may say of them, by name, without a sign."""

    def add(chosen: Iterable[BankRow]) -> Decimal:
        return abs(money.total([row.amount for row in chosen]))

    sums = {
        "their sum": add(rows),
        "the sum of what is posted": add(row for row in rows if row.state == "posted"),
        "what goes out": add(row for row in rows if row.amount < 0),
        "what comes in": add(row for row in rows if row.amount > 0),
    }
    ends = [row.balance for row in ([rows[0], rows[-1]] if rows else []) if row.balance is not None]
    if ends:
        sums["their last balance"], sums["their first balance"] = abs(ends[-1]), abs(ends[0])
    return sums

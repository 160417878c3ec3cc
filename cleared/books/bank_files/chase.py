"""Chase's downloads: the checking account's CSV and the credit card's.

Rows are newest first and stay so. Both write money out as negative. A trailing comma, on the header, on the
rows or on both, is part of real files and means nothing (7 and 8 fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from cleared.base import money
from cleared.books.bank_files.cell_values import AmountStyle, parse_us_date
from cleared.books.bank_files.csv_table import (
    CsvImporter,
    Hints,
    RowReader,
    fold_names,
    read_amount_cell,
    read_date_cell,
)
from cleared.books.ledger.bank_row import BankRow

_CHECKING = ("Details", "Posting Date", "Description", "Amount", "Type", "Balance", "Check or Slip #")
_CARD = ("Transaction Date", "Post Date", "Description", "Category", "Type", "Amount", "Memo")
_LAST4 = r"(?a)(?<![0-9])[0-9]{4}"
# Chase names its downloads after the account: Chase1234_Activity_20250131.CSV
_FILE_NAME = re.compile(r"chase([0-9]{4})(?![0-9])", re.ASCII | re.IGNORECASE)


def find_last4_in_name(file_name: str, format: str) -> str | None:
    """The account's last four digits, where the name of a file of this format has them."""
    named = _FILE_NAME.match(file_name) if format.startswith("chase_") else None
    return named[1] if named else None


class ChaseChecking(CsvImporter):
    """``Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #`` (B6).

    ``type`` is the Type column, e.g. ``ACH_DEBIT``. A row is pending only where Details or Type says so: an
    empty Balance alone proves nothing (older files leave it out altogether). Check numbers repeat across
    chequebooks, so they are no bank id.
    """

    name = "chase_checking"

    def has_columns(self, names: Sequence[str]) -> bool:
        return fold_names(names) == fold_names(_CHECKING)

    def expected_columns(self) -> Sequence[str]:
        return _CHECKING

    def make_row_reader(self, names: Sequence[str], places: int) -> RowReader:
        amounts = AmountStyle().make_parser()

        def read(line: int, fields: list[str]) -> BankRow:
            details, posted, description, amount, kind, balance = fields[:6]
            kind = kind.strip()
            return BankRow(
                row=line,
                posted_date=read_date_cell(parse_us_date, posted, "Posting Date"),
                description=description,
                amount=read_amount_cell(amounts, amount, places, "Amount"),
                type=kind,
                balance=read_amount_cell(amounts, balance, places, "Balance") if balance.strip() else None,
                state="pending" if "pending" in (details.strip().lower(), kind.lower()) else "posted",
            )

        return read

    @staticmethod
    def render_sample(rows: Sequence[tuple[date, str, Decimal, str]]) -> list[list[str]]:
        """A file of this format for sample data, as records: its header, then the rows ``(day, description, amount,
        type)``, newest first."""
        balance = Decimal(10_000)
        records = []
        for day, description, amount, kind in rows:
            balance += amount
            side, shown_day = "DEBIT" if amount < 0 else "CREDIT", f"{day:%m/%d/%Y}"
            amounts = money.format_amount(amount), money.format_amount(balance)
            records.append([side, shown_day, description, amounts[0], kind, amounts[1], ""])
        return [list(_CHECKING), *records[::-1]]


class ChaseCard(CsvImporter):
    """``Transaction Date,Post Date,Description,Category,Type,Amount,Memo`` (B6).

    Older files have no Memo; files of several cards begin with a Card column, whose four digits become
    ``last4`` hints. Purchases are negative, payments positive.
    """

    name = "chase_card"
    account_type = "credit_card"
    """The ``type:`` to suggest for an account with such files."""

    def has_columns(self, names: Sequence[str]) -> bool:
        columns, actual = fold_names(_CARD), fold_names(names)
        if actual[:1] == ("card",):
            actual = actual[1:]
        return actual in (columns, columns[:-1])

    def expected_columns(self) -> Sequence[str]:
        return _CARD

    def make_row_reader(self, names: Sequence[str], places: int) -> RowReader:
        amounts = AmountStyle().make_parser()
        first = 1 if fold_names(names)[0] == "card" else 0

        def read(line: int, fields: list[str]) -> BankRow:
            bought, posted, description, _, kind, amount = fields[first : first + 6]
            return BankRow(
                row=line,
                posted_date=read_date_cell(parse_us_date, posted, "Post Date"),
                transaction_date=read_date_cell(parse_us_date, bought, "Transaction Date"),
                description=description,
                amount=read_amount_cell(amounts, amount, places, "Amount"),
                type=kind.strip(),
            )

        return read

    @staticmethod
    def render_sample(rows: Sequence[tuple[date, str, Decimal, str]]) -> list[list[str]]:
        """As ``ChaseChecking.render_sample``."""
        records = []
        for day, description, amount, _ in reversed(rows):
            shown_day, kind = f"{day:%m/%d/%Y}", "Sale" if amount < 0 else "Payment"
            records.append([shown_day, shown_day, description, "", kind, money.format_amount(amount), ""])
        return [list(_CARD), *records]

    def find_hints(self, text: str, names: Sequence[str], cards: Iterable[str]) -> Hints:
        if fold_names(names)[0] != "card":
            return ()
        endings = (m.group() for card in cards if (m := re.fullmatch(_LAST4, card.strip()[-4:])))
        return tuple(("last4", digits) for digits in dict.fromkeys(endings))

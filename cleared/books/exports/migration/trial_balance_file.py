"""Reading a trial balance: a CSV with an account, and debit and credit or one balance, in each row."""

from __future__ import annotations

from typing import Final

from cleared.base import money
from cleared.books.bank_files.base import Faults, ImportFileError
from cleared.books.bank_files.csv_table import read_records
from cleared.books.exports.migration.source_books import SourceAmounts, SourceBalance, SourceBooks, find_decimal_mark

COLUMNS: Final = {
    "account": ("account", "account_id", "account id", "account number", "account no", "number", "code", "acct"),
    "name": ("name", "account_name", "account name"),
    "debit": ("debit", "debits", "dr"),
    "credit": ("credit", "credits", "cr"),
    "balance": ("balance", "amount", "net", "net balance"),
    "currency": ("currency",),
}
"""What a column means → how it may be called."""
_AMOUNTS: Final = ("debit", "credit", "balance")
REMEDY: Final = "It has a column account, and either debit and credit, or balance (a credit is negative)."
_TOTALS: Final = ("total", "totals", "sum", "sums", "grand total")


def read_trial_balance(text: str, currency: str, places: int) -> SourceBooks:
    """All balances. Raises ``ImportFileError`` with the lines that are not understood, or where it does not balance."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    records = list(read_records(text, delimiter))
    at = _find_columns(records[0][1]) if records else {}
    if not ({"account", "name"} & at.keys()) or not ("balance" in at or {"debit", "credit"} <= at.keys()):
        raise ImportFileError("this is no trial balance: its first line does not name the columns", remedy=REMEDY)
    amounts, books, faults = SourceAmounts(currency, places), SourceBooks("trial balance"), Faults()
    cells_of = [row[n] for _, row in records[1:] for name, n in at.items() if name in _AMOUNTS and n < len(row)]
    amounts.decimal_mark = next(filter(None, map(find_decimal_mark, cells_of)), "")
    for line, row in records[1:]:
        cells = {name: row[n].strip() if n < len(row) else "" for name, n in at.items()}
        account, name = cells.get("account") or cells.get("name", ""), cells.get("name", "")
        if not account or account.casefold() in _TOTALS or (not cells.get("account") and name.casefold() in _TOTALS):
            continue
        if cells.get("currency") not in (None, "", currency):
            faults.add(line, f"it is in {cells['currency'][:10]}, the books are in {currency}", "currency")
            continue
        signed = []
        for column, sign in (("balance", 1), ("debit", 1), ("credit", -1)):
            try:
                signed.append(sign * amounts.read_amount(cells[column]) if cells.get(column) else money.total([]))
            except ValueError as error:
                faults.add(line, str(error), column)
        amount = money.total(signed)
        if amount:
            books.balances.append(SourceBalance(line, account, name, amount))
    if faults:
        raise faults.error(remedy=REMEDY)
    rest = money.total([row.amount for row in books.balances])
    if rest or not books.balances:
        debits = money.format_amount(money.total([row.amount for row in books.balances if row.amount > 0]))
        credits = money.format_amount(-money.total([row.amount for row in books.balances if row.amount < 0]))
        raise ImportFileError(
            f"it does not balance: debits are {debits}, credits {credits}" if rest else "it has no balances",
            remedy="Take the trial balance of one day, with all accounts." if rest else REMEDY,
        )
    return books


def _find_columns(header: list[str]) -> dict[str, int]:
    at: dict[str, int] = {}
    for n, title in enumerate(header):
        plain = title.strip().strip("\ufeff").casefold()
        for name, titles in COLUMNS.items():
            if plain in titles:
                at.setdefault(name, n)
    return at

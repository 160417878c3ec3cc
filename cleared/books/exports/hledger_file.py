"""The books as an hledger journal: ``hledger check`` accepts it, with the same balance in every account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.base import money
from cleared.books.exports.account_names import AccountNames
from cleared.books.exports.exported_journal import ExportedBooks, ExportedEntry, StatementBalance
from cleared.books.exports.written_text import DESCRIPTION_MARKS, VALUE_MARKS, escape_line
from cleared.books.ledger.chart import Account

FIRST_LINE: Final = "; cleared export: hledger 1"
"""How a file that this module wrote begins: texts in it are escaped."""
_TYPES: Final = {"asset": "A", "liability": "L", "equity": "E", "revenue": "R", "expense": "X"}


def write_hledger(exported: ExportedBooks) -> Iterator[str]:
    """The file, part by part."""
    names, places = AccountNames(exported.books.chart), exported.index.places
    banks = {*exported.bank_accounts.values()}
    yield f"{FIRST_LINE}\n; {escape_line(exported.title, '')}, as of commit {exported.commit}\n\n"
    sample = money.format_amount(money.from_units(1000 * 10**places, places))
    yield f"decimal-mark .\ncommodity {sample}{'' if places else '.'} {exported.currency}\n\n"
    yield "".join(_write_account(a, names.name_of(a.account_id), banks) for a in exported.list_accounts())
    stated = exported.find_statement_balances()
    for key, entries in exported.iter_months():
        for month in sorted(m for m in stated if m < key):
            yield from _write_balances(stated.pop(month), names, exported)
        yield f"\n; {key[0]:04d}-{key[1]:02d}\n"
        yield from _write_entries(entries, names, exported.currency)
    for month in sorted(stated):
        yield from _write_balances(stated[month], names, exported)
    yield "".join(f"\n; WARNING: {line}\n" for line in exported.list_warnings())


def _write_account(account: Account, name: str, banks: set[int]) -> str:
    kind = "C" if account.account_type == "asset" and account.account_id in banks else _TYPES[account.account_type]
    return f"account {name}\n    ; type: {kind}\n    ; name: {escape_line(account.account_name, VALUE_MARKS)}\n"


def _write_entries(entries: Iterator[ExportedEntry], names: AccountNames, currency: str) -> Iterator[str]:
    shown: dict[int, str] = {}
    for entry_id, day, description, counterparty, is_pending, legs, facts in entries:
        parts = [f"\n{day} {'!' if is_pending else '*'} ({entry_id}) {escape_line(description, DESCRIPTION_MARKS)}\n"]
        if counterparty:
            parts.append(f"    ; counterparty: {escape_line(counterparty, VALUE_MARKS)}\n")
        for name, value in facts:
            parts.append(f"    ; {name}: {escape_line(value, VALUE_MARKS)}\n")
        for account, amount in legs:
            if account not in shown:
                shown[account] = names.name_of(account)
            parts.append(f"    {shown[account]}  {amount} {currency}\n")
        yield "".join(parts)


def _write_balances(balances: list[StatementBalance], names: AccountNames, exported: ExportedBooks) -> Iterator[str]:
    nothing = money.format_amount(money.from_units(0, exported.index.places))
    for account, day, amount, stated in balances:
        said = f"    ; stated: {money.format_amount(stated)}\n" if stated != amount else ""
        yield (
            f"\n{day} * balance of the bank's statement\n{said}"
            f"    {names.name_of(account)}  {nothing} {exported.currency} = {money.format_amount(amount)} "
            f"{exported.currency}\n"
        )

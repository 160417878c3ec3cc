"""The books as a beancount file: ``bean-check`` accepts it, with the same balance in every account."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from cleared.base import money
from cleared.books.exports.account_names import AccountNames
from cleared.books.exports.exported_journal import ExportedBooks, ExportedEntry, StatementBalance
from cleared.books.exports.written_text import quote_string
from cleared.books.ledger.chart import Account

FIRST_LINE: Final = "; cleared export: beancount 1"
"""How a file that this module wrote begins."""
_KEY: Final = re.compile(r"[a-z][a-z0-9-]+")


def write_beancount(exported: ExportedBooks) -> Iterator[str]:
    """The file, part by part. It ends with the trial balance as assertions, so that bean-check proves every total."""
    names, currency = AccountNames(exported.books.chart), exported.currency
    months = exported.index.months
    first = date(*months[0], 1) if months else date(1970, 1, 1)
    yield f"{FIRST_LINE}\n; as of commit {exported.commit}\n\n"
    yield f'option "title" {quote_string(exported.title)}\noption "operating_currency" "{currency}"\n'
    yield 'option "tolerance_multiplier" "0"\n\n'
    yield "".join(_write_account(a, names.name_of(a.account_id), first, currency) for a in exported.list_accounts())
    stated, last = exported.find_statement_balances(), first
    for key, entries in exported.iter_months():
        for month in sorted(m for m in stated if m < key):
            yield from _write_balances(stated.pop(month), names, currency)
        yield f"\n; {key[0]:04d}-{key[1]:02d}\n"
        yield from _write_entries(entries, names, currency)
        last = date(*key, 28) + timedelta(days=4)
    for month in sorted(stated):
        yield from _write_balances(stated[month], names, currency)
    yield "\n; The trial balance\n"
    for account, balance in exported.index.day_balances().trial_balance().items():
        yield f"{last.replace(day=1)} balance {names.name_of(account)}  {money.format_amount(balance)} {currency}\n"
    yield "".join(f"\n; WARNING: {line}\n" for line in exported.list_warnings())


def _write_account(account: Account, name: str, first: date, currency: str) -> str:
    closed = f"  closed: {quote_string(str(account.closed_on))}\n" if account.closed_on else ""
    return f"{first} open {name}  {currency}\n  name: {quote_string(account.account_name)}\n{closed}"


def _write_entries(entries: Iterator[ExportedEntry], names: AccountNames, currency: str) -> Iterator[str]:
    shown: dict[int, str] = {}
    for entry_id, day, description, counterparty, is_pending, legs, facts in entries:
        payee = f"{quote_string(counterparty)} " if counterparty else ""
        parts = [f'\n{day} {"!" if is_pending else "*"} {payee}{quote_string(description)}\n  entry: "{entry_id}"\n']
        for name, value in facts:
            if _KEY.fullmatch(name):
                parts.append(f"  {name}: {quote_string(value)}\n")
        for account, amount in legs:
            if account not in shown:
                shown[account] = names.name_of(account)
            parts.append(f"  {shown[account]}  {amount} {currency}\n")
        yield "".join(parts)


def _write_balances(balances: list[StatementBalance], names: AccountNames, currency: str) -> Iterator[str]:
    """Beancount means the beginning of a day, a statement its end."""
    for account, day, amount, stated in balances:
        said = f'  stated: "{money.format_amount(stated)}"\n' if stated != amount else ""
        asserted = f"{names.name_of(account)}  {money.format_amount(amount)} {currency}"
        yield f"\n{day + timedelta(days=1)} balance {asserted}\n{said}"

"""The trial balance, as commands and programs show it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from cleared.base import money
from cleared.books.index.current_books import AccountRow
from cleared.books.index.journal_index import JournalIndex


def list_balances(
    index: JournalIndex,
    accounts: Iterable[AccountRow],
    account: int | None = None,
    *,
    year: int | None = None,
    month: int | None = None,
    as_of: date | None = None,
) -> list[dict[str, Any]]:
    """The balance of each account that was ever posted to, or of one account: in a month, up to a day, or ever."""
    used = index.used_accounts() if account is None else {account}
    balances = index.day_balances(used, year=year, month=month, through=as_of)
    nothing = money.from_units(0, index.places)
    return [
        {
            "account_id": row.account_id,
            "account_name": row.account_name,
            "account_type": row.account_type,
            "balance": money.format_amount(money.total([nothing, balances.balance_on(row.account_id, as_of)])),
        }
        for row in accounts
        if row.account_id in used
    ]

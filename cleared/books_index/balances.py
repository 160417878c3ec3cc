"""The trial balance, as commands and programs show it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from cleared.books_index.current_books import AccountRow
from cleared.books_index.journal_index import JournalIndex
from cleared.schema import money


def list_balances(
    index: JournalIndex, accounts: Iterable[AccountRow], account: int | None = None, *,
    year: int | None = None, month: int | None = None, as_of: date | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The balance of each account that was ever posted to, or of one account: in a month, up to a day, or ever."""
    used = index.used_accounts() if account is None else {account}
    return [
        {
            "account_id": row.account_id, "account_name": row.account_name, "account_type": row.account_type,
            "balance": money.format_amount(index.account_balance(row.account_id, year=year, month=month, as_of=as_of)),
        }
        for row in accounts if row.account_id in used
    ]  # fmt: skip

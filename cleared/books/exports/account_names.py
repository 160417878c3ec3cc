"""What accounts are called in plain-text accounting: ``Assets:1010-Business-checking``.

The number makes the name unique; what hledger or beancount cannot take in a name becomes a hyphen.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.books.ledger.chart import Chart

ROOTS: Final = {
    "asset": "Assets",
    "liability": "Liabilities",
    "equity": "Equity",
    "revenue": "Income",
    "expense": "Expenses",
}
"""Type of an account → the first part of its name."""
MAX_SLUG: Final = 60


class AccountNames:
    """Number of an account → its name in an export."""

    def __init__(self, chart: Chart) -> None:
        self._names = {
            account.account_id: make_name(account.account_id, account.account_name, account.account_type)
            for account in chart.accounts.values()
        }

    def name_of(self, account_id: int) -> str:
        """Raises ``WorkspaceError`` for an account that is posted to and not in the chart."""
        name = self._names.get(account_id)
        if name is None:
            raise WorkspaceError(
                f"entries post to account {account_id}, which is not in the chart of accounts",
                remedy="Run cleared check: it names the entries.",
            )
        return name


def make_name(account_id: int, account_name: str, account_type: str) -> str:
    """``Assets:1010-Business-checking``."""
    letters = (
        c if unicodedata.category(c)[0] == "L" or c.isdecimal() else " " for c in _without_apostrophes(account_name)
    )
    slug = "-".join("".join(letters).split())[:MAX_SLUG].rstrip("-")
    return f"{ROOTS[account_type]}:{account_id}{'-' + slug if slug else ''}"


def _without_apostrophes(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("'", "").replace("’", "")

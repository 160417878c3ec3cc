"""The chart of accounts (``accounts/chart-of-accounts.csv``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from cleared.base.csv_text import CsvDamage, read_records
from cleared.base.errors import Place, RestoreRemedy, WorkspaceError

HEADER: Final = ("account_id", "account_name", "account_type", "parent_id", "tax_line", "description")
OPTIONAL: Final = ("code", "currency", "status", "closed_on")
TYPES: Final = ("asset", "liability", "equity", "revenue", "expense")
INCOME_TYPES: Final = ("revenue", "expense")
"""Their balances begin each year anew."""
MAX_ACCOUNTS: Final = 20_000
_NAME_LENGTH: Final = 40
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
OPENING_BALANCES: Final = 3900
"""What accounts began with is posted against this one, in every chart."""
OWNER_DRAWS: Final = 3200
"""What the owner takes is posted here."""


class Account(Struct, frozen=True):
    account_id: int
    account_name: str
    account_type: str
    """asset | liability | equity | revenue | expense; never derived from the id."""
    parent_id: int | None
    tax_line: str
    description: str
    status: str = "open"
    closed_on: date | None = None


class Chart:
    """All accounts, in file order."""

    def __init__(self, accounts: Mapping[int, Account]) -> None:
        self.accounts = dict(accounts)
        self.parents = {a.parent_id for a in self.accounts.values() if a.parent_id is not None}

    def join_later(self, later: Chart) -> Chart:
        """This chart with the accounts that only the later one has. What could be posted to still can."""
        joined = Chart({**later.accounts, **self.accounts})
        joined.parents = self.parents | (joined.parents - set(self.accounts))
        return joined

    def find_account(self, account_id: int) -> Account | None:
        return self.accounts.get(account_id)

    def name_account(self, account_id: int) -> str:
        """``Business checking 1010``; the number alone where there is no such account."""
        account = self.find_account(account_id)
        return f"{account.account_name[:_NAME_LENGTH]} {account_id}" if account is not None else str(account_id)

    def why_not_postable(self, account_id: int, on: date) -> tuple[str, str] | None:
        """``(reason, remedy)`` where a new entry dated ``on`` may not use the account, else None."""
        account = self.accounts.get(account_id)
        if account is None:
            return f"account {account_id} does not exist", self._suggest_account(account_id)
        name = f"{account_id} {account.account_name}"
        if account_id in self.parents:
            return f"account {name} is a heading, not postable", "Use one of the accounts below it."
        if account.status == "closed" and (account.closed_on is None or on >= account.closed_on):
            since = f" since {account.closed_on}" if account.closed_on else ""
            return (
                f"account {name} is closed{since}",
                f"Use an open account (cleared accounts list), or open it again: cleared accounts reopen {account_id}.",
            )
        return None

    def _suggest_account(self, account_id: int) -> str:
        near = get_close_matches(str(account_id), [str(i) for i in self.accounts], n=9, cutoff=0.5)
        # Of those with as many digits in common, the next number is the likelier one.
        near.sort(key=lambda text: abs(int(text) - account_id))
        hint = f"The nearest is {near[0]} {self.accounts[int(near[0])].account_name}; " if near else ""
        return hint + "cleared accounts list shows all of them."


def parse_chart(data: bytes | None, file: str) -> Chart:
    """Read the chart. Raises ``WorkspaceError`` naming file, line and column of the first thing wrong."""
    if data is None:
        raise WorkspaceError(
            "the chart of accounts is missing",
            place=Place(file),
            remedy=RestoreRemedy(file),
        )
    accounts: dict[int, Account] = {}
    lines: dict[int, int] = {}
    line = 1
    try:
        for line, row in list(read_records(data, HEADER, optional=OPTIONAL)):
            account = _parse_account(row, file, line)
            if account.account_id in accounts:
                raise _chart_error(
                    file,
                    line,
                    "account_id",
                    f"account {account.account_id} stands already on line {lines[account.account_id]}",
                )
            accounts[account.account_id] = account
            lines[account.account_id] = line
            if len(accounts) > MAX_ACCOUNTS:
                raise _chart_error(file, line, None, f"more than {MAX_ACCOUNTS} accounts")
    except CsvDamage as e:
        raise _chart_error(file, e.line, None, str(e)) from None
    for account in accounts.values():
        if account.parent_id is not None and account.parent_id not in accounts:
            raise _chart_error(file, lines[account.account_id], "parent_id", f"there is no account {account.parent_id}")
    return Chart(accounts)


def _parse_account(row: list[str], file: str, line: int) -> Account:
    number, name, kind, parent, tax_line, description, _code, _currency, status, closed_on = row
    if not (_NUMBER.fullmatch(number) and int(number)):
        raise _chart_error(file, line, "account_id", f"{number[:40]!r} is not an account number")
    if kind not in TYPES:
        raise _chart_error(file, line, "account_type", f"{kind!r} is not one of {', '.join(TYPES)}")
    if parent and not _NUMBER.fullmatch(parent):
        raise _chart_error(file, line, "parent_id", f"{parent[:40]!r} is not an account number")
    if status not in ("", "open", "closed"):
        raise _chart_error(file, line, "status", f"{status!r} is not open or closed")
    try:
        closed = date.fromisoformat(closed_on) if closed_on else None
    except ValueError:
        raise _chart_error(file, line, "closed_on", f"{closed_on!r} is not a date") from None
    return Account(
        int(number), name, kind, int(parent) if parent else None, tax_line, description, status or "open", closed
    )


def _chart_error(file: str, line: int, field: str | None, message: str) -> WorkspaceError:
    return WorkspaceError(
        message,
        place=Place(file, line, field=field),
        remedy=RestoreRemedy(file, "Or mend that line"),
    )

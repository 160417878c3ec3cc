"""Which account of the chart an account of another program is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cleared.books.bank_files.base import Faults
from cleared.books.bank_files.csv_table import read_records
from cleared.books.exports.migration.source_books import SourceBooks
from cleared.books.ledger.chart import Account, Chart

_NUMBER: Final = re.compile(r"([0-9]{1,9})(?![0-9])", re.ASCII)
UNKNOWN_NUMBER: Final = "NUMBER"
UNKNOWN_TYPE: Final = "TYPE"
"""What a person fills in, in a command that adds an account."""
_FIRST_NUMBER: Final = {"asset": 1000, "liability": 2000, "equity": 3000, "revenue": 4000, "expense": 5000}
REMEDY: Final = "It is a CSV: a line account,number first, then one line an account."


class UnknownAccount(Struct, frozen=True):
    """An account that is not found in the chart."""

    account: str
    line: int
    reason: str
    command: str
    """What would add it to the chart."""


class AccountMapping(Struct):
    """Account of the other program → number in the chart, and those that have none."""

    numbers: dict[str, int] = {}
    unknown: list[UnknownAccount] = []


def read_map_file(text: str) -> dict[str, int]:
    """A file that a person wrote: account → number. Raises ``ImportFileError``."""
    faults, numbers = Faults(), dict[str, int]()
    for n, (line, row) in enumerate(read_records(text)):
        cells = [cell.strip() for cell in row]
        if n == 0 and [cell.casefold().strip("\ufeff") for cell in cells] == ["account", "number"]:
            continue
        if len(cells) != 2 or not re.fullmatch(r"[0-9]{1,9}", cells[1], re.ASCII):
            faults.add(line, "it is not an account and a number")
        elif numbers.setdefault(cells[0], int(cells[1])) != int(cells[1]):
            faults.add(line, f"{cells[0][:60]!r} has another number above")
    if faults:
        raise faults.error(remedy=REMEDY)
    return numbers


def map_accounts(books: SourceBooks, chart: Chart, given: Mapping[str, int]) -> AccountMapping:
    """Find each account: by the map that is given, by the number in its name, by its name; never against its type."""
    mapping, names = AccountMapping(), _unique_names(chart)
    proposed = set(chart.accounts)
    titles = {row.account: row.name for row in books.balances}
    for account, line in books.list_accounts().items():
        kind = books.type_of(account)
        known = _find_account(account, kind, chart, given, names)
        if isinstance(known, int):
            mapping.numbers[account] = known
        else:
            title = titles.get(account) or _plain_name(account)
            mapping.unknown.append(UnknownAccount(account, line, known, _propose(account, title, kind, proposed)))
    return mapping


def _find_account(
    account: str, kind: str, chart: Chart, given: Mapping[str, int], names: Mapping[str, Account]
) -> int | str:
    """The number; else why there is none."""
    if account in given:
        number = given[account]
        return number if number in chart.accounts else f"the map says {number}, which is not in the chart"
    match = _NUMBER.match(account.rsplit(":", 1)[-1].strip())
    candidate = chart.accounts.get(int(match[1])) if match is not None else None
    if candidate is None and match is None:
        candidate = names.get(_plain_name(account).casefold())
    if candidate is None:
        return f"account {match[1]} is not in the chart" if match is not None else "no account has that name"
    if kind not in ("", candidate.account_type):
        return f"{candidate.account_id} {candidate.account_name} is {candidate.account_type}, not {kind}"
    if candidate.account_id in chart.parents:
        return f"{candidate.account_id} {candidate.account_name} is a heading"
    return candidate.account_id


def _unique_names(chart: Chart) -> dict[str, Account]:
    names: dict[str, Account | None] = {}
    for account in chart.accounts.values():
        key = account.account_name.casefold()
        names[key] = None if key in names else account
    return {key: account for key, account in names.items() if account is not None}


def _plain_name(account: str) -> str:
    last = account.rsplit(":", 1)[-1].replace("-", " ").strip()
    return " ".join(_NUMBER.sub("", last, count=1).split() if _NUMBER.match(last) else last.split()) or last


def _propose(account: str, title: str, kind: str, proposed: set[int]) -> str:
    """The command that adds an account, with a number that is free. Of which type it is, or where such accounts begin,
    is not always known: then a person fills that in."""
    match = _NUMBER.match(account.rsplit(":", 1)[-1].strip())
    number = int(match[1]) if match is not None else 0
    name = "".join(c for c in title if c.isprintable()).replace("'", "’")[:80]
    if not kind and (number in proposed or not number):
        return f"cleared accounts add {UNKNOWN_NUMBER} '{name}' --type {UNKNOWN_TYPE}"
    if number in proposed or not number:
        number = _FIRST_NUMBER.get(kind, 5000) + 10
        while number in proposed:
            number += 10
    proposed.add(number)
    return f"cleared accounts add {number} '{name}' --type {kind or UNKNOWN_TYPE}"

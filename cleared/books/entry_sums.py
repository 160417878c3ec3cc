"""What entries come to, by account, month or counterparty: one answer to "how much on coffee this year?"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from cleared.base import money
from cleared.base.days import parse_day
from cleared.base.errors import UsageError
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.entry import CLOSING, Entry
from cleared.books.queries import open_journal_index
from cleared.changes.host import Host

GROUPS: Final = ("account", "month", "counterparty")
_SIGNS: Final = {"revenue": -1, "expense": 1}


def read_sums(
    host: Host, by: str, account: int | None, text: str | None, date_from: str | None, date_to: str | None
) -> list[dict[str, Any]]:
    """Income and expenses of the entries that are meant; of an ``account``, what moved on it instead (debit less
    credit). Voided entries count with what voids them, so they come to nothing. Raises ``UsageError``."""
    first, last = (parse_day(day) if day else None for day in (date_from, date_to))
    if first and last and last < first:
        raise UsageError(f"{date_to} lies before {date_from}", remedy="Swap date_from and date_to.")
    wanted = EntryFilter(start=first, end=last, account=account, text=text or None)
    with open_journal_index(host) as (index, books):
        chart = {each.account_id: each for each in books.chart.accounts.values()}
        types = {number: each.account_type for number, each in chart.items()}
        entries = [each for each in index.iter_entries(wanted) if CLOSING not in each.tags]
        rows = _sum_entries(entries, by, account, types)
    for row in rows:
        if by == "account":
            row["name"] = chart[row["account"]].account_name if row["account"] in chart else ""
    return rows


def _sum_entries(
    entries: Iterable[Entry], by: str, account: int | None, types: Mapping[int, str]
) -> list[dict[str, Any]]:
    sums: dict[Any, dict[str, Decimal]] = {}
    counts: Counter[Any] = Counter()
    for entry in entries:
        keys = set()
        for leg in entry.legs:
            kind = types.get(leg.account_id, "")
            if leg.account_id != account if account is not None else kind not in _SIGNS:
                continue
            key = {"account": leg.account_id, "month": f"{entry.date:%Y-%m}"}.get(
                by, " ".join((entry.counterparty or entry.description).split())
            )
            column = "moved" if account is not None else "income" if kind == "revenue" else "expenses"
            held = sums.setdefault(key, {})
            held[column] = money.total([held.get(column, Decimal(0)), leg.amount * _SIGNS.get(kind, 1)])
            keys.add(key)
        counts.update(keys)
    return [
        {by: key, "entries": counts[key], **{name: money.format_amount(amount) for name, amount in held.items()}}
        for key, held in sorted(sums.items())
    ]

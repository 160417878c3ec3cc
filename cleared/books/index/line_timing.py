"""What stands between bank and books on some days, without reading the lines and entries of all others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from datetime import date

from cleared.books.index.past_lines import PastLines, SpreadLine
from cleared.books.ledger.agreed_balances import BankTiming, BookedLine
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.staged_bank_lines import RELEASED, BankBook


def time_lines(
    timing: BankTiming,
    bank: BankBook,
    past: PastLines,
    name: str,
    account: int,
    days: tuple[date, date],
    find_day: Callable[[str], date | None],
) -> bool:
    """Count the lines of a bank account that wait, or are booked on another day, on some of these days (the first and
    the last), as they are with what ``bank`` stages. Of the lines of other months only those are looked at that entries
    of these days have a part of.

    ``account``: the bank account's in the ledger; ``find_day``: the day on which a leg of these days' months moves it,
    None for a leg on another account. False where nothing of the bank account was ever booked: ``check`` cannot tell
    then whose it is.
    """
    first, last = (day.isoformat()[:7] for day in days)
    read_whole = _list_touched_months(bank, name)
    is_booked = False
    lines: list[SpreadLine] = []
    for month, known in past.list_months(name).items():
        if month in read_whole or first <= month <= last:
            read_whole.add(month)
            continue
        is_booked |= known.is_booked
        lines += known.spread
        if month < first:
            timing.add_open(account, _begin_month(month), known.waiting, known.ignored)
    for line in _iter_recorded_lines(bank, name, read_whole):
        pairs = tuple(bank.list_matches(line.line_id))
        is_booked |= bool(pairs)
        months = [line.posted_date.isoformat()[:7], *(leg_id[:7] for leg_id, _ in pairs)]
        is_over = max(months) < first and bank.posted_amount(line.line_id) == line.amount
        if line.state == "posted" and min(months) <= last and not is_over:
            is_ignored = bank.is_ignored(line.line_id)
            lines.append(SpreadLine(line.line_id, line.posted_date, line.amount, pairs, is_ignored))
    for line_id, posted_date, amount, pairs, is_ignored in lines:
        found = [(_begin_month(i[:7]) if not first <= i[:7] <= last else find_day(i), part) for i, part in pairs]
        parts = tuple((day, part) for day, part in found if day is not None)
        timing.add_line(account, BookedLine(line_id, posted_date, amount, parts, is_ignored))
    return is_booked


def _begin_month(month: str) -> date:
    """Its first day: which day it is of a month that is not asked about is all the same."""
    return date.fromisoformat(f"{month}-01")


def _list_touched_months(bank: BankBook, name: str) -> set[str]:
    """The months of an account of which the draft changes what is known of a committed line."""
    touched = (bank.find_line(line_id) for line_id in bank.staged_line_ids() - bank.new_lines.keys())
    return {line.posted_date.isoformat()[:7] for owner, line in filter(None, touched) if owner == name}


def _iter_recorded_lines(bank: BankBook, name: str, months: Collection[str]) -> Iterator[BankLine]:
    """The lines of a bank account that are on record with this draft, those of these months and new ones, but for those
    that are released."""
    released = {line_id for line_id, each in bank.new_outcomes.items() if each.outcome == RELEASED}
    recorded = bank.processed_line_ids | bank.staged_line_ids()
    new = (line for line_id, (owner, line) in bank.new_lines.items() if owner == name and line_id in recorded)
    known = (line for month in sorted(months) for line in bank.read_month(name, month).values())
    committed = (line for line in known if line.line_id not in bank.released_line_ids)
    return (line for line in itertools.chain(committed, new) if line.line_id not in released)

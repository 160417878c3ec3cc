"""Recording that the books meet the closing balance of a bank's file, in the commit that makes it so.

From then on it has to hold, as a balance does that a person reconciled.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property, partial
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.books.card_kinds import REVISION
from cleared.books.index.journal_index import JournalIndex, open_index
from cleared.books.ledger.agreed_balances import (
    LAPSED,
    MET,
    AgreedBalance,
    AgreementCheck,
    BankTiming,
    read_agreed_balances,
)
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import ZERO, leg_suffix
from cleared.books.ledger.staged_bank_lines import NEAR_DAYS, BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import StagedBooks, books_of
from cleared.git import Snapshot
from cleared.primitives.context import Context

_MAX_CANDIDATES: Final = 12
"""Balances of one draft, the newest, that are looked at: where the opening balance is not booked, none is ever met."""
_MAX_STATED: Final = 60
"""Closing balances, of the files that were imported last, that may be met late."""


def stage_met_balances(context: Context, snapshot: Snapshot, *, stays_open: bool) -> None:
    """Stage a row for each closing balance that the books meet with this draft, and that is not on record yet.
    ``snapshot``: the commit that the draft builds on; ``stays_open``: whether its index is needed again."""
    draft = books_of(context)
    touched = {leg.account_id for entry in draft.books.list_staged() for leg in entry.legs}
    numbers = draft.ledger_accounts
    users = Counter(numbers.values())
    alone = {name: number for name, number in numbers.items() if users[number] == 1}
    touched |= {alone[record.account] for record in draft.bank.new_imports if record.account in alone}
    accounts = {name: number for name, number in alone.items() if number in touched}
    if not accounts:
        return
    now = format_iso(context.now)
    revising = {str(card.details.get("line")) for card in context.cards.added.values() if card.kind == REVISION.name}
    draft.bank.new_agreed += _move_by_late_lines(draft.bank, accounts, revising, now)
    candidates = list(_list_candidates(draft.bank, accounts, now))
    if candidates:
        index = open_index(draft.layout, snapshot, context.env.places, stays_open=stays_open)
        draft.bank.new_agreed += _select_met(draft, index, accounts, candidates)


def _list_candidates(bank: BankBook, accounts: Mapping[str, int], now: str) -> Iterator[AgreedBalance]:
    """The closing balances of the newest imports that stand, oldest first, those of one day as they were imported; of
    one account and day the newest file's."""
    stated: dict[tuple[int, date], AgreedBalance] = {}
    for record in reversed(bank.imports):
        if len(stated) == _MAX_STATED:
            break
        closing = record.read_closing() if record.account in accounts else None
        if closing is not None:
            key = accounts[record.account], closing[0]
            stated.setdefault(key, AgreedBalance(*key, closing[1], record.name, now, MET))
    days = [day for _, day in stated] or [date.max]
    on_record = read_agreed_balances(bank.source, bank.paths, min(days), max(days))
    known = {(each.account, each.day): each for each in [*on_record, *bank.new_agreed]}
    as_imported = [*reversed(stated.items())]
    for key, each in sorted(as_imported, key=lambda item: item[0][1]):
        before = known.get(key)
        if before is None or before.state == LAPSED or (before.state == MET and _is_news(before, each)):
            yield each


def _is_news(before: AgreedBalance, stated: AgreedBalance) -> bool:
    """Whether a file says something else than is on record. What it said itself is not: later files have moved that."""
    return before.by != stated.by and before.amount != stated.amount


def _select_met(
    draft: StagedBooks, index: JournalIndex, accounts: Mapping[str, int], candidates: list[AgreedBalance]
) -> list[AgreedBalance]:
    """Those that hold, as ``check`` will judge them from now on."""
    candidates = candidates[-_MAX_CANDIDATES:]
    first, last = min(each.day for each in candidates), max(each.day for each in candidates)
    names = {account: name for name, account in accounts.items()}
    balances, timing = index.day_balances(names, since=first, through=last), BankTiming()
    for entry in draft.books.list_staged():
        balances.add_entry(entry)
    compared = {each.account for each in candidates}
    booked = {
        account
        for account in compared
        if draft.imports.past_lines.time_lines(
            timing, names[account], account, (first, last), partial(_find_day, draft.books, account)
        )
    }
    check = AgreementCheck(candidates, balances, timing)
    return [each for each in candidates if each.account in booked and check.is_met(each)]


def _find_day(books: Books, account: int, leg_id: str) -> date | None:
    """The day on which a leg moves the account; None where it is no leg of it."""
    entry = books.find_entry(leg_id)
    for i, leg in enumerate(entry.legs) if entry is not None else ():
        if entry is not None and leg.account_id == account and entry.entry_id + leg_suffix(i) == leg_id:
            return entry.date
    return None


def _move_by_late_lines(
    bank: BankBook, accounts: Mapping[str, int], revising: Collection[str], now: str
) -> Iterator[AgreedBalance]:
    """The balances on record that lines of this draft move: a file was taken before the bank's day was over, and a
    later one has the rest of it. Other lines that a file brings of days gone by were part of the balance before, or
    are no rows of the bank. ``revising``: lines of which a card asks whether they count in the place of earlier ones:
    its answer moves the balances."""
    recorded = bank.processed_line_ids | bank.staged_line_ids()
    late: dict[str, list[BankLine]] = defaultdict(list)
    for line_id, (name, line) in bank.new_lines.items():
        if name in accounts and line_id in recorded and line.state == "posted" and line_id not in revising:
            late[name].append(line)
    if not late:
        return
    days = [line.posted_date for lines in late.values() for line in lines]
    through = max(days) + timedelta(days=min(NEAR_DAYS, (date.max - max(days)).days))
    met = [each for each in bank.list_agreed_balances(min(days), through) if each.state == MET]
    for name, lines in late.items():
        balances = [each for each in met if each.account == accounts[name]]
        if not balances:
            continue
        said = _LateLines(bank, name, lines, [each.day for each in balances])
        for each in balances:
            if moved := said.sum_late(each):
                yield replace(each, amount=each.amount + moved, at=now)


class _LateLines:
    """The lines of one bank account that a draft brings, beside the balances that their files say. ``days``: those of
    the balances on record."""

    def __init__(self, bank: BankBook, name: str, lines: Sequence[BankLine], days: Sequence[date]) -> None:
        self._bank, self._name, self._days = bank, name, days
        self._lines = sorted(lines, key=attrgetter("posted_date"))
        closings = (record.read_closing() for record in bank.new_imports if record.account == name)
        self._closings = [closing for closing in closings if closing is not None]

    def sum_late(self, balance: AgreedBalance) -> Decimal:
        """What the lines come to that a balance did not have: a file that brought them says so, by a balance that has
        them. Where none says any, of its very day those that are like no other line."""
        near = balance.day - timedelta(days=min(NEAR_DAYS, (balance.day - date.min).days))
        low, high = (
            find(self._lines, day, key=attrgetter("posted_date"))
            for find, day in ((bisect_left, near), (bisect_right, balance.day))
        )
        lines = self._lines[low:high]
        if not lines:
            return ZERO
        if not self._closings:
            of_day = [line for line in lines if line.posted_date == balance.day]
            return money.total([x.amount for x in of_day if not self._bank.find_similar_lines(self._name, x)])
        moved = money.total([line.amount for line in lines])
        supposed = balance.amount + moved
        return moved if any(supposed == self._find_said(balance.day, *closing) for closing in self._closings) else ZERO

    def _find_said(self, day: date, closing_day: date, closing: Decimal) -> Decimal:
        """What a closing balance says of another day, by the lines between."""
        return closing - self._moved.balance_on(0, closing_day) + self._moved.balance_on(0, day)

    @cached_property
    def _moved(self) -> DayBalances:
        """All lines from the first balance on record to the last day that is spoken of, under one number."""
        days = [*(day for day, _ in self._closings), *self._days]
        moved = DayBalances()
        for line in self._bank.iter_lines_between(self._name, min(days), max(days)):
            moved.add_movement(0, line.posted_date, line.amount)
        return moved


def move_by_correction(draft: StagedBooks, replaced: BankLine, right: BankLine, now: str) -> None:
    """Move the balances on record of files that had a line as the bank first reported it, now that another one counts
    in its place (``right``, which a later file brought)."""
    bank = draft.bank
    name, _ = bank.find_line(right.line_id) or ("", right)
    records = (record for record in bank.imports if record.account == name)
    earlier = itertools.takewhile(lambda record: record.file_sha256 != right.file_sha256, records)
    files, account = {record.name for record in earlier}, draft.ledger_accounts.get(name)
    for each in bank.list_agreed_balances():
        if (each.account, each.state) == (account, MET) and each.by in files:
            parts = [(right.posted_date, right.amount), (replaced.posted_date, -replaced.amount)]
            moved = money.total([amount for day, amount in parts if day <= each.day])
            if moved:
                bank.new_agreed.append(replace(each, amount=each.amount + moved, at=now))


def restore_met_balances(bank: BankBook, before: BankBook, after: BankBook, now: str) -> None:
    """Take back what a decision did to balances that files say. ``before``, ``after``: the bank lines as of the commits
    before it and of it. What has moved a balance since stays."""
    earlier, latest, then = (read_agreed_balances(each.source, each.paths) for each in (before, bank, after))
    was_of, now_of = ({(each.account, each.day): each for each in balances} for balances in (earlier, latest))
    for each in then:
        was, now_is = (known.get((each.account, each.day)) for known in (was_of, now_of))
        if now_is is None or (each.state, now_is.state) != (MET, MET) or now_is.by != each.by:
            continue
        if was is None or was.state != MET:
            bank.new_agreed.append(replace(now_is, state=LAPSED, at=now))
        elif was.by == each.by and was.amount != each.amount:
            bank.new_agreed.append(replace(now_is, amount=now_is.amount + was.amount - each.amount, at=now))

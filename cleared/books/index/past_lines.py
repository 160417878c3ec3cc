"""What a run needs of the bank lines and imports of past months, without reading them again.

A run reads the months that its file is about. Of all others it has to know what the books do not have as the bank has
it, and where a line lies that has an id of the bank. That is kept, sealed, for each month of a bank account but the
newest, with the ids that git has for the month's files: a month that has changed since is read again.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.file_source import FileSource
from cleared.base.short_text import mark_text
from cleared.books.index.month_memory import index_files
from cleared.books.ledger.agreed_balances import BankTiming, MatchedLine
from cleared.books.ledger.bank_lines import (
    BankLine,
    Pairs,
    iter_duplicates,
    iter_lines,
    parse_matches_once,
    parse_outcomes,
)
from cleared.books.ledger.book_paths import BookPaths, begin_month
from cleared.books.ledger.entry import ZERO, parse_entry_id
from cleared.books.ledger.import_records import ImportRecord, parse_imports
from cleared.books.ledger.staged_bank_lines import RELEASED, BankBook
from cleared.changes.record_sources import CommittedSource
from cleared.workspace.sealed_files import make_months_once

_MARK: Final = "Q"
T = TypeVar("T")


class SpreadLine(Struct, frozen=True, array_like=True):
    """A line that entries of another month than its own have a part of. ``pairs``: leg and amount of each that was ever
    matched to it."""

    line_id: str
    posted_date: date
    amount: Decimal
    pairs: Pairs
    is_ignored: bool


class PastMonth(Struct):
    """What is known of the lines of one bank account and month."""

    has_lines: bool = False
    """Whether there are any that were not released."""
    has_balances: bool = False
    """Whether one of these says the balance after it."""
    is_booked: bool = False
    """Whether an entry was ever matched to one of them."""
    waiting: Decimal = ZERO
    """What the bank has by the end of the month, and the books have not, of all but ``spread``."""
    ignored: Decimal = ZERO
    """The same of lines that are not to be booked."""
    spread: list[SpreadLine] = []
    line_marks: bytes = b""
    """Eight bytes for each line that has an id of the bank, the same for the same line id."""
    bank_id_marks: bytes = b""
    """The same for its id of the bank."""


class PastLines:
    """The committed lines of ``bank``. ``state_dir``: the workspace's ``.cleared/``."""

    def __init__(self, bank: BankBook, state_dir: Path) -> None:
        self._bank = bank
        self._state_dir = state_dir
        self._known: dict[str, dict[str, PastMonth]] = {}
        self._marks: dict[str, dict[str, Set[int]]] = {}

    def find_with_bank_id(self, account: str, line_id: str) -> BankLine | None:
        """The line of an account with this line id, of those that have an id of the bank."""
        if account not in self._marks:
            months = self.list_months(account).items()
            self._marks[account] = {month: frozenset(array(_MARK, each.line_marks)) for month, each in months}
        (mark,) = array(_MARK, mark_text(line_id))
        for month, marks in self._marks[account].items():
            if mark in marks and (line := self._bank.read_month(account, month).get(line_id)) is not None:
                return line
        return None

    def list_with_bank_ids(self, account: str, bank_ids: Collection[str]) -> Iterator[BankLine]:
        """The lines of an account that have one of these ids of the bank."""
        wanted = frozenset(array(_MARK, b"".join(map(mark_text, bank_ids))))
        for month, each in self.list_months(account).items():
            if not wanted.isdisjoint(array(_MARK, each.bank_id_marks)):
                lines = self._bank.read_month(account, month).values()
                yield from (line for line in lines if line.bank_id in bank_ids)

    def list_months(self, account: str) -> Mapping[str, PastMonth]:
        """What is known of each month (``YYYY-MM``) of an account, oldest first."""
        if account not in self._known:
            self._known[account] = self._read_months(account)
        return self._known[account]

    def time_lines(
        self,
        timing: BankTiming,
        name: str,
        account: int,
        days: tuple[date, date],
        find_day: Callable[[str], date | None],
    ) -> bool:
        """Count the lines of a bank account that wait, or are booked on another day, on some of these days (the first
        and the last), as they are with what is staged. Of the lines of other months only those are looked at that
        entries of these days have a part of.

        ``account``: the bank account's in the ledger; ``find_day``: the day on which a leg of these days' months moves
        it, None for a leg on another account. False where nothing of the bank account was ever booked: ``check`` cannot
        tell then whose it is.
        """
        bank, (first, last) = self._bank, (day.isoformat()[:7] for day in days)
        read_whole = self._list_touched_months(name)
        is_booked = False
        lines: list[SpreadLine] = []
        for month, known in self.list_months(name).items():
            if month in read_whole or first <= month <= last:
                read_whole.add(month)
                continue
            is_booked |= known.is_booked
            lines += known.spread
            if month < first:
                timing.add_open(account, begin_month(month), known.waiting, known.ignored)
        begin = begin_month(first)
        for line in self._iter_recorded_lines(name, read_whole):
            matches = bank.list_matches(line.line_id)
            is_booked |= bool(matches)
            if line.state != "posted":
                continue
            is_old = line.posted_date < begin and all(leg_id < first for leg_id, _ in matches)
            if is_old and bank.posted_amount(line.line_id) == line.amount:
                continue
            if min([line.posted_date.isoformat()[:7], *(leg_id[:7] for leg_id, _ in matches)]) <= last:
                is_ignored = bank.is_ignored(line.line_id)
                lines.append(SpreadLine(line.line_id, line.posted_date, line.amount, matches, is_ignored))
        for each in lines:
            found = [(find_day(i) if first <= i[:7] <= last else _find_month(i), part) for i, part in each.pairs]
            parts = tuple((day, part) for day, part in found if day is not None)
            timing.add_line(account, MatchedLine(each.line_id, each.posted_date, each.amount, parts, each.is_ignored))
        return is_booked

    def _list_touched_months(self, name: str) -> set[str]:
        """The months of an account of which the draft changes what is known of a committed line."""
        bank = self._bank
        touched = (bank.find_line(line_id) for line_id in bank.staged_line_ids() - bank.new_lines.keys())
        return {line.posted_date.isoformat()[:7] for owner, line in filter(None, touched) if owner == name}

    def _iter_recorded_lines(self, name: str, months: Collection[str]) -> Iterator[BankLine]:
        """The lines of a bank account that are on record with this draft, those of these months and new ones, but for
        those that are released."""
        bank = self._bank
        released = {line_id for line_id, each in bank.new_outcomes.items() if each.outcome == RELEASED}
        gone = released | bank.released_line_ids
        recorded = (bank.processed_line_ids | bank.staged_line_ids()) - released
        known = (line for month in sorted(months) for line in bank.read_month(name, month).values())
        committed = (line for line in known if line.line_id not in gone)
        own = (line for owner, line in bank.new_lines.values() if owner == name and line.line_id in recorded)
        return itertools.chain(committed, own)

    def list_later_ids(self) -> Iterator[tuple[str, str, str]]:
        """Lines whose id of the bank came with a later file: digest of that file, line id, id of the bank."""
        source, paths = self._bank.source, self._bank.paths
        files = {month: [path] for month, path in paths.list_month_files(source, paths.duplicates)}

        def read(month: str) -> list[tuple[str, str, str]]:
            rows = iter_duplicates(source, files[month])
            return [(digest, line_id, bank_id) for digest, _, line_id, _, bank_id in rows if bank_id]

        known = read_months_once(source, self._state_dir, "later-ids", list[tuple[str, str, str]], files, read)
        return itertools.chain.from_iterable(known.values())

    def _read_months(self, account: str) -> dict[str, PastMonth]:
        paths = self._bank.paths
        both = (paths.matches, paths.outcomes)
        files = {
            month: [path, *both, *(paths.month_path(each, month) for each in both)]
            for month, path in self._bank.list_month_files(account)
        }
        read = partial(self._read_month, account)
        return read_months_once(self._bank.source, self._state_dir, f"lines-{account}", PastMonth, files, read)

    def _read_month(self, account: str, month: str) -> PastMonth:
        source, paths = self._bank.source, self._bank.paths
        path = paths.bank_path(account, month)
        lines = {line.line_id: line for line in check_deadline(iter_lines(source.read(path), path))}
        names = ["", month]  # that of all months is the older one
        files = [(paths.month_path(paths.matches, each), paths.month_path(paths.outcomes, each)) for each in names]
        matched = [parse_matches_once(source.read(file), file) for file, _ in files]
        outcomes = {i: each for _, file in files for i, each in parse_outcomes(source.read(file), file).items()}
        ignored = {line_id for line_id, each in outcomes.items() if each.outcome == "ignored"}
        made = PastMonth()
        open_parts: dict[bool, list[Decimal]] = {False: [], True: []}
        for line in check_deadline(lines.values()):
            pairs = tuple(pair for each in matched for pair in each.get(line.line_id, ()))
            if line.line_id in self._bank.released_line_ids:
                continue
            made.has_lines = True
            made.has_balances |= line.balance_after is not None
            if line.state != "posted":
                continue
            made.is_booked |= bool(pairs)
            is_ignored = line.line_id in ignored
            if any(leg_id[:7] != month for leg_id, _ in pairs) or line.posted_date.isoformat()[:7] != month:
                made.spread.append(SpreadLine(line.line_id, line.posted_date, line.amount, pairs, is_ignored))
            elif money.total([amount for _, amount in pairs]) != line.amount:
                parts = tuple((line.posted_date, amount) for _, amount in pairs)
                booked = MatchedLine(line.line_id, line.posted_date, line.amount, parts, is_ignored)
                open_parts[is_ignored].append(booked.find_open_part(line.posted_date))
        made.waiting, made.ignored = (money.total(open_parts[is_ignored]) for is_ignored in (False, True))
        with_ids = [line for line in lines.values() if line.bank_id]
        made.line_marks = b"".join(mark_text(line.line_id) for line in with_ids)
        made.bank_id_marks = b"".join(mark_text(line.bank_id) for line in with_ids)
        return made


def _find_month(leg_id: str) -> date | None:
    """The first day of a leg's month: which day it is of a month that is not asked about is all the same."""
    return begin_month(leg_id[:7]) if parse_entry_id(leg_id) is not None else None


def read_imports_once(state_dir: Path, source: FileSource, paths: BookPaths) -> list[ImportRecord]:
    """The files that were imported, as ``import_records.read_imports`` gives them. ``state_dir``: the workspace's
    ``.cleared/``."""
    files = {month: [path] for month, path in paths.list_month_files(source, paths.imports)}

    def read(month: str) -> list[ImportRecord]:
        (path,) = files[month]
        return list(parse_imports(source.read(path), path))

    months = read_months_once(source, state_dir, "imports", list[ImportRecord], files, read)
    return list(itertools.chain.from_iterable(months.values()))


def read_months_once(
    source: FileSource,
    state_dir: Path,
    name: str,
    kind: type[T],
    files: Mapping[str, Sequence[str]],
    read: Callable[[str], T],
) -> dict[str, T]:
    """What ``read`` makes of each month, the oldest first. ``files``: month → those that it follows from. It is kept
    under this name of a commit. ``state_dir``: the workspace's ``.cleared/``."""
    versions: dict[str, list[str]] = {month: [] for month in files}
    if isinstance(source, CommittedSource):
        ids = source.snapshot.find_blob_id
        versions = {month: [ids(path) or "" for path in paths] for month, paths in files.items()}
    return make_months_once(index_files(state_dir), name, kind, versions, read)

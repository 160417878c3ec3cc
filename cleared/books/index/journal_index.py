"""The journal of one commit, answered from the index: sums by account and day, entries and postings by filter.

    index = open_index(layout, snapshot, places)
    index.sum_accounts(date(2025, 1, 1), date(2025, 3, 31))      account → debits and credits of a quarter
    index.iter_postings(account=1010, start=…, end=…)            the ledger of an account
    index.iter_entries(text="github", status="pending-review")   a search

Months are read when they are needed. What an index that stays open has read is kept for the next one of this process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cleared.base import money
from cleared.books.index.month_facts import MonthEntries, MonthSums, MonthTotals, Sums, list_columns, sum_month
from cleared.books.index.month_memory import MonthFacts, index_files, shared_memory
from cleared.books.ledger.book_paths import begin_month, locate_books
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import Entry, leg_suffix, parse_entry_id
from cleared.workspace.location import Layout
from cleared.workspace.sealed_files import SealedFiles

if TYPE_CHECKING:
    from cleared.books.ledger.journal import JournalMonth
    from cleared.git import Snapshot

MonthKey = tuple[int, int]
_KINDS: Final = ("sums", "entries")
_SPARE_FILES: Final = 24
"""Files of months as they were before, or are on other branches, that stay beside those of a commit."""
_YEAR: Final = r"(?a)[0-9]{4}"
_MONTH: Final = r"(?a)0[1-9]|1[0-2]"


class Posting(Struct, frozen=True):
    """One leg of an entry."""

    leg_id: str
    account_id: int
    debit: Decimal
    """In the currency's places; one of ``debit`` and ``credit`` is zero."""
    credit: Decimal
    entry: Entry


class EntryFilter(Struct, frozen=True):
    """Which entries are meant; all of what is given must hold."""

    year: int | None = None
    """``year`` and ``month``: of the journal's file, which is that of the date."""
    month: int | None = None
    start: date | None = None
    """``start`` and ``end``: first and last day."""
    end: date | None = None
    status: str | None = None
    account: int | None = None
    """Entries that post to it."""
    text: str | None = None
    """In description, counterparty, reference, evidence or notes; upper and lower case are the same."""

    @property
    def needs_sums(self) -> bool:
        """Whether a month's sums tell if its entries need be looked at."""
        return (self.start, self.end, self.status, self.account) != (None,) * 4

    def can_be_in(self, sums: MonthSums | None) -> bool:
        """Whether a month with these sums (``None``: not known) may have such entries."""
        return sums is None or (
            (self.account is None or self.account in sums.accounts)
            and (self.status is None or self.status in sums.statuses)
            and any(self.has_day(day) for day in sums.days)
        )

    def has_day(self, day: str) -> bool:
        """Whether a date as written is one of those that are meant."""
        return (self.start is None or self.start.isoformat() <= day) and (
            self.end is None or day <= self.end.isoformat()
        )


class JournalIndex:
    """The journal of one commit. Its answers are those of ``staged_journal.Books`` over the same files."""

    def __init__(
        self,
        months: Mapping[MonthKey, str],
        read_month: Callable[[MonthKey], JournalMonth],
        places: int,
        files: SealedFiles | None = None,
        *,
        stays_open: bool = False,
        totals: Mapping[MonthKey, Mapping[int, Sums]] | None = None,
    ) -> None:
        self.places = places
        self.stays_open = stays_open
        """Whether what is read stays in memory; else the entries of a month are let go once the next is read."""
        self.blobs = dict(sorted(months.items()))
        """Month → blob id of its file; empty where the commit has no file there."""
        self._read_month = read_month
        self._files = files
        self._totals = dict(totals or {})
        self._sums: dict[MonthKey, MonthSums] = {}
        self._last: dict[MonthKey, MonthEntries] = {}

    @property
    def months(self) -> list[MonthKey]:
        """The months that have a journal, in order."""
        return list(self.blobs)

    # -- sums ---------------------------------------------------------------------------------------------------

    def month_sums(self, key: MonthKey) -> MonthSums:
        """What a month's file sums up to, by day and account."""
        known = self._find_known(key).sums
        if known is not None:
            return known
        data = self._read_file(key, "sums")
        facts = MonthFacts(sums=MonthSums.decode(data)) if data is not None else self._build_month(key)
        sums = self._keep(key, facts).sums
        assert sums is not None
        return sums

    def month_totals(self, key: MonthKey) -> Mapping[int, Sums]:
        """Account → debits and credits of a month's whole file."""
        totals = self.find_totals(key)
        return self.month_sums(key).accounts if totals is None else totals

    def find_totals(self, key: MonthKey) -> Mapping[int, Sums] | None:
        """The same, where the month need not be parsed for it."""
        if key not in self._totals:
            known = self._find_known(key).sums
            data = self._read_file(key, "sums") if known is None else None
            totals = known or (MonthTotals.decode(data) if data is not None else None)
            if totals is None:
                return None
            self._totals[key] = totals.accounts
        return self._totals[key]

    def sum_accounts(self, start: date | None = None, end: date | None = None) -> dict[int, Sums]:
        """Debits and credits of each account that was posted to from ``start`` to ``end``, these days included."""
        totals: dict[int, Sums] = {}
        for key in self.months:
            _add_sums(totals, self._sum_days(key, start, end))
        return dict(sorted(totals.items()))

    def sum_closing(self, start: date | None = None, end: date | None = None) -> dict[int, Sums]:
        """As ``sum_accounts``, of the entries alone that close a year."""
        totals: dict[int, Sums] = {}
        for key in self.months:
            for day, sums in self.month_sums(key).closing.items():
                if EntryFilter(start=start, end=end).has_day(day):
                    _add_sums(totals, sums)
        return totals

    def sum_pending(self, start: date | None = None, end: date | None = None) -> tuple[int, Decimal]:
        """How many entries wait for review, and the sum of their amounts."""
        wanted = EntryFilter(start=start, end=end)
        waiting = [
            pair for key in self.months for day, pair in self.month_sums(key).pending.items() if wanted.has_day(day)
        ]
        return sum(count for count, _ in waiting), money.from_units(sum(units for _, units in waiting), self.places)

    def day_balances(
        self,
        accounts: Collection[int] | None = None,
        *,
        year: int | None = None,
        month: int | None = None,
        since: date | None = None,
        through: date | None = None,
    ) -> DayBalances:
        """What accounts hold on the days from ``since`` to ``through``; None: on the last, of all days. ``accounts``:
        None for all. ``year`` and ``month``: moved in these alone.

        A month that need not be told by day counts as one movement, on its first day.
        """
        balances = DayBalances(accounts)
        for key in self.months:
            y, m = key
            if year not in (None, y) or month not in (None, m) or (through and key > (through.year, through.month)):
                continue
            if (since and key >= (since.year, since.month)) or (through and key == (through.year, through.month)):
                parts = [(date.fromisoformat(day), sums) for day, sums in self.month_sums(key).days.items()]
            else:
                parts = [(begin_month(f"{y:04d}-{m:02d}"), self.month_totals(key))]
            for day, moved in parts:
                for account in moved if accounts is None else moved.keys() & accounts:
                    balances.add_movement(account, day, self.amount(moved[account]))
        return balances

    def amount(self, sums: Sums) -> Decimal:
        """Debits minus credits, in the currency."""
        return money.from_units(sums.debit - sums.credit, self.places)

    def count_entries(self) -> int:
        return sum(self.month_sums(key).count for key in self.months)

    def count_statuses(self) -> Counter[str]:
        """Status → number of entries."""
        counts: Counter[str] = Counter()
        for key in self.months:
            counts.update(self.month_sums(key).statuses)
        return counts

    def used_accounts(self) -> set[int]:
        """The accounts of all legs."""
        return {account for key in self.months for account in self.month_totals(key)}

    def _sum_days(self, key: MonthKey, start: date | None, end: date | None) -> Mapping[int, Sums]:
        if start is None and end is None:
            return self.month_totals(key)
        sums = self.month_sums(key)
        wanted = EntryFilter(start=start, end=end)
        days = [day for day in sums.days if wanted.has_day(day)]
        if len(days) == len(sums.days):
            return sums.accounts
        totals: dict[int, Sums] = {}
        for day in days:
            _add_sums(totals, sums.days[day])
        return totals

    # -- entries ------------------------------------------------------------------------------------------------

    def month_entries(self, key: MonthKey) -> MonthEntries:
        """The entries of a month's file, by column."""
        entries = self.find_entries(key)
        if entries is None:
            entries = self._keep(key, self._build_month(key)).entries
        assert entries is not None
        return entries

    def find_entries(self, key: MonthKey) -> MonthEntries | None:
        """The same, where the month need not be parsed for it."""
        if (known := self._find_known(key).entries) is not None:
            return known
        data = self._read_file(key, "entries")
        return self._keep(key, MonthFacts(entries=MonthEntries.decode(data))).entries if data is not None else None

    def find_places(self, wanted: EntryFilter, *, newest_first: bool = False) -> Iterator[tuple[MonthKey, list[int]]]:
        """Of each month where there are any: the places of the entries that are meant, in order."""
        for key in reversed(self.months) if newest_first else self.months:
            if wanted.year not in (None, key[0]) or wanted.month not in (None, key[1]):
                continue
            if wanted.can_be_in(self.month_sums(key) if wanted.needs_sums else None):
                places = _select_places(self.month_entries(key), wanted)
                if places:
                    yield key, places

    def iter_entries(self, wanted: EntryFilter | None = None, *, limit: int | None = None) -> Iterator[Entry]:
        """The entries that are meant, in the order of their ids. ``limit``: only the newest so many."""
        for entries, places in self.iter_months(wanted or EntryFilter(), limit):
            yield from entries.make_entries(places)

    def iter_dicts(self, wanted: EntryFilter | None = None, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """The same as plain data: what ``entry_to_json`` makes of them."""
        for entries, places in self.iter_months(wanted or EntryFilter(), limit):
            yield from entries.list_dicts(places)

    def iter_months(self, wanted: EntryFilter, limit: int | None = None) -> Iterator[tuple[MonthEntries, list[int]]]:
        """The same by column: of each month its entries, and the places of those that are meant."""
        for key, places in self.find_places(wanted) if limit is None else self._newest_places(wanted, limit):
            yield self.month_entries(key), places

    def iter_postings(self, wanted: EntryFilter | None = None) -> Iterator[Posting]:
        """The legs of the entries that are meant; of those for an account, only the legs on it."""
        wanted = wanted or EntryFilter()
        for entry in self.iter_entries(wanted):
            for i, leg in enumerate(entry.legs):
                if wanted.account in (None, leg.account_id):
                    yield Posting(entry.entry_id + leg_suffix(i), leg.account_id, leg.debit, leg.credit, entry)

    def find_entry(self, entry_id: str) -> Entry | None:
        """One entry by its id."""
        parts = parse_entry_id(entry_id)
        if parts is None or parts[:2] not in self.blobs:
            return None
        entries = self.month_entries(parts[:2])
        return entries.make_entry(entries.ids.index(entry_id)) if entry_id in entries.ids else None

    def _newest_places(self, wanted: EntryFilter, limit: int) -> list[tuple[MonthKey, list[int]]]:
        chosen = []
        for key, places in self.find_places(wanted, newest_first=True) if limit > 0 else ():
            chosen.append((key, places[-limit:]))
            limit -= len(places)
            if limit <= 0:
                break
        return chosen[::-1]

    # -- making it ----------------------------------------------------------------------------------------------

    def add_month(self, month: JournalMonth) -> None:
        """Take over a month that was parsed from this commit, so that it need not be parsed again."""
        key = (month.year, month.month)
        if self._files is not None and not month.damage and self._read_file(key, "sums") is None:
            self._write_month(key, MonthFacts(sum_month(month, self.places), list_columns(month)))

    def _read_file(self, key: MonthKey, kind: str) -> bytes | None:
        return self._files.read(self._file_name(key, kind)) if self._files is not None else None

    def _build_month(self, key: MonthKey) -> MonthFacts:
        month = self._read_month(key)
        facts = MonthFacts(sum_month(month, self.places), list_columns(month))
        if not month.damage and self.blobs[key]:
            self._write_month(key, facts)
        return facts

    def _write_month(self, key: MonthKey, facts: MonthFacts) -> None:
        if self._files is not None and facts.sums is not None and facts.entries is not None:
            self._files.write(self._file_name(key, "entries"), facts.entries.encode())
            self._files.write(self._file_name(key, "sums"), facts.sums.encode())
            kept = {self._file_name(key, kind) for key in self.months for kind in _KINDS}
            self._files.remove_others(kept, (*_KINDS, ".tmp"), _SPARE_FILES)

    def _find_known(self, key: MonthKey) -> MonthFacts:
        if self.stays_open:
            blob, known = shared_memory.find(self._memory_place(key)) or ("", MonthFacts())
            return known if blob == self.blobs[key] else MonthFacts()
        return MonthFacts(self._sums.get(key), self._last.get(key))

    def _keep(self, key: MonthKey, facts: MonthFacts) -> MonthFacts:
        if self.stays_open:
            joined = facts.joined(self._find_known(key))
            shared_memory.keep(self._memory_place(key), (self.blobs[key], joined))
            return joined
        if facts.sums is not None:
            self._sums[key] = facts.sums
        if facts.entries is not None:
            self._last = {key: facts.entries}
        return self._find_known(key)

    def _file_name(self, key: MonthKey, kind: str) -> str:
        return f"{key[0]:04d}-{key[1]:02d}-{self.places}-{self.blobs[key]}.{kind}"

    def _memory_place(self, key: MonthKey) -> tuple[object, ...]:
        return (self._files.state_dir if self._files is not None else None, *key, self.places)


def open_index(layout: Layout, snapshot: Snapshot, places: int, *, stays_open: bool = False) -> JournalIndex:
    """The index of the journal in a commit. ``places``: decimals of the currency. ``stays_open``: for a process that
    asks again and again; what is read stays in memory.

    Its answers raise ``WorkspaceError`` where git cannot read a file that the index does not have.
    """
    from cleared.books.ledger.journal import parse_month, parse_month_once

    paths = locate_books(layout)

    def read_month(key: MonthKey) -> JournalMonth:
        path, read = paths.journal_path(*key), parse_month_once if stays_open else parse_month
        return read(snapshot.read_file(path), *key, path, places)

    return JournalIndex(
        find_months(layout, snapshot), read_month, places, index_files(layout.state_dir), stays_open=stays_open
    )


def find_months(layout: Layout, snapshot: Snapshot) -> dict[MonthKey, str]:
    """Month → blob id of each journal in a commit; empty where there is no regular file."""
    months: dict[MonthKey, str] = {}
    root = locate_books(layout).journal_root
    for year, entry in snapshot.list_folder(root).items():
        if not re.fullmatch(_YEAR, year) or not entry.is_tree:
            continue
        folder = f"{root}/{year}" if root else year
        for month, inner in snapshot.list_folder(folder).items():
            journal = snapshot.list_folder(f"{folder}/{month}").get("journal.csv") if inner.is_tree else None
            if journal is not None and not journal.is_tree and re.fullmatch(_MONTH, month):
                months[int(year), int(month)] = journal.oid if journal.is_file else ""
    return months


def _add_sums(totals: dict[int, Sums], more: Mapping[int, Sums]) -> None:
    for account, sums in more.items():
        totals[account] = totals[account].plus(*sums) if account in totals else sums


def _select_places(entries: MonthEntries, wanted: EntryFilter) -> list[int]:
    if wanted.text:
        places: Sequence[int] = entries.find_text(wanted.text)
        if wanted.account is not None:
            posted = set(entries.find_account(wanted.account))
            places = [at for at in places if at in posted]
    elif wanted.account is not None:
        places = entries.find_account(wanted.account)
    else:
        places = range(len(entries))
    if wanted.start or wanted.end:
        days = {day for day in set(entries.dates) if wanted.has_day(day)}
        places = [at for at in places if entries.dates[at] in days]
    if wanted.status is not None:
        places = [at for at in places if entries.statuses[at] == wanted.status]
    return list(places)

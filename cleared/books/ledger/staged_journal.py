"""The journal as a run sees it: what is committed, and what has been staged on top.

Staging gives an entry its final id at once. Nothing is written: ``render_files`` gives the files to be committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import structs

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError, merge_faults
from cleared.base.file_source import FileSource
from cleared.books.ledger.book_paths import BookPaths
from cleared.books.ledger.chains import REVERSES, Chains, LinkedEntry, date_tags, find_last_change
from cleared.books.ledger.chart import Chart, parse_chart
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import (
    AMENDABLE,
    CLOSING,
    OPENING,
    STATUSES,
    TRANSITIONS,
    ZERO,
    Bounds,
    Entry,
    Leg,
    format_entry_id,
    leg_suffix,
    parse_entry_id,
)
from cleared.books.ledger.journal import JournalMonth, append_entries, parse_month, parse_month_once, set_columns
from cleared.books.ledger.periods import Periods, parse_periods

_UNKNOWN: Final = ("", "")
_KINDS: Final = (OPENING, CLOSING)
_JOURNAL: Final = re.compile(r"(?:.*/)?([0-9]{4})/(0[1-9]|1[0-2])/journal\.csv")


LinkReader = Callable[["Books"], Iterable[LinkedEntry]]


class Books:
    """Committed journal + staged entries, changes of status and amendments."""

    def __init__(self, source: FileSource, paths: BookPaths, bounds: Bounds, list_links: LinkReader) -> None:
        """``list_links`` gives the committed entries that name others, by ``iter_month_links`` or as it knows them."""
        self.source = source
        self.paths = paths
        self.bounds = bounds
        self.staged: dict[tuple[int, int], list[Entry]] = {}
        self.statuses: dict[str, str] = {}
        self.amendments: dict[str, dict[str, str]] = {}
        """Entry id → the columns that a decision changes, and their new texts; see ``AMENDABLE``."""
        self._months: dict[tuple[int, int], JournalMonth] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._balances: dict[tuple[int, int], DayBalances] = {}
        self._known: list[tuple[int, int]] | None = None
        self._chart: Chart | None = None
        self._periods: Periods | None = None
        self._chains: Chains | None = None
        self._list_links = list_links
        self._changes: tuple[object, dict[str, bytes]] | None = None
        self._postable: dict[tuple[int, date], tuple[str, str] | None] = {}
        self._open_days: set[date] = set()
        """Days of which staging has shown that they are within bounds, and open."""

    # -- what is there ------------------------------------------------------------------------------------------

    @property
    def chart(self) -> Chart:
        if self._chart is None:
            self._chart = parse_chart(self.source.read(self.paths.chart), self.paths.chart)
        return self._chart

    def add_later_accounts(self, later: Chart) -> None:
        """Take accounts that a later chart has and this one has not; those that are known stay as they are.

        For dry runs over the past: else a vendor of then could never be taught an account of now.
        """
        self._chart = self.chart.join_later(later)

    @property
    def periods(self) -> Periods:
        if self._periods is None:
            self._periods = parse_periods(self.source.read(self.paths.periods), self.paths.periods)
        return self._periods

    @property
    def chains(self) -> Chains:
        """Which entries belong together, staged ones included. The first look reads months, and keeps none."""
        if self._chains is None:
            self._chains = Chains()
            for linked in self._list_links(self):
                self._chains.add_entry(linked)
            for entries in self.staged.values():
                for entry in entries:
                    self._chains.add_entry(entry)
        return self._chains

    def iter_month_links(self, year: int, month: int) -> Iterator[LinkedEntry]:
        """The committed entries of a month that name others."""
        for entry in check_deadline(self.scan_month(year, month).entries.values()):
            if "@" in entry.tags:
                yield LinkedEntry(entry.entry_id, entry.tags)

    def date_change(self, entry_ids: Iterable[str], not_before: date | None = None) -> date:
        """The day on which the next change of these entries' chains takes effect; the one rule for it.

        It is the day on which the chains changed last, or ``not_before``, whichever is later; the first open day after
        it where that one is closed. An earlier day would count something twice, or change a day that is closed.
        """
        ids = list(entry_ids)
        chained = self.chains.list_members(ids) if ids else []
        members = [entry for each in chained if (entry := self.find_entry(each)) is not None]
        days = [find_last_change(members), not_before]
        known = [day for day in days if day is not None] or [max(e.date for e in members)]
        return self.periods.first_open(max(known))

    def committed_month(self, year: int, month: int) -> JournalMonth:
        """The committed month, read once."""
        key = (year, month)
        if key not in self._months:
            path = self.paths.journal_path(year, month)
            self._months[key] = parse_month_once(self.source.read(path), year, month, path, self.bounds.places)
        return self._months[key]

    def scan_month(self, year: int, month: int) -> JournalMonth:
        """A committed month, for who needs it once: it is not kept."""
        if (year, month) in self._months:
            return self._months[year, month]
        path = self.paths.journal_path(year, month)
        return parse_month(self.source.read(path), year, month, path, self.bounds.places)

    def list_months(self) -> list[tuple[int, int]]:
        """All months that have entries, committed or staged, in order."""
        if self._known is None:
            root = self.paths.journal_root
            months = []
            for path in self.source.list_paths(root):
                inner = path[len(root) + 1 :] if root else path
                match = _JOURNAL.fullmatch(path)
                if match and inner.count("/") == 2:
                    months.append((int(match[1]), int(match[2])))
            self._known = months
        return sorted({*self._known, *self.staged})

    def iter_entries(self, year: int | None = None, month: int | None = None) -> Iterator[Entry]:
        """Entries in id order, staged ones and staged changes included."""
        for y, m in self.list_months():
            if (year is None or y == year) and (month is None or m == month):
                committed = self.committed_month(y, m).entries.values()
                yield from check_deadline(self._apply_changes(committed))
                yield from check_deadline(self._apply_changes(self.staged.get((y, m), ())))

    def find_entry(self, entry_id: str) -> Entry | None:
        """One entry by its id or the id of one of its legs."""
        parts = parse_entry_id(entry_id)
        if parts is None:
            return None
        year, month, number, suffix = parts
        entry = self.committed_month(year, month).entries.get(number)
        if entry is None:
            staged = self.staged.get((year, month), [])
            index = number - (self.committed_month(year, month).last_number + 1)
            entry = staged[index] if 0 <= index < len(staged) else None
        if entry is None or (suffix and suffix not in {leg_suffix(i) for i in range(len(entry.legs))}):
            return None
        return self._with_changes(entry)

    def list_staged(self) -> list[Entry]:
        """The staged entries with their staged statuses, by month; months as they were first staged in."""
        return [entry for entries in self.staged.values() for entry in self._apply_changes(entries)]

    def _apply_changes(self, entries: Collection[Entry]) -> Collection[Entry]:
        """The entries with what is staged of them: where a run posts very many, nothing is."""
        return [self._with_changes(entry) for entry in entries] if self.statuses or self.amendments else entries

    def _with_changes(self, entry: Entry) -> Entry:
        changes = self._changes_of(entry.entry_id)
        return structs.replace(entry, **changes) if changes else entry

    def _changes_of(self, entry_id: str) -> dict[str, Any]:
        """Column → its new text."""
        status = self.statuses.get(entry_id)
        return {**self.amendments.get(entry_id, {}), **({"status": status} if status else {})}

    def account_balance(
        self, account_id: int, *, year: int | None = None, month: int | None = None, as_of: date | None = None
    ) -> Decimal:
        """Debits minus credits of the account: in a year, a month, up to and including a day, or ever."""
        staged = DayBalances({account_id})
        parts = []
        for key in self.list_months():
            y, m = key
            if year in (None, y) and month in (None, m) and (as_of is None or key <= (as_of.year, as_of.month)):
                parts.append(self._month_balances(key).balance_on(account_id, as_of))
                for entry in check_deadline(self.staged.get(key, ())):
                    staged.add_entry(entry)
        parts.append(staged.balance_on(account_id, as_of))
        return money.total(parts).quantize(money.quantum(self.bounds.places))

    def trial_balance(self, as_of: date | None = None) -> dict[int, Decimal]:
        """Debits minus credits of every account that was posted to up to a day, by account id; it sums to zero."""
        balances = DayBalances()
        for key in self.list_months():
            for entry in self.iter_entries(*key) if as_of is None or key <= (as_of.year, as_of.month) else ():
                balances.add_entry(entry)
        quantum = money.quantum(self.bounds.places)
        return {account: amount.quantize(quantum) for account, amount in balances.trial_balance(as_of).items()}

    def _month_balances(self, key: tuple[int, int]) -> DayBalances:
        """What the committed entries of a month move."""
        if key not in self._balances:
            balances = self._balances[key] = DayBalances()
            for entry in check_deadline(self.committed_month(*key).entries.values()):
                balances.add_entry(entry)
        return self._balances[key]

    # -- staging ------------------------------------------------------------------------------------------------

    def add_entry(
        self, day: date, description: str, legs: Sequence[Leg], *, field: str = "lines", **rest: str
    ) -> Entry:
        """Stage one balanced entry; returns it with its id.

        Raises ``PrimitiveError`` naming the argument: unknown, closed or heading accounts, fewer than two legs,
        unbalanced, non-positive or oversized amounts, a date out of bounds or inside a closed period.
        """
        if not self._is_plain(day, legs):
            faults = list(self.find_faults(day, legs, field))
            if faults:
                raise merge_faults(faults)
        key = (day.year, day.month)
        self._open_days.add(day)
        number = self._next.get(key) or self.committed_month(*key).last_number + 1
        entry = Entry(format_entry_id(*key, number), day, description, tuple(legs), **rest)
        self._next[key] = number + 1
        self.staged.setdefault(key, []).append(entry)
        if self._chains is not None:
            self._chains.add_entry(entry)
        return entry

    def _is_plain(self, day: date, legs: Sequence[Leg]) -> bool:
        """Whether it moves one amount between two accounts, of which the day's other entries have shown that they may
        be posted to: then ``find_faults`` would find none."""
        if len(legs) != 2 or day not in self._open_days:
            return False
        first, second = legs
        return (
            first.debit is second.credit
            and not first.credit
            and not second.debit
            and ZERO < first.debit <= self.bounds.max_amount
            and self._postable.get((first.account_id, day), _UNKNOWN) is None
            and self._postable.get((second.account_id, day), _UNKNOWN) is None
        )

    def find_faults(self, day: date, legs: Sequence[Leg], field: str) -> Iterator[PrimitiveError]:
        """All that is wrong with an entry of these legs."""
        yield from self._check_date(day)
        if len(legs) < 2:
            yield _argument_error(field, "an entry needs at least two lines", "Give a debit and a credit.")
        for leg in legs:
            yield from self._check_leg(leg, day, field)
        if money.total([leg.amount for leg in legs]) != 0:
            debits = money.total([leg.debit for leg in legs])
            credits = money.total([leg.credit for leg in legs])
            yield _argument_error(
                field, f"debits {debits} and credits {credits} do not balance", "Make the two sides equal."
            )

    def _check_date(self, day: date) -> Iterator[PrimitiveError]:
        if not self.bounds.min_date <= day <= self.bounds.max_date:
            yield _argument_error(
                "date",
                f"{day} lies outside {self.bounds.min_date} … {self.bounds.max_date}",
                "Correct the date, or widen limits.min_date / limits.max_date in config.yaml.",
            )
        if self.periods.is_closed(day):
            yield _argument_error(
                "date",
                f"{day} lies in a period closed through {self.periods.closed_through}",
                f"Date it {self.periods.first_open(day)} or later, or reopen the period (cleared period reopen).",
            )

    def _check_leg(self, leg: Leg, day: date, field: str) -> Iterator[PrimitiveError]:
        if (leg.debit > 0) == (leg.credit > 0) or leg.debit < 0 or leg.credit < 0:
            yield _argument_error(
                field, "each line has exactly one of debit and credit, and it is positive", "Correct it."
            )
        if max(leg.debit, leg.credit) > self.bounds.max_amount:
            yield _argument_error(
                "amount",
                f"{max(leg.debit, leg.credit)} is larger than {self.bounds.max_amount}",
                "If it is meant, raise limits.max_amount in config.yaml.",
            )
        key = (leg.account_id, day)
        if key not in self._postable:
            self._postable[key] = self.chart.why_not_postable(leg.account_id, day)
        why = self._postable[key]
        if why:
            yield _argument_error(field if field != "amount" else "account", *why)

    def get_entry(self, entry_id: str, field: str = "entry_id") -> Entry:
        """The entry with this id; ``PrimitiveError`` where there is none."""
        entry = self.find_entry(entry_id)
        if entry is None:
            raise _argument_error(field, f"there is no entry {entry_id!r}", "cleared journal list shows the ids.")
        return entry

    def set_status(self, entry_id: str, status: str) -> Entry:
        """Stage a change of status, forwards only."""
        entry = self.get_entry(entry_id)
        if status not in STATUSES:
            raise _argument_error("status", f"{status!r} is not a status", f"Use one of {', '.join(STATUSES)}.")
        if status == entry.status:
            return entry
        if status not in TRANSITIONS.get(entry.status, frozenset()):
            raise _argument_error(
                "status",
                f"{entry.entry_id} is {entry.status}; it cannot become {status}",
                "A status only moves forwards; correct the entry with a new one.",
            )
        self.statuses[entry.entry_id] = status
        return structs.replace(entry, status=status)

    def amend_entry(self, entry_id: str, **texts: str) -> Entry:
        """Stage other texts of an entry, by column. Raises ``ValueError`` for a column that is not ``AMENDABLE``."""
        if not texts.keys() <= set(AMENDABLE):
            raise ValueError(f"{', '.join(texts)}: only {', '.join(AMENDABLE)} are amended")
        entry = self.get_entry(entry_id)
        self.amendments.setdefault(entry.entry_id, {}).update(texts)
        return self._with_changes(entry)

    def void_entry(self, entry_id: str, reason: str, day: date | None = None) -> tuple[Entry, Entry]:
        """Stage the reversing entry and mark the original voided: ``(original, reversal)``.

        The reversal is dated by ``date_change``, or ``day`` where what belongs together is taken back on one day. It is
        tagged ``@rev=<id>``; that of an opening or closing balance is one, too.
        """
        entry = self.get_entry(entry_id)
        if entry.status == "voided":
            raise _argument_error("entry_id", f"{entry.entry_id} is voided already", "There is nothing to undo.")
        day = day or self.date_change([entry.entry_id])
        kinds = [tag for tag in entry.tags.split(";") if tag in _KINDS]
        reversal = self.add_entry(
            day,
            f"Void {entry.entry_id}: {entry.description}"[:2000],
            [Leg(leg.account_id, leg.credit, leg.debit) for leg in entry.legs],
            status="voided",
            counterparty=entry.counterparty,
            evidence=reason,
            tags=";".join([f"{REVERSES}{entry.entry_id}", *date_tags(day, entry.date), *kinds]),
        )
        self.statuses[entry.entry_id] = "voided"
        return structs.replace(entry, status="voided"), reversal

    # -- rendering ----------------------------------------------------------------------------------------------

    def draft_key(self) -> object:
        """Equal to an earlier one as long as nothing else has been staged."""
        amended = tuple((entry_id, tuple(texts.items())) for entry_id, texts in self.amendments.items())
        staged = tuple((month, len(entries)) for month, entries in self.staged.items())
        return staged, tuple(self.statuses.items()), amended

    def render_files(self) -> dict[str, bytes]:
        """The journal files as they will be: path → bytes, only those that change."""
        key = self.draft_key()
        if self._changes is None or self._changes[0] != key:
            self._changes = key, self._render_changed_files()
        return dict(self._changes[1])

    def _render_changed_files(self) -> dict[str, bytes]:
        changes: dict[tuple[int, int], dict[str, dict[str, str]]] = {}
        for entry_id in (*self.statuses, *self.amendments):
            year, month, number, _ = parse_entry_id(entry_id) or (0, 0, 0, "")
            if number in self.committed_month(year, month).entries:
                changes.setdefault((year, month), {})[entry_id] = self._changes_of(entry_id)
        out: dict[str, bytes] = {}
        for key in sorted({*self.staged, *changes}):
            path = self.paths.journal_path(*key)
            data = self.source.read(path)
            if key in changes and data is not None:
                data = set_columns(data, changes[key])
            if key in self.staged:
                data = append_entries(data, self._apply_changes(self.staged[key]), self.bounds.places)
            if data is not None:
                out[path] = data
        return out


def _argument_error(field: str, message: str, remedy: str) -> PrimitiveError:
    return PrimitiveError(message, place=Place(field=field), remedy=remedy)

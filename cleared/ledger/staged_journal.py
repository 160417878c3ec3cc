"""The journal as a run sees it: what is committed, and what has been staged on top.

Staging gives an entry its final id at once. Nothing is written: ``render_files`` gives the files to be committed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.deadline import check_deadline
from cleared.errors import Place, PrimitiveError, merge_faults
from cleared.ledger.chart import Chart, parse_chart
from cleared.ledger.entry import (
    CLOSING,
    OPENING,
    STATUSES,
    TRANSITIONS,
    ZERO,
    Entry,
    Leg,
    format_entry_id,
    leg_suffix,
    parse_entry_id,
)
from cleared.ledger.journal import JournalMonth, append_entries, parse_month, parse_month_once, set_statuses
from cleared.ledger.periods import Periods, parse_periods
from cleared.ledger.source import BookPaths, Source
from cleared.ledger.violations import Violation
from cleared.light_dataclass import dataclass
from cleared.schema import money

_UNKNOWN: Final = ("", "")
_KINDS: Final = (OPENING, CLOSING)
_JOURNAL: Final = re.compile(r"(?:.*/)?([0-9]{4})/(0[1-9]|1[0-2])/journal\.csv")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Beyond these a value is taken for a mistake."""

    places: int = 2
    max_amount: Decimal = Decimal(10) ** 12
    min_date: date = date(1970, 1, 1)
    max_date: date = date(2199, 12, 31)
    max_text_bytes: int = 10_240


class Books:
    """Committed journal + staged entries and status changes."""

    def __init__(self, source: Source, paths: BookPaths, bounds: Bounds) -> None:
        self.source = source
        self.paths = paths
        self.bounds = bounds
        self.staged: dict[tuple[int, int], list[Entry]] = {}
        self.statuses: dict[str, str] = {}
        self._months: dict[tuple[int, int], JournalMonth] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._totals: dict[tuple[int, int], dict[int, Decimal]] = {}
        self._known: list[tuple[int, int]] | None = None
        self._chart: Chart | None = None
        self._periods: Periods | None = None
        self._changes: tuple[object, dict[str, bytes]] | None = None
        self.verdict: tuple[object, list[Violation]] | None = None
        """A draft's ``draft_key`` and violations, so that the commit does not repeat the checks of the script."""
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

    def committed_month(self, year: int, month: int) -> JournalMonth:
        """The committed month, read once."""
        key = (year, month)
        if key not in self._months:
            path = self.paths.journal_path(year, month)
            self._months[key] = parse_month_once(self.source.read(path), year, month, path, self.bounds.places)
        return self._months[key]

    def scan_months(self) -> Iterator[JournalMonth]:
        """All committed months in order, for who needs each once: they are not kept."""
        for key in self.list_months():
            if key in self._months:
                yield self._months[key]
            else:
                path = self.paths.journal_path(*key)
                yield parse_month(self.source.read(path), *key, path, self.bounds.places)

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
        """Entries in id order, staged ones and staged statuses included."""
        for y, m in self.list_months():
            if (year is None or y == year) and (month is None or m == month):
                committed = self.committed_month(y, m).entries.values()
                yield from check_deadline([self._with_status(e) for e in committed] if self.statuses else committed)
                yield from check_deadline([self._with_status(e) for e in self.staged.get((y, m), ())])

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
        return self._with_status(entry)

    def list_staged(self) -> list[Entry]:
        """The staged entries with their staged statuses, by month; months as they were first staged in."""
        return [self._with_status(entry) for entries in self.staged.values() for entry in entries]

    def _with_status(self, entry: Entry) -> Entry:
        status = self.statuses.get(entry.entry_id)
        return entry._replace(status=status) if status else entry

    def account_balance(self, account_id: int, *, year: int | None = None, month: int | None = None,
                as_of: date | None = None) -> Decimal:  # fmt: skip
        """Debits minus credits of the account: in a year, a month, up to and including a day, or ever."""
        parts = [ZERO]
        for key in self.list_months():
            y, m = key
            if (year is not None and y != year) or (month is not None and m != month):
                continue
            if as_of is not None and (y, m) > (as_of.year, as_of.month):
                continue
            if as_of is not None and (y, m) == (as_of.year, as_of.month):
                parts += [
                    leg.amount
                    for e in self.iter_entries(y, m)
                    if e.date <= as_of
                    for leg in e.legs
                    if leg.account_id == account_id
                ]
                continue
            parts.append(self._month_totals(key).get(account_id, ZERO))
            parts += [leg.amount for e in self.staged.get(key, ()) for leg in e.legs if leg.account_id == account_id]
        return money.total(parts).quantize(money.quantum(self.bounds.places))

    def trial_balance(self, as_of: date | None = None) -> dict[int, Decimal]:
        """Debits minus credits of every account that was ever posted to, by account id; it sums to zero."""
        sums: dict[int, list[Decimal]] = {}
        for entry in self.iter_entries():
            if as_of is None or entry.date <= as_of:
                for leg in entry.legs:
                    sums.setdefault(leg.account_id, []).append(leg.amount)
        quantum = money.quantum(self.bounds.places)
        return {account: money.total(parts).quantize(quantum) for account, parts in sorted(sums.items())}

    def _month_totals(self, key: tuple[int, int]) -> dict[int, Decimal]:
        if key not in self._totals:
            sums: dict[int, list[Decimal]] = {}
            for entry in check_deadline(self.committed_month(*key).entries.values()):
                for leg in entry.legs:
                    sums.setdefault(leg.account_id, []).append(leg.amount)
            self._totals[key] = {account: money.total(parts) for account, parts in sums.items()}
        return self._totals[key]

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
        return entry

    def _is_plain(self, day: date, legs: Sequence[Leg]) -> bool:
        """Whether it moves one amount between two accounts, of which the day's other entries have shown that they may
        be posted to: then ``find_faults`` would find none."""
        if len(legs) != 2 or day not in self._open_days:
            return False
        (first, debit, no_credit), (second, no_debit, credit) = legs
        return (
            debit is credit and not no_credit and not no_debit and ZERO < debit <= self.bounds.max_amount
            and self._postable.get((first, day), _UNKNOWN) is None
            and self._postable.get((second, day), _UNKNOWN) is None
        )  # fmt: skip

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
        bounds = self.bounds
        if not bounds.min_date <= day <= bounds.max_date:
            yield _argument_error(
                "date", f"{day} lies outside {bounds.min_date} … {bounds.max_date}",
                "Correct the date, or widen limits.min_date / limits.max_date in config.yaml.",
            )  # fmt: skip
        if self.periods.is_closed(day):
            yield _argument_error(
                "date", f"{day} lies in a period closed through {self.periods.closed_through}",
                f"Date it {self.periods.first_open(day)} or later, or reopen the period (cleared period reopen).",
            )  # fmt: skip

    def _check_leg(self, leg: Leg, day: date, field: str) -> Iterator[PrimitiveError]:
        if (leg.debit > 0) == (leg.credit > 0) or leg.debit < 0 or leg.credit < 0:
            yield _argument_error(
                field, "each line has exactly one of debit and credit, and it is positive", "Correct it."
            )
        if max(leg.debit, leg.credit) > self.bounds.max_amount:
            yield _argument_error(
                "amount", f"{max(leg.debit, leg.credit)} is larger than {self.bounds.max_amount}",
                "If it is meant, raise limits.max_amount in config.yaml.",
            )  # fmt: skip
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
                "status", f"{entry.entry_id} is {entry.status}; it cannot become {status}",
                "A status only moves forwards; correct the entry with a new one.",
            )  # fmt: skip
        self.statuses[entry.entry_id] = status
        return entry._replace(status=status)

    def void_entry(self, entry_id: str, reason: str) -> tuple[Entry, Entry]:
        """Stage the reversing entry and mark the original voided: ``(original, reversal)``.

        The reversal is dated as the original if its period is open, else on the first day of the earliest open
        period, and tagged ``@rev=<id>``; that of an opening or closing balance is one, too.
        """
        entry = self.get_entry(entry_id)
        if entry.status == "voided":
            raise _argument_error("entry_id", f"{entry.entry_id} is voided already", "There is nothing to undo.")
        dated = [f"@orig_date={entry.date}"] if self.periods.is_closed(entry.date) else []
        reversal = self.add_entry(
            self.periods.first_open(entry.date),
            f"Void {entry.entry_id}: {entry.description}"[:2000],
            [Leg(leg.account_id, leg.credit, leg.debit) for leg in entry.legs],
            status="voided", counterparty=entry.counterparty, evidence=reason,
            tags=";".join([f"@rev={entry.entry_id}", *dated, *(t for t in entry.tags.split(";") if t in _KINDS)]),
        )  # fmt: skip
        self.statuses[entry.entry_id] = "voided"
        return entry._replace(status="voided"), reversal

    # -- rendering ----------------------------------------------------------------------------------------------

    def draft_key(self) -> object:
        """Equal to an earlier one as long as nothing else has been staged."""
        return tuple((month, len(entries)) for month, entries in self.staged.items()), tuple(self.statuses.items())

    def render_files(self) -> dict[str, bytes]:
        """The journal files as they will be: path → bytes, only those that change."""
        key = self.draft_key()
        if self._changes is None or self._changes[0] != key:
            self._changes = key, self._render_changed_files()
        return dict(self._changes[1])

    def _render_changed_files(self) -> dict[str, bytes]:
        statuses: dict[tuple[int, int], dict[str, str]] = {}
        staged_status: dict[tuple[int, int], dict[str, str]] = {}
        for entry_id, status in self.statuses.items():
            year, month, number, _ = parse_entry_id(entry_id) or (0, 0, 0, "")
            target = statuses if number in self.committed_month(year, month).entries else staged_status
            target.setdefault((year, month), {})[entry_id] = status
        out: dict[str, bytes] = {}
        for key in sorted({*self.staged, *statuses}):
            path = self.paths.journal_path(*key)
            data = self.source.read(path)
            if key in statuses and data is not None:
                data = set_statuses(data, statuses[key])
            if key in self.staged:
                data = append_entries(data, [self._with_status(e) for e in self.staged[key]], self.bounds.places)
            if data is not None:
                out[path] = data
        return out


def _argument_error(field: str, message: str, remedy: str) -> PrimitiveError:
    return PrimitiveError(message, place=Place(field=field), remedy=remedy)

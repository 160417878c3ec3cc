"""One month's journal file: reading it with everything that is wrong, appending to it, changing what may change.

Reading never stops at the first problem: each is a ``Violation`` with its line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.common_ends import find_common_ends
from cleared.base.csv_text import CsvDamage, format_record, read_records
from cleared.base.errors import Place, RestoreRemedy
from cleared.base.newest_versions import keep_newest
from cleared.books.ledger.entry import (
    HEADER,
    HEADER_LINE,
    OPTIONAL,
    STATUSES,
    ZERO,
    Entry,
    Leg,
    format_entry_id,
    leg_suffix,
    parse_entry_id,
)
from cleared.domains.record_audit import TWO_CLONES_PAGE, Violation


class JournalMonth:
    """The entries of one journal file, by number, and what was wrong with the text."""

    def __init__(self, year: int, month: int, file: str, entries: dict[int, Entry], damage: list[Violation]) -> None:
        self.year, self.month, self.file = year, month, file
        self.entries = entries
        self.damage = damage
        self.lines: dict[int, int] = {}

    @cached_property
    def last_number(self) -> int:
        """The highest entry number, 0 in an empty month."""
        return max(self.entries, default=0)


def parse_month(
    data: bytes | None,
    year: int,
    month: int,
    file: str,
    places: int,
    begun: JournalMonth | None = None,
    lines_before: int = 0,
) -> JournalMonth:
    """Read one month's file (None: there is none yet). ``begun``: of a piece of it, with its header, the month up to
    there; ``lines_before``: the lines of the file between its header and the piece."""
    result = begun or JournalMonth(year, month, file, {}, [])
    if data is None:
        return result
    reader = _MonthReader(result, places)
    try:
        for line, row in check_deadline(read_records(data, HEADER, optional=OPTIONAL)):
            reader.read_row(line + lines_before, row)
    except CsvDamage as e:
        result.damage.append(Violation("format", str(e), RestoreRemedy(file), Place(file, e.line)))
    reader.finish_entry()
    return result


def _read_changed(old: bytes, before: JournalMonth, data: bytes, places: int) -> JournalMonth | None:
    """The month of ``data``, where only entries are read that do not stand in the lines with which ``old``, a version
    without fault, begins and ends, too. None where something is wrong with them: that has to be read whole."""
    start, end = find_common_ends(old, data)
    above, below = old.count(b"\n", 0, start), old.count(b"\n", 0, len(old) - end)
    lines = list(before.lines.values())  # the numbers of entries without fault are 1, 2, 3 …
    first, last = bisect_right(lines, above) - 1, bisect_right(lines, below)
    if before.damage or first < 0 or b"\r" in old or b"\r" in data:  # which ends a line, too
        return None
    begin, stop = start, len(old) - end
    for _ in range(above + 1 - lines[first]):  # the last entry that begins above may go on below
        begin = old.rfind(b"\n", 0, begin - 1) + 1
    for _ in range((lines[last] if last < len(lines) else old.count(b"\n") + 1) - below - 1):
        stop = old.find(b"\n", stop) + 1
    middle = data[begin : len(data) - len(old) + stop]
    result = JournalMonth(before.year, before.month, before.file, dict(islice(before.entries.items(), first)), [])
    result.lines = dict(islice(before.lines.items(), first))
    piece = data[: data.index(b"\n") + 1] + middle
    parse_month(piece, before.year, before.month, before.file, places, result, lines[first] - 2)
    if result.damage or (last < len(lines) and len(result.entries) != last):
        return None
    moved = data.count(b"\n") - old.count(b"\n")
    result.entries.update(islice(before.entries.items(), last, None))
    result.lines.update((number, line + moved) for number, line in islice(before.lines.items(), last, None))
    return result


@lru_cache(maxsize=8)
def amount_pattern(places: int) -> re.Pattern[str]:
    """How an amount with so many decimal places is written."""
    return re.compile(rf"[0-9]{{1,24}}\.[0-9]{{{places}}}" if places else r"[0-9]{1,24}", re.ASCII)


@keep_newest(files=16, versions=3)
def parse_month_once(
    data: bytes | None,
    before: tuple[bytes | None, JournalMonth] | None,
    year: int,
    month: int,
    file: str,
    places: int,
) -> JournalMonth:
    """As ``parse_month``, but the same text is read once in a process, and of one that was changed what is new. The
    result is shared: do not alter it."""
    known = None
    if data and before is not None and before[0]:
        known = _read_changed(before[0], before[1], data, places)
    return known or parse_month(data, year, month, file, places)


class _MonthReader:
    """Groups rows into entries; knows invariants 2, 4, 5 and 6, which are about single rows and their order."""

    def __init__(self, month: JournalMonth, places: int) -> None:
        self.month = month
        self.places = places
        self.begin = format_entry_id(month.year, month.month, 0)[:-3]
        """What the id of each entry of the month begins with."""
        self.pattern = amount_pattern(places)
        self.current: int | None = None
        self.id = ""
        self.accounts: dict[str, int] = {}
        self.amounts: dict[str, Decimal] = {}
        self.first: list[str] = []
        self.first_line = 0
        self.legs: list[Leg] = []
        self.days: dict[str, date] = {}
        self.expected = len(month.entries) + 1
        """The number of the entry that is to come."""

    def add_fault(
        self, check: str, message: str, line: int, entry: str | None = None, column: str | None = None
    ) -> None:
        also = f"Where two clones were joined by hand: {TWO_CLONES_PAGE}" if check == "ids" else ""
        remedy = RestoreRemedy(self.month.file, also)
        self.month.damage.append(Violation(check, message, remedy, Place(self.month.file, line, field=column), entry))

    def read_row(self, line: int, row: list[str]) -> None:
        legs = self.legs
        if self.current is not None and row[1] == self.first[1] and row[0] == self.id + leg_suffix(len(legs)):
            legs.append(self.read_leg(line, row, self.id))  # the usual next leg: nothing else can be wrong with it
            return
        usual = f"{self.begin}{self.expected:03d}"
        if row[0] == usual + leg_suffix(0) and self.month.year and not self.month.damage:
            self.begin_entry(self.expected, usual, line, row)
            self.legs.append(self.read_leg(line, row, usual))  # nor can it with the usual first one
            return
        parts = parse_entry_id(row[0])
        if parts is None or not parts[3]:
            self.add_fault("ids", f"{row[0]!r} is not a leg id such as 2025-01-001a", line, column="entry_id")
            return
        year, month, number, suffix = parts
        entry_id = row[0][: -len(suffix)]
        if (year, month) != (self.month.year, self.month.month):
            self.add_fault("month", f"{row[0]} belongs to another month's file", line, entry_id, "entry_id")
            return
        if number != self.current:
            expected = self.expected
            self.begin_entry(number, entry_id, line, row)
            if number in self.month.entries:
                self.add_fault("ids", f"the id {entry_id} is used twice", line, entry_id, "entry_id")
            elif number != expected:
                self.add_fault(
                    "ids",
                    f"ids are not contiguous: {entry_id} where {expected:03d} should stand",
                    line,
                    entry_id,
                    "entry_id",
                )
        elif row[1] != self.first[1]:
            self.add_fault("month", f"the legs of {entry_id} have different dates", line, entry_id, "date")
        if suffix != leg_suffix(len(self.legs)):
            self.add_fault(
                "ids",
                f"leg {row[0]} stands where leg {entry_id}{leg_suffix(len(self.legs))} should",
                line,
                entry_id,
                "entry_id",
            )
        self.legs.append(self.read_leg(line, row, entry_id))

    def begin_entry(self, number: int, entry_id: str, line: int, row: list[str]) -> None:
        self.finish_entry()
        self.current, self.first, self.first_line, self.legs = number, row, line, []
        self.id = entry_id
        self.expected = number + 1

    def read_leg(self, line: int, row: list[str], entry_id: str) -> Leg:
        account = self.accounts.get(row[2], 0)
        if not account:
            if row[2].isascii() and row[2].isdigit() and len(row[2]) < 10:
                account = self.accounts[row[2]] = int(row[2])
            else:
                self.add_fault("account_exists", f"{row[2]!r} is not an account number", line, entry_id, "account_id")
        known, debit, credit = self.amounts, ZERO, ZERO
        if row[4]:
            debit = known.get(row[4]) or self.read_amount(row[4], line, entry_id, "debit")
        if row[5]:
            credit = known.get(row[5]) or self.read_amount(row[5], line, entry_id, "credit")
        if (row[4] == "") == (row[5] == ""):
            which = "neither debit nor credit" if row[4] == "" else "both a debit and a credit"
            self.add_fault("one_side", f"leg {row[0]} has {which}", line, entry_id)
        return Leg(account, debit, credit)

    def read_amount(self, text: str, line: int, entry_id: str, column: str) -> Decimal:
        if not self.pattern.fullmatch(text):
            self.add_fault(
                "exact", f"{text!r} is not an amount with {self.places} decimal places", line, entry_id, column
            )
            return ZERO
        value = Decimal(text)
        if value:
            self.amounts[text] = value
        else:
            self.add_fault("exact", "an amount of zero says nothing", line, entry_id, column)
        return value

    def read_day(self, text: str, line: int, entry_id: str) -> date:
        """The day of an entry; one that lies in the month is kept in ``days``."""
        year, month = self.month.year, self.month.month
        try:
            day = date.fromisoformat(text) if len(text) == 10 else None
        except ValueError:
            day = None
        if day is None:
            self.add_fault("month", f"{text!r} is not a date (YYYY-MM-DD)", line, entry_id, "date")
            return date(year, month, 1)
        if (day.year, day.month) == (year, month):
            self.days[text] = day
        else:
            self.add_fault("month", f"the date {day} lies outside the file's month", line, entry_id, "date")
        return day

    def finish_entry(self) -> None:
        if self.current is None:
            return
        row, line, number, entry_id = self.first, self.first_line, self.current, self.id
        self.current = None
        day = self.days.get(row[1]) or self.read_day(row[1], line, entry_id)
        if row[9] not in STATUSES:
            self.add_fault("format", f"{row[9]!r} is not a status ({', '.join(STATUSES)})", line, entry_id, "status")
        legs = tuple(self.legs)
        entry = Entry(entry_id, day, row[3], legs, row[9], row[6], row[7], row[8], row[10], row[11], row[12], row[13])
        is_pair = len(legs) == 2 and legs[0].debit == legs[1].credit and legs[0].credit == legs[1].debit
        if not is_pair and (len(legs) < 2 or money.total([leg.amount for leg in legs])):
            debits, credits = entry.amount, money.total([leg.credit for leg in legs])
            self.add_fault("balanced", f"debits {debits} and credits {credits} differ", line, entry_id)
        self.month.entries.setdefault(number, entry)
        self.month.lines.setdefault(number, line)


def append_entries(data: bytes | None, entries: Collection[Entry], places: int) -> bytes:
    """The file with these entries at its end; every byte that stood there stays."""
    parts = [data if data is not None else HEADER_LINE.encode()]
    extra = 0
    if data is not None:
        width = data.split(b"\n", 1)[0].count(b",") + 1
        extra = width - len(HEADER)
    for entry in check_deadline(entries):
        text = entry.to_csv(places)
        if extra > 0:
            text = _widen_rows(text, extra)
        parts.append(text.encode("utf-8"))
    return b"".join(parts)


def _widen_rows(text: str, extra: int) -> str:
    """Rows of a file that has the optional columns get them empty."""
    import csv
    import io

    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    return "".join(format_record([*row, *[""] * extra]) for row in rows)


_LEG_ROW: Final = re.compile(r'^"?([0-9]{4}-[0-9]{2}-[0-9]+)[a-z]+"?,', re.ASCII | re.MULTILINE)


def set_columns(data: bytes, changes: Mapping[str, Mapping[str, str]]) -> bytes:
    """The file with columns of entries (``entry_id → column → text``) changed in every leg, all else as it was."""
    import csv
    import io

    text = data.decode("utf-8")
    out: list[str] = []
    done = counted = quotes = 0
    for entry_id in sorted(changes, key=lambda each: (len(each), each)):  # as they stand in the file
        at = max(done, counted)
        while (at := text.find(entry_id, at)) >= 0:
            begin = at - (text[at - 1] == '"')
            match = _LEG_ROW.match(text, begin)
            quotes, counted = quotes + text.count('"', counted, begin), begin
            if match is None or match[1] != entry_id or quotes % 2:  # a line of a quoted field
                at += 1
                continue
            end = text.find("\n", begin) + 1 or len(text)
            while text.count('"', begin, end) % 2 and end < len(text):
                end = text.find("\n", end) + 1 or len(text)
            row = next(csv.reader(io.StringIO(text[begin:end], newline=""), strict=True))
            before = list(row)
            for column, value in changes[entry_id].items():
                row[HEADER.index(column)] = value
            if row != before:
                out += [text[done:begin], format_record(row)]
                done = end
            at = end
            if not text.startswith((entry_id, f'"{entry_id}'), end):  # its legs stand together
                break
    return "".join([*out, text[done:]]).encode("utf-8")


def check_accounts(months: Iterable[JournalMonth], known: Mapping[int, object]) -> list[Violation]:
    """Invariant 3 over whole months."""
    violations: list[Violation] = []
    for month in months:
        for number, entry in month.entries.items():
            for leg in entry.legs:
                if leg.account_id not in known:
                    violations.append(
                        Violation(
                            "account_exists",
                            f"account {leg.account_id} is not in the chart of accounts",
                            "Add the account to accounts/chart-of-accounts.csv, or restore the entry.",
                            Place(month.file, month.lines.get(number)),
                            entry.entry_id,
                        )
                    )
    return violations

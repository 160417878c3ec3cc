"""One statement in two formats: which rows of a file say what a file of another format has said before.

Such rows have other ids and other words, so their line ids differ. They are matched by account, day and amount, each
line once. Where that is not certain, the row is held until a person decides: it is neither posted nor lost.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.base.clock import check_deadline
from cleared.books.importing.bank_file import ImportFile, find_covered_days
from cleared.books.ledger.bank_lines import BankLine, normalise_description
from cleared.books.ledger.staged_bank_lines import NEAR_DAYS, BankBook

_WORD: Final = re.compile(r"[^\W\d_]{3,}")

Key = tuple[date, Decimal]


@dataclass(frozen=True, slots=True)
class FormatOverlap:
    """What became of a file's new rows beside the lines that other formats brought."""

    matched: list[tuple[BankLine, BankLine]] = field(default_factory=list)
    """(row, the line it repeats)"""
    held: list[tuple[BankLine, BankLine]] = field(default_factory=list)
    """(row, a line that it may repeat)"""

    @property
    def rows(self) -> set[str]:
        """The line ids of all that are not simply new."""
        return {row.line_id for row, _ in (*self.matched, *self.held)}


def find_format_overlap(file: ImportFile, bank: BankBook, opened: Iterable[ImportFile]) -> FormatOverlap:
    """What of the file's new rows other formats have brought, or may have. ``opened``: the files that the run reads."""
    account = file.account.id
    records = {r.file_sha256: r for r in bank.imports if r.account == account}
    others = {each.sha256: each for each in opened if each.account.id == account}
    has_ids = any(row.bank_id for row in file.rows)

    def is_other_format(line: BankLine) -> bool:
        record, other = records.get(line.file_sha256), others.get(line.file_sha256)
        format = other.format if other is not None else record.format if record is not None else ""
        if format:
            return _find_family(format) != _find_family(file.format)
        return bool(line.bank_id) != has_ids

    def is_covered(row: BankLine, line: BankLine) -> bool:
        record, other = records.get(line.file_sha256), others.get(line.file_sha256)
        first, last = find_covered_days(other) if other is not None else (None, None)
        low = first.isoformat() if first else record.first_date if record else ""
        high = last.isoformat() if last else record.last_date if record else ""
        return days[0] <= line.posted_date <= days[1] and low <= row.posted_date.isoformat() <= high

    posted = [row for row in file.rows if row.state == "posted"]
    if not file.new or not posted:
        return FormatOverlap()
    days = min(row.posted_date for row in posted), max(row.posted_date for row in posted)
    return compare_formats(
        [line for line in file.new if line.state == "posted"],
        ((row.posted_date, row.amount) for row in posted),
        (line for line in bank.iter_lines_between(account, *days) if is_other_format(line)),
        {line_id for _, line_id, _ in file.duplicates},
        is_covered,
    )


def _find_family(format: str) -> str:
    """The format, without the condition of its variants: these identify rows alike."""
    return "qif" if format.startswith("qif_") else format


def compare_formats(
    new: Sequence[BankLine],
    all_days: Iterable[Key],
    others: Iterable[BankLine],
    claimed: set[str],
    is_covered: Callable[[BankLine, BankLine], bool],
) -> FormatOverlap:
    """Compare a file's new rows with ``others``, the posted lines that files of other formats brought.

    ``all_days``: day and amount of every row of the file; ``claimed``: ids of the lines that its other rows repeat;
    ``is_covered``: whether both files should have said the same of the days of a row and a line.
    """
    overlap = FormatOverlap()
    known = list(check_deadline(others))
    if not known:
        return overlap
    same_days = _find_same_days(all_days, known)
    free: dict[Key, list[BankLine]] = defaultdict(list)
    for line in known:
        if line.line_id not in claimed:
            free[line.posted_date, line.amount].append(line)
    groups: dict[Key, list[BankLine]] = defaultdict(list)
    for row in new:
        if row.amount:
            groups[row.posted_date, row.amount].append(row)
    for key, rows in check_deadline(list(groups.items())):
        if free.get(key):
            free[key] = _match_group(rows, free[key], key[0] in same_days, overlap)
    _hold_moved_rows(groups, free, overlap, is_covered)
    return overlap


def _find_same_days(all_days: Iterable[Key], known: Iterable[BankLine]) -> set[date]:
    """Days of which both say the same amounts, each as often."""
    mine: dict[date, Counter[Decimal]] = defaultdict(Counter)
    theirs: dict[date, Counter[Decimal]] = defaultdict(Counter)
    for day, amount in all_days:
        mine[day][amount] += 1
    for line in known:
        theirs[line.posted_date][line.amount] += 1
    return {day for day, amounts in mine.items() if theirs.get(day) == amounts}


def _match_group(
    rows: Sequence[BankLine], known: Sequence[BankLine], is_same_day: bool, overlap: FormatOverlap
) -> list[BankLine]:
    """Match the rows of one day and amount with the lines of the same; the lines that are left."""
    left = list(known)
    unlike: list[BankLine] = []
    for row in rows:
        twin = next((line for line in left if _is_alike(row, line)), None)
        if twin is None:
            unlike.append(row)
        else:
            left.remove(twin)
            overlap.matched.append((row, twin))
    for row in unlike:
        if not left:
            break
        if is_same_day:
            overlap.matched.append((row, left.pop(0)))
        else:
            overlap.held.append((row, left[0]))
    return left


def _is_alike(row: BankLine, line: BankLine) -> bool:
    """Whether two texts, cut and worded by different programs, may be of one transaction."""
    mine, other = normalise_description(row.description), normalise_description(line.description)
    if not mine or not other or mine.startswith(other) or other.startswith(mine):
        return True
    return not set(_WORD.findall(mine)).isdisjoint(_WORD.findall(other))


def _hold_moved_rows(
    groups: dict[Key, list[BankLine]],
    free: dict[Key, list[BankLine]],
    overlap: FormatOverlap,
    is_covered: Callable[[BankLine, BankLine], bool],
) -> None:
    """Hold rows that another format may have said of another day: same amount, a few days apart."""
    decided = overlap.rows
    by_amount: dict[Decimal, list[BankLine]] = defaultdict(list)
    for (_, amount), lines in free.items():
        by_amount[amount] += lines
    for rows in groups.values():
        for row in check_deadline(rows):
            if row.line_id in decided:
                continue
            near = (line for line in by_amount.get(row.amount, ()) if _is_near(row, line) and is_covered(row, line))
            if twin := next(near, None):
                by_amount[row.amount].remove(twin)
                overlap.held.append((row, twin))


def _is_near(row: BankLine, line: BankLine) -> bool:
    return 0 < abs((row.posted_date - line.posted_date).days) <= NEAR_DAYS

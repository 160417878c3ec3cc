"""One statement in two formats: which rows of a file say what a file of another format has said before.

Such rows have other ids and other words, so their line ids differ. They are matched by account, day and amount, each
line once. Where that is not certain, the row is held until a person decides: it is neither posted nor lost.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.deadline import check_deadline
from cleared.ledger.bank_lines import BankLine, normalise_description
from cleared.ledger.staged_bank_lines import NEAR_DAYS
from cleared.light_dataclass import dataclass

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


def compare_formats(
    new: Sequence[BankLine], all_days: Iterable[Key], others: Iterable[BankLine], claimed: set[str],
    is_covered: Callable[[BankLine, BankLine], bool],
) -> FormatOverlap:  # fmt: skip
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
    groups: dict[Key, list[BankLine]], free: dict[Key, list[BankLine]], overlap: FormatOverlap,
    is_covered: Callable[[BankLine, BankLine], bool],
) -> None:  # fmt: skip
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

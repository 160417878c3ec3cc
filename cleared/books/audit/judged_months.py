"""One month of the books, judged: its journal, its bank lines, and what of these is matched to what.

Of a month that is right in itself little is needed to judge all months together. That is kept, sealed, under the ids
that git has for the month's files, so that a check of old books reads the months that changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cleared.base.errors import Place
from cleared.base.short_text import mark_text
from cleared.books.index.journal_index import JournalIndex, MonthKey
from cleared.books.ledger.bank_lines import BankLine, Pairs, iter_lines
from cleared.books.ledger.chains import ChainEntry
from cleared.books.ledger.entry import leg_suffix, parse_entry_id
from cleared.books.ledger.journal import JournalMonth, check_accounts
from cleared.books.ledger.single_count import chain_entry, is_chained
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, program_version

_KIND: Final = ".judged"
_SPARE_FILES: Final = 12
"""Months as they were before, or are on other branches, that stay beside those of a commit."""


class MatchedLeg(NamedTuple):
    """A leg that is matched to a bank line."""

    account: int
    day: date
    amount: Decimal


class OtherLine(NamedTuple):
    """A bank line that is more than booked whole, on its day, by one leg of its month. ``bank_account``: its id."""

    bank_account: str
    line: BankLine
    pairs: Pairs


class JudgedMonth(Struct):
    """What a check of all months needs of one."""

    accounts: list[int] = []
    """Those that its entries use."""
    chained: list[ChainEntry] = []
    marks: bytes = b""
    """Eight bytes for each bank line, the same for the same id."""
    others: list[OtherLine] = []
    booked_on: dict[str, int] = {}
    """Bank account → the account that the last of its lines is booked on."""
    legs: dict[str, MatchedLeg] = {}
    """The legs that ``others`` are matched to, by their ids; those that are not there are left out."""
    versions: dict[str, str] = {}
    """Of the legs of other months: ``YYYY-MM`` → the id that git had for the journal."""
    strays: list[str] = []
    """Lines of other months that its file of matches has; there are none where it is right."""


class JudgedMonths:
    """What is known of the months of one commit that were found right in themselves. ``index``: of its journals;
    ``state_dir``: the workspace's ``.cleared/``."""

    def __init__(self, index: JournalIndex, snapshot: Snapshot, state_dir: Path) -> None:
        self.index = index
        self._snapshot = snapshot
        self._files = SealedFiles(state_dir, program_version())
        self._names: dict[MonthKey, str] = {}
        """What is known of a month is kept under the ids of its files; empty where one of them is none."""

    def find_month(self, month: MonthKey, paths: Sequence[str]) -> JudgedMonth | None:
        """What is known of a month, as the commit has it. ``paths``: the files that it is judged by."""
        name = self._names[month] = self._name_month(month, paths)
        data = self._files.read(name) if name else None
        return msgspec.msgpack.decode(data, type=JudgedMonth) if data is not None else None

    def keep_months(self, judged: Mapping[MonthKey, JudgedMonth]) -> None:
        """Keep what is known of months that were asked for, and are right in themselves."""
        for month, each in judged.items():
            if name := self._names[month]:
                self._files.write(name, msgspec.msgpack.encode(each))
        if judged:
            self._files.remove_others(set(self._names.values()), (_KIND,), _SPARE_FILES)

    def find_version(self, path: str) -> str:
        """The id that git has for a file; empty where there is none."""
        return self._snapshot.find_blob_id(path) or ""

    def _name_month(self, month: MonthKey, paths: Sequence[str]) -> str:
        versions = [(path, self.find_version(path)) for path in paths]
        if not all(version for _, version in versions):  # a link, or a folder
            return ""
        digest = hashlib.sha256(json.dumps([self.index.places, versions]).encode()).hexdigest()
        return f"{name_month(month)}-{digest[:40]}{_KIND}"


def judge_month(
    journal: JournalMonth,
    bank: BankBook,
    files: Sequence[tuple[str, str]],
    path: str,
    matched: Mapping[str, Pairs],
    older: dict[str, Pairs],
    outcomes: tuple[str, Collection[str]],
    known_accounts: Mapping[int, object],
) -> tuple[list[Violation], JudgedMonth]:
    """What is wrong with one month, and what is needed of it.

    ``files``: bank account and path of each file of its lines; ``path``, ``matched``: its file of matches, and line →
    what that says; ``older``: the same of one file for all months, from which the month's lines are taken;
    ``outcomes``: its file of outcomes, and the lines that this has; ``known_accounts``: those of the chart.
    """
    month = (journal.year, journal.month)
    violations = [*journal.damage, *check_accounts([journal], known_accounts)]
    judged = JudgedMonth(
        sorted({leg.account_id for entry in journal.entries.values() for leg in entry.legs}),
        [chain_entry(entry) for entry in journal.entries.values() if is_chained(entry)],
    )
    marks, left, aside = [], dict(matched), set(outcomes[1])
    for bank_account, line in iter_month_lines(bank, files):
        marks.append(mark_text(line.line_id))
        own = left.pop(line.line_id, ())
        if line.posted_date.isoformat()[:7] == name_month(month):
            aside.discard(line.line_id)
        elif own:
            violations.append(_describe_stray(path, line))
        pairs = (*older.pop(line.line_id, ()), *own)
        legs = {leg_id: leg for leg_id, _ in pairs if (leg := find_leg(journal, leg_id)) is not None}
        for leg in legs.values():
            judged.booked_on[bank_account] = leg.account
        if not _is_plain(line, pairs, legs):
            judged.others.append(OtherLine(bank_account, line, pairs))
            judged.legs |= legs
    judged.marks = b"".join(marks)
    for line_id, pairs in left.items():
        if (found := bank.find_line(line_id)) is not None:
            violations.append(_describe_stray(path, found[1]))
            judged.strays.append(line_id)
        else:
            violations += describe_unknown_line(path, line_id, pairs)
    for line_id in sorted(aside):
        found = bank.find_line(line_id)
        violations.append(_describe_stray_outcome(outcomes[0], line_id, found[1] if found is not None else None))
    return violations, judged


def _is_plain(line: BankLine, pairs: Pairs, legs: Mapping[str, MatchedLeg]) -> bool:
    """Whether one leg books all of a line on its day: then the line is accounted for, and no balance waits for it."""
    if len(pairs) != 1 or line.amount == 0:
        return False
    (leg_id, amount), *_ = pairs
    leg = legs.get(leg_id)
    return leg is not None and amount == line.amount == leg.amount and leg.day == line.posted_date


def find_leg(journal: JournalMonth, leg_id: str) -> MatchedLeg | None:
    """A leg of a month by its id; None where it has none of that id."""
    parts = parse_entry_id(leg_id)
    if parts is None or parts[:2] != (journal.year, journal.month) or parts[2] not in journal.entries:
        return None
    entry = journal.entries[parts[2]]
    for i, leg in enumerate(entry.legs):
        if leg_suffix(i) == parts[3]:
            return MatchedLeg(leg.account_id, entry.date, leg.amount)
    return None


def list_far_legs(month: MonthKey, pairs: Iterable[Pairs]) -> Iterator[tuple[MonthKey, str]]:
    """Month and id of each leg of another month among these."""
    for leg_id, _ in itertools.chain.from_iterable(pairs):
        parts = parse_entry_id(leg_id)
        if parts is not None and parts[:2] != month:
            yield parts[:2], leg_id


def iter_month_lines(bank: BankBook, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, BankLine]]:
    """The bank lines of these files (bank account and path), each with the account; one that a file has twice comes
    once."""
    for account, path in files:
        lines = {line.line_id: line for line in iter_lines(bank.source.read(path), path)}
        yield from ((account, line) for line in lines.values())


def describe_match(path: str, message: str) -> Violation:
    """That a match is not right. ``path``: its file."""
    return Violation("lines_accounted", message, "Restore the journal or the matches (git log -- books).", Place(path))


def describe_unknown_line(path: str, line_id: str, pairs: Pairs) -> list[Violation]:
    """That something is matched to a bank line that there is not."""
    why = f"is matched to the bank line {line_id}, which is not recorded"
    return [describe_match(path, f"{leg_id} {why}") for leg_id, _ in pairs]


def _describe_stray(path: str, line: BankLine) -> Violation:
    why = f"a match of the bank line of {line.posted_date} is not in the file of its month, where runs look for it"
    return describe_match(path, why)


def _describe_stray_outcome(path: str, line_id: str, line: BankLine | None) -> Violation:
    if line is None:
        why = f"what became of the bank line {line_id} is there, which is not recorded"
    else:
        why = f"what became of the bank line of {line.posted_date} is not in the file of its month, where runs look"
    return Violation("lines_accounted", why, "Restore the outcomes (git log -- books).", Place(path))


def name_month(month: MonthKey) -> str:
    """``YYYY-MM``."""
    return f"{month[0]:04d}-{month[1]:02d}"

"""Rows that no script can post: of another currency than the account's, of a period that is closed, or of a day that
the account's opening balance has in it already.

Each waits with a card until a person says what becomes of it; the rest of its file is booked. Where that would be very
many rows, or the account takes no entries, the file is refused instead: then one decision about the account, or about
the period, is asked for, and not one about each row.

Held are also the rows of one statement in two formats, where it is not certain which of them a file of the other format
has said before: such rows have other ids and other words, so their line ids differ. They are matched by account, day
and amount, each line once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.books.importing.bank_file import ImportFile, find_covered_days, find_entry_day
from cleared.books.importing.file_cards import describe_line
from cleared.books.importing.joined_files import is_reused_id
from cleared.books.ledger.bank_lines import BankLine, normalise_description
from cleared.books.ledger.bank_row import BankRow, Statement
from cleared.books.ledger.chains import REVERSES, find_last_change
from cleared.books.ledger.entry import BY_FILES, MOVED_IN
from cleared.books.ledger.staged_bank_lines import NEAR_DAYS, BankBook
from cleared.books.ledger.staged_journal import Books

MAX_LATE_ROWS: Final = 20
"""Of one file; where it has more, the period was closed before the file came."""


def mark_foreign_rows(statements: Iterable[Statement], currency: str) -> tuple[Statement, ...]:
    """The statements, with the posted rows that are in another currency than ``currency`` marked so: they count in no
    sum."""

    def mark_row(row: BankRow) -> BankRow:
        is_foreign = row.currency not in (None, currency) and row.state == "posted"
        return replace(row, state="foreign") if is_foreign else row

    marked = []
    for each in statements:
        rows = tuple(mark_row(row) for row in check_deadline(each.rows))
        marked.append(each if rows == each.rows else replace(each, rows=rows))
    return tuple(marked)


def describe_foreign_row(line: BankLine, currency: str) -> str | None:
    """Why the line is held and what to do, where it is in another currency."""
    if line.state != "foreign" or not line.amount:
        return None
    return (
        f"in {line.currency}, and the account is in {currency}: it cannot be posted. What it cost in {currency} is a "
        "row of its own, or yours to enter (cleared journal add); then answer this with ignore"
    )


def describe_late_row(file: ImportFile, line: BankLine, books: Books, bank: BankBook) -> str | None:
    """Why the line is held and what to do, where it came after the period of its day was closed. Not so a line whose
    entries move money on days that are open: what follows is dated as they are."""
    if not line.amount:
        return None
    day = find_entry_day(file.account, line)
    if not books.periods.is_closed(day):
        return None
    if entry_ids := bank.list_entry_ids(line.line_id):
        last = find_last_change(map(books.get_entry, books.chains.list_members(entry_ids)))
        if last is not None and not books.periods.is_closed(last):
            return None
    which = "its day" if day == line.posted_date else f"its day, {day},"
    return (
        f"{which} was closed (through {books.periods.closed_through}) before it came. cleared queue correct posts it "
        f"on {books.periods.first_open(day)}, or on its day once that is open again"
    )


def describe_reused_ids(file: ImportFile, bank: BankBook) -> Callable[[BankLine], str | None]:
    """Says why a new row is held and what to do, where the bank has used its id for a row of another day and text."""
    rows = [line for line in file.new if line.bank_id and line.state == "posted"]
    known: dict[tuple[str, Decimal], list[BankLine]] = defaultdict(list)
    if rows:
        first, last = min(line.posted_date for line in rows), max(line.posted_date for line in rows)
        for line in bank.iter_lines_between(file.account.id, first, last):
            if line.bank_id:
                known[line.bank_id, line.amount].append(line)

    def describe(line: BankLine) -> str | None:
        if not known:
            return None
        earlier = next((each for each in known.get((line.bank_id, line.amount), ()) if is_reused_id(line, each)), None)
        if earlier is None:
            return None
        return (
            f"the bank has used its id {line.bank_id} before, for {describe_line(earlier)}. Where this is another "
            "payment, cleared queue correct posts it; where it is the same one, answer with ignore"
        )

    return describe


class Beginning(Struct, frozen=True, order=True):
    """The last day that an account's opening balance has in it, or books that were moved in."""

    day: date
    is_moved_in: bool = False


def find_beginning(file: ImportFile, books: Books) -> Beginning | None:
    """What of the account stood in the books before its files came: an opening balance, as config.yaml says or as it is
    posted, or entries that were moved in.

    Not so an opening balance that came from the bank's files: an older file brings another, which ``cleared status``
    says.
    """
    account, first = file.account, min((line.posted_date for line in file.new), default=date.max)
    found = [Beginning(account.opening.date)] if account.opening is not None else []
    for year, month in [key for key in books.list_months() if key >= (first.year, first.month)]:
        for entry in books.iter_entries(year, month):
            is_opening = entry.is_opening
            if entry.evidence == BY_FILES or not (is_opening or entry.status == MOVED_IN):
                continue
            if entry.status != "voided" and REVERSES not in entry.tags:
                is_other = entry.reference.startswith("opening:") and entry.reference != f"opening:{account.id}"
                if not is_other and account.ledger_account in [leg.account_id for leg in entry.legs]:
                    found.append(Beginning(entry.date, not is_opening))
    return max(found, default=None)


def describe_early_row(line: BankLine, begins: Beginning) -> str | None:
    """Why the line is held and what to do, where its account had it before its files came."""
    if line.posted_date > begins.day or not line.amount:
        return None
    if begins.is_moved_in:
        return (
            f"the books that were moved in have this account through {begins.day}: answer this with ignore. Where they "
            "do not have this row, cleared queue correct posts it"
        )
    return (
        f"the account's opening balance of {begins.day} has it already: answer this with ignore. Where the account is "
        "to begin earlier, correct and approve its opening in config.yaml, cleared journal void the opening balance "
        "and say cleared journal open, then cleared queue correct posts this"
    )


def refuse_early_file(shown: str, file: ImportFile, books: Books) -> None:
    """Raises ``PrimitiveError`` where the account had so many of its rows before."""
    begins = find_beginning(file, books)
    if begins is None:
        return
    early = [line for line in check_deadline(file.new) if describe_early_row(line, begins) is not None]
    if len(early) > MAX_LATE_ROWS:
        if begins.is_moved_in:
            raise PrimitiveError(
                f"the books that were moved in have {file.account.id} through {begins.day}, and with it {len(early)} "
                "rows of the file",
                place=Place(shown, line=early[0].row, field="date"),
                remedy="Leave them out of the file: they would be posted a second time.",
            )
        raise PrimitiveError(
            f"the opening balance of {file.account.id} on {begins.day} has {len(early)} rows of it already",
            place=Place(shown, line=early[0].row, field="date"),
            remedy="Leave them out of the file. Or let the account begin before them: cleared journal void the opening "
            f"balance, correct bank_accounts.{file.account.id}.opening in config.yaml, and cleared config approve.",
        )


def refuse_closed_account(shown: str, file: ImportFile, books: Books) -> None:
    """Raises ``PrimitiveError`` where the books' account of the file takes no entry of one of its new rows."""
    account = file.account.ledger_account
    days = {find_entry_day(file.account, line) for line in file.new if line.amount}
    for day in check_deadline(sorted(days)):
        if (why := books.chart.why_not_postable(account, day)) is not None:
            reason, remedy = why
            raise PrimitiveError(
                f"its bank account {file.account.id} goes to {account}, and {reason}",
                place=Place(shown, field=f"bank_accounts.{file.account.id}.ledger_account"),
                remedy=remedy,
            )


def refuse_late_file(shown: str, file: ImportFile, books: Books, bank: BankBook, opened: Iterable[ImportFile]) -> None:
    """Raises ``PrimitiveError`` where more of the file's rows are late than a person would decide about one by one.
    ``opened``: the files that the run reads."""
    through = books.periods.closed_through
    if through is None:
        return
    late = [line for line in check_deadline(file.new) if describe_late_row(file, line, books, bank) is not None]
    if len(late) > MAX_LATE_ROWS:  # unless a file of another format has brought them before
        known = find_format_overlap(file, bank, opened).rows
        late = [line for line in late if line.line_id not in known]
    if len(late) > MAX_LATE_ROWS:
        raise PrimitiveError(
            f"{len(late)} rows of it came after their days were closed (through {through})",
            place=Place(shown, line=late[0].row, field="date"),
            remedy=f"Open the period for them (cleared period reopen {through:%Y-%m} --reason …), import the file, and "
            "close it again.",
        )


_WORD: Final = r"[^\W\d_]{3,}"

Key = tuple[date, Decimal]


class FormatOverlap(Struct, frozen=True):
    """What became of a file's new rows beside the lines that other formats brought."""

    matched: list[tuple[BankLine, BankLine]] = []
    """(row, the line it repeats)"""
    held: list[tuple[BankLine, BankLine]] = []
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
    return not set(re.findall(_WORD, mine)).isdisjoint(re.findall(_WORD, other))


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

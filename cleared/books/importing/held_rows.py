"""Rows that no script can post: of another currency than the account's, of a period that is closed, or of a day that
the account's opening balance has in it already.

Each waits with a card until a person says what becomes of it; the rest of its file is booked. Where that would be very
many rows, or the account takes no entries, the file is refused instead: then one decision about the account, or about
the period, is asked for, and not one about each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Final

from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.books.importing.bank_file import ImportFile, find_entry_day
from cleared.books.importing.format_overlap import find_format_overlap
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.bank_row import BankRow, Statement
from cleared.books.ledger.entry import BY_FILES, OPENING
from cleared.books.ledger.staged_bank_lines import BankBook
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
    """Why the line is held and what to do, where it came after the period of its day was closed. Not so a line that
    was posted before: what follows is dated as its chain is."""
    if books.periods.closed_through is None or not line.amount:
        return None
    day = find_entry_day(file.account, line)
    if not books.periods.is_closed(day) or bank.list_entry_ids(line.line_id):
        return None
    which = "its day" if day == line.posted_date else f"its day, {day},"
    return (
        f"{which} was closed (through {books.periods.closed_through}) before it came. cleared queue correct posts it "
        f"on {books.periods.first_open(day)}, or on its day once that is open again"
    )


def find_beginning(file: ImportFile, books: Books) -> date | None:
    """The last day that the account's opening balance has in it, as config.yaml says or as it is posted.

    Not so one that came from the bank's files: an older file brings another, which ``cleared status`` says.
    """
    account, first = file.account, min((line.posted_date for line in file.new), default=date.max)
    days = [account.opening.date] if account.opening is not None else []
    for year, month in [key for key in books.list_months() if key >= (first.year, first.month)]:
        for entry in books.iter_entries(year, month):
            if OPENING not in entry.tags or OPENING not in entry.tags.split(";"):
                continue
            if entry.status != "voided" and entry.evidence != BY_FILES:
                is_other = entry.reference.startswith("opening:") and entry.reference != f"opening:{account.id}"
                if not is_other and account.ledger_account in [leg.account_id for leg in entry.legs]:
                    days.append(entry.date)
    return max(days, default=None)


def describe_early_row(line: BankLine, begins: date | None) -> str | None:
    """Why the line is held and what to do, where the opening balance of its account has it already."""
    if begins is None or line.posted_date > begins or not line.amount:
        return None
    return (
        f"the account's opening balance of {begins} has it already: answer this with ignore. Where the account is to "
        "begin earlier, correct and approve its opening in config.yaml, cleared journal void the opening balance and "
        "say cleared journal open, then cleared queue correct posts this"
    )


def refuse_early_file(shown: str, file: ImportFile, books: Books) -> None:
    """Raises ``PrimitiveError`` where so many of its rows are before the account's opening balance."""
    begins = find_beginning(file, books)
    early = [line for line in check_deadline(file.new) if describe_early_row(line, begins) is not None]
    if len(early) > MAX_LATE_ROWS:
        raise PrimitiveError(
            f"the opening balance of {file.account.id} on {begins} has {len(early)} rows of it already",
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

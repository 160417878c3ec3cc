"""Bank facts: what the bank reported, kept apart from the entries that were made of it.

    <books>/bank/<account>/YYYY-MM.csv   the lines, by posted date
    <books>/bank/matches-YYYY-MM.csv     line → journal leg and amount, of the lines of a month
    <books>/bank/matches.csv             the same, of all lines: what earlier versions wrote; it is read, too
    <books>/bank/outcomes-YYYY-MM.csv    lines of a month that are not posted: ignored, held, voided or released; why
    <books>/bank/outcomes.csv            the same, of all lines: what earlier versions wrote; it is read, too
    <books>/bank/duplicates-YYYY-MM.csv  rows that were left out because the same line is recorded already, by the
                                         month of their import
    <books>/bank/duplicates.csv          the same, of all months: what earlier versions wrote; it is read, too

All append-only.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.csv_text import CsvDamage, format_record, read_records
from cleared.base.errors import Place, RestoreRemedy, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.newest_versions import keep_newest
from cleared.books.ledger.bank_row import BankRow
from cleared.books.ledger.book_paths import BookPaths

LINE_COLUMNS: Final = (
    "line_id",
    "posted_date",
    "transaction_date",
    "amount",
    "currency",
    "description",
    "bank_id",
    "balance_after",
    "state",
    "file_sha256",
    "row",
    "occurrence",
    "supersedes",
    "type",
)
MATCH_COLUMNS: Final = ("line_id", "leg_id", "amount")
OUTCOME_COLUMNS: Final = ("line_id", "outcome", "reason", "run")
DUPLICATE_COLUMNS: Final = ("file_sha256", "row", "line_id", "note")
DUPLICATE_OPTIONAL: Final = ("bank_id",)
"""The last column, which files of earlier versions may not have. It has the bank's id of a row whose line came without
it, from a file of another format."""
LINE_ID_PREFIX: Final = "f1:"
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n")
Pairs = tuple[tuple[str, Decimal], ...]
"""(leg id, amount) of each leg that was ever matched to a bank line."""
_COUNTS: Final = r" \((f1:[0-9a-f]{24})\)\Z"
"""How a file has ``Outcome.counts``: at the end of the reason, as it has no column for it."""
_ROWS_AT_ONCE: Final = 1_000


class BankLine(Struct, frozen=True, gc=False):
    """One row a bank reported, with its identity."""

    line_id: str
    posted_date: date
    transaction_date: date | None
    amount: Decimal
    currency: str
    description: str
    bank_id: str
    balance_after: Decimal | None
    state: str
    file_sha256: str
    row: int
    occurrence: int
    supersedes: str = ""
    type: str = ""

    def to_csv(self) -> str:
        return format_record(
            (
                self.line_id,
                self.posted_date.isoformat(),
                self.transaction_date.isoformat() if self.transaction_date else "",
                money.format_amount(self.amount),
                self.currency,
                self.description,
                self.bank_id,
                money.format_amount(self.balance_after) if self.balance_after is not None else "",
                self.state,
                self.file_sha256,
                str(self.row),
                str(self.occurrence),
                self.supersedes,
                self.type,
            )
        )


class Outcome(Struct, frozen=True):
    """Why a line is not posted: ``ignored``, ``held`` (for review), ``voided`` or ``released`` (its import was undone),
    and the reason."""

    outcome: str
    reason: str
    counts: str = ""
    """The line that counts in place of this one, which is its doublet, or has an amount that the bank revised."""
    run: str = ""
    """The run or decision that set it; empty until it is committed."""

    @property
    def text(self) -> str:
        """The reason with the line that counts instead, as people see it, and files have it. A reason that ends as if
        it named one gets a full stop: who writes reasons does not say which line counts."""
        if self.counts:
            return f"{self.reason} ({self.counts})"
        return f"{self.reason}." if re.search(_COUNTS, self.reason) else self.reason


def normalise_description(description: str) -> str:
    """The description as it counts for identity: compatibility forms, upper case, single spaces."""
    text = description if description.isascii() else unicodedata.normalize("NFKC", description)
    return " ".join(text.upper().split())


def make_line_id(account: str, row: BankRow, occurrence: int) -> str:
    """The line's identity, version 1: by the bank's id where it gives one, else by date and text.

    Equal rows of one day in one file differ by ``occurrence``, counted from 1. A pending row is another
    line than the posted one that will follow it.
    """
    amount = money.format_amount(row.amount)
    if row.bank_id:
        key: tuple[str, ...] = ("id", account, row.bank_id, amount, str(occurrence), row.state)
    else:
        key = (
            "text",
            account,
            row.posted_date.isoformat(),
            amount,
            normalise_description(row.description),
            str(occurrence),
            row.state,
        )
    return LINE_ID_PREFIX + hashlib.sha256("\x1f".join(key).encode()).hexdigest()[:24]


def identify_rows(account: str, rows: Iterable[BankRow]) -> list[tuple[BankRow, int, str]]:
    """Each row with its occurrence and line id, in file order."""
    seen: dict[str, int] = {}
    out = []
    for row in check_deadline(rows):
        first = make_line_id(account, row, 1)
        occurrence = seen.get(first, 0) + 1
        seen[first] = occurrence
        out.append((row, occurrence, first if occurrence == 1 else make_line_id(account, row, occurrence)))
    return out


def why_not_postable(line: BankLine) -> tuple[str, str] | None:
    """``(what it is, remedy)`` of a line that no entry may post; else None."""
    if line.state == "pending":
        return "still pending", "Post it when the bank has posted it."
    if line.state == "foreign":
        return f"in {line.currency}", "Enter what it cost (cleared journal add), then answer its card with ignore."
    return None


def make_bank_line(row: BankRow, occurrence: int, line_id: str, file_sha256: str, currency: str) -> BankLine:
    return BankLine(
        line_id,
        row.posted_date,
        row.transaction_date,
        row.amount,
        row.currency or currency,
        row.description,
        row.bank_id,
        row.balance,
        row.state,
        file_sha256,
        row.row,
        occurrence,
        "",
        sys.intern(str(row.type)),  # a file has few, and each row its own copy
    )


def iter_lines(data: bytes | None, file: str) -> Iterator[BankLine]:
    """One month of one account's lines, one at a time. Raises ``WorkspaceError`` with the damaged line."""
    texts: dict[str, str] = {}
    for line, r in check_deadline(read_rows(data, file, LINE_COLUMNS)):
        try:
            yield BankLine(
                r[0],
                date.fromisoformat(r[1]),
                date.fromisoformat(r[2]) if r[2] else None,
                money.read_amount(r[3]),
                r[4],
                r[5],
                r[6],
                money.read_amount(r[7]) if r[7] else None,
                r[8],
                texts.setdefault(r[9], r[9]),
                int(r[10]),
                int(r[11]),
                r[12],
                r[13],
            )
        except (ValueError, ArithmeticError):
            raise damage_error(file, line, "a bank line is not readable") from None


@keep_newest(files=16, versions=3)
def parse_lines_once(
    data: bytes | None, before: tuple[bytes | None, tuple[BankLine, ...]] | None, file: str
) -> tuple[BankLine, ...]:
    """As ``iter_lines``, but the same text is read once in a process, and of one that grew what is new."""
    if before is not None and (rows := _cut_new_rows(data, before[0])) is not None:
        with suppress(WorkspaceError):  # below it is said in which line
            return (*before[1], *iter_lines(rows, file))
    return tuple(iter_lines(data, file))


def parse_matches(data: bytes | None, file: str) -> dict[str, Pairs]:
    """What is matched to each line, in order. Raises ``WorkspaceError`` with the damaged line."""
    matched: dict[str, Pairs] = {}
    for line, (line_id, leg_id, text) in check_deadline(read_rows(data, file, MATCH_COLUMNS)):
        try:
            matched[line_id] = (*matched.get(line_id, ()), (leg_id, money.read_amount(text)))
        except (ValueError, ArithmeticError):
            raise damage_error(file, line, f"{text!r} is not an amount") from None
    return matched


@keep_newest(files=16, versions=3)
def parse_matches_once(
    data: bytes | None, before: tuple[bytes | None, dict[str, Pairs]] | None, file: str
) -> dict[str, Pairs]:
    """As ``parse_matches``, but the same text is read once in a process, and of one that grew what is new. The result
    is shared: do not alter it."""
    if before is not None and (rows := _cut_new_rows(data, before[0])) is not None:
        with suppress(WorkspaceError):  # below it is said in which line
            new = parse_matches(rows, file)
            return before[1] | {line_id: (*before[1].get(line_id, ()), *pairs) for line_id, pairs in new.items()}
    return parse_matches(data, file)


def _cut_new_rows(data: bytes | None, before: bytes | None) -> bytes | None:
    """The header, and the rows that come after all those of a version that was read; None where it did not grow so."""
    if data is None or before is None or not data.startswith(before):
        return None
    return before[: before.index(b"\n") + 1] + data[len(before) :]


def parse_outcomes(data: bytes | None, file: str) -> dict[str, Outcome]:
    """Line → what became of it, the latest winning."""
    found = {}
    for _, (line_id, outcome, text, run) in read_rows(data, file, OUTCOME_COLUMNS):
        named = re.search(_COUNTS, text)
        reason, counts = (text[: named.start()], named[1]) if named else (text, "")
        found[line_id] = Outcome(outcome, reason, counts, run)
    return found


def iter_duplicates(source: FileSource, files: Iterable[str]) -> Iterator[Sequence[str]]:
    """The rows that were left out, as these files have them: digest of the file, row, line, note, and id of the bank.
    Raises ``WorkspaceError`` with a damaged line."""
    for path in files:
        for _, row in check_deadline(read_rows(source.read(path), path, DUPLICATE_COLUMNS, DUPLICATE_OPTIONAL)):
            yield row


def group_repeats(source: FileSource, paths: BookPaths) -> dict[str, set[str]]:
    """``line_id → digests of the files`` that said the line again."""
    files: dict[str, set[str]] = {}
    months = paths.list_month_files(source, paths.duplicates)
    for digest, _, line_id, *_ in iter_duplicates(source, [path for _, path in months]):
        files.setdefault(line_id, set()).add(digest)
    return files


def append_rows(
    data: bytes | None, header: tuple[str, ...], rows: Iterable[str], optional: tuple[str, ...] = (), *, file: str = ""
) -> bytes:
    """The file with these rows at its end, which have all columns; so have those of earlier versions then, that lack
    some of the ``optional`` ones. Raises ``WorkspaceError`` with the damaged line where it is no such file.

    The rows are encoded some at a time: there can be very many.
    """
    head = format_record((*header, *optional)).encode()
    parts = [head if data is None else data]
    is_whole = data is None or (data.startswith(head) and data.endswith(b"\n") and not data.endswith(_BLANK_LINES))
    if data is not None and not is_whole:
        parts = [head, *(format_record(row).encode() for _, row in read_rows(data, file, header, optional))]
    waiting = iter(rows)
    while some := "".join(islice(waiting, _ROWS_AT_ONCE)):
        parts.append(some.encode("utf-8"))
    return b"".join(parts)


def read_rows(
    data: bytes | None, file: str, header: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterable[tuple[int, list[str]]]:
    """The records of a file that may be missing, each with its line. Raises ``WorkspaceError`` with a damaged line."""
    if data is None:
        return
    try:
        yield from read_records(data, header, optional=optional)
    except CsvDamage as e:
        raise damage_error(file, e.line, str(e)) from None


def damage_error(file: str, line: int, message: str) -> WorkspaceError:
    return WorkspaceError(message, place=Place(file, line), remedy=RestoreRemedy(file))

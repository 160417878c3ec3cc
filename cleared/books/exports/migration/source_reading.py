"""Files of other programs: read once, as text, and recognised. A file of adjusting entries is a CSV with date,
description, account, debit and credit, a row a line of an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final

from cleared.base import money
from cleared.base.errors import Place
from cleared.base.safe_files import read_stable
from cleared.books.bank_files.base import Faults, ImportFileError
from cleared.books.bank_files.cell_values import DateParser, make_strptime_parser
from cleared.books.bank_files.csv_table import read_records
from cleared.books.exports.migration.account_mapping import read_map_file
from cleared.books.exports.migration.beancount_reader import read_beancount
from cleared.books.exports.migration.hledger_reader import read_hledger
from cleared.books.exports.migration.source_books import (
    SourceAmounts,
    SourceBooks,
    SourceEntry,
    SourcePosting,
    find_decimal_mark,
)
from cleared.books.exports.migration.trial_balance_file import read_trial_balance
from cleared.changes.host import Host

COLUMNS: Final = {
    "date": ("date", "day"),
    "description": ("description", "memo", "text", "narration"),
    "account": ("account", "account_id", "account id", "account number", "number", "code"),
    "debit": ("debit", "debits", "dr"),
    "credit": ("credit", "credits", "cr"),
    "currency": ("currency",),
    "entry": ("entry", "entry no", "no", "ref", "reference", "journal no"),
}
"""What a column means → how it may be called."""
_DATE_FORMATS: Final = ("%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y")
REQUIRED: Final = ("date", "description", "account", "debit", "credit")
REMEDY: Final = "Its first line names the columns date, description, account, debit, credit (and entry, if you like)."


def read_adjustments(text: str, currency: str, places: int) -> SourceBooks:
    """All entries. Rows of one ``entry`` belong together; without that column, rows of one date and description do,
    until they balance. An empty date or description is that of the row before.

    Raises ``ImportFileError`` with the lines that are not understood, and with entries that do not balance.
    """
    first = text.split("\n", 1)[0]
    records = list(read_records(text, max(",;\t", key=first.count)))
    titles = [title.strip().casefold() for title in records[0][1]] if records else []
    at = {name: titles.index(t) for name, known in COLUMNS.items() for t in reversed(known) if t in titles}
    if not at.keys() >= set(REQUIRED):
        missing = ", ".join(name for name in REQUIRED if name not in at)
        raise ImportFileError(f"these are no adjusting entries: no column is called {missing}", remedy=REMEDY)
    return _EntryRows(records[1:], at, SourceAmounts(currency, places)).read_entries()


class _EntryRows:
    """Puts rows together to entries."""

    def __init__(self, rows: list[tuple[int, list[str]]], at: dict[str, int], amounts: SourceAmounts) -> None:
        self.rows, self.at, self.amounts = rows, at, amounts
        self.books, self.faults = SourceBooks("adjustments"), Faults()
        self.parse_day: DateParser = date.fromisoformat
        self._open: tuple[int, tuple[str, ...], date, str, list[SourcePosting]] | None = None

    def read_entries(self) -> SourceBooks:
        columns = self.at["debit"], self.at["credit"]
        numbers = (row[n] for _, row in self.rows for n in columns if n < len(row))
        self.amounts.decimal_mark = next(filter(None, map(find_decimal_mark, numbers)), "")
        self.parse_day = self._find_date_parser()
        day, text = "", ""
        for line, row in self.rows:
            cells = {name: row[n].strip() if n < len(row) else "" for name, n in self.at.items()}
            day, text = cells["date"] or day, cells["description"] or (text if not cells["date"] else "")
            self._read_row(line, cells, day, text)
        self._close_entry()
        if self.faults:
            raise self.faults.error(remedy=REMEDY)
        return self.books

    def _find_date_parser(self) -> DateParser:
        """Reads days as 2025-12-31, or in the one other way that fits all of them."""
        at = self.at["date"]
        days = [(line, row[at].strip()) for line, row in self.rows if at < len(row) and row[at].strip()]
        readings: dict[tuple[date, ...], DateParser] = {}
        for form in _DATE_FORMATS:
            parse = make_strptime_parser(form)
            with suppress(ValueError):
                readings.setdefault(tuple(parse(day) for _, day in days), parse)
        if len(readings) > 1:
            line, day = days[0]
            raise ImportFileError(
                f"it cannot be told which of day and month comes first in {day[:20]!r}",
                place=Place(line=line, field="date"),
                remedy="Write days as 2025-12-31.",
            )
        return next(iter(readings.values()), date.fromisoformat)

    def _read_row(self, line: int, cells: dict[str, str], day: str, text: str) -> None:
        try:
            on = self.parse_day(day)
            debit, credit = (
                self.amounts.read_amount(cells[side]) if cells[side] else Decimal(0) for side in ("debit", "credit")
            )
        except ValueError as error:
            self.faults.add(line, str(error) if day[:4].isdigit() else f"{day[:20]!r} is not a day such as 2025-12-31")
            return
        if not text or not cells["account"] or (debit and credit) or min(debit, credit) < 0:
            self.faults.add(line, "a row has a description, an account, and one of debit and credit, which is positive")
            return
        if cells.get("currency") and not self.amounts.is_ours(cells["currency"]):
            self.faults.add(line, f"it is in {cells['currency'][:10]}, the books are in {self.amounts.currency}")
            return
        key = (cells["entry"],) if cells.get("entry") else (day, text)
        if self._open is not None and (self._open[1] != key or (len(key) == 2 and self._is_balanced())):
            self._close_entry()
        if self._open is None:
            self._open = line, key, on, text, []
        if debit or credit:
            self._open[4].append(SourcePosting(cells["account"], debit - credit))

    def _is_balanced(self) -> bool:
        assert self._open is not None
        return bool(self._open[4]) and not money.total([leg.amount for leg in self._open[4]])

    def _close_entry(self) -> None:
        if self._open is None:
            return
        line, _, day, text, legs = self._open
        if legs and self._is_balanced():
            self.books.entries.append(SourceEntry(line, day, text, tuple(legs)))
        elif legs:
            left = money.format_amount(money.total([leg.amount for leg in legs]))
            self.faults.add(line, f"the entry {text[:60]!r} does not balance: {left} is left")
        self._open = None


ADJUSTMENTS: Final = "adjustments"
READERS: Final[Mapping[str, Callable[[str, str, int], SourceBooks]]] = {
    "trial-balance": read_trial_balance,
    "hledger": read_hledger,
    "beancount": read_beancount,
    ADJUSTMENTS: read_adjustments,
}
"""Format → what reads it."""
MAX_BYTES: Final = 256 << 20
_SUFFIXES: Final = {".csv": "trial-balance", ".tsv": "trial-balance", ".beancount": "beancount", ".bean": "beancount"}


def read_source(host: Host, path: Path, format: str | None = None) -> SourceBooks:
    """The books in a file; ``format``: None where it is to be recognised. Raises ``ImportFileError``."""
    try:
        text = _read_text(path)
        read = READERS[format or _recognise_format(path, text)]
        return read(text, host.config.business.currency, host.decimal_places)
    except ImportFileError as error:
        raise error.of_file(str(path)) from None


def read_account_map(path: Path | None) -> Mapping[str, int]:
    """Account of the other program → number, as a person wrote it. Raises ``ImportFileError``."""
    if path is None:
        return {}
    try:
        return read_map_file(_read_text(path))
    except ImportFileError as error:
        raise error.of_file(str(path)) from None


def _read_text(path: Path) -> str:
    data, _ = read_stable(path.resolve(), MAX_BYTES, shown=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFileError("it is not UTF-8", place=Place(line=line), remedy="Save the file as UTF-8.") from None
    if "\0" in text:
        raise ImportFileError("it holds NUL characters, so it is no text", remedy="Give a CSV or a journal.")
    return text


def _recognise_format(path: Path, text: str) -> str:
    known = _SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    plain = [line for line in text[:100_000].split("\n") if line[:1] not in ("", ";", "*", " ", "\t")]
    is_beancount = any(line.startswith(("option ", "plugin ")) or " open " in line[:20] for line in plain[:200])
    return "beancount" if is_beancount else "hledger"

"""QIF, Quicken's old interchange format: it says neither its currency nor how it writes dates.

The order of day and month, and the decimal mark, are taken from the file only where one reading alone fits all of its
rows, or all readings mean the same; else a bank account says which: ``format: qif_mdy`` or ``qif_dmy``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, TypeVar

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.errors import Place
from cleared.books.bank_files.base import BuiltInFormat, Fault, Faults, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import AmountStyle, choose_encoding, list_account_hints
from cleared.books.bank_files.csv_table import split_lines, too_many_rows_error
from cleared.books.ledger.bank_row import BankRow, ParsedFile, Statement

_T = TypeVar("_T")
_SECTIONS = frozenset({"bank", "ccard", "cash", "oth a", "oth l"})
_TYPES: Final = {"bank": "checking", "ccard": "credit_card"}
_START = re.compile(r"^!(?:Type:|Account|Option:|Clear:)", re.ASCII | re.IGNORECASE | re.MULTILINE)
_DATE = re.compile(r"\s*([0-9]{1,4})\s*[-/.]\s*([0-9]{1,2})\s*([-/.']|/')\s*([0-9]{1,4})\s*", re.ASCII)
_STYLES = (AmountStyle(".", ","), AmountStyle(",", "."))


class _Record(Struct):
    line: int
    values: dict[str, str] = {}
    """Letter → the rest of the line; the first of a split's come after the transaction's own."""


class _Section(Struct):
    account: str
    type: str
    """Of the account, where the file says it."""
    records: list[_Record] = []


class Qif(BuiltInFormat):
    """Quicken Interchange Format: bank, card and cash accounts. Investments and lists in the file are passed over."""

    name = "qif"
    orders: tuple[str, ...] = ("mdy", "dmy", "ymd")

    def find_encoding(self, data: bytes) -> str:
        return choose_encoding(data, "cp1252")

    def identify(self, sample: Sample) -> bool:
        text = sample.text.replace("\r", "\n")
        return _START.search(text) is not None and text.lstrip()[:1] in ("!", "#")

    def parse(self, text: str, places: int) -> ParsedFile:
        sections = self._read_sections(text)
        if not sections:
            raise ImportFileError(
                "there is no bank, card or cash account in it", remedy="Export the account's transactions as QIF"
            )
        records = [record for section in sections for record in section.records]
        faults = Faults()
        dates = _read_all(records, "D", [_make_date_reader(order) for order in self.orders], faults)
        readers = [_make_amount_reader(style, places) for style in _STYLES]
        amounts = _read_all(records, "T", readers, faults)
        if faults:
            raise faults.error()
        read = iter(zip(records, dates, amounts, strict=True))
        statements = []
        for section in sections:
            rows = tuple(_make_row(*next(read)) for _ in section.records)
            kind = (("type", section.type),) if section.type else ()
            statements.append(Statement(rows, section.account, hints=(*list_account_hints([section.account]), *kind)))
        return ParsedFile.of_statements(self.name, statements)

    def _read_sections(self, text: str) -> list[_Section]:
        sections: list[_Section] = []
        record: _Record | None = None
        kind, account, count = "", "", 0
        for number, raw in enumerate(check_deadline(split_lines(text)), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("!"):
                if record is not None:
                    break
                kind = line[1:].removeprefix("Type:").removeprefix("type:").strip().casefold()
                if kind in _SECTIONS:
                    sections.append(_Section(account, _TYPES.get(kind, "")))
                continue
            if kind not in _SECTIONS and kind != "account":
                continue
            if line.startswith("^"):
                if record is not None and kind == "account":
                    account = record.values.get("N", "").strip()
                elif record is not None:
                    count += 1
                    if self.max_rows is not None and count > self.max_rows:
                        raise too_many_rows_error(self.max_rows, number)
                    sections[-1].records.append(record)
                record = None
                continue
            record = record or _Record(number)
            record.values.setdefault(line[0], line[1:])
        if record is not None:
            raise ImportFileError(
                "the file is truncated: a record that begins on this line is never closed by ^",
                place=Place(line=record.line),
                remedy="Export it again; nothing of it was taken",
            )
        return sections


class QifMonthFirst(Qif):
    """QIF whose dates are written month first."""

    name = "qif_mdy"
    variant_of = "qif"
    orders = ("mdy",)


class QifDayFirst(Qif):
    """QIF whose dates are written day first."""

    name = "qif_dmy"
    variant_of = "qif"
    orders = ("dmy",)


def _read_all(
    records: Sequence[_Record], letter: str, readers: Sequence[Callable[[str], _T]], faults: Faults
) -> list[_T]:
    """The field of every record, by the one reader that fits them all. Raises ``ImportFileError`` where several do and
    mean different things."""
    fitting: list[list[_T]] = []
    failures: list[list[Fault]] = []
    name = {"D": "date", "T": "amount"}[letter]
    for read in readers:
        values: list[_T] = []
        failed: list[Fault] = []
        for record in check_deadline(records):
            cell = record.values.get(letter, record.values.get("U", "") if letter == "T" else "")
            try:
                values.append(read(cell))
            except ValueError as error:
                failed.append(Fault(record.line, str(error), name))
        if failed:
            failures.append(failed)
        else:
            fitting.append(values)
    if not fitting:
        nearest = min(failures, key=len)
        faults.extend(nearest)
        return []
    if any(values != fitting[0] for values in fitting[1:]):
        raise ImportFileError(
            f"its {name}s can be read in two ways, and no row decides which"
            + (": day first or month first" if letter == "D" else ": decimal point or decimal comma"),
            place=Place(line=records[0].line, field=name),
            remedy="Set `format: qif_mdy` (month first) or `format: qif_dmy` of its bank account in config.yaml"
            if letter == "D"
            else "Export the account as OFX or CSV",
        )
    return fitting[0]


def _make_amount_reader(style: AmountStyle, places: int) -> Callable[[str], Decimal]:
    parse = style.make_parser()
    return lambda cell: parse(cell, places)


def _make_date_reader(order: str) -> Callable[[str], date]:
    def read(cell: str) -> date:
        match = _DATE.fullmatch(cell)
        if match is None:
            raise ValueError(f"{quote_text(cell)} is not a date" if cell.strip() else "there is no date")
        parts = dict(zip(order, (match[1], match[2], match[4]), strict=True))
        if max(len(parts["d"]), len(parts["m"])) > 2 or (order == "ymd") != (len(match[1]) > 2):
            raise ValueError(f"{quote_text(cell)} is not a date written {order}")
        year = int(parts["y"])
        if len(parts["y"]) <= 2:  # '25 is 2025; /99 is 1999
            year += 2000 if "'" in match[3] or year < 70 else 1900
        elif len(parts["y"]) == 3:
            raise ValueError(f"{quote_text(cell)} is not a date")
        try:
            return date(year, int(parts["m"]), int(parts["d"]))
        except ValueError:
            raise ValueError(f"{quote_text(cell)} is not a day of the calendar, read {order}") from None

    return read


def _make_row(record: _Record, day: date, amount: Decimal) -> BankRow:
    values = record.values
    payee, memo = values.get("P", ""), values.get("M", "")
    description = payee if not memo or memo == payee else f"{payee} {memo}" if payee else memo
    return BankRow(record.line, day, description, amount)

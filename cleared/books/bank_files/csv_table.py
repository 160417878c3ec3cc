"""The common part of all CSV formats: split text into records, each with the physical line it starts on; find the
header; turn each record into a row; gather what is wrong. Nothing is repaired.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct, field

from cleared.base.clock import check_deadline
from cleared.base.errors import Place
from cleared.base.short_text import list_first
from cleared.books.bank_files.base import BuiltInFormat, Fault, Faults, FieldError, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import AmountParser, AmountStyle, DateParser, list_account_hints
from cleared.books.bank_files.total_lines import MAX_TOTALS, TrailingLine, judge_total
from cleared.books.ledger.bank_row import BankRow, ParsedFile, Statement

Hints = tuple[tuple[str, str], ...]
RowReader = Callable[[int, list[str]], BankRow]


class UndatedPending(Exception):
    """A row that the bank has not posted yet, and that has no day: it comes again with one."""


class CsvImporter(BuiltInFormat):
    """Base of the CSV formats. A subclass says which headers are its own and how a record becomes a row."""

    name: str = ""
    encoding: str = "utf-8"
    delimiter: str = ","
    skip_lines: int = 0

    def has_columns(self, names: Sequence[str]) -> bool:
        """Whether ``names`` (stripped) are this format's column headers."""
        raise NotImplementedError

    def expected_columns(self) -> Sequence[str]:
        """The headers to name where a file has others."""
        raise NotImplementedError

    def make_row_reader(self, names: Sequence[str], places: int) -> RowReader:
        """``(line, fields) -> row`` for a file with these headers; the reader raises ``FieldError``."""
        raise NotImplementedError

    def find_header(self, text: str) -> tuple[int, list[str]] | None:
        """The line of the column headers and the names there; line 0: the file has none and the names are known."""
        return read_header(text, self.delimiter, self.skip_lines)

    def make_amount_parser(self) -> AmountParser:
        """Reads amounts as this format writes them."""
        return AmountStyle().make_parser()

    def is_transaction(self, names: Sequence[str]) -> Callable[[list[str]], bool] | None:
        """Tells records that are transactions from others, such as totals; None: all are."""
        return None

    def find_account_column(self, names: Sequence[str]) -> int | None:
        """Which column names the account of each row, where a file may have several."""
        return None

    def find_hints(self, text: str, names: Sequence[str], cards: Iterable[str]) -> Hints:
        """What the file says of its account. ``cards``: the first field of every record."""
        return ()

    def identify(self, sample: Sample) -> bool:
        header = self.find_header(sample.view(self.encoding))
        return header is not None and self.has_columns(header[1])

    def parse(self, text: str, places: int) -> ParsedFile:
        header = self.find_header(text)
        if header is None:
            raise ImportFileError(
                f"there is no line of column headers, or no first row, of the format {self.name}",
                remedy="Download it again; for a profile, see its `skip_lines:` and `headers:`",
            )
        at, names = header
        if not self.has_columns(names):
            raise ImportFileError(
                f"the columns are {quote_columns(names)}, but the format {self.name} has "
                f"{quote_columns(self.expected_columns())}",
                place=Place(line=at),
                remedy="Choose another format, or describe this one under import.profiles",
            )
        table = self._read_table(text, at, names, places)
        statements = tuple(Statement(tuple(own), number, hints=_list_hints(number)) for number, own in table.accounts)
        if statements:
            return ParsedFile.of_statements(self.name, statements, table.notes)
        hints = self.find_hints(text, names, table.firsts)
        return ParsedFile(format=self.name, rows=tuple(table.rows), hints=hints, notes=tuple(table.notes))

    def _read_table(self, text: str, at: int, names: Sequence[str], places: int) -> _Table:
        """The records below the column heads on line ``at``. Raises ``ImportFileError`` with all that is wrong."""
        read = self.make_row_reader(names, places)
        width = len(names)
        wanted = self.is_transaction(names)
        table = _Table(self.find_account_column(names))
        faults, trailing = table.faults, table.trailing
        ends_open = not text.endswith(("\n", "\r"))
        last_cells: list[tuple[int, str]] = []
        try:
            records = check_deadline(read_records(text, self.delimiter, at - 1 if at else self.skip_lines))
            for number, (line, fields) in enumerate(records):
                if line == at:
                    continue
                if ends_open and fields[-1].strip():
                    last_cells.append((line, fields[-1]))
                if self.max_rows is not None and number >= self.max_rows and table.count >= self.max_rows:
                    raise too_many_rows_error(self.max_rows, line)
                count = len(fields)
                if count != width and not (count == width + 1 and not fields[-1].strip()):
                    trailing.append(
                        TrailingLine(line, fields, Fault(line, f"the row has {count} fields, the header {width}"))
                    )
                    continue
                if wanted is not None and not wanted(fields):
                    continue
                try:
                    table.add_row(read(line, fields), fields)
                except UndatedPending:
                    table.undated.append(line)
                except FieldError as error:
                    trailing.append(TrailingLine(line, fields, Fault(line, error.reason, error.field)))
        except ImportFileError as error:
            if not error.faults:
                raise
            table.give_up_totals()
            faults.extend(error.faults)  # the records after it cannot be told apart: it is the last one
        table.judge_totals(self.make_amount_parser(), places)
        if faults:
            raise faults.error(table.rows)
        faults.extend(_find_cut_figure(last_cells))
        if faults:
            raise faults.error(table.rows, "Download it again; where it is whole, put a line end at its end")
        return table


class _Table(Struct):
    """What has been read of a table so far."""

    account_at: int | None
    rows: list[BankRow] = []
    of_account: dict[str, list[BankRow]] = {}
    firsts: dict[str, None] = {}
    """The first field of every record."""
    faults: Faults = field(default_factory=Faults)
    trailing: list[TrailingLine] = []
    """Lines since the last row that are none as they stand."""
    undated: list[int] = []
    """Lines of pending rows that have no date yet."""
    notes: list[str] = []

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.faults.kept) + self.faults.more + len(self.trailing) + len(self.undated)

    @property
    def accounts(self) -> Iterable[tuple[str, list[BankRow]]]:
        """The account's number in the file, where it has a column for it, and its rows."""
        return self.of_account.items()

    def add_row(self, row: BankRow, fields: Sequence[str]) -> None:
        self.give_up_totals()
        self.rows.append(row)
        self.firsts[fields[0]] = None
        if self.account_at is not None:
            self.of_account.setdefault(fields[self.account_at].strip(), []).append(row)

    def give_up_totals(self) -> None:
        """Something follows: the lines before it are rows that cannot be read."""
        if self.trailing:
            self.faults.extend(each.fault for each in self.trailing)
            self.trailing.clear()

    def judge_totals(self, parse: AmountParser, places: int) -> None:
        """Say of each of the last lines that it is passed over as a total, or what is wrong with it."""
        if len(self.trailing) > MAX_TOTALS:
            self.give_up_totals()
        for each in self.trailing:
            said = judge_total(each, self.rows, parse, places)
            if isinstance(said, str):
                self.notes.append(f"line {each.line}: {said}")
            else:
                self.faults.extend([said])
        if self.undated:
            lines = list_first([str(line) for line in self.undated], 10)
            self.notes.append(f"pending rows without a date are left out until the bank gives them one: line {lines}")


def _list_hints(account: str) -> Hints:
    """A column may name the account in words, too: ``Checking ••1234``."""
    return list_account_hints([account])


def too_many_rows_error(max_rows: int, line: int | None = None) -> ImportFileError:
    return ImportFileError(
        f"there are more than {max_rows} rows",
        place=Place(line=line),
        remedy="Split the file, or raise `max_rows:` under import in config.yaml",
    )


def quote_columns(names: Sequence[str]) -> str:
    """Column headers for an error, each quoted only if it is odd, cut to a readable length."""
    plain = (n if n.isprintable() and "," not in n and n else repr(n) for n in names)
    return quote_text(", ".join(plain), 300)[1:-1]


def read_amount_cell(parse: AmountParser, cell: str, places: int, field: str) -> Decimal:
    try:
        return parse(cell, places)
    except ValueError as error:
        raise FieldError(str(error), field) from None


def read_date_cell(parse: DateParser, cell: str, field: str) -> date:
    try:
        return parse(cell.strip())
    except ValueError as error:
        reason = str(error) if cell.strip() else "there is no date"
        raise FieldError(reason, field) from None


_FIGURE = r"[^A-Za-z]*([.,/-])([0-9]+)[^0-9A-Za-z]*"


def _find_cut_figure(last_cells: Sequence[tuple[int, str]]) -> Iterator[Fault]:
    """Of a file without a line end: its last line, where all others end in a figure with as many places, and it does
    not. A part of an amount or of a day would be taken for the whole."""
    *others, last = [re.fullmatch(_FIGURE, cell) for _, cell in last_cells] or [None]
    marks = {each and (each[1], len(each[2])) for each in others}
    usual = marks.pop() if len(marks) == 1 else None
    if usual is None or re.search("[A-Za-z]", last_cells[-1][1]):
        return
    if last is not None and last[1] == usual[0] and len(last[2]) >= usual[1]:
        return
    yield Fault(
        last_cells[-1][0],
        f"the file is truncated: without a line end, it ends in {quote_text(last_cells[-1][1])}, without the "
        "places that all rows before it have",
    )


# \r\n, \n and a lone \r end a line, as for the csv module; no other character does.
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")


def split_lines(text: str, skip: int = 0) -> Iterator[str]:
    """The physical lines, each with its own line end, without the first ``skip``."""
    for number, match in enumerate(_LINE.finditer(text)):
        if number >= skip:
            yield match.group()


def read_records(text: str, delimiter: str = ",", skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """``(line, fields)`` of every record after ``skip`` physical lines; blank lines are passed over.

    Quoting is RFC 4180's: a quoted field may hold delimiters, line ends and doubled quotes, all kept as they
    are. Raises ``ImportFileError`` for text after a closing quote, a quote left open at the end of the file
    (a truncated file) and a field over the csv module's limit.
    """
    reader = csv.reader(split_lines(text, skip), delimiter=delimiter, strict=True)
    start = skip + 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield start, fields
            start = reader.line_num + skip + 1
    except csv.Error as error:
        faults = Faults([_describe_csv_error(str(error), text, start, reader.line_num + skip, delimiter)])
        raise faults.error() from None


def read_header(text: str, delimiter: str = ",", skip: int = 0) -> tuple[int, list[str]] | None:
    """The first record as ``(line, names)``, stripped, without one trailing empty name; None: there is none."""
    try:
        line, fields = next(read_records(text, delimiter, skip))
    except (StopIteration, ImportFileError):
        return None
    names = [name.strip() for name in fields]
    if len(names) > 1 and not names[-1]:
        names.pop()
    return line, names


def fold_names(names: Iterable[str]) -> tuple[str, ...]:
    """Column heads as they are compared."""
    return tuple(name.strip().casefold() for name in names)


def _describe_csv_error(error: str, text: str, start: int, last: int, delimiter: str) -> Fault:
    opened = _find_open_quote(text, start, last, delimiter)
    if "field limit" in error:
        return Fault(opened, f"a field is longer than {csv.field_size_limit()} characters; is a quote missing?")
    if "unexpected end" in error:
        return Fault(opened, "the file is truncated: a quote opens on this line and is never closed")
    at = "" if opened == last else f" on line {last}"
    return Fault(opened, f"text follows the closing quote{at} of a field that opens here; double quotes inside quotes")


def _find_open_quote(text: str, start: int, last: int, delimiter: str) -> int:
    """The line on which the quoted field that spoils the record of lines ``start`` to ``last`` opens."""
    opened = start
    state = "start"  # of a field; then "plain", "quoted" or "closing" (a quote inside a quoted field)
    for number, line in enumerate(split_lines(text, start - 1), start):
        if number > last:
            break
        for char in line:
            if state == "quoted":
                state = "closing" if char == '"' else state
            elif state == "start" and char == '"':
                state, opened = "quoted", number
            elif state == "closing" and char == '"':
                state = "quoted"
            elif char == delimiter:
                state = "start"
            elif state == "closing" and char not in "\r\n":
                return opened
            else:
                state = "plain"
    return opened

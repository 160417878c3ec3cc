"""The common part of all CSV formats: find the header, turn each record into a row, gather what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal

from cleared.deadline import check_deadline
from cleared.errors import Place
from cleared.importers.base import Faults, FieldError, ImportFileError, Sample, quote_text
from cleared.importers.cell_values import AmountParser, DateParser
from cleared.importers.csv_records import read_header, read_records
from cleared.importers.statement_values import list_account_hints
from cleared.schema.bank_row import BankRow, ParsedFile, Statement

Hints = tuple[tuple[str, str], ...]
RowReader = Callable[[int, list[str]], BankRow]


class CsvImporter:
    """Base of the CSV formats. A subclass says which headers are its own and how a record becomes a row."""

    name: str = ""
    encoding: str = "utf-8"
    delimiter: str = ","
    skip_lines: int = 0

    def __init__(self, max_rows: int | None = None) -> None:
        """``max_rows``: refuse as soon as there are more; None leaves it to the host's check afterwards."""
        self.max_rows = max_rows

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
        read = self.make_row_reader(names, places)
        width = len(names)
        wanted = self.is_transaction(names)
        account_at = self.find_account_column(names)
        accounts: dict[str, list[BankRow]] = {}
        rows: list[BankRow] = []
        firsts: dict[str, None] = {}
        faults = Faults()
        try:
            for line, fields in check_deadline(read_records(text, self.delimiter, at - 1 if at else self.skip_lines)):
                if line == at:
                    continue
                if self.max_rows is not None and len(rows) + len(faults.kept) + faults.more >= self.max_rows:
                    raise too_many_rows_error(self.max_rows, line)
                count = len(fields)
                if count != width and not (count == width + 1 and not fields[-1].strip()):
                    faults.add(line, f"the row has {count} fields, the header {width}")
                    continue
                if wanted is not None and not wanted(fields):
                    continue
                try:
                    rows.append(read(line, fields))
                except FieldError as error:
                    faults.add(line, error.reason, error.field)
                else:
                    firsts[fields[0]] = None
                    if account_at is not None:
                        accounts.setdefault(fields[account_at].strip(), []).append(rows[-1])
        except ImportFileError as error:
            if not error.faults:
                raise
            faults.extend(error.faults)  # the records after it cannot be told apart: it is the last one
        if faults:
            raise faults.error(rows)
        if accounts:
            statements = (Statement(tuple(own), number, hints=_list_hints(number)) for number, own in accounts.items())
            return ParsedFile.of_statements(self.name, statements)
        return ParsedFile(format=self.name, rows=tuple(rows), hints=self.find_hints(text, names, firsts))


def _list_hints(account: str) -> Hints:
    """A column may name the account in words, too: ``Checking ••1234``."""
    return list_account_hints([account])


def too_many_rows_error(max_rows: int, line: int | None = None) -> ImportFileError:
    return ImportFileError(
        f"there are more than {max_rows} rows",
        place=Place(line=line),
        remedy="Split the file, or raise `max_rows:` under import in config.yaml",
    )


def fold_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().casefold() for name in names)


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
        return parse(cell)
    except ValueError as error:
        reason = str(error) if cell.strip() else "there is no date"
        raise FieldError(reason, field) from None

"""A bank's CSV by declaration: ``import.profiles.<name>`` of the configuration as an importer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from cleared.base.errors import Place, WorkspaceError
from cleared.books.bank_files.base import FieldError
from cleared.books.bank_files.cell_values import AmountParser, AmountStyle, make_strptime_parser
from cleared.books.bank_files.csv_records import fold_names, read_header, read_records, split_lines
from cleared.books.bank_files.csv_table import CsvImporter, Hints, RowReader
from cleared.books.bank_files.profile_cells import ProfileCells
from cleared.books.bank_files.statement_values import find_valid_iban
from cleared.workspace.settings.bank_section import CsvProfile
from cleared.workspace.settings.column_checks import CSV_COLUMNS

_IBAN = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?:[ \u00a0]?[A-Z0-9]){11,30}(?![A-Z0-9])")
# Possessive and anchored: linear on a hostile line of dots.
_MASKED = re.compile(r"(?<![*xX•#.…])[*xX•#.…]{2,}+[ -]?([0-9]{4})(?![0-9])", re.ASCII)
_PREAMBLE = 64 * 1024  # characters looked at for hints


class ProfileImporter(CsvImporter):
    """Reads what a ``CsvProfile`` describes. Columns it does not name may be there, in any order.

    Conventions: the sign of ``balance`` follows that of the amounts (both are turned where ``sign`` is
    ``inverted``). Of ``debit`` and ``credit`` exactly one is filled, the other empty or zero, and neither is
    negative: a negative debit could be a withdrawal or its reversal, so it is refused. Raises
    ``WorkspaceError`` for a profile that cannot mean anything.
    """

    def __init__(self, profile: CsvProfile, max_rows: int | None = None) -> None:
        super().__init__(max_rows)
        self.profile = profile
        self.name = profile.name
        self.encoding = profile.encoding
        self.delimiter = profile.delimiter
        self.skip_lines = profile.skip_lines
        self._check_profile()
        try:
            self._dates = make_strptime_parser(profile.date_format)
        except ValueError as error:
            raise self._profile_error(str(error), "date_format") from None
        self._amounts = AmountStyle(profile.decimal, profile.thousands, profile.currency_symbols).make_parser()

    def _profile_error(self, message: str, key: str) -> WorkspaceError:
        place = Place(file="config.yaml", field=f"import.profiles.{self.name}.{key}")
        return WorkspaceError(message, place=place, remedy="Correct the profile")

    def _check_profile(self) -> None:
        profile, columns = self.profile, set(self.profile.columns)
        if unknown := sorted(columns - set(CSV_COLUMNS)):
            raise self._profile_error(
                f"there is no field {unknown[0]!r}; the fields are {', '.join(CSV_COLUMNS)}", "columns"
            )
        split = columns & {"debit", "credit"}
        if not {"date", "description"} <= columns or (len(split) == 1) or ("amount" in columns) == bool(split):
            raise self._profile_error(
                "columns must name date, description and either amount or both debit and credit", "columns"
            )
        if "direction" in columns and split:
            raise self._profile_error("direction goes with an amount column, not debit and credit", "columns")
        if split and profile.sign == "inverted":
            raise self._profile_error("sign: inverted goes with an amount column, not debit and credit", "sign")
        if len(profile.delimiter) != 1 or profile.delimiter in '\r\n"':
            raise self._profile_error("the delimiter is one character, not a quote or line end", "delimiter")
        thousands = profile.thousands
        if len(thousands) > 1 or thousands == profile.decimal or thousands in tuple("0123456789+-()\u2212"):
            raise self._profile_error(
                "thousands is one character, not a digit, a sign or the decimal mark", "thousands"
            )

    def has_columns(self, names: Sequence[str]) -> bool:
        return set(fold_names(self.expected_columns())) <= set(fold_names(names))

    def expected_columns(self) -> Sequence[str]:
        rows_with = (self.profile.rows_with,) if self.profile.rows_with else ()
        return tuple(dict.fromkeys([*self.profile.columns.values(), *self.profile.more_description, *rows_with]))

    def find_header(self, text: str) -> tuple[int, list[str]] | None:
        if self.profile.headers:
            return self._check_headerless(text)
        if not self.profile.search_lines:
            return super().find_header(text)
        lines = itertools.islice(split_lines(text), self.skip_lines, self.skip_lines + self.profile.search_lines + 1)
        for number, line in enumerate(lines, self.skip_lines + 1):
            header = read_header(line, self.delimiter)
            if header is not None and self.has_columns(header[1]):
                return number, header[1]
        return super().find_header(text)

    def _check_headerless(self, text: str) -> tuple[int, list[str]] | None:
        """Its names, where the first record has as many fields and can be read."""
        first = read_header(text, self.delimiter, self.skip_lines)
        if first is None:
            return None
        record = next(read_records(text, self.delimiter, self.skip_lines))[1]
        names = list(self.profile.headers)
        if len(record) != len(names):
            return None
        try:
            self.make_row_reader(names, 4)(1, record)
        except FieldError:
            return None
        return 0, names

    def make_amount_parser(self) -> AmountParser:
        return self._amounts

    def is_transaction(self, names: Sequence[str]) -> Callable[[list[str]], bool] | None:
        if self.profile.rows_with is None:
            return None
        at = fold_names(names).index(self.profile.rows_with.strip().casefold())
        return lambda fields: bool(fields[at].strip())

    def find_account_column(self, names: Sequence[str]) -> int | None:
        column = self.profile.columns.get("account")
        return fold_names(names).index(column.strip().casefold()) if column else None

    def make_row_reader(self, names: Sequence[str], places: int) -> RowReader:
        cells = ProfileCells(self.profile, names, places, self._dates, self._amounts)
        return cells.read_row

    def find_hints(self, text: str, names: Sequence[str], cards: Iterable[str]) -> Hints:
        """From the preamble: its text as ``header``, IBANs with right check digits, masked card numbers."""
        header = read_header(text, self.delimiter, self.skip_lines)
        above = header[0] - 1 if header else 0
        preamble = "".join(line for line, _ in zip(split_lines(text), range(above), strict=False))[:_PREAMBLE]
        if not preamble.strip():
            return ()
        pairs = [("header", preamble)]
        pairs += [("iban", iban) for m in _IBAN.finditer(preamble) if (iban := find_valid_iban(m.group()))]
        pairs += [("last4", digits) for digits in _MASKED.findall(preamble)]
        return tuple(dict.fromkeys(pairs))

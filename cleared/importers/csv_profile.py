"""A bank's CSV by declaration: ``import.profiles.<name>`` of the configuration as an importer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from cleared.config.model import CsvProfile
from cleared.config.value_checks import CSV_COLUMNS
from cleared.errors import Place, WorkspaceError
from cleared.importers.base import FieldError, ImportFileError, quote_text
from cleared.importers.cell_values import AmountStyle, make_strptime_parser
from cleared.importers.csv_records import read_header, split_lines
from cleared.importers.csv_table import CsvImporter, Hints, RowReader, fold_names, read_amount_cell, read_date_cell
from cleared.schema.bank_row import BankRow

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
        return set(fold_names(self.profile.columns.values())) <= set(fold_names(names))

    def expected_columns(self) -> Sequence[str]:
        return tuple(self.profile.columns.values())

    def make_row_reader(self, names: Sequence[str], places: int) -> RowReader:
        actual = fold_names(names)
        columns = dict(self.profile.columns)
        for column in columns.values():
            if actual.count(column.strip().casefold()) > 1:
                raise ImportFileError(
                    f"the column {quote_text(column)} is there twice",
                    place=Place(field=column),
                    remedy="Rename the column that is not meant",
                )
        index = {field: actual.index(column.strip().casefold()) for field, column in columns.items()}
        pending = set(fold_names(self.profile.pending))
        inverted = self.profile.sign == "inverted"

        def text(fields: list[str], field: str) -> str:
            at = index.get(field)
            return "" if at is None else fields[at].strip()

        def day(fields: list[str], field: str) -> date:
            return read_date_cell(self._dates, fields[index[field]], columns[field])

        def amount(fields: list[str], field: str) -> Decimal:
            exact = read_amount_cell(self._amounts, fields[index[field]], places, columns[field])
            return exact.copy_negate() if inverted and exact else exact

        def signed(fields: list[str]) -> Decimal:
            if "amount" in index:
                return amount(fields, "amount")
            debit, credit = (amount(fields, f) if text(fields, f) else None for f in ("debit", "credit"))
            for value, field in ((debit, "debit"), (credit, "credit")):
                if value is not None and value < 0:
                    raise FieldError(f"a negative {field} ({value}) can mean two things", columns[field])
            if debit and credit:
                raise FieldError(f"both debit ({debit}) and credit ({credit}) are filled", columns["debit"])
            if debit is None and credit is None:
                raise FieldError("both debit and credit are empty", columns["debit"])
            return debit.copy_negate() if debit else credit or Decimal(0).scaleb(-places)

        def currency(fields: list[str]) -> str | None:
            code = text(fields, "currency").upper()
            if code and not (len(code) == 3 and code.isascii() and code.isalpha()):
                raise FieldError(f"{quote_text(code)} is not a currency code such as USD", columns["currency"])
            return code or self.profile.currency

        def read(line: int, fields: list[str]) -> BankRow:
            return BankRow(
                row=line,
                posted_date=day(fields, "date"),
                description=fields[index["description"]],
                amount=signed(fields),
                type=text(fields, "type"),
                transaction_date=day(fields, "transaction_date") if text(fields, "transaction_date") else None,
                currency=currency(fields),
                bank_id=text(fields, "id"),
                balance=amount(fields, "balance") if text(fields, "balance") else None,
                state="pending" if text(fields, "state").casefold() in pending and "state" in index else "posted",
            )

        return read

    def find_hints(self, text: str, names: Sequence[str], cards: Iterable[str]) -> Hints:
        """From the preamble: its text as ``header``, IBANs with right check digits, masked card numbers."""
        header = read_header(text, self.delimiter, self.skip_lines)
        above = header[0] - 1 if header else 0
        preamble = "".join(line for line, _ in zip(split_lines(text), range(above), strict=False))[:_PREAMBLE]
        if not preamble.strip():
            return ()
        pairs = [("header", preamble)]
        pairs += [("iban", iban) for m in _IBAN.finditer(preamble) if (iban := _find_valid_iban(m.group()))]
        pairs += [("last4", digits) for digits in _MASKED.findall(preamble)]
        return tuple(dict.fromkeys(pairs))


def _find_valid_iban(text: str) -> str:
    """The IBAN that ``text`` begins with, without spaces; words after it are left off. Empty: there is none.

    ISO 13616: the check digits make the number 1 modulo 97.
    """
    words = text.split()
    while words:
        iban = "".join(words)
        if len(iban) >= 15 and int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1:
            return iban
        words.pop()
    return ""

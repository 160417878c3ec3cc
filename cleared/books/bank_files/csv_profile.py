"""A bank's CSV by declaration: ``import.profiles.<name>`` of the configuration as an importer, down to the cells of a
record.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from shlex import quote

from cleared.base import money
from cleared.base.errors import Place, WorkspaceError
from cleared.books.bank_files.base import FieldError, ImportFileError, quote_text
from cleared.books.bank_files.cell_values import (
    AMOUNT_COLUMNS,
    CURRENCY_MARKS,
    NAMED_CURRENCY,
    AmountParser,
    AmountStyle,
    DateParser,
    find_places,
    find_valid_iban,
    make_strptime_parser,
)
from cleared.books.bank_files.column_words import POSTED_WORDS, find_unread_state
from cleared.books.bank_files.csv_table import (
    CsvImporter,
    Hints,
    RowReader,
    UndatedPending,
    fold_names,
    read_amount_cell,
    read_date_cell,
    read_header,
    read_records,
    split_lines,
)
from cleared.books.ledger.bank_row import BankRow
from cleared.workspace.settings.bank_section import CsvProfile
from cleared.workspace.settings.column_checks import CSV_COLUMNS

_IBAN = r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?:[ \u00a0]?[A-Z0-9]){11,30}(?![A-Z0-9])"
# Possessive and anchored: linear on a hostile line of dots.
_MASKED = r"(?<![*xX•#.…])[*xX•#.…]{2,}+[ -]?([0-9]{4})(?![0-9])"
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
        pairs += [("iban", iban) for m in re.finditer(_IBAN, preamble) if (iban := find_valid_iban(m.group()))]
        pairs += [("last4", digits) for digits in re.findall(_MASKED, preamble)]
        return tuple(dict.fromkeys(pairs))


_TIME_MARK = re.compile(r"(?<=[0-9])T(?=[0-9])", re.ASCII)


class ProfileCells:
    """Reads records of a file with the column headers ``names``. Raises ``ImportFileError`` where one that the profile
    means is there twice."""

    def __init__(
        self, profile: CsvProfile, names: Sequence[str], places: int, dates: DateParser, amounts: AmountParser
    ) -> None:
        self.profile = profile
        self.places = places
        self.dates = dates
        self.amounts = amounts
        self.columns = dict(profile.columns)
        actual = fold_names(names)
        for column in (*self.columns.values(), *profile.more_description):
            if actual.count(column.strip().casefold()) > 1:
                raise ImportFileError(
                    f"the column {quote_text(column)} is there twice",
                    place=Place(field=column),
                    remedy="Rename the column that is not meant",
                )
        self.index = {field: actual.index(column.strip().casefold()) for field, column in self.columns.items()}
        self.more = [actual.index(column.strip().casefold()) for column in profile.more_description]
        self.names = names
        used = (*self.columns.values(), *profile.more_description)
        self.unread = find_unread_state(names, used)
        self.pending = set(fold_names(profile.pending))
        self.posted = set(fold_names(profile.posted))
        self.out, self.into = set(fold_names(profile.out_words)), set(fold_names(profile.in_words))
        self.inverted = profile.sign == "inverted"
        self.date_words = len(profile.date_format.split()) if profile.date_rest else 0
        marks = [(symbol, CURRENCY_MARKS.get(symbol, symbol)) for symbol in profile.currency_symbols]
        self.named = [(symbol, code) for symbol, code in marks if re.fullmatch(NAMED_CURRENCY, code)]

    def read_row(self, line: int, fields: list[str]) -> BankRow:
        """The record that starts on ``line``. Raises ``FieldError``."""
        is_pending = self._is_pending(line, fields)
        has_bought = bool(self._text(fields, "transaction_date"))
        bought = self._day(fields, "transaction_date") if has_bought else None
        if is_pending and not self._text(fields, "date"):
            if bought is None:
                raise UndatedPending
            posted = bought
        else:
            posted = self._day(fields, "date")
        currency = self._currency(fields)
        places = find_places(currency, self.places)
        fee = self._fee(fields, places)
        amount = self._signed_amount(fields, places)
        if fee and self.profile.fee == "on_top":
            amount = money.total([amount, fee])
        description = fields[self.index["description"]]
        if self.more:
            words = (description, *(fields[at] for at in self.more))
            description = " ".join(dict.fromkeys(text for word in words if (text := word.strip())))
        return BankRow(
            row=line,
            posted_date=posted,
            description=description,
            amount=amount,
            type=self._text(fields, "type"),
            transaction_date=bought,
            currency=currency,
            bank_id=self._text(fields, "id"),
            balance=self._amount(fields, "balance", places) if self._text(fields, "balance") else None,
            state="pending" if is_pending else "posted",
            fee=fee,
        )

    def _text(self, fields: list[str], field: str) -> str:
        at = self.index.get(field)
        return "" if at is None else fields[at].strip()

    def _is_pending(self, line: int, fields: list[str]) -> bool:
        if "state" not in self.index:
            if self.unread is not None and fields[self.unread].strip().casefold() in self.pending:
                raise self._make_unread_error(line, fields[self.unread].strip())
            return False
        state = self._text(fields, "state").casefold()
        if state in self.pending:
            return True
        if state and self.posted and state not in self.posted | POSTED_WORDS:
            word = quote_text(self._text(fields, "state"))
            raise FieldError(f"{word} is no word of pending or posted of its profile", self.columns["state"])
        return False

    def _make_unread_error(self, line: int, word: str) -> ImportFileError:
        assert self.unread is not None
        column = self.names[self.unread].strip()
        return ImportFileError(
            f"{quote_text(word)} stands in the column {quote_text(column)}, which the format {self.profile.name} does "
            "not read: that row, and perhaps others, would be booked twice",
            place=Place(line=line, field=column),
            remedy=f"Say that it is the rows' state: cleared bank add FILE --account ID --column state={quote(column)}."
            " If such rows count all the same, `pending: []` in the profile says so",
        )

    def _day(self, fields: list[str], field: str) -> date:
        cell = fields[self.index[field]]
        if self.date_words:
            cell = " ".join(_TIME_MARK.sub(" ", cell).split()[: self.date_words])
        return read_date_cell(self.dates, cell, self.columns[field])

    def _amount(self, fields: list[str], field: str, places: int) -> Decimal:
        exact = read_amount_cell(self.amounts, fields[self.index[field]], places, self.columns[field])
        return exact.copy_negate() if self.inverted and exact else exact

    def _fee(self, fields: list[str], places: int) -> Decimal | None:
        if not self._text(fields, "fee"):
            return None
        exact = read_amount_cell(self.amounts, fields[self.index["fee"]], places, self.columns["fee"])
        return exact.copy_negate() if self.profile.fee_sign == "inverted" and exact else exact

    def _signed_amount(self, fields: list[str], places: int) -> Decimal:
        if "direction" in self.index:
            return self._directed_amount(fields, places)
        if "amount" in self.index:
            return self._amount(fields, "amount", places)
        columns = self.columns
        debit, credit = (
            self._amount(fields, f, places) if self._text(fields, f) else None for f in ("debit", "credit")
        )
        if credit is not None and self.profile.credit_sign == "either":
            credit = credit.copy_abs()
        for value, field in ((debit, "debit"), (credit, "credit")):
            if value is not None and value < 0:
                raise FieldError(f"a negative {field} ({value}) can mean two things", columns[field])
        if debit and credit:
            raise FieldError(f"both debit ({debit}) and credit ({credit}) are filled", columns["debit"])
        if debit is None and credit is None:
            raise FieldError("both debit and credit are empty", columns["debit"])
        return debit.copy_negate() if debit else credit or Decimal(0).scaleb(-places)

    def _directed_amount(self, fields: list[str], places: int) -> Decimal:
        word, amount = self._text(fields, "direction"), self._amount(fields, "amount", places)
        column = self.columns["direction"]
        if amount < 0:
            raise FieldError(f"a negative amount ({amount}) marked {quote_text(word)} can mean two things", column)
        if word.casefold() in self.into:
            return amount
        if word.casefold() in self.out:
            return amount.copy_negate() if amount else amount
        raise FieldError(f"{quote_text(word)} is no word of out_words or in_words", column)

    def _currency(self, fields: list[str]) -> str | None:
        code = self._text(fields, "currency").upper() or self._find_named(fields)
        if code and not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise FieldError(f"{quote_text(code)} is not a currency code such as USD", self.columns["currency"])
        return code or self.profile.currency

    def _find_named(self, fields: list[str]) -> str:
        """The currency that the amount itself names."""
        cells = [self._text(fields, field) for field in AMOUNT_COLUMNS] if self.named else ()
        return next((code for symbol, code in self.named for cell in cells if symbol in cell), "")

"""The cells of one record of a CSV as a profile means them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from shlex import quote

from cleared.base import money
from cleared.base.errors import Place
from cleared.books.bank_files.base import FieldError, ImportFileError, quote_text
from cleared.books.bank_files.cell_values import AmountParser, DateParser
from cleared.books.bank_files.column_words import POSTED_WORDS, find_unread_state
from cleared.books.bank_files.csv_records import fold_names
from cleared.books.bank_files.csv_table import UndatedPending, read_amount_cell, read_date_cell
from cleared.books.bank_files.statement_values import find_places
from cleared.books.ledger.bank_row import BankRow
from cleared.workspace.settings.bank_section import CsvProfile

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
        code = self._text(fields, "currency").upper()
        if code and not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise FieldError(f"{quote_text(code)} is not a currency code such as USD", self.columns["currency"])
        return code or self.profile.currency

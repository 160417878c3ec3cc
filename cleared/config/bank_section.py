"""The sections about banks: ``bank_accounts`` and ``import.profiles``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Literal

from cleared.config.section import Section, config_section


@config_section
class Opening(Section):
    date: date
    balance: Decimal


@config_section
class Match(Section):
    """How a file is recognised as this account's. Every key given must agree."""

    folder: str | None = None
    """Sub-folder of ``import/`` the file lies in."""
    last4: str | None = None
    iban: str | None = None
    account: str | None = None
    """The account's number as the bank writes it in OFX, MT940 and the like, or ``bank/number``. Files of the account's
    ``format`` that state no number at all still fit."""
    header: str | None = None
    """Text that must occur in the lines before the column header."""


@config_section
class BankAccount(Section):
    id: str
    """Names the folder of its bank facts; ``[a-z0-9_-]+``."""
    name: str = ""
    type: Literal["checking", "savings", "credit_card", "processor", "other"] = "checking"
    ledger_account: int = 1010
    currency: str | None = None
    """None: the base currency."""
    format: str | None = None
    """Importer or profile name; None: any. A statement that states the number that ``match`` has fits in any format."""
    other_formats: tuple[str, ...] = ()
    """Further formats that its files have."""
    opening: Opening | None = None
    match: Match = field(default_factory=Match)
    date_basis: Literal["posted", "transaction"] = "posted"

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that its files have; empty: any."""
        return () if self.format is None else (self.format, *self.other_formats)


@config_section
class CsvProfile(Section):
    """A bank's CSV described, not programmed (``import.profiles.<name>``)."""

    name: str
    columns: Mapping[str, str]
    """field → column header. Fields: date, description, amount | debit + credit, and optionally
    transaction_date, balance, id, type, currency, state, fee, direction, account."""
    headers: tuple[str, ...] = ()
    """Names for the columns of files that have no line of headers, in order; ``columns`` uses them."""
    more_description: tuple[str, ...] = ()
    """Columns whose text follows the description's."""
    date_format: str = "%Y-%m-%d"
    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: Literal[".", ","] = "."
    thousands: str = ""
    """Grouping character, e.g. ``,`` ``.`` ``'`` or a space; empty: none allowed."""
    sign: Literal["as_is", "inverted"] = "as_is"
    """``inverted``: the file writes money out as positive."""
    skip_lines: int = 0
    """Preamble lines before the column header."""
    search_lines: int = 0
    """Where the preamble's length varies: among how many further lines the column header is looked for."""
    rows_with: str | None = None
    """A column that is empty in lines that are no transactions, such as totals: those are passed over."""
    date_rest: bool = False
    """Whether more may follow the date in its cell, such as a time."""
    credit_sign: Literal["as_is", "either"] = "as_is"
    """``either``: the credit column's amounts may be written as negative, and mean money in all the same."""
    fee: Literal["within", "on_top"] = "within"
    """Whether the amount is net of the fee column's, or the fee is taken off the account as well."""
    fee_sign: Literal["as_is", "inverted"] = "as_is"
    """``inverted``: the file writes a fee that was kept as positive."""
    out_words: tuple[str, ...] = ("debit", "dr", "d", "withdrawal", "out")
    """Values of the direction column (case-insensitive) that mean money out. The amount is without a sign then."""
    in_words: tuple[str, ...] = ("credit", "cr", "c", "deposit", "in")
    """Those that mean money in."""
    currency: str | None = None
    """Currency of every row where there is no currency column."""
    currency_symbols: tuple[str, ...] = ()
    """Texts stripped from amounts, e.g. ``$`` or ``EUR``."""
    pending: tuple[str, ...] = ("pending",)
    """Values of the state column (case-insensitive) that mean: not posted yet."""

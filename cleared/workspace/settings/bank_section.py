"""The sections about banks: ``bank_accounts`` and ``import.profiles``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Final, Literal

from cleared.workspace.settings.section import Section, config_section, protected

PENDING_WORDS: Final = (
    "pending",
    "unposted",
    "uncleared",
    "processing",
    "in progress",
    "authorized",
    "authorised",
    "on hold",
    "scheduled",
    "vorgemerkt",
    "ausstehend",
    "nicht gebucht",
    "in bearbeitung",
    "reserviert",
    "pendiente",
    "no contabilizado",
    "en attente",
    "en cours",
    "à venir",
    "in sospeso",
    "in attesa",
    "non contabilizzato",
    "pendente",
    "in behandeling",
    "gereserveerd",
    "reserverad",
    "väntande",
    "oczekująca",
    "w trakcie",
    "declined",
    "denied",
    "failed",
    "cancelled",
    "canceled",
    "rejected",
    "abgelehnt",
    "fehlgeschlagen",
)
"""What banks write beside rows that have moved no money yet, or never will."""


@config_section
class Opening(Section):
    date: date = protected()
    balance: Decimal = protected()


@config_section
class Match(Section):
    """How a file is recognised as this account's. Every key given must agree."""

    folder: str | None = protected(default=None)
    """Sub-folder of ``import/`` the file lies in."""
    last4: str | None = protected(default=None)
    iban: str | None = protected(default=None)
    account: str | None = protected(default=None)
    """The account's number as the bank writes it in OFX, MT940 and the like, or ``bank/number``. Files of the account's
    ``format`` that state no number at all still fit."""
    header: str | None = protected(default=None)
    """Text that must occur in the lines before the column header."""


@config_section
class BankAccount(Section):
    id: str = protected()
    """Names the folder of its bank facts; ``[a-z0-9_-]+``."""
    name: str = protected(default="")
    type: Literal["checking", "savings", "credit_card", "processor", "other"] = protected(default="checking")
    ledger_account: int = protected(default=1010)
    currency: str | None = protected(default=None)
    """None: the base currency."""
    format: str | None = protected(default=None)
    """Importer or profile name; None: any. ``chase`` is the one of Chase for its ``type``. A statement that states the
    number that ``match`` has fits in any format."""
    other_formats: tuple[str, ...] = protected(default=())
    """Further formats that its files have."""
    opening: Opening | None = None
    match: Match = field(default_factory=Match)
    date_basis: Literal["posted", "transaction"] = protected(default="posted")

    @property
    def main_format(self) -> str | None:
        """The format by the name of its importer or profile."""
        if self.format == "chase":
            return "chase_card" if self.type == "credit_card" else "chase_checking"
        return self.format

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that its files have; empty: any."""
        return () if self.main_format is None else (self.main_format, *self.other_formats)


@config_section
class CsvProfile(Section):
    """A bank's CSV described, not programmed (``import.profiles.<name>``)."""

    name: str
    columns: Mapping[str, str] = protected()
    """field → column header. Fields: date, description, amount | debit + credit, and optionally
    transaction_date, balance, id, type, currency, state, fee, direction, account."""
    headers: tuple[str, ...] = protected(default=())
    """Names for the columns of files that have no line of headers, in order; ``columns`` uses them."""
    more_description: tuple[str, ...] = protected(default=())
    """Columns whose text follows the description's."""
    date_format: str = protected(default="%Y-%m-%d")
    delimiter: str = protected(default=",")
    encoding: str = protected(default="utf-8")
    decimal: Literal[".", ","] = protected(default=".")
    thousands: str = protected(default="")
    """Grouping character, e.g. ``,`` ``.`` ``'`` or a space; empty: none allowed."""
    sign: Literal["as_is", "inverted"] = protected(default="as_is")
    """``inverted``: the file writes money out as positive."""
    skip_lines: int = protected(default=0)
    """Preamble lines before the column header."""
    search_lines: int = protected(default=0)
    """Where the preamble's length varies: among how many further lines the column header is looked for."""
    rows_with: str | None = protected(default=None)
    """A column that is empty in lines that are no transactions, such as totals: those are passed over."""
    date_rest: bool = protected(default=False)
    """Whether more may follow the date in its cell, such as a time."""
    credit_sign: Literal["as_is", "either"] = protected(default="as_is")
    """``either``: the credit column's amounts may be written as negative, and mean money in all the same."""
    fee: Literal["within", "on_top"] = protected(default="within")
    """Whether the amount is net of the fee column's, or the fee is taken off the account as well."""
    fee_sign: Literal["as_is", "inverted"] = protected(default="as_is")
    """``inverted``: the file writes a fee that was kept as positive."""
    out_words: tuple[str, ...] = protected(default=("debit", "dr", "d", "withdrawal", "out"))
    """Values of the direction column (case-insensitive) that mean money out. The amount is without a sign then."""
    in_words: tuple[str, ...] = protected(default=("credit", "cr", "c", "deposit", "in"))
    """Those that mean money in."""
    currency: str | None = protected(default=None)
    """Currency of every row where there is no currency column."""
    currency_symbols: tuple[str, ...] = protected(default=())
    """Texts stripped from amounts, e.g. ``$`` or ``EUR``. One that names a currency (``EUR``, ``€``, ``£``) says the
    row's where no column does."""
    pending: tuple[str, ...] = protected(default=PENDING_WORDS)
    """Values of the state column (case-insensitive) that mean: not posted yet."""
    posted: tuple[str, ...] = protected(default=())
    """Those that mean posted, beside common ones such as ``posted`` and an empty cell; a row with any other word is
    refused then. Empty: all others mean it."""

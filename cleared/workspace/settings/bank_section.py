"""The sections about banks: ``bank_accounts`` and ``import.profiles``."""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final, Literal

from cleared.workspace.settings.section import Protected, Section

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


class Opening(Section, frozen=True, kw_only=True):
    date: Protected[date]
    balance: Protected[Decimal]


class Match(Section, frozen=True, kw_only=True):
    """How a file is recognised as this account's. Every key given must agree."""

    folder: Protected[str | None] = None
    """Sub-folder of ``import/`` the file lies in."""
    last4: Protected[str | None] = None
    iban: Protected[str | None] = None
    account: Protected[str | None] = None
    """The account's number as the bank writes it in OFX, MT940 and the like, or ``bank/number``. Files of the account's
    ``format`` that state no number at all still fit."""
    header: Protected[str | None] = None
    """Text that must occur in the lines before the column header."""


class BankAccount(Section, frozen=True, kw_only=True):
    id: Protected[str]
    """Names the folder of its bank facts; ``[a-z0-9_-]+``."""
    name: Protected[str] = ""
    type: Protected[Literal["checking", "savings", "credit_card", "processor", "other"]] = "checking"
    ledger_account: Protected[int] = 1010
    currency: Protected[str | None] = None
    """None: the base currency."""
    format: Protected[str | None] = None
    """Importer or profile name; None: any. ``chase`` is the one of Chase for its ``type``. A statement that states the
    number that ``match`` has fits in any format."""
    other_formats: Protected[tuple[str, ...]] = ()
    """Further formats that its files have."""
    opening: Opening | None = None
    match: Match = Match()
    date_basis: Protected[Literal["posted", "transaction"]] = "posted"

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


class CsvProfile(Section, frozen=True, kw_only=True):
    """A bank's CSV described, not programmed (``import.profiles.<name>``)."""

    name: str
    columns: Protected[Mapping[str, str]]
    """field → column header. Fields: date, description, amount | debit + credit, and optionally
    transaction_date, balance, id, type, currency, state, fee, direction, account."""
    headers: Protected[tuple[str, ...]] = ()
    """Names for the columns of files that have no line of headers, in order; ``columns`` uses them."""
    more_description: Protected[tuple[str, ...]] = ()
    """Columns whose text follows the description's."""
    date_format: Protected[str] = "%Y-%m-%d"
    delimiter: Protected[str] = ","
    encoding: Protected[str] = "utf-8"
    decimal: Protected[Literal[".", ","]] = "."
    thousands: Protected[str] = ""
    """Grouping character, e.g. ``,`` ``.`` ``'`` or a space; empty: none allowed."""
    sign: Protected[Literal["as_is", "inverted"]] = "as_is"
    """``inverted``: the file writes money out as positive."""
    skip_lines: Protected[int] = 0
    """Preamble lines before the column header."""
    search_lines: Protected[int] = 0
    """Where the preamble's length varies: among how many further lines the column header is looked for."""
    rows_with: Protected[str | None] = None
    """A column that is empty in lines that are no transactions, such as totals: those are passed over."""
    date_rest: Protected[bool] = False
    """Whether more may follow the date in its cell, such as a time."""
    credit_sign: Protected[Literal["as_is", "either"]] = "as_is"
    """``either``: the credit column's amounts may be written as negative, and mean money in all the same."""
    fee: Protected[Literal["within", "on_top"]] = "within"
    """Whether the amount is net of the fee column's, or the fee is taken off the account as well."""
    fee_sign: Protected[Literal["as_is", "inverted"]] = "as_is"
    """``inverted``: the file writes a fee that was kept as positive."""
    out_words: Protected[tuple[str, ...]] = ("debit", "dr", "d", "withdrawal", "out")
    """Values of the direction column (case-insensitive) that mean money out. The amount is without a sign then."""
    in_words: Protected[tuple[str, ...]] = ("credit", "cr", "c", "deposit", "in")
    """Those that mean money in."""
    currency: Protected[str | None] = None
    """Currency of every row where there is no currency column."""
    currency_symbols: Protected[tuple[str, ...]] = ()
    """Texts stripped from amounts, e.g. ``$`` or ``EUR``. One that names a currency (``EUR``, ``€``, ``£``) says the
    row's where no column does."""
    pending: Protected[tuple[str, ...]] = PENDING_WORDS
    """Values of the state column (case-insensitive) that mean: not posted yet."""
    posted: Protected[tuple[str, ...]] = ()
    """Those that mean posted, beside common ones such as ``posted`` and an empty cell; a row with any other word is
    refused then. Empty: all others mean it."""

"""Bank files as the banks write them, and the configuration that reads them."""

from __future__ import annotations

from typing import Any

import pytest

from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.file_reading import read_file
from cleared.books.ledger.bank_row import BankRow, ParsedFile
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile
from cleared.workspace.settings.model import Config, Import, Limits

CHECKING_HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #"
CARD_HEADER = "Transaction Date,Post Date,Description,Category,Type,Amount,Memo"

CHECKING = f"""{CHECKING_HEADER}
DEBIT,01/31/2025,"GITHUB, INC. SAN FRANCISCO CA",-21.00,DEBIT_CARD,4979.00,,
CREDIT,01/30/2025,"STRIPE           TRANSFER   ST-A1B2",5000.00,ACH_CREDIT,5000.00,,
CHECK,01/29/2025,CHECK 1042,-0.00,CHECK_PAID, ,1042,
"""
CARD = f"""{CARD_HEADER}
01/30/2025,01/31/2025,AMAZON MKTPL*AB1,Shopping,Sale,-12.34,
01/28/2025,01/29/2025,Payment Thank You - Web,,Payment,250.00,
"""

GERMAN = CsvProfile(
    name="sparkasse",
    columns={"date": "Buchungstag", "description": "Verwendungszweck", "amount": "Betrag", "balance": "Saldo €"},
    date_format="%d.%m.%y",
    delimiter=";",
    encoding="cp1252",
    decimal=",",
    thousands=".",
    currency_symbols=("€", "EUR"),
    currency="EUR",
    skip_lines=3,
)
GERMAN_TEXT = (
    "Kontoauszug Girokonto\r\nIBAN: DE89 3704 0044 0532 0130 00 EUR\r\n\r\n"
    "Buchungstag;Verwendungszweck;Betrag;Saldo €\r\n"
    '31.01.25;"Müller & Söhne; Köln";-1.234,50 €;10.000,00\r\n'
    "30.01.25;Gutschrift;12,00- EUR;\r\n"
)


def profile(**keys: Any) -> CsvProfile:
    """A plain profile named ``p`` over the columns Date, Text, Amount; ``keys`` change it."""
    keys.setdefault("columns", {"date": "Date", "description": "Text", "amount": "Amount"})
    return CsvProfile(name="p", **keys)


def config(
    *profiles: CsvProfile,
    accounts: tuple[BankAccount, ...] = (),
    limits: Limits | None = None,
    plugins: tuple[str, ...] = (),
    **import_: Any,
) -> Config:
    return Config(
        bank_accounts=accounts,
        import_=Import(profiles={p.name: p for p in profiles}, plugins=plugins, **import_),
        limits=limits or Limits(),
    )


def read(text: str | bytes, *profiles: CsvProfile, places: int = 2, **keys: Any) -> ParsedFile:
    data = text.encode() if isinstance(text, str) else text
    return read_file("a.csv", data, config(*profiles, **keys), places)


def refusal(text: str | bytes, *profiles: CsvProfile, **keys: Any) -> ImportFileError:
    """The refusal of a file; it names the file and is one paragraph with a remedy."""
    with pytest.raises(ImportFileError) as caught:
        read(text, *profiles, **keys)
    error = caught.value
    assert error.place is not None and error.place.file == "a.csv"
    assert error.exit_code == 1
    assert error.remedy
    assert "\n" not in str(error)
    return error


def checking(*rows: str) -> str:
    return "\n".join([CHECKING_HEADER, *rows]) + "\n"


def one(cell: str, **keys: Any) -> BankRow:
    """The row of a file whose only amount is ``cell``, read by a plain profile with ``keys``."""
    quoted = cell.replace('"', '""')
    return read(f'Date,Text,Amount\n2025-01-02,x,"{quoted}"\n', profile(**keys)).rows[0]

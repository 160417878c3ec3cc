"""The contract test of importers, for plug-in authors too::

    from cleared.books.bank_files.plugin_tests import check_importer

    def test_my_importer() -> None:
        check_importer(MyImporter(), [Path("sample.csv").read_bytes()])

``check_importer`` raises ``AssertionError`` with what is broken; it needs no test framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

from cleared.books.bank_files.base import Importer, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import find_places
from cleared.books.bank_files.text_decoding import decode_text
from cleared.books.ledger.bank_row import BankRow, ParsedFile, Statement

# No bank's: an importer that recognises one of these recognises too much.
_STRANGERS = (
    b"",
    b"\n",
    b"\0" * 64,
    bytes(range(256)),
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    b'"' * 99,
    b"name,colour\nrose,red\n",
    b"<!DOCTYPE html><html><body>Your session has expired</body></html>",
)


def check_importer(
    importer: Importer, samples: Iterable[bytes], *, places: int = 2, strangers: Iterable[bytes] = ()
) -> None:
    """Hold an importer against its contract.

    ``samples`` are whole files of the format, in its currency's ``places``, at least one. ``strangers`` are
    files of other formats that it must not take for its own.
    """
    samples = list(samples)
    assert samples, "check_importer needs at least one sample file"
    assert isinstance(importer, Importer), f"{importer!r} lacks name, identify or parse"
    name = importer.name
    assert re.fullmatch(r"[a-z0-9_-]+", name, re.ASCII), f"name {name!r} is not [a-z0-9_-]+"
    for data in (*_STRANGERS, *strangers):
        answer = _identify_sample(importer, data)
        assert answer is False, f"{name}: identify must be False for {quote_text(repr(data[:60]))}, it is {answer!r}"
    for number, data in enumerate(samples, 1):
        _check_sample(importer, data, places, f"{name}, sample {number}")


def _identify_sample(importer: Importer, data: bytes) -> object:
    try:
        return importer.identify(Sample("sample", data))
    except Exception as error:
        raise AssertionError(
            f"{importer.name}: identify raised {type(error).__name__} ({error}) for {data[:60]!r}; "
            "it must answer True or False for any bytes"
        ) from error


def _check_sample(importer: Importer, data: bytes, places: int, sample_name: str) -> None:
    answer = _identify_sample(importer, data)
    assert answer is True, f"{sample_name}: identify must be True, it is {answer!r}"
    try:
        text = decode_text(data, _find_encoding(importer, data))
        parsed = importer.parse(text, places)
    except ImportFileError as error:
        raise AssertionError(f"{sample_name}: refused: {error}") from error
    _check_parsed(importer, parsed, text, places, sample_name)
    assert importer.parse(text, places) == parsed, f"{sample_name}: parsing it again gives something else"
    _check_damaged(importer, text, places, sample_name)
    windows = re.sub(r"\r\n?|\n", "\r\n", text)
    again = importer.parse(windows, places).rows
    assert [(r.row, r.posted_date, r.amount) for r in again] == [
        (r.row, r.posted_date, r.amount) for r in parsed.rows
    ], f"{sample_name}: with CRLF line ends its rows are others"


def _find_encoding(importer: Importer, data: bytes) -> str:
    declares = getattr(importer, "find_encoding", None)
    return str(declares(data)) if declares is not None else getattr(importer, "encoding", None) or "utf-8"


def _check_parsed(importer: Importer, parsed: ParsedFile, text: str, places: int, sample_name: str) -> None:
    assert isinstance(parsed, ParsedFile), f"{sample_name}: parse must return a ParsedFile, not {type(parsed).__name__}"
    assert parsed.format == importer.name, f"{sample_name}: format is {parsed.format!r}, not {importer.name!r}"
    assert isinstance(parsed.rows, tuple), f"{sample_name}: rows must be a tuple"
    said = any(not s.says_nothing for s in parsed.parts)
    assert parsed.rows or said, f"{sample_name}: rows must be a tuple, not empty, or the statements say something"
    for hint in parsed.hints:
        assert isinstance(hint, tuple) and len(hint) == 2 and all(isinstance(h, str) for h in hint), (
            f"{sample_name}: the hint {hint!r} is not a pair of texts"
        )
    if parsed.parts:
        joined = tuple(row for statement in parsed.parts for row in statement.rows)
        assert joined == parsed.rows, f"{sample_name}: rows are not those of the statements, in their order"
    last = 0
    numbered = getattr(importer, "numbers_rows", False)
    count = len(parsed.rows) if numbered else len(re.findall(r"\r\n?|\n", text)) + 1
    for statement in parsed.statements:
        last = 0 if not numbered else last
        own = find_places(statement.currency, places)
        _check_balances(statement, own, sample_name)
        for row in statement.rows:
            assert isinstance(row, BankRow), f"{sample_name}: {row!r} is not a BankRow"
            assert type(row.row) is int and last < row.row <= count, (
                f"{sample_name}: row {row.row!r} is not a line number after {last} of a file with {count} lines"
                if not numbered
                else f"{sample_name}: row {row.row!r} is not a number after {last} of a file with {count} rows"
            )
            last = row.row
            _check_row(row, own, f"{sample_name}, line {row.row}")


def _check_balances(statement: Statement, places: int, at: str) -> None:
    for field, text in (("account", statement.account), ("bank", statement.bank)):
        assert type(text) is str, f"{at}: {field} {text!r} is not a text"
    for field, balance in (("opening", statement.opening), ("closing", statement.closing)):
        if balance is not None:
            _require_exact(balance.amount, places, f"{at}: {field}")
            assert balance.day is None or type(balance.day) is date, f"{at}: {field} {balance!r} has no date"


def _require_exact(amount: object, places: int, at: str) -> None:
    exact = type(amount) is Decimal and amount.is_finite() and amount.as_tuple().exponent == -places
    assert exact, f"{at} {amount!r} is not a Decimal with {places} decimals"


def _check_row(row: BankRow, places: int, at: str) -> None:
    assert row.currency is None or re.fullmatch(r"[A-Z]{3}", row.currency), (
        f"{at}: currency {row.currency!r} is not an ISO 4217 code"
    )
    places = find_places(row.currency, places)
    for field, day in (("posted_date", row.posted_date), ("transaction_date", row.transaction_date)):
        optional = field == "transaction_date" and day is None
        assert optional or (isinstance(day, date) and not isinstance(day, datetime)), (
            f"{at}: {field} {day!r} is not a date"
        )
    for field, amount in (("amount", row.amount), ("balance", row.balance), ("fee", row.fee)):
        if amount is not None or field == "amount":
            _require_exact(amount, places, f"{at}: {field}")
    texts = (("description", row.description), ("type", row.type), ("bank_id", row.bank_id), ("corrects", row.corrects))
    for field, text in texts:
        assert type(text) is str, f"{at}: {field} {text!r} is not a text"
    assert row.state in ("posted", "pending"), f"{at}: state {row.state!r} is not posted or pending"


def _check_damaged(importer: Importer, text: str, places: int, sample_name: str) -> None:
    """Damage of every kind is refused by ``ImportFileError`` or read, never another exception."""
    middle = len(text) // 2
    lines = text.splitlines(keepends=True)
    damaged = {
        "nothing": "",
        "the header alone": lines[0],
        "half the file": text[:middle],
        "a quote in the middle": f'{text[:middle]}"{text[middle:]}',
        "an open quote at the end": f'{text}"',
        "a NUL": f"{text[:middle]}\0{text[middle:]}",
        "commas at the end": f"{text},,,,,,,,,,,,\n",
        "other digits": text.replace("1", "①"),
        "no digits": re.sub(r"[0-9]", "x", text),
        "nothing but its end": text[middle:],
    }
    for kind, broken in damaged.items():
        try:
            importer.parse(broken, places)
        except ImportFileError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{sample_name}, damaged ({kind}): parse raised {type(error).__name__} ({error}); "
                "only ImportFileError may come out of it"
            ) from error

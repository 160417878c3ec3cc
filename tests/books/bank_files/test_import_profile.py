"""Declared CSV profiles: only what is declared is read, nothing is guessed (B6, B10)."""

from __future__ import annotations

import csv
import io
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import one, profile, read, refusal
from msgspec.structs import replace

from cleared.base import money
from cleared.base.errors import WorkspaceError
from cleared.books.bank_files.csv_profile import ProfileImporter
from cleared.workspace.settings.bank_section import CsvProfile

SPLIT = {"date": "Date", "description": "Text", "debit": "Out", "credit": "In"}


@pytest.mark.parametrize(
    ("cell", "keys", "amount"),
    [
        ("1,234.56", {"thousands": ","}, "1234.56"),
        ("1234.56", {"thousands": ","}, "1234.56"),
        ("-1,234,567", {"thousands": ","}, "-1234567.00"),
        ("1.234,56", {"decimal": ",", "thousands": "."}, "1234.56"),
        ("1.234", {"decimal": ",", "thousands": "."}, "1234.00"),
        ("12,5", {"decimal": ","}, "12.50"),
        (",5", {"decimal": ","}, "0.50"),
        ("1 234,56", {"decimal": ",", "thousands": " "}, "1234.56"),
        ("1\u00a0234\u00a0567,56", {"decimal": ",", "thousands": " "}, "1234567.56"),
        ("-1\u202f234,56", {"decimal": ",", "thousands": " "}, "-1234.56"),
        ("1'234.56", {"thousands": "'"}, "1234.56"),
        ("1\u2019234.56", {"thousands": "'"}, "1234.56"),
        ("$12.50", {"currency_symbols": ("$",)}, "12.50"),
        ("-$12.50", {"currency_symbols": ("$",)}, "-12.50"),
        ("$-12.50", {"currency_symbols": ("$",)}, "-12.50"),
        ("($12.50)", {"currency_symbols": ("$",)}, "-12.50"),
        ("$(12.50)", {"currency_symbols": ("$",)}, "-12.50"),
        ("12.50- EUR", {"currency_symbols": ("€", "EUR")}, "-12.50"),
        ("US$ 12.50", {"currency_symbols": ("$", "US$")}, "12.50"),
        ("\u22121,234.56", {"thousands": ","}, "-1234.56"),
        ("(1,234.56)", {"thousands": ","}, "-1234.56"),
        ("12.50+", {}, "12.50"),
        ("12.500", {}, "12.50"),
        ("0", {}, "0.00"),
        ("12.50", {"sign": "inverted"}, "-12.50"),
        ("-12.50", {"sign": "inverted"}, "12.50"),
        ("0.00", {"sign": "inverted"}, "0.00"),
    ],
)
def test_declared_notations_are_exact(cell: str, keys: dict[str, Any], amount: str) -> None:
    assert str(one(cell, **keys).amount) == amount


@pytest.mark.parametrize(
    ("cell", "keys", "reason"),
    [
        ("12,34.5", {"thousands": ","}, "is not grouped in threes by ','"),
        ("1,23,456", {"thousands": ","}, "is not grouped in threes"),
        ("1234,567", {"thousands": ","}, "is not grouped in threes"),
        (",123", {"thousands": ","}, "is not grouped in threes"),
        ("1,234", {}, "has ',', which is not declared for this format (decimal mark: '.', thousands: '')"),
        ("1 234", {}, "has ' ', which is not declared"),
        ("1.234,56", {"thousands": ","}, "is not grouped in threes"),
        ("12.50", {"decimal": ","}, "has '.', which is not declared"),
        ("1\u00a0234'567", {"decimal": ",", "thousands": " "}, "is not an amount"),
        ("1 234\u202f567", {"decimal": ",", "thousands": " "}, "is not"),
        ("€12", {"currency_symbols": ("$",)}, "is not an amount"),
        ("$$12", {"currency_symbols": ("$",)}, "is not an amount"),
        ("$", {"currency_symbols": ("$",)}, "'$' is not an amount"),
        ("(12.50", {}, "is not an amount"),
        ("((12.50))", {}, "is not an amount"),
        ("-(12.50)", {}, "is not an amount"),
        ("12.345", {}, "finer than the currency's 2 decimal places"),
        ("0x10", {}, "is not an amount"),
        ("1_000", {}, "is not an amount"),
        ("१२", {}, "is not an amount"),
        ("Infinity", {}, "is not an amount"),
        ("\u202e12", {}, "is not an amount"),
    ],
)
def test_B10_undeclared_notations_are_refused(cell: str, keys: dict[str, Any], reason: str) -> None:
    error = refusal(f'Date,Text,Amount\n2025-01-02,x,"{cell}"\n', profile(**keys))
    assert error.place is not None and (error.place.line, error.place.field) == (2, "Amount")
    assert reason in error.message


@pytest.mark.parametrize(("places", "amount"), [(0, "12"), (3, "12.000")])
def test_amounts_have_the_currencys_places(places: int, amount: str) -> None:
    text = "Date,Text,Amount\n2025-01-02,x,12\n"
    assert str(read(text, profile(), places=places).rows[0].amount) == amount


def test_split_columns() -> None:
    text = "Date,Text,Out,In\n" + "".join(
        f"2025-01-02,x,{cells}\n" for cells in ("5.00,", ",7.00", "5.00,0.00", "0,7.00", "0.00,0.00", "0,", " ,0.00")
    )
    amounts = [str(r.amount) for r in read(text, profile(columns=SPLIT)).rows]
    assert amounts == ["-5.00", "7.00", "-5.00", "7.00", "0.00", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("cells", "field", "reason"),
    [
        ("5.00,7.00", "Out", "both debit (5.00) and credit (7.00) are filled"),
        (",", "Out", "both debit and credit are empty"),
        ("-5.00,", "Out", "a negative debit (-5.00) can mean two things"),
        (",-7.00", "In", "a negative credit (-7.00) can mean two things"),
        ("x,7.00", "Out", "'x' is not an amount"),
    ],
)
def test_B10_contradictory_split_columns_are_refused(cells: str, field: str, reason: str) -> None:
    error = refusal(f"Date,Text,Out,In\n2025-01-02,x,{cells}\n", profile(columns=SPLIT))
    assert error.place is not None and (error.place.line, error.place.field) == (2, field)
    assert reason in error.message


@pytest.mark.parametrize(
    ("date_format", "cell", "day"),
    [
        ("%Y-%m-%d", "2025-01-02", date(2025, 1, 2)),
        ("%d.%m.%Y", "2.1.2025", date(2025, 1, 2)),
        ("%d.%m.%y", "02.01.25", date(2025, 1, 2)),
        ("%d/%m/%y", "02/01/69", date(1969, 1, 2)),
        ("%d %b %Y", "02 Jan 2025", date(2025, 1, 2)),
        ("%Y%m%d", "20250102", date(2025, 1, 2)),
        ("%Y-%m-%d %H:%M:%S", "2025-01-02 23:59:59", date(2025, 1, 2)),
        ("%Y-%m-%dT%H:%M:%SZ", "2025-01-02T00:00:00Z", date(2025, 1, 2)),
    ],
)
def test_dates_are_read_by_the_declared_format(date_format: str, cell: str, day: date) -> None:
    from cleared.workspace.settings.model import Limits

    text = f"Date,Text,Amount\n{cell},x,1\n"
    limits = Limits(min_date=date(1900, 1, 1))
    assert read(text, profile(date_format=date_format), limits=limits).rows[0].posted_date == day


@pytest.mark.parametrize(
    ("date_format", "cell"),
    [
        ("%Y-%m-%d", "2025-02-30"),
        ("%Y-%m-%d", "25-01-02"),
        ("%Y-%m-%d", "2025-01-02 10:00"),
        ("%Y-%m-%d", "02.01.2025"),
        ("%Y-%m-%d", "２０２５-01-02"),
        ("%d.%m.%y", "02.01.2025"),
        ("%Y%m%d", "2025111"),
        ("%Y-%m-%d", "0000-01-01"),
    ],
)
def test_B10_other_dates_are_refused(date_format: str, cell: str) -> None:
    error = refusal(f"Date,Text,Amount\n{cell},x,1\n", profile(date_format=date_format))
    assert error.place is not None and (error.place.line, error.place.field) == (2, "Date")
    assert f"is not a date written {date_format}" in error.message


def test_optional_columns_any_order_and_columns_nobody_asked_for() -> None:
    columns = {
        "date": "Booked",
        "transaction_date": "Bought",
        "description": "Text",
        "amount": "Amount",
        "balance": "Balance",
        "id": "Ref",
        "type": "Kind",
        "currency": "Ccy",
        "state": "Status",
    }
    text = (
        "Ref,Extra,Amount,Ccy,booked, BOUGHT ,Text,Kind,Status,Balance\n"
        "r-1,?,1.00,eur,2025-01-02,2025-01-01,x,fee,PENDING,10.00\n"
        ",?,-1.00,,2025-01-02,,y,,done,\n"
    )
    first, second = read(text, profile(columns=columns, sign="inverted", currency="USD")).rows
    assert (first.bank_id, first.currency, first.state, first.type) == ("r-1", "EUR", "pending", "fee")
    assert (first.transaction_date, first.amount, first.balance) == (
        date(2025, 1, 1),
        Decimal("-1.00"),
        Decimal("-10.00"),
    )
    assert (second.bank_id, second.currency, second.state, second.transaction_date) == ("", "USD", "posted", None)
    error = refusal(text.replace("eur", "€"), profile(columns=columns))
    assert "'€' is not a currency code" in error.message


def test_without_a_state_column_an_empty_pending_word_means_nothing() -> None:
    assert one("1", pending=("",)).state == "posted"


def test_B10_a_column_that_is_there_twice_is_refused() -> None:
    error = refusal("Date,Text,Amount,amount\n2025-01-02,x,1,2\n", profile())
    assert "the column 'Amount' is there twice" in error.message


def test_preamble_hints() -> None:
    preamble = "Card ****1234\nIBAN GB29 NWBK 6016 1331 9268 19\nNot one: GB00NWBK60161331926819\n"
    text = f"{preamble}Date,Text,Amount\n2025-01-02,x,1\n"
    hints = read(text, profile(skip_lines=3)).hints
    assert [h for h in hints if h[0] != "header"] == [("iban", "GB29NWBK60161331926819"), ("last4", "1234")]
    assert read("Date,Text,Amount\n2025-01-02,x,1\n", profile()).hints == ()


def test_a_hostile_preamble_is_looked_at_in_linear_time_and_to_a_bound() -> None:
    text = "." * 2_000_000 + "1234\n" + "Date,Text,Amount\n2025-01-02,x,1\n"
    hints = ProfileImporter(profile(skip_lines=1)).parse(text, 2).hints
    assert [key for key, _ in hints] == ["header"]
    assert len(hints[0][1]) == 65_536


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"columns": {"date": "D", "amount": "A"}}, "columns"),
        ({"columns": {"date": "D", "description": "T"}}, "columns"),
        ({"columns": {"date": "D", "description": "T", "debit": "O"}}, "columns"),
        ({"columns": {**SPLIT, "amount": "A"}}, "columns"),
        ({"columns": {**SPLIT, "colour": "C"}}, "columns"),
        ({"columns": SPLIT, "sign": "inverted"}, "sign"),
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"delimiter": '"'}, "delimiter"),
        ({"thousands": "."}, "thousands"),
        ({"thousands": "1"}, "thousands"),
        ({"date_format": "%m/%d"}, "date_format"),
        ({"date_format": "%Y"}, "date_format"),
        ({"date_format": "%"}, "date_format"),
        ({"date_format": "%Y-%m-%d %d"}, "date_format"),
        ({"date_format": "%q"}, "date_format"),
    ],
)
def test_a_profile_that_means_nothing_is_a_mistake_of_the_configuration(keys: dict[str, Any], field: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        read("x", profile(**keys))
    assert str(caught.value.place) == f"config.yaml (import.profiles.p.{field})"


# -- properties -----------------------------------------------------------------------------------------------

_amounts = st.integers(-(10**14), 10**14).map(lambda n: Decimal(n).scaleb(-2))
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_rows = st.lists(st.tuples(st.dates(date(1970, 1, 1), date(2199, 12, 31)), _texts, _amounts), min_size=1, max_size=8)


@st.composite
def _profiles(draw: st.DrawFn) -> CsvProfile:
    decimal = draw(st.sampled_from([".", ","]))
    return profile(
        decimal=decimal,
        thousands=draw(st.sampled_from([t for t in ("", ".", ",", " ", "'") if t != decimal])),
        delimiter=draw(st.sampled_from([",", ";", "\t", "|"])),
        date_format=draw(st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y"])),
        encoding=draw(st.sampled_from(["utf-8", "utf-16-le", "utf-16"])),
        skip_lines=draw(st.integers(0, 3)),
        currency_symbols=draw(st.sampled_from([(), ("$",), ("EUR", "€")])),
        sign=draw(st.sampled_from(["as_is", "inverted"])),
        columns=draw(st.sampled_from([{"date": "Date", "description": "Text", "amount": "Amount"}, SPLIT])),
    )


def _render(amount: Decimal, of: CsvProfile, negative: str) -> str:
    grouped = f"{amount.copy_abs():,.2f}".replace(",", "\0").replace(".", of.decimal).replace("\0", of.thousands)
    symbol = of.currency_symbols[-1] if of.currency_symbols else ""
    return (negative if amount < 0 else "N").replace("N", f"{symbol}{grouped}")


@settings(max_examples=200, deadline=None)
@given(
    _profiles(), _rows, st.sampled_from(["-N", "\u2212N", "(N)", "N-", " - N "]), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_rows_written_as_a_profile_declares_are_read_back(
    of: CsvProfile, rows: list[tuple[date, str, Decimal]], negative: str, end: str
) -> None:
    split = "debit" in of.columns
    of = replace(of, sign="as_is") if split else of
    out = io.StringIO(newline="")
    out.write(f'pre"amble{end}' * of.skip_lines)
    writer = csv.writer(out, delimiter=of.delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["Date", "Text", "Out", "In"] if split else ["Date", "Text", "Amount"])
    for day, text, amount in rows:
        written = amount.copy_negate() if of.sign == "inverted" else amount
        cells = [_render(written, of, negative)]
        if split:
            plain = _render(amount.copy_abs(), of, negative)
            cells = [plain, ""] if amount < 0 else ["", plain]
        writer.writerow([day.strftime(of.date_format), text, *cells])
    parsed = read(out.getvalue().encode(of.encoding), of)
    assert [(r.posted_date, r.description, r.amount) for r in parsed.rows] == rows
    assert money.total([r.amount for r in parsed.rows]) == money.total([a for _, _, a in rows])

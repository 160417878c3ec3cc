"""Chase's two downloads, read exactly (B6)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from import_samples import CARD, CARD_HEADER, CHECKING, CHECKING_HEADER, checking, config, read, refusal

from cleared.books.bank_files.file_reading import detect_format
from cleared.books.ledger.bank_row import BankRow


def test_B6_checking_rows_have_date_description_amount_type_and_balance() -> None:
    parsed = read(CHECKING)
    assert parsed.format == "chase_checking"
    assert parsed.rows == (
        BankRow(
            row=2,
            posted_date=date(2025, 1, 31),
            description="GITHUB, INC. SAN FRANCISCO CA",
            amount=Decimal("-21.00"),
            type="DEBIT_CARD",
            balance=Decimal("4979.00"),
        ),
        BankRow(
            row=3,
            posted_date=date(2025, 1, 30),
            description="STRIPE           TRANSFER   ST-A1B2",
            amount=Decimal("5000.00"),
            type="ACH_CREDIT",
            balance=Decimal("5000.00"),
        ),
        BankRow(
            row=4,
            posted_date=date(2025, 1, 29),
            description="CHECK 1042",
            amount=Decimal("0.00"),
            type="CHECK_PAID",
        ),
    )
    assert not parsed.rows[2].amount.is_signed()


def test_B6_card_purchases_are_negative_payments_positive() -> None:
    sale, payment = read(CARD).rows
    assert (sale.transaction_date, sale.posted_date) == (date(2025, 1, 30), date(2025, 1, 31))
    assert (sale.amount, sale.type) == (Decimal("-12.34"), "Sale")
    assert (payment.amount, payment.description) == (Decimal("250.00"), "Payment Thank You - Web")


@pytest.mark.parametrize("header", [CHECKING_HEADER, CHECKING_HEADER + ","])
@pytest.mark.parametrize(
    "row", ["DEBIT,01/31/2025,X,-1.00,FEE_TRANSACTION,9.00,", "DEBIT,01/31/2025,X,-1.00,FEE_TRANSACTION,9.00,,"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_checking_with_and_without_trailing_comma_and_any_line_end(header: str, row: str, end: str, last: bool) -> None:
    text = header + end + row + end + row + (end if last else "")
    rows = read(text).rows
    assert [(r.row, r.amount, r.balance) for r in rows] == [
        (2, Decimal("-1.00"), Decimal("9.00")),
        (3, Decimal("-1.00"), Decimal("9.00")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        CHECKING_HEADER.upper() + "\nDEBIT,01/31/2025,X,-1.00,T,9.00,\n",
        CHECKING_HEADER.replace(",", " , ") + "\nDEBIT,01/31/2025,X,-1.00,T,9.00,\n",
        "\n\n" + CHECKING_HEADER + "\n\nDEBIT,01/31/2025,X,-1.00,T,9.00,\n\n",
        ",".join(f'"{c}"' for c in CHECKING_HEADER.split(",")) + "\nDEBIT,01/31/2025,X,-1.00,T,9.00,\n",
    ],
)
def test_header_names_count_not_their_case_quotes_or_blanks(text: str) -> None:
    assert [r.amount for r in read(text).rows] == [Decimal("-1.00")]


@pytest.mark.parametrize(
    ("header", "row", "hints"),
    [
        (CARD_HEADER.removesuffix(",Memo"), "01/30/2025,01/31/2025,A,B,Sale,-1.00", ()),
        (CARD_HEADER.removesuffix(",Memo"), "01/30/2025,01/31/2025,A,B,Sale,-1.00,", ()),
        ("Card," + CARD_HEADER, "1234,01/30/2025,01/31/2025,A,B,Sale,-1.00,", (("last4", "1234"),)),
        ("Card," + CARD_HEADER, "...9876,01/30/2025,01/31/2025,A,B,Sale,-1.00,,", (("last4", "9876"),)),
        ("Card," + CARD_HEADER, "none,01/30/2025,01/31/2025,A,B,Sale,-1.00,", ()),
    ],
)
def test_card_variants(header: str, row: str, hints: tuple[tuple[str, str], ...]) -> None:
    parsed = read(f"{header}\n{row}\n")
    assert (parsed.format, parsed.hints) == ("chase_card", hints)
    assert parsed.rows[0].amount == Decimal("-1.00")


def test_a_file_of_two_cards_names_both() -> None:
    row = "01/30/2025,01/31/2025,A,B,Sale,-1.00,"
    parsed = read(f"Card,{CARD_HEADER}\n1111,{row}\n2222,{row}\n1111,{row}\n")
    assert parsed.hints == (("last4", "1111"), ("last4", "2222"))


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ("DEBIT,01/31/2025,X,-1.00,ACH_DEBIT, ,", "posted"),
        ("DEBIT,01/31/2025,X,-1.00,ACH_DEBIT,,", "posted"),
        ("Pending,01/31/2025,X,-1.00,ACH_DEBIT,,", "pending"),
        ("DEBIT,01/31/2025,X,-1.00,PENDING,,", "pending"),
    ],
)
def test_pending_is_what_the_file_calls_pending(row: str, state: str) -> None:
    rows = read(checking("DEBIT,01/31/2025,X,-1.00,ACH_DEBIT,7.00,", row)).rows
    assert (rows[0].state, rows[1].state) == ("posted", state)
    assert rows[1].balance is None


@pytest.mark.parametrize(
    ("cell", "amount"),
    [
        ("(12.50)", "-12.50"),
        ("12.50-", "-12.50"),
        ("\u221212.50", "-12.50"),
        ("+12.50", "12.50"),
        (" 12.5 ", "12.50"),
        (".50", "0.50"),
        ("-12345678901.89", "-12345678901.89"),
    ],
)
def test_amount_notations(cell: str, amount: str) -> None:
    found = read(checking(f"DEBIT,01/31/2025,X,{cell},T,,")).rows[0].amount
    assert str(found) == amount


def test_detect_names_the_format() -> None:
    assert detect_format("a.csv", CHECKING.encode(), config()) == "chase_checking"
    assert detect_format("sub/b.csv", CARD.encode(), config()) == "chase_card"


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ("DEBIT,01/31/2025,X,-1.00,T", None, "the row has 5 fields, the header 7"),
        ("DEBIT,01/31/2025,X,-1.00,T,9.00,,,", None, "the row has 9 fields, the header 7"),
        ("DEBIT,01/31/2025,X,-1.00,T,9.00,,oops", None, "the row has 8 fields, the header 7"),
        ("DEBIT,01/31/2025,ACME, INC,-1.00,T,9.00,", "Amount", "' INC' is not an amount"),
        ("DEBIT,02/30/2025,X,-1.00,T,9.00,", "Posting Date", "'02/30/2025' is not a day of the calendar"),
        ("DEBIT,31/01/2025,X,-1.00,T,9.00,", "Posting Date", "is not a day of the calendar"),
        ("DEBIT,2025-01-31,X,-1.00,T,9.00,", "Posting Date", "is not a date written MM/DD/YYYY"),
        ("DEBIT,01/31/25,X,-1.00,T,9.00,", "Posting Date", "is not a date written MM/DD/YYYY"),
        ("DEBIT,٠١/31/2025,X,-1.00,T,9.00,", "Posting Date", "is not a date written MM/DD/YYYY"),
        ("DEBIT,,X,-1.00,T,9.00,", "Posting Date", "there is no date"),
        ("DEBIT,01/31/2025,X,,T,9.00,", "Amount", "there is no amount"),
        ("DEBIT,01/31/2025,X,1e5,T,9.00,", "Amount", "'1e5' is not an amount"),
        ("DEBIT,01/31/2025,X,NaN,T,9.00,", "Amount", "'NaN' is not an amount"),
        ("DEBIT,01/31/2025,X,-inf,T,9.00,", "Amount", "'-inf' is not an amount"),
        ("DEBIT,01/31/2025,X,-1.005,T,9.00,", "Amount", "finer than the currency's 2 decimal places"),
        ('DEBIT,01/31/2025,X,"1,234.56",T,9.00,', "Amount", "has ',', which is not declared"),
        ("DEBIT,01/31/2025,X,-(1.00),T,9.00,", "Amount", "'-(1.00)' is not an amount"),
        ("DEBIT,01/31/2025,X,(-1.00),T,9.00,", "Amount", "'(-1.00)' is not an amount"),
        ("DEBIT,01/31/2025,X,--1.00,T,9.00,", "Amount", "'--1.00' is not an amount"),
        ("DEBIT,01/31/2025,X,-1.00-,T,9.00,", "Amount", "'-1.00-' is not an amount"),
        ("DEBIT,01/31/2025,X,1.,T,9.00,", "Amount", "'1.' is not an amount"),
        ("DEBIT,01/31/2025,X,-,T,9.00,", "Amount", "'-' is not an amount"),
        ("DEBIT,01/31/2025,X,$1.00,T,9.00,", "Amount", "'$1.00' is not an amount"),
        ("DEBIT,01/31/2025,X,١٢,T,9.00,", "Amount", "is not an amount"),
        ("DEBIT,01/31/2025,X,-1.00,T,n/a,", "Balance", "'n/a' is not an amount"),
        ("DEBIT,01/31/2025,X,-12345678901234567.89,T,,", "amount", "beyond the largest amount allowed"),
        ("DEBIT,01/31/2025,X," + "9" * 60 + ",T,,", "Amount", "is not a plain decimal number"),
        ("DEBIT,01/31/2025,X,1.00,T,9999999999999.00,", "balance", "beyond the largest amount allowed"),
        ("DEBIT,12/31/1969,X,-1.00,T,9.00,", "date", "1969-12-31 is outside 1970-01-01 to 2199-12-31"),
        ("DEBIT,01/01/9999,X,-1.00,T,9.00,", "date", "is outside"),
        ("DEBIT,01/01/0000,X,-1.00,T,9.00,", "Posting Date", "is not a day of the calendar"),
        ("DEBIT,01/31/2025," + "é" * 5121 + ",-1.00,T,9.00,", "description", "the text has 10242 bytes; 10240"),
    ],
)
def test_B10_a_bad_row_is_named_by_line_field_and_reason(row: str, field: str | None, reason: str) -> None:
    error = refusal(checking("DEBIT,01/30/2025,OK,-1.00,T,9.00,", row, "DEBIT,01/30/2025,OK,-1.00,T,9.00,"))
    assert error.place is not None
    assert (error.place.line, error.place.field) == (3, field)
    assert reason in error.message


def test_an_amount_beyond_a_raised_limit_stays_exact() -> None:
    from cleared.workspace.settings.model import Limits

    limits = Limits(max_amount=Decimal("1e20"))
    rows = read(checking("DEBIT,01/31/2025,X,-12345678901234567.89,T,,"), limits=limits).rows
    assert str(rows[0].amount) == "-12345678901234567.89"


def test_text_of_just_the_allowed_size_is_kept() -> None:
    text = "é" * 5120
    assert read(checking(f"DEBIT,01/31/2025,{text},-1.00,T,9.00,")).rows[0].description == text

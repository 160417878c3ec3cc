"""Row B19: OFX, CAMT, MT940 and QIF, read exactly; damaged and hostile files refused whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_samples import CARD, CHECKING, config
from statement_files import LINES, MONTH, OFX_HEADER, Line, Told, write_camt, write_mt940, write_ofx, write_qif

from cleared.books.bank_files import Importer, ImportFileError
from cleared.books.bank_files.camt import Camt
from cleared.books.bank_files.file_reading import read_file
from cleared.books.bank_files.mt940 import Mt940
from cleared.books.bank_files.ofx import Ofx
from cleared.books.bank_files.plugin_tests import check_importer
from cleared.books.bank_files.plugins import BUILT_IN
from cleared.books.bank_files.qif import Qif
from cleared.books.ledger.bank_row import ParsedFile, Statement
from cleared.workspace.settings.bank_section import BankAccount

FIXTURES = next(
    (p for parent in Path(__file__).parents if (p := parent / "shared" / "fixtures").is_dir()), Path("no-fixtures")
)
"""Files of other projects; beside the checkout, where somebody has put them there."""
CARD_TOLD = Told(
    "4111XXXXXXXX1234", card=True, lines=(Line("2025-01-31", "-19.99", "A & B <C>", "F1"),), opening="0.00"
)
EURO = Told("DE89370400440532013000", currency="EUR", opening="-5.00", lines=LINES[:2])
EMPTY = replace(MONTH, lines=())
WRITERS: dict[str, Callable[..., str]] = {"ofx": write_ofx, "camt": write_camt, "mt940": write_mt940, "qif": write_qif}
OURS: list[tuple[Importer, list[str]]] = [
    (Ofx(), [write_ofx(MONTH, CARD_TOLD), write_ofx(EURO, xml=True), write_ofx(EMPTY)]),
    (Camt(), [write_camt(MONTH, EURO), write_camt(EURO, version=8), write_camt(EMPTY)]),
    (Mt940(), [write_mt940(MONTH, EURO), write_mt940(EMPTY), "{1:F01}{4:\n" + write_mt940(EURO)]),
    (Qif(), [write_qif(MONTH)]),
]


def read(text: str | bytes, *accounts: BankAccount, places: int = 2) -> ParsedFile:
    data = text.encode() if isinstance(text, str) else text
    return read_file("a", data, config(accounts=accounts), places)


def refusal(text: str | bytes) -> str:
    with pytest.raises(ImportFileError) as caught:
        read(text)
    assert caught.value.remedy and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("importer", "samples"), OURS, ids=[i.name for i, _ in OURS])
def test_our_importers_keep_the_contract(importer: Importer, samples: list[str]) -> None:
    strangers = [s.encode() for other, texts in OURS if other is not importer for s in texts]
    check_importer(importer, [s.encode() for s in samples], strangers=[*strangers, CHECKING.encode(), CARD.encode()])


@pytest.mark.parametrize("name", ["ofx", "camt", "mt940"])
def test_a_statement_has_its_account_its_balances_and_days_as_the_bank_wrote_them(name: str) -> None:
    first, second = read(WRITERS[name](MONTH, EURO)).statements
    assert (first.account, first.currency, second.currency) == ("1234567890", "USD", "EUR")
    assert ("iban", "DE89370400440532013000") in second.hints
    assert first.closing is not None and first.closing.amount == Decimal("2411.90")
    assert name == "ofx" or (first.opening is not None and first.opening.amount == Decimal("1000.00"))
    rows = [(str(r.posted_date), str(r.amount), r.description, r.bank_id) for r in first.rows]
    assert rows == [(line.day, line.amount, line.text, line.id) for line in LINES]
    (empty,) = read(WRITERS[name](EMPTY)).statements
    assert empty.rows == () and empty.closing is not None


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_cut_off_anywhere_is_refused_or_is_whole(name: str) -> None:
    """No prefix gives fewer rows in silence."""
    text = WRITERS[name](MONTH)
    whole = read(text)
    for cut in range(len(text) - 1, len(text) // 3, -7):
        try:
            rows = read(text[:cut]).rows
        except ImportFileError:
            continue
        assert (name == "qif" and text[:cut].rstrip().endswith("^")) or rows == whole.rows, text[cut - 30 : cut]


BOMB = '<?xml version="1.0"?><!DOCTYPE D [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (write_camt(MONTH).replace('<?xml version="1.0" encoding="UTF-8"?>', BOMB), "document type"),
        (write_ofx(MONTH, xml=True).replace('<?xml version="1.0"?>', BOMB), "document type"),
        (write_camt(MONTH).replace("</Ntry>", "</Nope>"), "mismatched tag"),
        (write_camt(MONTH).replace("<GrpHdr>", "<a>" * 70 + "</a>" * 70 + "<GrpHdr>"), "nested more than"),
        (write_camt(MONTH).replace("BkToCstmrStmt", "BkToCstmrDbtCdtNtfctn"), "CAMT.054"),
        (write_camt(MONTH).replace("<CdtDbtInd>DBIT", "<CdtDbtInd>X"), "neither CRDT nor DBIT"),
        (write_camt(MONTH).replace("2025-01-09T", "2025-02-30T"), "entry 3: '2025-02-30"),
        (write_camt(MONTH).replace(">45.10<", ">45.105<"), "entry 3: 45.105 is finer"),
        (write_ofx(MONTH).replace("<DTPOSTED>20250109", "<DTPOSTED>2025019"), "transaction 3: "),
        (write_ofx(MONTH).replace("<TRNAMT>-45.10", "<TRNAMT>$45"), "transaction 3: '$45' is not an amount"),
        (write_ofx(MONTH).replace("<TRNAMT>-45.10", "<TRNAMT>1,234"), "transaction 3: 1.234 is finer"),
        (write_ofx(MONTH).replace("STMTRS", "INVSTMTRS"), "investment"),
        (write_ofx(MONTH).replace("</STMTTRN>", "", 1), "opens before the one before it is closed"),
        (OFX_HEADER + "<OFX><SONRS><STATUS><CODE>15500<SEVERITY>ERROR</STATUS></SONRS></OFX>", "15500"),
        (OFX_HEADER + "<OFX></OFX>", "no statement"),
        (write_mt940(MONTH).replace(":62F:", ":64:"), "no closing balance"),
        (write_mt940(MONTH).replace("D45,10", "X45,10"), "is not a line such as"),
        (write_mt940(MONTH).replace(":62F:C250131USD", ":62F:C250131EUR"), "the closing balance in EUR"),
        (write_mt940(MONTH).replace(":62F:", ":13D:").replace(":60F:", ":34F:"), "interim report"),
        (write_qif(MONTH).replace("'25", "x"), "is not a date"),
        (write_qif(replace(MONTH, lines=LINES[:3])), "read in two ways"),
        (write_qif(MONTH).replace("T-45.10", "T4.5.10"), "amount"),
        ("!Type:Invst\nD1/1'25\n^\n", "no bank, card or cash account"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused_with_its_place(text: str, message: str) -> None:
    assert message in refusal(text)


def only(text: str) -> Statement:
    (statement,) = read(text).statements
    return statement


def test_qif_dates_are_read_in_the_one_way_that_fits_them_all() -> None:
    """13 cannot be a month; where nothing decides, the bank account does."""
    day_first = write_qif(MONTH).replace("D01/31'25", "D31/01'25")
    assert [str(r.posted_date) for r in only(day_first).rows][-1] == "2025-01-31"
    text = write_qif(replace(MONTH, lines=LINES[:3]))
    assert read(text, BankAccount(id="x", format="qif_dmy")).rows[0].posted_date == date(2025, 3, 1)
    assert read(text, BankAccount(id="x", format="qif_mdy")).rows[0].posted_date == date(2025, 1, 3)
    european = replace(MONTH, lines=[replace(x, amount=x.amount.replace(".", ",")) for x in LINES if x.id != "F2"])
    assert only(write_qif(european)).rows[1].amount == Decimal("-45.10")


@pytest.mark.parametrize("writer", [write_ofx, partial(write_ofx, xml=True), write_camt])
@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(["<!--{}-->", "<!--\n{}\n-->", "<?x {}?>"]))))
def test_what_a_comment_hides_is_not_there(writer: Callable[..., str], hidden: list[tuple[int, str]]) -> None:
    """A statement with comments between any of its tags says what it says without them."""
    plain = writer(MONTH)
    extra = "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20250115<TRNAMT>-7777.00<FITID>X<NAME>HIDDEN</STMTTRN>"
    extra += '<Ntry><Amt Ccy="USD">7777.00</Amt><CdtDbtInd>DBIT</CdtDbtInd></Ntry>'
    gaps = [m.start() for m in re.finditer("<", plain) if m.start() > plain.find("MsgId")]
    gaps = [at for at in gaps if at > plain.lower().find("<ofx>")]
    text = plain
    for number, mark in sorted(hidden, key=lambda each: gaps[each[0] % len(gaps)], reverse=True):
        if mark.startswith("<?") and not plain.startswith("<?"):
            continue  # SGML has none
        at = gaps[number % len(gaps)]
        text = text[:at] + mark.format(extra) + text[at:]
    assert read(text) == read(plain)


def test_marks_of_comments_and_character_data_hide_only_what_they_open() -> None:
    told = replace(MONTH, lines=(Line("2025-01-31", "-1.00", "PLAIN", "F1"), Line("2025-01-31", "-2.00", "B", "F2")))
    for text in (write_ofx(told), write_ofx(told, xml=True)):
        data = text.replace("PLAIN", "A <![CDATA[<!-- & --> <NAME>X]]><!-- <![CDATA[ -->C<!--\n]]> -->")
        assert [row.description for row in only(data).rows] == ["A <!-- & --> <NAME>XC", "B"]
        assert len(only(text.replace("<BANKTRANLIST>", "<!-- <!DOCTYPE x> --><BANKTRANLIST>")).rows) == 2
        for mark, what in (("<!--", "a comment"), ("<![CDATA[", "a section of character data")):
            cut = text.replace("<NAME>B", f"<NAME>B{mark} -- ]] >")
            line = cut[: cut.index(mark)].count("\n") + 1
            assert f"line {line}: {what} opens and is never closed" in refusal(cut).replace("a:", "line ")
        bad = text.replace("PLAIN", "PLAIN<!--\n\n-->").replace("-2.00", "$2")
        line = bad[: bad.rindex("<STMTTRN>")].count("\n") + 1
        assert f"a:{line}" in refusal(bad)


def test_ofx_words_are_unescaped_once_and_encodings_follow_the_header() -> None:
    assert only(write_ofx(CARD_TOLD)).rows[0].description == "A & B <C>"
    text = write_ofx(replace(MONTH, lines=(Line("2025-01-31", "-1.00", "CAFÉ &amp;"),)))
    for encoding in ("utf-8", "cp1252"):
        assert read(text.encode(encoding)).rows[0].description == "CAFÉ &amp;"


def test_an_ofx_check_has_its_number_unless_the_text_is_its_identity() -> None:
    told = replace(MONTH, lines=(Line("2025-01-31", "-75.00", "CHECK", "F9"), Line("2025-01-30", "-5.00", "X", "F8")))
    text = write_ofx(replace(told, extra={"F9": "<CHECKNUM>0501", "F8": "<CHECKNUM>77"}))
    check = text.replace("<TRNTYPE>DEBIT", "<TRNTYPE>CHECK", 1)
    assert [r.description for r in only(check).rows] == ["CHECK 501", "X"]
    assert only(check.replace("<NAME>CHECK", "<NAME>CHECK 00501")).rows[0].description == "CHECK 00501"
    assert only(check.replace("<FITID>F9", "", 1)).rows[0].description == "CHECK"


def test_mt940_reversals_and_entry_dates_of_the_next_year() -> None:
    text = write_mt940(replace(MONTH, lines=LINES[:1]))
    turned = text.replace(":61:2501030103D4,00", ":61:2412310102RC4,00")
    (row,) = only(turned).rows
    assert (row.amount, row.posted_date) == (Decimal("-4.00"), date(2025, 1, 2))
    (row,) = only(text.replace(":61:2501030103D4,00", ":61:2502300301RD4,00")).rows
    assert (row.amount, row.posted_date) == (Decimal("4.00"), date(2025, 3, 1))


def test_camt_names_are_said_once_unless_the_text_is_the_identity() -> None:
    line = Line("2025-01-31", "-1.00", "SHOP A", "F1")
    text = write_camt(replace(MONTH, lines=(line,))).replace(
        "</TxDtls>", "<RmtInf><Ustrd>Shop A order 7</Ustrd></RmtInf></TxDtls>"
    )
    assert only(text).rows[0].description == "Shop A order 7"
    without = text.replace("<AcctSvcrRef>F1</AcctSvcrRef>", "")
    assert only(without).rows[0].description == "SHOP A Shop A order 7"


def test_pending_camt_entries_are_pending() -> None:
    rows = only(write_camt(MONTH).replace("<Sts>BOOK", "<Sts>PDNG", 1)).rows
    assert [r.state for r in rows] == ["pending", *["posted"] * 5]


def test_amounts_have_the_decimals_of_the_statements_currency() -> None:
    for writer in (write_ofx, write_camt, write_mt940):
        for currency, exponent in (("JPY", 0), ("BHD", -3)):
            told = replace(MONTH, currency=currency, opening="0.00", lines=(Line("2025-01-31", "-4.00", "X", "1"),))
            assert only(writer(told)).rows[0].amount.as_tuple().exponent == exponent


# -- files of other projects, where they are ----------------------------------------------------------------------


def expectations() -> dict[str, Any]:
    path = FIXTURES / "expectations.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("name", expectations())
def test_files_of_other_projects_are_read_as_expected(name: str) -> None:
    """Counts, sums, days and balances; or the refusal."""
    wanted, data = expectations()[name], (FIXTURES / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == wanted["sha256"]
    if "refuse" in wanted or name.endswith("mt942.sta"):
        refusal(data)
        return
    parsed = read(data)
    assert parsed.format == wanted["format"] and len(parsed.statements) == len(wanted["statements"])
    for statement, facts in zip(parsed.statements, wanted["statements"], strict=True):
        actual = describe_statement(statement)
        assert {key: actual[key] for key in facts if key in actual} == {
            key: Decimal(value) if value is not None and type(actual[key]) is Decimal else value or None
            for key, value in facts.items()
            if key in actual
        }


def describe_statement(statement: Statement) -> dict[str, Any]:
    days = [str(row.posted_date) for row in statement.rows]

    def total(state: str) -> Decimal:
        return sum((row.amount for row in statement.rows if row.state == state), Decimal(0))

    closing = statement.closing.amount if statement.closing else None
    return {
        "account": statement.account or None,
        "bank": statement.bank or None,
        "currency": statement.currency,
        "rows": len(statement.rows) or None,
        "sum": total("posted") + total("pending"),
        "sum_booked": total("posted"),
        "sum_pending": total("pending"),
        "first": min(days, default=None),
        "last": max(days, default=None),
        "posted": days or None,
        "opening": statement.opening.amount if statement.opening else None,
        "closing": closing,
        "ledger_balance": closing,
    }


def test_the_formats_that_cleared_brings() -> None:
    assert {"ofx", "camt", "mt940", "qif"} <= set(BUILT_IN)

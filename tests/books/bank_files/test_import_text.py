"""Bytes, quotes and line numbers: nothing is mangled, what cannot be read is refused by place (B10)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from import_samples import (
    CHECKING,
    CHECKING_HEADER,
    GERMAN,
    GERMAN_TEXT,
    checking,
    profile,
    read,
    refusal,
)

from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.text_decoding import decode_text

ROW = "DEBIT,01/31/2025,{},-1.00,T,9.00,"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + CHECKING.encode(),
        b"\xff\xfe" + CHECKING.encode("utf-16-le"),
        b"\xfe\xff" + CHECKING.encode("utf-16-be"),
        CHECKING.replace("\n", "\r\n").encode(),
        CHECKING.replace("\n", "\r").encode(),
    ],
)
def test_byte_order_marks_and_line_ends_change_nothing(data: bytes) -> None:
    assert read(data) == read(CHECKING)


def test_a_cp1252_profile_is_recognised_and_decoded() -> None:
    parsed = read(GERMAN_TEXT.encode("cp1252"), GERMAN)
    assert parsed.format == "sparkasse"
    first, second = parsed.rows
    assert (first.row, first.posted_date, first.description) == (5, date(2025, 1, 31), "Müller & Söhne; Köln")
    assert (first.amount, first.balance, first.currency) == (Decimal("-1234.50"), Decimal("10000.00"), "EUR")
    assert (second.row, second.amount, second.balance) == (6, Decimal("-12.00"), None)
    assert ("iban", "DE89370400440532013000") in parsed.hints
    assert dict(parsed.hints)["header"].startswith("Kontoauszug Girokonto")


def test_a_mark_wins_over_the_declared_encoding() -> None:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")):
        assert read(mark + GERMAN_TEXT.encode(encoding), GERMAN) == read(GERMAN_TEXT.encode("cp1252"), GERMAN)


def test_utf16_without_a_mark_is_read_where_it_is_declared() -> None:
    text = "Date,Text,Amount\n2025-01-02,Ωmega,1.00\n"
    assert read(text.encode("utf-16-le"), profile(encoding="utf-16-le")).rows[0].description == "Ωmega"


@pytest.mark.parametrize(
    "description",
    [
        "=cmd|' /C calc'!A0",
        "@SUM(1+1)",
        "\u202eevil\u202c",
        "e\u0301 combining",
        "👩‍👩‍👧 family",
        "  leading and trailing  ",
        "\u2028line\u0085separators\x0b\x0c",
        "tab\there",
        "\ufeff",
        "",
        "a\nb",
        "a\r\nb\r\n\r\nc",
        "a\rb",
        'she said "hi"',
        "comma, comma",
        "bare ' quote",
        "-1.00",
    ],
)
def test_odd_descriptions_are_stored_exactly(description: str) -> None:
    quoted = '"' + description.replace('"', '""') + '"'
    rows = read(checking(ROW.format(quoted), ROW.format("next"))).rows
    assert [r.description for r in rows] == [description, "next"]
    extra = len(description.replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1
    assert [r.row for r in rows] == [2, 3 + extra]


def test_row_is_the_physical_line_a_record_starts_on() -> None:
    text = "\n".join(
        [
            "",
            CHECKING_HEADER,
            "",
            ROW.format('"a\nb\n\nc"'),
            "   ",
            ROW.format("x"),
            ROW.format('"\n"'),
            ROW.format("y"),
        ]
    )
    assert [r.row for r in read(text).rows] == [4, 9, 10, 12]


def test_line_numbers_count_the_preamble() -> None:
    text = 'two " quotes\nof preamble\nDate,Text,Amount\n2025-01-02,"a\nb",1.00\n2025-01-02,x,y\n'
    error = refusal(text, profile(skip_lines=2))
    assert error.place is not None and (error.place.line, error.place.field) == (6, "Amount")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (checking(ROW.format("ok")) + 'DEBIT,01/31/2025,"cut of', 3, "truncated"),
        (checking(ROW.format("ok")) + 'DEBIT,01/31/2025,"cut of\nDEBIT,01/31/2025,b,', 3, "truncated"),
        (checking(ROW.format('"a\nb"')) + 'DEBIT,"01\n/31/2025","cut of\n', 5, "truncated"),
        (checking(ROW.format('"a" b')), 2, "text follows the closing quote of a field that opens here"),
        (checking(ROW.format('"a') + "\n" + ROW.format('"b"')), 2, "text follows the closing quote on line 3"),
        (checking(ROW.format('"' + "x" * 140_000 + '"')), 2, "a field is longer than 131072 characters"),
        (checking(ROW.format("ok")) + "DEBIT,01/31/20", 3, "the row has 2 fields, the header 7"),
    ],
)
def test_B10_broken_quotes_and_truncation_are_refused_by_line(text: str, line: int, reason: str) -> None:
    error = refusal(text)
    assert error.place is not None and error.place.line == line
    assert reason in error.message


@pytest.mark.parametrize("end", ["-1052.1", "-1052", "-10", "-1"])
def test_B10_an_amount_that_the_end_of_the_file_cuts_is_refused(end: str) -> None:
    text = "Date,Text,Amount\n2025-01-02,a,-4.50\n2025-01-03,b,3.00\n2025-01-04,c,"
    error = refusal(text + end, profile())
    assert error.place is not None and error.place.line == 4 and "truncated" in error.message
    assert len(read(text + "-1052.18", profile()).rows) == 3


@pytest.mark.parametrize("last", ["TX-10", "no 8", "", "TX-7 again"])
def test_words_at_the_end_of_a_file_are_no_cut_figure(last: str) -> None:
    text = "Date,Amount,Text\n2025-01-02,-4.50,TX-8\n2025-01-03,3.00,TX-9\n2025-01-04,5.00,"
    assert read(text + last, profile()).rows[-1].description == last


@pytest.mark.parametrize("more", ["2025-01-04,c,5\n", "2025-01-04,c,5\n2025-01-05,d,6", "2025-01-04,c,5.000"])
def test_amounts_with_other_places_are_read_where_nothing_is_cut(more: str) -> None:
    assert read(f"Date,Text,Amount\n2025-01-02,a,-4.50\n2025-01-03,b,3.00\n{more}", profile()).rows[-1].amount > 4


def test_B10_an_undecodable_byte_is_named_by_offset_and_line() -> None:
    """A file that is UTF-8 elsewhere is damaged: read as another encoding, all its names would be wrong."""
    data = checking(ROW.format("Köln"), ROW.format("Müller"), ROW.format("Ö")).encode()
    data = data.replace(b"M\xc3\xbc", b"M\xfc").replace(b"\xc3\x96", b"\xc3")
    at = data.index(b"\xfc")
    error = refusal(data)
    assert error.place is not None and error.place.line == 3
    assert f"line 3: the byte 0xfc at offset {at} is not utf-8 text" in error.message
    assert "line 4: the byte 0xc3" in error.message
    assert "`encoding: cp1252`" in (error.remedy or "") and "import.profiles" in (error.remedy or "")


_WINDOWS = bytes(byte for byte in range(128, 256) if byte not in b"\x81\x8d\x8f\x90\x9d").decode("cp1252")


@given(st.text(st.sampled_from(_WINDOWS + "ab, "), min_size=1).map(str.strip).filter(lambda text: not text.isascii()))
@example("É")
@example(_WINDOWS)
def test_what_no_encoding_is_declared_for_is_utf8_or_windows_text(text: str) -> None:
    """The same rows either way. Bytes that are UTF-8 already are taken for that; those that mix both are refused."""
    quoted, windows = f'"{text}"', text.encode("cp1252")
    assert read(checking(ROW.format(quoted)).encode()).rows[0].description == text
    data = checking(ROW.format("plain"), ROW.format(quoted)).encode("cp1252")
    if windows.decode("utf-8", "ignore").isascii():
        assert [row.description for row in read(data).rows] == ["plain", text]
        assert read(data, profile(encoding="UTF-8"), GERMAN).rows == read(data).rows


def test_column_heads_in_windows_text_are_recognised() -> None:
    own = profile(columns={"date": "Buchung", "description": "Empfänger", "amount": "Betrag"})
    text = "Buchung,Empfänger,Betrag\n2025-01-02,Élan,-1.00\n"
    assert read(text.encode("cp1252"), own) == read(text, own)


def test_B10_bytes_that_windows_does_not_know_are_named_by_line() -> None:
    rows = (ROW.format("caf\xe9"), ROW.format("x\x81"), ROW.format("ok"), ROW.format("\x9d\x8d"))
    error = refusal(checking(*rows).encode("latin-1"))
    assert [(fault.line, fault.reason[:13]) for fault in error.faults] == [(3, "the byte 0x81"), (5, "the byte 0x9d")]
    assert "is not cp1252 text" in error.message and "`encoding: cp850`" in (error.remedy or "")


def test_B10_offsets_count_the_mark_and_two_byte_text() -> None:
    data = b"\xff\xfe" + checking(ROW.format("ok")).encode("utf-16-le") + b"\x00\xd8a\x00"
    error = refusal(data)
    assert error.place is not None and error.place.line == 3
    assert f"at offset {len(data) - 4} is not utf-16-le text" in error.message
    data = b"\xef\xbb\xbf" + CHECKING_HEADER.encode() + b"\r\n\xff"
    error = refusal(data)
    assert error.place is not None and error.place.line == 2
    assert f"at offset {len(data) - 1}" in error.message


def test_B10_an_undecodable_byte_of_a_profile_names_the_profile() -> None:
    data = GERMAN_TEXT.encode("cp1252").replace(b"\xfc", b"\x81")
    error = refusal(data, GERMAN)
    assert error.place is not None and error.place.line == 5
    assert "import.profiles.sparkasse" in (error.remedy or "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b" \r\n\t\n", "the file is empty"),
        (b"\xef\xbb\xbf\n", "the file is empty"),
        (CHECKING_HEADER.encode(), "has column headers and no rows"),
        (CHECKING_HEADER.encode() + b",\r\n\r\n", "has column headers and no rows"),
        (b"%PDF-1.7\n...", "this is a PDF"),
        (b"PK\x03\x04rest", "this is a zip archive or an Excel workbook"),
        (b"\x1f\x8b\x08", "this is a gzip archive"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32"),
        (CHECKING.encode("utf-16-le"), "looks like UTF-16-LE without a byte order mark"),
        (CHECKING.encode("utf-16-be"), "looks like UTF-16-BE without a byte order mark"),
        (b"\x01\x02\x00\x03" * 50, "there is a NUL byte at offset 2"),
    ],
)
def test_B10_what_is_no_bank_csv_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    assert reason in refusal(data).message


def test_B10_a_nul_is_refused_by_line() -> None:
    error = refusal(checking(ROW.format("ok"), ROW.format("a\0b")))
    assert error.place is not None and error.place.line == 3
    assert "NUL" in error.message
    error = refusal(b"\xff\xfe" + checking(ROW.format("ok"), ROW.format("a\0b"), ROW.format("\0")).encode("utf-16-le"))
    assert [f.line for f in error.faults] == [3, 4]
    assert "2 faults: line 3: the line holds a NUL character; line 4:" in error.message


def test_half_a_character_is_refused_by_line() -> None:
    data = b"Date,Text,Amount\n2025-01-02,\\ud800,1.00\n"
    error = refusal(data, profile(encoding="unicode_escape"))
    assert error.place is not None and error.place.line == 2
    assert "lone surrogate" in error.message


@pytest.mark.parametrize("encoding", ["no-such", "base64"])
def test_an_unknown_encoding_is_refused_with_the_key_to_correct(encoding: str) -> None:
    error = refusal("Date,Text,Amount\n2025-01-02,x,1.00\n", profile(encoding=encoding))
    assert repr(encoding) in error.message
    assert "import.profiles.p" in (error.remedy or "")


def test_size_and_row_count_are_bounded() -> None:
    assert "3 are allowed" in refusal("abcdef", max_bytes=3).message
    rows = [ROW.format(n) for n in range(4)]
    error = refusal(checking(*rows), max_rows=3)
    assert "more than 3 rows" in error.message
    assert error.place is not None and error.place.line == 5
    assert len(read(checking(*rows), max_rows=4).rows) == 4
    assert "more than 3 rows" in refusal(checking(*["bad"] * 4), max_rows=3).message


def test_B10_all_faults_come_at_once_the_first_has_the_place() -> None:
    error = refusal(
        checking(
            ROW.format("ok"),
            "DEBIT,01/31/2025,X,abc,T,9.00,",
            "DEBIT,01/31/1960,X,1.00,T,9.00,",
            "DEBIT,01/31/2025",
        )
        + '"open'
    )
    assert [f.line for f in error.faults] == [3, 4, 5, 6]
    assert error.place is not None and (error.place.line, error.place.field) == (3, "Amount")
    for part in (
        "4 faults: line 3 (Amount): 'abc'",
        "line 4 (date): 1960-01-31",
        "line 5: the row has 2",
        "line 6: the file is trunc",
    ):
        assert part in error.message


def test_B10_twenty_faults_are_named_the_others_counted() -> None:
    error = refusal(checking(*["DEBIT,01/31/2025,X,abc,T,9.00,"] * 33, *["DEBIT,01/31/1960,X,1.00,T,9.00,"] * 2))
    assert len(error.faults) == 20
    assert error.message.startswith("35 faults: line 2 (Amount)")
    assert error.message.endswith(" and 15 more")


def test_the_file_is_named_whatever_it_is_called() -> None:
    from cleared.books.bank_files.file_reading import read_file
    from cleared.workspace.settings.model import Config

    with pytest.raises(ImportFileError, match=r"^sub/ü\.csv: the file is empty"):
        read_file("sub/ü.csv", b"", Config(), 2)


def test_a_web_page_is_named_as_one() -> None:
    """What a browser saves where the bank had signed its user out."""
    for data in (b"<!DOCTYPE html>\n<html>", b"\xef\xbb\xbf  <HTML lang=en><body>"):
        with pytest.raises(ImportFileError, match="this is a web page, not a bank file"):
            decode_text(data)

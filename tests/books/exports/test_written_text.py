"""Texts in files for other programs: one line, no marks, and back again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.books.exports.account_names import make_name
from cleared.books.exports.written_text import escape_line, quote_string, unescape_text, unquote_string

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(' ;,[\\x3bu"\n\u2028', max_size=12)


@settings(max_examples=60)
@given(TEXTS)
def test_an_escaped_text_is_one_line_without_marks_and_comes_back(text: str) -> None:
    written = escape_line(text, ";[")
    assert written.isprintable() and written == written.strip() and not set(written) & set(";[")
    assert unescape_text(written) == text


@settings(max_examples=40)
@given(TEXTS.filter(lambda text: all(c.isprintable() or c in "\n\t\r" for c in text)))
def test_a_string_comes_back(text: str) -> None:
    written = quote_string(text)
    assert "\n" not in written and unquote_string(written[1:-1]) == text


def test_names_of_accounts_hold_letters_digits_and_hyphens() -> None:
    assert make_name(3010, "Owner's 50% — Büro", "equity") == "Equity:3010-Owners-50-Büro"
    assert make_name(4010, "日本 sales; x:y", "revenue") == "Income:4010-日本-sales-x-y"
    assert make_name(5010, "%%%", "expense") == "Expenses:5010"
    assert len(make_name(5010, "a" * 500, "expense")) < 90

"""Numbers read from texts of others, and texts and lists cut to what can be shown."""

from __future__ import annotations

import pytest

from cleared.base.short_text import clip_middle, list_lines, parse_count


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("999999999", 999_999_999)]
    + [(text, None) for text in ("", "-1", "+1", " 1", "1.0", "1_0", "²", "٣", "1" * 10, None, 1)],
)
def test_a_number_of_others_has_few_plain_digits(text: object, number: int | None) -> None:
    assert parse_count(text) == number


def test_a_limit_of_digits_is_the_callers() -> None:
    assert parse_count("1" * 11, 11) == 11_111_111_111 and parse_count("1" * 12, 11) is None


def test_a_list_says_how_many_are_left() -> None:
    assert list_lines(["a", "b"], 2) == ["a", "b"]
    assert list_lines(["a", "b", "c", "d"], 2, "and {} more") == ["a", "b", "and 2 more"]


def test_a_long_text_keeps_both_ends() -> None:
    assert clip_middle("abcdef", 6) == "abcdef"
    assert clip_middle("abcdefg", 4) == "ab\n[… 3 characters left out …]\nfg"

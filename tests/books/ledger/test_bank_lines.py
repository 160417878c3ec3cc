"""The files of bank facts: what was read before and is appended to is as if it were read whole."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.base.errors import WorkspaceError
from cleared.books.ledger import bank_lines

FILE = "books/bank/matches.csv"
HEADER = (",".join(bank_lines.MATCH_COLUMNS) + "\n").encode()
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-99, 99)), max_size=12)


def render(rows: list[tuple[str, int, int]]) -> bytes:
    width = len(bank_lines.MATCH_COLUMNS) - 3
    return b"".join(f"{line},2025-01-00{leg}a,{amount}.00{',x' * width}\n".encode() for line, leg, amount in rows)


@settings(max_examples=60)
@given(ROWS, ROWS, ROWS)
def test_matches_that_are_read_on_are_those_of_the_whole_file(
    first: list[tuple[str, int, int]], more: list[tuple[str, int, int]], other: list[tuple[str, int, int]]
) -> None:
    before = bank_lines.parse_matches_once(HEADER + render(first), FILE)
    copied = ({key: list(value) for key, value in before[0].items()}, dict(before[1]))
    whole = HEADER + render(first) + render(more)
    extended = bank_lines.parse_matches_once(whole, FILE)
    bank_lines.parse_matches_once(HEADER + render(other), FILE)
    bank_lines.parse_matches_once.cache_clear()
    again = bank_lines.parse_matches_once(whole, FILE)
    assert extended == again
    assert before == copied, "what was handed out before is not altered"
    assert sum(extended[1].values(), Decimal(0)) == sum(amount for _, _, amount in [*first, *more])


def test_a_damaged_row_behind_known_ones_is_named_by_its_line() -> None:
    known = HEADER + render([("a", 1, 5), ("b", 2, 6)])
    bank_lines.parse_matches_once(known, FILE)
    with pytest.raises(WorkspaceError) as refusal:
        bank_lines.parse_matches_once(known + render([("c", 3, 7)]).replace(b"7.00", b"seven"), FILE)
    assert refusal.value.place is not None and refusal.value.place.line == 4

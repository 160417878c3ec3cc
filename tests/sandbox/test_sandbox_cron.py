"""A1: the usual schedules are understood without croniter, and then croniter agrees."""

from datetime import UTC, datetime

from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from cleared.sandbox import header_values

NUMBER = st.integers(0, 33).map(str) | st.integers(0, 9).map("0{}".format)
PART = st.builds(
    lambda base, end, step: base + (f"-{end}" if end else "") + (f"/{step}" if step else ""),
    st.just("*") | NUMBER,
    st.none() | NUMBER,
    st.none() | NUMBER,
)
FIELD = st.just("*") | st.lists(PART, min_size=1, max_size=3).map(",".join)


@given(st.lists(FIELD, min_size=5, max_size=5))
def test_A1_what_is_plain_happens(fields: list[str]) -> None:
    if header_values._is_plain(fields):
        assert croniter(" ".join(fields), datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime).year in (2024, 2025)


def test_A1_the_starters_are_plain() -> None:
    for text in ("0 6 * * *", "0 7 1 * *", "0 8 * * 1-5", "*/5 * * * *", "0,30 9-17/2 * 1-6 0"):
        assert header_values._is_plain(text.split()), text
    for text in ("60 6 * * *", "0 6 31 2 *", "0 6 29 2 *", "0 6 * * mon", "*/0 * * * *", "5/2 * * * *", "5-1 * * * *"):
        assert not header_values._is_plain(text.split()), text

"""H5: what a tool gives is of at most 2,500 tokens, head and tail kept, and always text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tool_session import Session

from cleared.meta.tools.output_bounds import MAX_TOKENS, estimate_tokens, quote_data, truncate_middle


def test_a_megabyte_keeps_its_head_and_tail() -> None:
    """Row H5."""
    text = "HEAD\n" + "é€😀 a line of the middle\n" * 40_000 + "TAIL"
    short = truncate_middle(text)
    assert estimate_tokens(short) <= MAX_TOKENS and len(text.encode()) > 1_000_000
    assert short.startswith("HEAD\n") and short.endswith("\nTAIL")
    assert " bytes (" in short and " lines) are left out here" in short


@given(st.text(max_size=300), st.integers(30, 60))
def test_any_text_is_bounded(text: str, most: int) -> None:
    short = truncate_middle(text, most)
    assert estimate_tokens(short) <= most or short == text
    short.encode("utf-8")


@given(st.text(max_size=200))
def test_every_line_of_quoted_data_is_marked(text: str) -> None:
    first, *rest = quote_data(text, "a bank").split("\n")
    assert first.startswith("Data from a bank.") and all(line.startswith("| ") or not line for line in rest)
    assert len("\n".join(rest).splitlines()) <= max(1, len(rest))


def test_a_long_file_is_shown_in_parts(session: Session) -> None:
    session.ok("write_file", file_path="scratch/long.txt", content="x" * 1_900 + "\n" + "y\n" * 5_000 + "end\n")
    text = session.ok("read_file", file_path="scratch/long.txt", limit=2_000)
    assert estimate_tokens(text) <= MAX_TOKENS and "; go on with offset=" in text and "left out" not in text

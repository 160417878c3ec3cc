"""Tables: nothing is cut, a pipe has no width, and on a narrow terminal ids, statuses and counts stay in their row."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.terminal import escape_text, field_text, fold_text, print_batches, print_table, text_width

COLUMNS = ["run", "status", "entries", "message"]
LONG = "nothing of it was committed: " + "the bank's file says one thing and the books another, " * 4
ROWS = [
    ("r-20250131-ab12", "succeeded", 12, "import: 12 transactions from 1 file"),
    ("r-20250201-cd34", "failed", 0, LONG),
]


class Screen(io.StringIO):
    """A terminal, as far as a table asks."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines of a table on a terminal that is so wide."""

    def draw(
        width: int,
        rows: Sequence[Sequence[object]] = ROWS,
        columns: Sequence[str] = COLUMNS,
        wrap: Sequence[str] = ("message",),
    ) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        screen = Screen()
        print_table(columns, rows, right=["entries"], wrap=wrap, empty="none", file=screen)
        return screen.getvalue().strip("\n").splitlines()

    return draw


def test_a_pipe_has_no_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(COLUMNS, ROWS, right=["entries"], wrap=["message"], empty="none")
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == COLUMNS and len(rows) == 2
    assert rows[1] == f"r-20250201-cd34  failed           0  {LONG}".rstrip()


def test_a_long_text_takes_several_lines_and_hides_nothing(lines: Callable[..., list[str]]) -> None:
    drawn = lines(80)
    assert max(map(text_width, drawn)) <= 80
    assert drawn[2].startswith("r-20250131-ab12  succeeded       12  import:")
    assert drawn[3].startswith("r-20250201-cd34  failed           0  nothing of it")
    words = " ".join(drawn[3:]).split()
    assert words == ["r-20250201-cd34", "failed", "0", *LONG.split()]


def test_without_room_for_it_the_text_stands_below_its_row(lines: Callable[..., list[str]]) -> None:
    drawn = lines(40)
    assert max(map(text_width, drawn)) <= 40
    assert drawn[0].split() == COLUMNS[:3]
    assert drawn[2] == "r-20250131-ab12  succeeded       12"
    assert drawn[3] == "    message: import: 12 transactions"
    assert " ".join(drawn[5:]).split() == ["r-20250201-cd34", "failed", "0", "message:", *LONG.split()]


def test_what_does_not_fit_at_all_goes_below_last_column_first(lines: Callable[..., list[str]]) -> None:
    drawn = lines(25)
    assert drawn[2] == "r-20250131-ab12" and "status: succeeded" in drawn[3] and drawn[4].strip() == "entries: 12"


def test_wide_letters_and_marks_keep_the_columns_in_line(lines: Callable[..., list[str]]) -> None:
    first, second = lines(60, [("東京", "x", 1, ""), ("e\u0301", "y", 2, "")])[2:]
    assert text_width(first[: first.index("x")]) == text_width(second[: second.index("y")])


def test_no_cell_steers_the_terminal(lines: Callable[..., list[str]]) -> None:
    drawn = lines(80, [("\x1b[2J", "\u202eevil", 1, "a\nb")])
    assert "\x1b" not in "".join(drawn) and "\\x1b[2J" in drawn[2] and "a\\nb" in drawn[2]


def test_an_empty_table_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [], empty="Nothing has run yet.")
    assert capsys.readouterr().out == "Nothing has run yet.\n"


@given(st.text(max_size=200), st.integers(1, 60))
def test_folding_loses_no_character(text: str, width: int) -> None:
    shown = escape_text(text)
    folded = fold_text(shown, width)
    assert "".join(folded).replace(" ", "") == shown.replace(" ", "")
    assert all(text_width(line) <= max(width, 2) for line in folded)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (["a", 1], "a, 1"),
        ({"from": "5030", "to": None}, "from: 5030\nto: "),
        ([{"a": 1}], '{"a": 1}'),
    ],
)
def test_plain_data_is_shown_without_python(value: object, text: str) -> None:
    assert field_text(value) == text


@given(
    st.lists(st.tuples(*[st.text(st.sampled_from("ab1 é漢\x1b\n←"), max_size=9)] * 3), min_size=1, max_size=12),
    st.integers(1, 12),
    st.sampled_from([None, 20, 40, 200]),
)
def test_rows_in_batches_are_printed_as_a_whole_table(
    rows: list[tuple[str, ...]], size: int, width: int | None
) -> None:
    """However many are taken at a time, to a pipe and to terminals of any width."""
    columns = ["id", "amount", "text"]
    style: dict[str, Any] = {"right": ["amount"], "wrap": ["text"], "empty": "none"}
    whole, parts = (io.StringIO(), io.StringIO()) if width is None else (Screen(), Screen())
    batches = [list(map(list, zip(*rows[n : n + size], strict=True))) for n in range(0, len(rows), size)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(width or 80))
        print_table(columns, rows, heading=False, file=whole, **style)
        print_batches(columns, lambda: batches, file=parts, **style)
    assert parts.getvalue() == whole.getvalue()
    nothing = io.StringIO()
    print_batches(columns, list, file=nothing, **style)
    assert nothing.getvalue() == "none\n"

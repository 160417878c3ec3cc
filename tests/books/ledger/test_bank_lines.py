"""What posts each bank line: which files are read for it, and that it is found wherever a version has written it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from ledger_samples import JOURNAL, PATHS, DictSource, books, entry_of, journal, make_line, pair

from cleared.base.csv_text import format_record
from cleared.base.errors import WorkspaceError
from cleared.books.audit.books_check import check_books
from cleared.books.ledger.bank_lines import LINE_COLUMNS, MATCH_COLUMNS, append_rows
from cleared.books.ledger.staged_bank_lines import BankBook

EARLIER = "books/bank/matches.csv"


class NotedSource(DictSource):
    """Notes which matches are read."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.read_matches: list[str] = []

    def read(self, path: str) -> bytes | None:
        if "matches" in path:
            self.read_matches.append(path)
        return super().read(path)


def matched(*rows: tuple[str, str, str]) -> bytes:
    return append_rows(None, MATCH_COLUMNS, map(format_record, rows))


def lines(month: str, *names: str) -> dict[str, bytes]:
    day = date.fromisoformat(f"{month}-05")
    rows = (make_line(name, day=day).to_csv() for name in names)
    return {f"books/bank/checking/{month}.csv": append_rows(None, LINE_COLUMNS, rows)}


def open_bank(files: dict[str, bytes]) -> tuple[BankBook, NotedSource]:
    source = NotedSource(files)
    return BankBook(source, PATHS), source


FILES = {
    **lines("2025-01", "f1:a", "f1:b"),
    **lines("2025-02", "f1:c"),
    "books/bank/matches-2025-01.csv": matched(("f1:a", "2025-01-001b", "-4.00"), ("f1:b", "2025-02-002b", "4.00")),
    "books/bank/matches-2025-02.csv": matched(("f1:c", "2025-02-001b", "-4.00")),
    EARLIER: matched(("f1:b", "2025-01-002b", "-4.00")),
}


def test_of_a_line_the_matches_of_its_month_alone_are_read() -> None:
    facts, source = open_bank(FILES)
    facts.read_month("checking", "2025-01")
    assert source.read_matches == []
    assert [facts.posted_amount(name) for name in ("f1:a", "f1:b")] == [Decimal("-4.00"), Decimal(0)]
    assert facts.list_entry_ids("f1:b") == ["2025-01-002", "2025-02-002"]
    facts.new_lines["f1:new"] = ("checking", make_line("f1:new"))
    assert facts.posted_amount("f1:new") == 0 and facts.list_entry_ids("f1:new") == []
    assert source.read_matches == [EARLIER, "books/bank/matches-2025-01.csv"]
    assert [line.line_id for line in facts.scan_account_lines("checking", since=date(2025, 2, 1))] == ["f1:c"]
    assert facts.posted_amount("f1:c") == Decimal("-4.00")


def test_a_line_is_looked_for_from_the_newest_month_on() -> None:
    """Else a decision about today's line would read all that is older."""
    facts, source = open_bank(FILES)
    assert facts.find_line("f1:c") == ("checking", make_line("f1:c", day=date(2025, 2, 5)))
    assert facts.posted_amount("f1:c") == Decimal("-4.00")
    assert source.read_matches == [EARLIER, "books/bank/matches-2025-02.csv"]
    assert facts.find_line("f1:a") is not None and facts.find_line("f1:gone") is None


def test_a_line_that_was_not_read_is_looked_for_in_all() -> None:
    facts, _ = open_bank(FILES)
    assert facts.posted_amount("f1:c") == Decimal("-4.00")
    assert list(facts.matches) == ["f1:b", "f1:a", "f1:c"]


def test_a_match_goes_to_the_month_in_which_the_line_is_recorded() -> None:
    """Also of a line that an earlier version has matched, and of one of which no month is known."""
    facts, _ = open_bank(FILES)
    facts.match_entry(make_line("f1:b"), 1010, entry_of())
    facts.match_entry(make_line("f1:gone", day=date(2025, 3, 1)), 1010, entry_of())
    facts.new_lines["f1:new"] = ("checking", make_line("f1:new", day=date(2025, 4, 1)))
    facts.match_entry(make_line("f1:new"), 1010, entry_of())
    assert {path: data.decode().splitlines()[-1][:6] for path, data in facts.render_files("run").items()} == {
        "books/bank/checking/2025-04.csv": "f1:new",
        "books/bank/matches-2025-01.csv": "f1:b,2",
        EARLIER: "f1:gon",
        "books/bank/matches-2025-04.csv": "f1:new",
    }
    assert facts.posted_amount("f1:b") == Decimal("-4.00") and len(facts.list_matches("f1:b")) == 3


def test_a_match_in_the_file_of_another_month_is_told() -> None:
    """A run looks for it in the file of the line's month, and would post the line again."""
    files = lines("2025-01", "f1:a")
    match = matched(("f1:a", "2025-01-001b", "-4.00"))
    right = (EARLIER, "books/bank/matches-2025-01.csv")
    for path in (*right, "books/bank/matches-2025-02.csv"):
        facts, _ = open_bank(files | {path: match})
        found = check_books(books({JOURNAL: journal(*pair())}), facts)
        assert [str(v.place.file) for v in found if v.place] == ([] if path in right else [path])
        assert path in right or found[0].message.startswith("a match of the bank line of 2025-01-05 is not in")


def test_a_damaged_row_is_named_by_its_line() -> None:
    facts, _ = open_bank(
        FILES | {EARLIER: matched(("f1:b", "2025-01-002b", "-4.00"), ("f1:x", "2025-01-003b", "four"))}
    )
    with pytest.raises(WorkspaceError) as refusal:
        facts.posted_amount("f1:a")
    assert refusal.value.place is not None and (refusal.value.place.file, refusal.value.place.line) == (EARLIER, 3)

"""Row B28: a mistaken import is taken back whole, in one commit; the file can come again, and then posts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import JANUARY, Workspace, chase, refused, take_ok, unchanged
from hypothesis import given, settings
from hypothesis import strategies as st
from reviewers import People

FEBRUARY = chase(("02/03/2025", "GITHUB *PRO", "-4.00", "2442.40"), ("02/04/2025", "RENT", "-900.00", "1542.40"))
BOTH = chase(
    ("01/09/2025", "AWS EMEA", "-45.10", "2450.90"),
    ("01/10/2025", "COFFEE", "-4.50", "2446.40"),
    ("02/03/2025", "GITHUB *PRO", "-4.00", "2442.40"),
)


IMPORT_AND_ACCRUE = """
for t in importer_parse("january.csv"):
    journal_add_double(t["date"], t["description"], 5030 if t["amount"] < 0 else 1010,
        1010 if t["amount"] < 0 else 4010, abs(t["amount"]), reference=t["reference"])
importer_mark_processed("january.csv")
journal_add_double("2025-01-31", "RENT", 5150, 3100, 1200)
"""


def trial_balance(ws: Workspace) -> dict[int, str]:
    return {row["account_id"]: row["balance"] for row in ws.json("journal", "balance") if row["balance"] != "0.00"}


def import_file(ws: Workspace, name: str, data: str = JANUARY) -> str:
    ws.drop(name, data)
    return str(ws.run("ingest")["run_id"])


def test_b28_the_whole_import_is_taken_back_and_comes_again(ws: Workspace) -> None:
    """B28: one commit; then the same file posts once more what it had posted, and nothing else."""
    run = import_file(ws, "january.csv")
    once, head = trial_balance(ws), ws.head()
    done = ws.json("import", "undo", run, "--reason", "the wrong account")
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1"
    assert (done["files"], len(done["entries"]), len(done["lines"]), done["kept"]) == (["january.csv"], 4, 4, [])
    assert trial_balance(ws) == {} and ws.cards() == []
    ws.in_order()
    import_file(ws, "january.csv")
    assert trial_balance(ws) == once
    assert len([e for e in ws.entries() if e["status"] != "voided"]) == 4
    assert [c["kind"] for c in ws.cards()].count("duplicate_file") == 0
    ws.in_order()
    import_file(ws, "again.csv")
    assert trial_balance(ws) == once, "known again"


def test_b28_undoing_twice_is_refused_and_a_second_import_can_be_undone(ws: Workspace) -> None:
    import_file(ws, "january.csv")
    ws.ok("import", "undo", "january.csv")
    with unchanged(ws):
        refused(ws("import", "undo", "january.csv"), 3, "was undone on 2025-02-10 by")
        refused(ws("import", "undo", "nothing.csv"), 2, "there is no import 'nothing.csv'")
    import_file(ws, "january.csv")
    ws.ok("import", "undo", "import/processed/january.csv")
    assert trial_balance(ws) == {}
    ws.in_order()


def test_b28_every_run_of_one_file_is_taken_back(ws: Workspace) -> None:
    """The same file came twice: its second run brought nothing, and would else hold the lines of the first."""
    first = import_file(ws, "january.csv")
    second = import_file(ws, "copy.csv")
    done = ws.json("import", "undo", first)
    assert done["runs"] == sorted([first, second]) and trial_balance(ws) == {}
    ws.in_order()


def test_b28_what_another_file_says_stays_until_that_is_undone(ws: Workspace) -> None:
    """Overlapping files: without the first, the books are those of the second alone."""
    import_file(ws, "january.csv")
    import_file(ws, "both.csv", BOTH)
    done = ws.json("import", "undo", "january.csv")
    assert (len(done["lines"]), len(done["kept"])) == (2, 2)
    assert trial_balance(ws)[1010] == "-53.60"
    ws.in_order()
    ws.ok("import", "undo", "both.csv")
    assert trial_balance(ws) == {}
    import_file(ws, "both.csv", BOTH)
    assert trial_balance(ws)[1010] == "-53.60"
    ws.in_order()


def test_b28_what_somebody_decided_is_named_and_a_closed_month_refused(ws: Workspace) -> None:
    import_file(ws, "january.csv")
    entry = next(c["entry_id"] for c in ws.cards() if c["kind"] == "entry")
    ws.ok("queue", "correct", entry, "--account", "5060")
    with unchanged(ws):
        refused(ws("import", "undo", "january.csv"), 3, "somebody has decided", entry, "user-corrected", "--despite")
    rest = [c["id"] for c in ws.cards()]
    ws.ok("queue", "approve", *rest)
    ws.ok("period", "close", "2025-01")
    with unchanged(ws):
        refused(
            ws("import", "undo", "january.csv", "--despite", "x"),
            3,
            "4 rows of it, from 2025-01-03 on, lie in a period that is closed",
            "cleared period reopen 2025-01-03",
        )
    ws.ok("period", "reopen", "2025-01", "--reason", "wrong file")
    ws.ok("import", "undo", "january.csv", "--despite", "the wrong file")
    assert trial_balance(ws) == {}
    ws.in_order()


def test_b28_why_names_the_undoing(ws: Workspace) -> None:
    import_file(ws, "january.csv")
    ws.ok("import", "undo", "january.csv", "--reason", "of the other shop")
    told = ws.ok("why", "2025-01-001").out
    assert "void: import of january.csv, 4 entries: of the other shop" in told and "january.csv, row 2" in told
    assert "of the other shop" in ws.ok("why", "2025-01-005").out, "of the reversal, too"
    refused(ws("queue", "undo"), 3, "not taken back here", "Import the file again")


def test_b28_lines_that_were_held_are_asked_about_again(ws: Workspace) -> None:
    hold = (
        "for f in importer_scan():\n    for t in importer_parse(f['name']):\n"
        "        queue_add_review(entry_id=t['reference'], description='who is this?')\n"
        "    importer_mark_processed(f['name'])"
    )
    ws.drop("february.csv", FEBRUARY)
    ws.script(hold)
    asked = {c["id"] for c in ws.cards()}
    ws.ok("import", "undo", "february.csv")
    assert ws.cards() == []
    ws.drop("february.csv", FEBRUARY)
    ws.script(hold)
    again = {c["id"] for c in ws.cards() if c["kind"] == "line"}
    assert len(again) == 2 and again.isdisjoint(asked)
    ws.in_order()


def test_b28_a_row_that_was_called_a_doublet_is_asked_about_where_the_other_is_taken_back(ws: Workspace) -> None:
    import_file(ws, "one.csv", chase(("01/08/2025", "DINER 12", "-20.00")))
    import_file(ws, "two.csv", chase(("01/15/2025", "DINER TWELVE", "-20.00")))
    first, second = (entry["entry_id"] for entry in ws.entries())
    ws.ok("queue", "reject", second, "--reason", "the same", "--outcome", "duplicate", "--of", first)
    refused(ws("import", "undo", "one.csv"), 3, "the row 2025-01-15 -20.00 is set aside for it")
    ws.ok("import", "undo", "one.csv", "--despite", "the wrong one")
    assert [card["title"] for card in ws.cards()] == [
        "2025-01-15 -20.00 DINER TWELVE: what counted instead was taken back"
    ]
    ws.in_order()


def test_b28_a_name_that_two_files_had_takes_a_run(ws: Workspace) -> None:
    first = import_file(ws, "bank.csv")
    second = import_file(ws, "bank.csv", FEBRUARY)
    with unchanged(ws):
        refused(ws("import", "undo", "bank.csv"), 2, "several files named 'bank.csv'", first, second)
    ws.ok("import", "undo", second[-6:])
    ws.ok("import", "undo", "bank.csv")
    assert trial_balance(ws) == {}


def test_b28_it_is_a_reviewers_decision_and_takes_two_where_entries_do(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path, two="500")
    head = posted.head()
    refused(people("eve", "import", "undo", "january.csv"), 3, "only reviewers may decide here")
    assert posted.head() == head
    refused(people("ana", "import", "undo", "january.csv"), 3, "it takes two reviewers; you are the first")
    assert trial_balance(posted) != {}
    people.ok("ben", "import", "undo", "january.csv")
    assert trial_balance(posted) == {}
    wrong = people("ana", "check", "--json").json["violations"]
    assert [v["message"][:30] for v in wrong if "trusted here attests it" not in v["message"]] == []


FILES = {"january.csv": JANUARY, "both.csv": BOTH, "february.csv": FEBRUARY}


@pytest.fixture(scope="module")
def alone() -> dict[frozenset[str], dict[int, str]]:
    """Which files stand → the books of them alone, as far as they are known."""
    return {}


@settings(max_examples=3)
@given(st.lists(st.tuples(st.sampled_from(sorted(FILES)), st.booleans()), min_size=3, max_size=6))
def test_b28_the_books_are_those_of_the_imports_that_stand(
    tmp_path_factory: pytest.TempPathFactory,
    starting_point: Path,
    alone: dict[frozenset[str], dict[int, str]],
    steps: list[tuple[str, bool]],
) -> None:
    """Any imports and undoings, in any order: the same trial balance for the same files that stand."""
    from harness import copy_books, environment

    root = tmp_path_factory.mktemp("undo")
    with pytest.MonkeyPatch.context() as patch:
        # A folder of its own: this user must not have seen settings approved in another copy of these books.
        for key, value in (environment(root) | {"CLEARED_HOME": str(root / "cleared")}).items():
            patch.setenv(key, value)
        ws = Workspace(copy_books(starting_point, root / "books"))
        standing: set[str] = set()
        for name, comes in steps:
            if comes:
                import_file(ws, name, FILES[name])
                standing.add(name)
            elif name in standing:
                ws.ok("import", "undo", name)
                standing.discard(name)
        books = trial_balance(ws)
        assert alone.setdefault(frozenset(standing), books) == books
        assert ws.json("check")["ok"]


def test_what_a_revert_has_left_standing_is_named_with_the_way_to_take_it_back(ws: Workspace) -> None:
    import_file(ws, "january.csv")
    ws.ok("queue", "correct", "2025-01-002", "--account", "5070")
    ws.ok("revert", "january.csv", "--reason", "the wrong account", "--yes")
    with unchanged(ws):
        done = ws("import", "undo", "january.csv", "--reason", "the rest", "--despite", "all of it")
        refused(done, 3, "but for what people had decided: 2025-01-002", "cleared journal void 2025-01-002")
    ws.ok("journal", "void", "2025-01-002", "--reason", "the rest")
    assert trial_balance(ws) == {}
    ws.in_order()


def test_an_entry_without_a_bank_line_goes_with_the_run_that_posted_it(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.script(IMPORT_AND_ACCRUE)
    assert len(ws.json("import", "undo", "january.csv")["entries"]) == 5
    assert trial_balance(ws) == {}
    ws.in_order()


def test_an_entry_that_got_the_number_since_stays(ws: Workspace) -> None:
    """Somebody took out by git the one that the run had posted beside those of the bank lines."""
    ws.drop("january.csv")
    ws.script(IMPORT_AND_ACCRUE)
    path = "books/2025/01/journal.csv"
    ws.put(path, "".join(row for row in ws.read(path).splitlines(keepends=True) if ",RENT," not in row))
    by_hand = ws.commit(path)
    take_ok(ws, "recover", "--forget")
    ws.ok("accept", by_hand, "--reason", "the rent is posted by another agent")
    ws.ok("journal", "add", "2025-01-20", "Depreciation", "5220=10", "1590=-10")
    assert [e["entry_id"] for e in ws.entries() if e["description"] == "Depreciation"] == ["2025-01-005"]
    done = ws.json("import", "undo", "january.csv")
    assert done["entries"] == [f"2025-01-00{number}" for number in range(1, 5)]
    assert trial_balance(ws) == {1590: "-10.00", 5220: "10.00"}
    ws.in_order()


def test_what_another_file_of_the_run_asks_about_stays_asked(ws: Workspace) -> None:
    rows = [("01/02/2025", "AWS EMEA", "-4.00", ""), ("01/03/2025", "RENT", "-900.00", "")]
    import_file(ws, "january.csv", chase(*rows))
    for name, row in zip(("one.csv", "other.csv"), rows, strict=True):
        ws.drop(name, chase(row, ("01/09/2025", f"OF {name}", "-1.00", "")))
    ws.run("ingest")
    asked = {card["details"]["file"]: card["id"] for card in ws.cards() if card["kind"] == "duplicate_file"}
    assert len(asked) == 2
    ws.ok("import", "undo", "one.csv", "--reason", "a test")
    (left,) = [card for card in ws.cards() if card["kind"] == "duplicate_file"]
    assert "other" in left["title"] and left["id"] in asked.values()

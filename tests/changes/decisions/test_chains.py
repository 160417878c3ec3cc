"""B30: a bank line counts once on every day: corrected, voided, brought back, before and after a close."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from decimal import Decimal

import pytest
from harness import Workspace

BANK, COFFEE = 1010, "2025-01-004"
JANUARY_BANK = Decimal("1446.40")
"""All four rows of January."""
FEBRUARY, JANUARY = "2025-02-28", "2025-01-31"


def balances(ws: Workspace, through: str) -> dict[int, Decimal]:
    """Debits minus credits by account, of all rows up to a day, as the files have them."""
    totals: dict[int, Decimal] = {}
    for path in sorted((ws.root / "books").glob("20*/*/journal.csv")):
        for row in csv.DictReader(io.StringIO(path.read_text())):
            if row["date"] <= through:
                amount = Decimal(row["debit"] or 0) - Decimal(row["credit"] or 0)
                totals[int(row["account_id"])] = totals.get(int(row["account_id"]), Decimal(0)) + amount
    return {account: total for account, total in totals.items() if total}


def close(ws: Workspace, month: str = "2025-01") -> None:
    ws.ok("period", "close", month, "--with-pending", "--despite", "for this test")


def reopen(ws: Workspace, month: str = "2025-01") -> None:
    ws.ok("period", "reopen", month, "--reason", "once more")


def standing(ws: Workspace) -> str:
    """The entry that posts the coffee's bank line now."""
    (found,) = [e for e in ws.entries() if e["description"] == "COFFEE" and e["status"] != "voided"]
    return str(found["entry_id"])


def line_card(ws: Workspace) -> str:
    (found,) = [c for c in ws.cards() if c["kind"] == "line"]
    return str(found["id"])


def void_then_undo(ws: Workspace) -> None:
    ws.ok("queue", "correct", COFFEE, "--account", "5070")
    close(ws)
    ws.ok("journal", "void", COFFEE, "--reason", "dup")
    reopen(ws)
    ws.ok("queue", "undo")


def void_then_answer(ws: Workspace) -> None:
    ws.ok("queue", "correct", COFFEE, "--account", "5060")
    close(ws)
    ws.ok("journal", "void", COFFEE, "--reason", "dup")
    reopen(ws)
    ws.ok("queue", "correct", line_card(ws), "--account", "5070")


def correct_twice(ws: Workspace) -> None:
    close(ws)
    ws.ok("queue", "correct", COFFEE, "--account", "5060")
    reopen(ws)
    ws.ok("queue", "correct", COFFEE, "--account", "5070")


def post_anew_twice(ws: Workspace) -> None:
    close(ws)
    ws.ok("queue", "correct", COFFEE, "--account", "5060", "--tag", "one")
    reopen(ws)
    ws.ok("queue", "correct", standing(ws), "--account", "5070", "--tag", "two")


def post_anew_and_take_back(ws: Workspace) -> None:
    ws.ok("queue", "correct", COFFEE, "--account", "5070", "--tag", "one")
    close(ws)
    ws.ok("queue", "correct", standing(ws), "--account", "5060", "--tag", "two")
    reopen(ws)
    ws.ok("queue", "undo")


def split_then_correct(ws: Workspace) -> None:
    close(ws)
    ws.ok("queue", "correct", COFFEE, "--line", "5060=2.00", "--line", "5010=2.50")
    reopen(ws)
    ws.ok("queue", "correct", COFFEE, "--line", "5070=4.50")


WAYS = {
    f.__name__: f
    for f in (
        void_then_undo,
        void_then_answer,
        correct_twice,
        post_anew_twice,
        post_anew_and_take_back,
        split_then_correct,
    )
}


@pytest.mark.parametrize("way", WAYS)
def test_b30_across_a_close_and_a_reopening_a_line_counts_once(posted: Workspace, way: str) -> None:
    do: Callable[[Workspace], None] = WAYS[way]
    do(posted)
    january, february = balances(posted, JANUARY), balances(posted, FEBRUARY)
    assert january[BANK] == february[BANK] == JANUARY_BANK, way
    assert february[5070] == Decimal("4.50") and not {5060, 5010, 5030} & february.keys()
    # January has the coffee once, under what it was or what it is.
    assert sum((january.get(a, Decimal(0)) for a in (5010, 5030, 5060, 5070)), Decimal(0)) == Decimal("4.50")
    assert all(january.get(a, Decimal(0)) >= 0 for a in (5010, 5030, 5060, 5070))
    posted.in_order()


def test_b30_what_was_taken_back_after_a_close_comes_back_in_the_same_month(posted: Workspace) -> None:
    """It was void in February only; so it is back in February, and January never changed."""
    close(posted)
    before = balances(posted, JANUARY)
    posted.ok("journal", "void", COFFEE, "--reason", "dup")
    assert balances(posted, JANUARY) == before and balances(posted, FEBRUARY)[BANK] == JANUARY_BANK + Decimal("4.50")
    reopen(posted)
    posted.ok("queue", "undo")
    assert balances(posted, JANUARY) == balances(posted, FEBRUARY) == before
    (back,) = [e for e in posted.entries() if e["entry_id"] == standing(posted)]
    assert back["date"] == "2025-02-01" and "@orig_date=2025-01-10" in back["tags"]


def test_b30_an_import_that_is_undone_and_comes_again_counts_once(posted: Workspace) -> None:
    close(posted)
    posted.ok("queue", "correct", COFFEE, "--account", "5060", "--tag", "one")
    reopen(posted)
    posted.ok("import", "undo", "january.csv", "--despite", "again")
    assert BANK not in balances(posted, FEBRUARY)
    posted.drop("january.csv")
    posted.run("ingest")
    january, february = balances(posted, JANUARY), balances(posted, FEBRUARY)
    assert january[BANK] == february[BANK] == JANUARY_BANK and january[5030] == february[5030] == Decimal("4.50")
    posted.in_order()


def test_b30_without_the_one_date_it_would_count_twice(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dated as the original, what comes back is beside what was not yet taken away; the invariant refuses it then."""
    from datetime import date

    from cleared.books.ledger.staged_journal import Books

    close(posted)
    posted.ok("journal", "void", COFFEE, "--reason", "dup")
    reopen(posted)
    monkeypatch.setattr(Books, "date_change", lambda books, ids, not_before=None: date(2025, 1, 10))
    before = posted.state()
    refused = posted("queue", "undo")
    assert refused.code == 1 and "counts_once" in refused.err and "2025-01-10" in refused.err
    assert posted.state() == before


def test_b30_the_check_names_an_entry_that_counts_twice(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it came into the books before anybody looked for it."""
    from datetime import date

    from cleared.books.ledger import checks
    from cleared.books.ledger.staged_journal import Books

    close(posted)
    posted.ok("journal", "void", COFFEE, "--reason", "dup")
    reopen(posted)
    with monkeypatch.context() as patch:
        patch.setattr(Books, "date_change", lambda books, ids, not_before=None: date(2025, 1, 10))
        patch.setattr(checks, "check_staged_chains", lambda books, bank: [])
        posted.ok("queue", "undo")
    found = posted("check", "--json")
    assert found.code == 1
    violations = [v for v in found.json["violations"] if v["check"] == "counts_once"]
    assert violations and all("2025-01-10" in v["message"] and "journal void" in v["remedy"] for v in violations)


def test_a_second_correction_takes_the_place_of_the_first(posted: Workspace) -> None:
    """In a month that was closed in between it counts alone, too."""
    posted.ok("period", "close", "2025-01", "--with-pending")
    posted.ok("queue", "correct", COFFEE, "--account", "5010")
    posted.ok("period", "reopen", "2025-01", "--reason", "test")
    posted.ok("queue", "correct", COFFEE, "--account", "5060")
    for day in ("2025-01-31", "2025-02-28"):
        moved: dict[int, Decimal] = {}
        for entry in posted.entries():
            for leg in entry["lines"] if entry["date"] <= day and "COFFEE" in entry["description"] else ():
                amount = Decimal(leg["debit"]) - Decimal(leg["credit"])
                moved[leg["account_id"]] = moved.get(leg["account_id"], Decimal(0)) + amount
        assert {a: v for a, v in moved.items() if v} == {1010: Decimal("-4.50"), 5060: Decimal("4.50")}, day
    posted.in_order()


def test_a_correction_back_to_what_was_posted_takes_the_first_back_and_no_more(posted: Workspace) -> None:
    posted.ok("queue", "correct", COFFEE, "--account", "5010")
    count = len(posted.entries())
    posted.ok("queue", "correct", COFFEE, "--account", "5030")
    assert len(posted.entries()) == count + 1
    posted.ok("queue", "undo")
    assert [e["status"] for e in posted.entries() if "@corrects" in str(e["tags"])][-1] == "user-corrected"
    posted.in_order()

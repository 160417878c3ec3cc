"""A payee, tags and a note are changed where they stand, in closed months too, and it can be taken back."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase, refused, unchanged

GITHUB, ACME, COFFEE = "2025-01-001", "2025-01-002", "2025-01-004"


def entry(ws: Workspace, name: str) -> dict[str, Any]:
    return next(e for e in ws.entries() if e["entry_id"] == name)


def money(ws: Workspace) -> list[Any]:
    """All that moves money."""
    return [(e["entry_id"], e["date"], e["lines"], e["reference"]) for e in ws.entries()]


def vendors(ws: Workspace, period: str) -> dict[str, Decimal]:
    rows = ws.json("report", "vendors", "--period", period)["rows"]
    return {row["label"]: Decimal(row["spent"]) for row in rows if row["label"] != "Total"}


def close(ws: Workspace, month: str = "2025-01") -> None:
    ws.ok("period", "close", month, "--with-pending")


@pytest.mark.parametrize(
    ("words", "column", "was", "now"),
    [
        (["--counterparty", "Cafe, Inc."], "counterparty", "", "Cafe, Inc."),
        (["--tag", "trip", "--tag", "paris"], "tags", [], ["trip", "paris", "@amended"]),
        (["--note", 'with "Ann"'], "notes", "", 'with "Ann"'),
    ],
    ids=["payee", "tags", "note"],
)
@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_written_where_it_stands(
    posted: Workspace, words: list[str], column: str, was: object, now: object, is_closed: bool
) -> None:
    posted.ok("queue", "approve", COFFEE)
    if is_closed:
        close(posted)
    before, old = money(posted), entry(posted, COFFEE)
    assert old[column] == was
    found = posted.json("queue", "correct", COFFEE, *words)
    assert found["entries"] == [COFFEE] and found["posted"] == []
    assert money(posted) == before
    assert entry(posted, COFFEE) == {**old, column: now, "tags": now if column == "tags" else ["@amended"]}
    assert posted.json("check") == {"ok": True, "violations": []}
    posted.ok("queue", "undo")
    assert entry(posted, COFFEE) == old and money(posted) == before
    assert posted.json("check") == {"ok": True, "violations": []}


def test_why_says_what_it_was_and_who_changed_it(posted: Workspace) -> None:
    posted.ok("queue", "approve", COFFEE)
    posted.ok("queue", "correct", COFFEE, "--counterparty", "Cafe")
    posted.ok("queue", "correct", COFFEE, "--counterparty", "Bar", "--note", "it moved")
    posted.ok("queue", "undo")
    decisions = posted.json("why", COFFEE)["decisions"]
    changes = [[(c["field"], c["old"], c["new"]) for c in d["changed"]] for d in decisions]
    assert changes == [
        [],
        [("counterparty", "", "Cafe")],
        [("counterparty", "Cafe", "Bar"), ("notes", "", "it moved")],
        [("counterparty", "Bar", "Cafe"), ("notes", "it moved", "")],
    ]
    assert all(d["by"] for d in decisions)
    assert "counterparty: Bar → Cafe" in posted.ok("why", COFFEE).out


def test_the_vendors_of_both_years_are_right(ws: Workspace) -> None:
    ws.drop("old.csv", chase(("12/03/2024", "SMITH PLUMBING", "-900.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", "2024-12-001", "--account", "5060")
    ws.ok("period", "close", "2024-12")
    ws.ok("queue", "correct", "2024-12-001", "--account", "5010")  # January has what takes it from 5060
    ws.ok("queue", "correct", "2024-12-001", "--counterparty", "Smith Ltd")
    assert vendors(ws, "2024") == {"Smith Ltd": Decimal("900.00")}
    assert vendors(ws, "2025") in ({}, {"Smith Ltd": Decimal(0)})
    assert ws.json("check")["ok"]
    ws.ok("queue", "undo")
    assert vendors(ws, "2024") == {"(no counterparty)": Decimal("900.00")}


def test_with_an_account_only_the_account_is_posted(posted: Workspace) -> None:
    before = len(posted.entries())
    found = posted.json("queue", "correct", COFFEE, "--account", "5010", "--counterparty", "Cafe", "--tag", "trip")
    assert len(found["posted"]) == 1 and len(posted.entries()) == before + 1
    corrected, correction = entry(posted, COFFEE), entry(posted, found["posted"][0])
    assert corrected["counterparty"] == correction["counterparty"] == "Cafe" and "trip" in corrected["tags"]
    posted.ok("queue", "undo")
    (again,) = [e for e in posted.entries() if e["description"] == "COFFEE" and e["status"] == "pending-review"]
    assert again["counterparty"] == "" and "trip" not in again["tags"] and "@amended" not in again["tags"]
    assert {e["counterparty"] for e in posted.entries() if "COFFEE" in e["description"]} == {""}
    assert posted.json("check")["ok"]


def test_a_card_is_settled_by_it(posted: Workspace) -> None:
    posted.ok("queue", "correct", COFFEE, "--counterparty", "Cafe")
    assert entry(posted, COFFEE)["status"] == "user-corrected"
    assert COFFEE not in [card["entry_id"] for card in posted.cards()]
    posted.ok("queue", "undo")
    assert [c["entry_id"] for c in posted.cards() if "COFFEE" in c["title"]]


def test_what_is_found_and_exported_is_the_amended_text(posted: Workspace, tmp_path: Path) -> None:
    posted.ok("queue", "correct", GITHUB, "--counterparty", "Octocat Inc")
    posted.ok("export", "beancount", str(tmp_path / "out"))
    assert any('"Octocat Inc"' in file.read_text() for file in (tmp_path / "out").rglob("*.beancount"))
    assert [e["entry_id"] for e in posted.json("search", "octocat")] == [GITHUB]
    assert posted.ok("journal", "list", "--text", "octocat").out.startswith(GITHUB)


def test_refused_are_no_tags_and_what_changes_nothing(posted: Workspace) -> None:
    with unchanged(posted):
        refused(posted("queue", "correct", COFFEE, "--tag", "@rev=1"), 2, "without @")
        refused(posted("queue", "correct", COFFEE, "--counterparty", ""), 2, "is like that already")


def test_an_amended_entry_counts_as_decided_when_its_import_is_undone(posted: Workspace) -> None:
    posted.ok("queue", "correct", GITHUB, "--counterparty", "Octocat Inc")
    assert entry(posted, GITHUB)["status"] == "auto-confirmed"
    done = posted("import", "undo", "january.csv")
    assert done.code == 3 and f"{GITHUB} 2025-01-03 4.00 GITHUB *PRO: amended" in done.err


def test_by_hand_it_is_a_violation(posted: Workspace) -> None:
    path = "books/2025/01/journal.csv"
    text = posted.read(path)
    assert "COFFEE,4.50,,," in text
    posted.put(path, text.replace("COFFEE,4.50,,,", "COFFEE,4.50,,Mallory,"))
    done = posted("check")
    assert done.code != 0 and "[unchanged]" in done.out + done.err


def test_a_draft_that_changes_what_was_not_asked_for_is_refused(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are compared with what the decision staged."""
    from cleared.books.ledger import staged_journal

    real = staged_journal.set_columns
    monkeypatch.setattr(
        staged_journal,
        "set_columns",
        lambda data, changes: real(data, {**changes, GITHUB: {"counterparty": "Mallory"}}),
    )
    posted.ok("queue", "list")
    with unchanged(posted):
        done = posted("queue", "correct", COFFEE, "--counterparty", "Cafe")
    assert done.code != 0 and "[unchanged]" in done.err and "counterparty was" in done.err

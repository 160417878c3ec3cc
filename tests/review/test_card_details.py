"""``cleared queue show`` says what a card holds in words and tables, for every kind, and never as a Python dict."""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness import Workspace, chase
from proposing import write

from cleared.cards.kinds import KINDS
from cleared.review.card_details import card_fields, detail_fields, detail_tables, preview_lines

DETAILS: dict[str, Any] = {
    "cause": "no such column",
    "_known_by": {"sha256": "ab"},
    "ticket": {"key": "…"},
    "count": 3,
    "empty": [],
    "files": ["import/a.csv", "import/b.csv"],
    "choices": ["yes", "no"],
    "on_timeout": "default",
    "event": {"id": "k", "kind": "file_watch", "name": "", "payload": {"n": 1}, "files": [["import/a.csv", "ab"]]},
    "rows": [{"row": 1, "amount": "4.50", "line": "L1"}, {"row": 2, "amount": "5.00", "line": "L2"}],
    "futures": {
        "yes": {
            "entries": [
                {"date": "2025-01-10", "amount": "4.50", "description": "COFFEE", "status": "pending-review"},
                {"text": "by hand"},
            ]
        },
        "no": {},
    },
    "nested": {"flag": True, "none": None, "list": [1, 2]},
}


def card(kind: str, **rest: Any) -> dict[str, Any]:
    return {
        "id": "abcd2345",
        "kind": kind,
        "entry_id": None,
        "title": "…",
        "status": "open",
        "created_at": "2025-01-31",
        "run_id": None,
        "agent": None,
        "details": DETAILS,
        "resolved_at": None,
        "resolved_by": None,
        "resolution": None,
        "agreed": [],
        "held": None,
        "overdue": False,
        **rest,
    }


@pytest.mark.parametrize("kind", [*KINDS, "of_a_later_version"])
def test_every_kind_is_shown_in_words(kind: str) -> None:
    fields = card_fields(card(kind))
    texts = [value for _, value in fields]
    for section in detail_tables(DETAILS):
        texts += [section.title, *section.lines, *section.columns, *(cell for row in section.rows for cell in row)]
    assert not [text for text in texts if re.search(r"[{}]|\['|None|True", text)]
    shown = dict(fields)
    assert shown["files"] == "import/a.csv, import/b.csv"
    assert shown["event"] == "file watch (import/a.csv) with n 1"
    assert shown["nested"] == "flag yes, none none, list 1, 2"
    assert shown["answers"] == "yes, no" and shown["if nobody answers"] == "default"
    assert not {"ticket", "_known_by", "futures", "rows", "empty"} & shown.keys()


def test_tables_have_headings_and_no_ids_for_programs() -> None:
    [rows, yes, no] = detail_tables(DETAILS)
    assert (rows.title, rows.columns, rows.rows) == ("Rows", ("row", "amount"), (("1", "4.50"), ("2", "5.00")))
    assert (yes.title, yes.lines) == ("If you answer yes", ("2025-01-10  4.50  COFFEE", "text by hand"))
    assert no.lines == ("Nothing would be posted.",)
    assert preview_lines(None) == ["Not tried."] and preview_lines({"error": "x"}) == ["It would fail: x"]


def test_a_settled_card_says_by_whom_and_what_settles_it_no_more() -> None:
    done = {"status": "resolved", "resolution": "seen", "resolved_by": "ann", "resolved_at": "2025-02-01"}
    shown = dict(card_fields(card("revision", **done)))
    assert shown["status"] == "resolved: seen, by ann at 2025-02-01"
    assert "answers" not in shown and "settled by" not in shown


def test_the_first_of_two_is_named_with_the_command_of_the_second() -> None:
    agreed = [{"by": "ann", "says": "confirm: COFFEE", "at": "2025-02-01"}]
    shown = dict(card_fields(card("entry", agreed=agreed)))
    assert shown["first of two"] == "ann decided confirm: COFFEE (2025-02-01)"
    assert shown["another agrees"] == "cleared queue agree abcd2345"
    assert "another agrees" not in dict(card_fields(card("agreement", agreed=agreed)))


def test_queue_show_prints_no_dict(posted: Workspace) -> None:
    posted.drop("again.csv", posted.read("import/processed/january.csv"))
    posted.drop("broken.csv", b"\x00\x01 no bank file")
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 0231", "-4.80")))
    posted("agent", "run", "ingest")
    posted.script("journal_void('2024-01-001', 'x')", code=1)
    cards = posted.json("queue", "list")
    assert {c["kind"] for c in cards} >= {"entry", "duplicate_file", "bad_file", "failed_run"}
    for each in cards:
        text = posted.ok("queue", "show", each["id"]).out
        assert not re.search(r"[{}]|\['|: None|True", text), text
        assert KINDS[each["kind"]].meaning in text.replace("\n", " ") or each["kind"] in text


def test_details_that_fit_in_a_line_have_labels() -> None:
    details = {"not_done": "x", "retry": "cleared agent run a", "omitted": 4, "cause": "it is empty", "remedy": "Wait."}
    assert list(detail_fields(details, "a.csv was not imported: it is empty")) == [
        ("not done", "x"),
        ("to try again", "cleared agent run a"),
        ("rows left out", "4"),
        ("remedy", "Wait."),
    ], "what the title says is not said again"


def test_a_proposal_is_shown_line_by_line(ws: Workspace) -> None:
    """CARD 1: ``queue show`` prints its parts as ``agent propose`` does, whatever the card's line says."""
    write(ws, "1")
    printed = ws.ok("agent", "propose", "probe", "-m", "a, b").out
    [card] = ws.cards()
    shown = ws.ok("queue", "show", card["id"]).out
    assert all(line in shown for line in printed.splitlines()[1:]), shown
    assert ws.json("queue", "show", card["id"])["details"]["says"] == card["details"]["says"] != []

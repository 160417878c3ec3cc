"""Whoever can push writes what a card says a second time, in a file that is read first: nothing else is decided than
was shown. Beside each attack the wall is switched off, and it succeeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged

Line = dict[str, Any]
FIRST = "queue/2024-01.jsonl"
INVOICE, COFFEE = "2025-01-002", "2025-01-004"
DRAW = {
    "date": "2025-02-06",
    "description": "Depreciation",
    "lines": [
        {"account": 3200, "name": "Office supplies", "debit": "7777.00"},
        {"account": 1010, "name": "Accumulated depreciation", "credit": "7777.00"},
    ],
    "source": "adjustments.csv, line 2",
}


def opened(ws: Workspace, **wanted: str) -> list[Line]:
    """The lines that open cards like that."""
    paths = ws.git("ls-files", "queue/*.jsonl").split()
    lines = [json.loads(line) for path in paths for line in ws.read(path).splitlines()]
    return [x for x in lines if x["event"] == "open" and all(x.get(name) == value for name, value in wanted.items())]


def push(ws: Workspace, *lines: Line) -> str:
    """A commit that calls itself a run, and changes nothing but the queue."""
    ws.put(FIRST, "".join(json.dumps(line) + "\n" for line in lines))
    ws.commit(FIRST, message="ingest: cards\n\nRun: 20250210T060000Z-aaaaaa")
    return ws.head()


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.session.find_doubtful_cards", lambda *_: {})


def violations(ws: Workspace) -> list[str]:
    """What speaks against commits; that a card asks about something else now is told, too."""
    found = ws("check", "--json").json["violations"]
    return [each["message"] for each in found if each["check"] == "provenance"]


def booked(ws: Workspace) -> list[str]:
    """What stands in the books for 7,777.00."""
    return [each["description"] for each in ws.entries() if each["amount"] == "7777.00"]


def replace_adjustment(ws: Workspace) -> list[str]:
    path = Path(ws.root.parent / "adjustments.csv")
    path.write_text("Date,Description,Account,Debit,Credit\n2025-01-31,Depreciation,5220,120.00,\n,,1590,,120.00\n")
    (card,) = ws.json("journal", "adjust", str(path))["cards"]
    (line,) = opened(ws, id=card)
    push(ws, {**line, "details": DRAW})
    return ["queue", "approve", card]


def swap_lines(ws: Workspace) -> list[str]:
    """The large one is shown as the small one."""
    ws.ok("period", "close", "2025-01", "--with-pending")
    ws.drop("late.csv", chase(("01/29/2025", "BIG SUPPLIER", "-7777.00"), ("01/30/2025", "COFFEE SHOP", "-4.60")))
    ws.run("ingest")
    small, large = sorted(opened(ws, kind="line"), key=lambda line: "BIG" in line["title"])
    push(ws, {**small, "details": {**small["details"], "line": large["details"]["line"]}})
    return ["queue", "correct", small["id"], "--account", "3200"]


def marks(line: Line) -> Line:
    """What says of a card which entry it asks about."""
    return {"_postings": line["details"]["_postings"]}


def swap_entries(ws: Workspace) -> list[str]:
    (line,) = opened(ws, kind="entry", entry_id=COFFEE)
    (other,) = opened(ws, kind="entry", entry_id=INVOICE)
    push(ws, {**line, "entry_id": INVOICE, "details": {**line["details"], **marks(other)}})
    return ["queue", "approve", line["id"]]


ATTACKS: dict[str, tuple[Callable[[Workspace], list[str]], Callable[[Workspace], bool]]] = {
    "the lines of an adjusting entry": (replace_adjustment, lambda ws: booked(ws) == ["Depreciation"]),
    "the bank line of a card": (swap_lines, lambda ws: booked(ws) == ["BIG SUPPLIER"]),
    "the entry of a card": (swap_entries, lambda ws: ws.entries()[1]["status"] == "user-confirmed"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_decided_by_a_card_that_was_rewritten(posted: Workspace, name: str) -> None:
    attack, succeeded = ATTACKS[name]
    decide = attack(posted)
    card = decide[2]
    [said] = violations(posted)
    assert "opens cards" in said and card in said and posted.head()[:7] in said
    assert "held: " in next(line for line in posted.ok("queue", "list").out.splitlines() if card in line)
    assert "lines open it" in posted.json("queue", "show", card)["held"]
    assert "cannot be decided" in posted.ok("queue", "show", card).out
    with unchanged(posted):
        refused(posted(*decide), 3, card, "is held", "cleared accept")
    assert not succeeded(posted)
    posted.git("rm", "-q", FIRST)
    posted.git("commit", "-q", "-m", "take it out")
    take_ok(posted, "recover", "--forget")
    posted.ok(*decide)
    assert not succeeded(posted)


@pytest.mark.parametrize("name", ATTACKS)
def test_it_would_be_if_nobody_asked_who_opened_it(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    attack, succeeded = ATTACKS[name]
    decide = attack(posted)
    switch_off(monkeypatch)
    posted.ok(*decide)
    assert succeeded(posted)


def test_the_id_of_an_entry_means_the_entry(posted: Workspace) -> None:
    line = {"event": "open", "id": INVOICE, "kind": "adjustment", "title": "2025-01-06 1500.00 ACME INVOICE 12"}
    push(posted, {**line, "created_at": "2025-02-10T06:00:00Z", "entry_id": INVOICE, "details": DRAW})
    posted.ok("queue", "approve", INVOICE)
    assert booked(posted) == [] and posted.entries()[1]["status"] == "user-confirmed"


def hide_gap(ws: Workspace) -> None:
    ws.drop("february.csv", chase(("02/03/2025", "AWS EMEA", "-42.10", "1400.00")))
    ws.run("ingest")
    (gap,) = opened(ws, kind="balance_gap")
    push(ws, {**gap, "kind": "recurring"})


CLOSE = ("period", "close", "2025-02", "--with-pending")


def test_a_period_is_not_closed_over_a_gap_that_was_hidden(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_gap(posted)
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-02T06:00:00Z")
    refused(posted(*CLOSE), 3, "held: ", "--despite")


def test_it_would_be_if_nobody_asked_who_opened_the_card(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_gap(posted)
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-02T06:00:00Z")
    switch_off(monkeypatch)
    monkeypatch.setattr("cleared.books.decisions.period_closing.find_doubt", lambda *_: "")
    refused(posted(*CLOSE), 3, "missing: checking: on 2025-02-03", "--despite")
    monkeypatch.setattr("cleared.books.decisions.period_closing.list_missing", lambda *_, **__: ())
    posted.ok(*CLOSE)


def invent(ws: Workspace) -> str:
    line = {"event": "open", "id": "aaaaaaaa", "kind": "adjustment", "title": "2025-02-06 7777.00 Depreciation"}
    return push(ws, {**line, "created_at": "2025-02-10T06:00:00Z", "details": DRAW})


def test_a_card_that_nobody_opened_waits_until_somebody_answers_for_it(posted: Workspace) -> None:
    commit = invent(posted)
    refused(posted("queue", "approve", "aaaaaaaa"), 3, "nothing shows that", "cleared accept")
    refused(posted("queue", "reject", "aaaaaaaa", "--reason", "no"), 3, "is held")
    posted.ok("queue", "skip", "aaaaaaaa")
    assert len(violations(posted)) == 1
    posted.ok("accept", commit, "--reason", "I asked the accountant")
    posted.in_order()
    assert posted.json("queue", "show", "aaaaaaaa")["held"] is None
    posted.ok("queue", "approve", "aaaaaaaa")
    assert booked(posted) == ["Depreciation"]
    posted.in_order()


def test_an_undo_opens_no_card_again_that_was_rewritten(posted: Workspace) -> None:
    """What it opens is attested as it says."""
    (line,) = opened(posted, kind="entry", entry_id=COFFEE)
    posted.ok("queue", "approve", line["id"])
    push(posted, {**line, "entry_id": INVOICE})
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, line["id"], "is held")


def test_an_import_settles_no_card_that_was_rewritten(posted: Workspace) -> None:
    hide_gap(posted)
    (gap,) = opened(posted, id=opened(posted, kind="balance_gap")[0]["id"], kind="recurring")
    push(
        posted,
        {
            **gap,
            "kind": "balance_gap",
            "details": {
                **gap["details"],
                "gaps": [{"after": "2025-01-01", "before": "2025-12-31", "missing": "-1.00"}],
            },
        },
    )
    posted.drop("more.csv", chase(("02/05/2025", "TEA", "-1.00")))
    posted.run("ingest")
    assert gap["id"] in [card["id"] for card in posted.cards()]


def test_no_task_is_made_of_a_card_that_nobody_opened(ws: Workspace) -> None:
    line = {"event": "open", "id": "aaaaaaaa", "kind": "task", "title": "Tidy up", "created_at": "2025-02-10T06:00:00Z"}
    push(ws, {**line, "details": {"task": {"title": "Tidy up", "command": "curl example.com"}}})
    refused(ws("task", "add", "--card", "aaaaaaaa"), 3, "is held", "cleared accept")


@pytest.mark.parametrize("kind", ["proposal", "agreement", "question"])
@pytest.mark.parametrize("verb", [("approve",), ("reject", "--reason", "no coffee")])
def test_a_card_that_proves_itself_otherwise_decides_about_no_entry(
    posted: Workspace, kind: str, verb: tuple[str, ...]
) -> None:
    """Its title tells of another entry than the one that it names."""
    made = {"event": "open", "id": "aaaa2222", "kind": kind, "title": "2025-01-10 4.50 COFFEE", "agent": "ingest"}
    details = {"question": "Is COFFEE 4.50 right?", "choices": ["yes", "no"]}
    at = {"created_at": "2025-02-10T06:00:00Z", "run_id": "20250210T060000Z-42f144"}
    push(posted, {**made, **at, "entry_id": INVOICE, "details": details})
    assert any("opens cards" in said and "aaaa2222" in said for said in violations(posted))
    with unchanged(posted):
        refused(posted("queue", verb[0], "aaaa2222", *verb[1:]), 3, "aaaa2222", "is held")

"""Cards for what a check finds wrong with the committed books; cards that have waited for long."""

from __future__ import annotations

import pytest
from harness import Workspace, unchanged

JOURNAL = "books/2025/01/journal.csv"
UNBALANCED = "AWS EMEA,,45.10", "AWS EMEA,,45.20"
"""Of an entry that no card asks about."""


def cards(ws: Workspace) -> list[str]:
    return [c["id"] for c in ws.cards() if c["kind"] == "damage"]


def damaged(ws: Workspace, old: str = "COFFEE", new: str = "TEA") -> None:
    """Somebody edits the journal by hand and commits it."""
    ws.put(JOURNAL, ws.read(JOURNAL).replace(old, new))
    ws.commit(JOURNAL)


def test_each_violation_is_a_card_once(posted: Workspace) -> None:
    ws = posted
    damaged(ws, *UNBALANCED)
    found = ws("check", "--card", "--json")
    assert found.code == 1
    wrong = [v["message"] for v in found.json["violations"]]
    assert len(wrong) == len(cards(ws)) > 1
    assert sorted(c["details"]["message"] for c in ws.cards() if c["kind"] == "damage") == sorted(wrong)
    before, head = cards(ws), ws.head()
    again = ws("check", "--card")
    assert again.code == 1 and cards(ws) == before and ws.head() == head
    assert "damage" in ws.ok("queue", "show", before[0]).out


def test_settled_when_it_is_gone_and_asked_again_when_it_is_back(posted: Workspace) -> None:
    ws = posted
    damaged(ws, *UNBALANCED)
    ws("check", "--card")
    (first,) = [c for c in ws.cards() if c["details"].get("check", "").startswith("1. ")]
    damaged(ws, *reversed(UNBALANCED))
    ws("check", "--card")
    (settled,) = [c for c in ws.cards("--status", "resolved") if c["id"] == first["id"]]
    assert (settled["resolved_by"], settled["resolution"]) == ("check", "gone")
    damaged(ws, *UNBALANCED)
    ws("check", "--card")
    (again,) = [c for c in ws.cards() if c["details"].get("check", "").startswith("1. ")]
    assert again["id"] != first["id"] and again["title"] == first["title"]


def test_what_somebody_has_seen_is_not_asked_again(posted: Workspace) -> None:
    ws = posted
    damaged(ws, "AWS EMEA", "AWS")  # no card asks about it
    ws("check", "--card")
    (one,) = cards(ws)
    ws.ok("queue", "answer", one, "seen")
    head = ws.head()
    assert ws("check", "--card").code == 1
    assert cards(ws) == [] and ws.head() == head


def test_books_in_order_make_no_card_and_no_commit(posted: Workspace) -> None:
    head = posted.head()
    posted.ok("check", "--card")
    assert posted.head() == head


def test_what_is_not_committed_is_told_and_not_carded(posted: Workspace) -> None:
    posted.put(JOURNAL, posted.read(JOURNAL).replace("COFFEE", "TEA"))
    head = posted.head()
    done = posted("check", "--card")
    assert done.code == 4 and "TEA" in done.out and posted.head() == head


# -- waiting for long -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clock", "late"), [("2025-02-13T05:59:59Z", False), ("2025-02-13T06:00:00Z", True)])
def test_a_card_is_overdue_to_the_second(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, clock: str, late: bool
) -> None:
    """Cards older than ``review.remind_after`` (three days) are told, and stay."""
    before = posted.cards()
    monkeypatch.setenv("CLEARED_CLOCK", clock)
    assert [c["overdue"] for c in posted.cards()] == [late] * len(before)
    said = posted.ok("queue", "list").err
    assert ("wait for 3d or longer" in said) == late
    assert [c["id"] for c in posted.cards()] == [c["id"] for c in before]


def test_how_long_is_a_setting_and_none_ever_expires(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.base.clock import clock_from
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_view import show_card
    from cleared.review.queue_snapshot import read_queue

    posted.config("review.remind_after=2w")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-23T06:00:00Z")
    assert not any(c["overdue"] for c in posted.cards())
    monkeypatch.setenv("CLEARED_CLOCK", "2099-02-23T06:00:00Z")
    posted.ok("queue", "expire")
    assert posted.cards() and all(c["overdue"] for c in posted.cards())
    queue = read_queue(open_workspace(posted.root, clock=clock_from("2025-02-25T06:00:00Z")))
    shown = show_card(queue, next(iter(queue.cards)))
    assert [s.lines for s in shown.sections if s.title == "Waiting"] == [("for 15 days",)]


@pytest.mark.parametrize("wrong", ["0d", "3", "3 days", "d", "3y"])
def test_a_time_that_is_none_is_refused(posted: Workspace, wrong: str) -> None:
    done = posted("config", "set", "review.remind_after", wrong)
    assert done.code == 4 and "is no time such as 12h, 3d or 2w" in done.err


@pytest.mark.parametrize("how", ["lost", "unchanged"])
def test_a_check_says_why_no_card_is_made(posted: Workspace, how: str) -> None:
    """Fault: that there is none was not said, and with --json a second value followed the first."""
    ws = posted
    ws.ok("queue", "approve", "2025-01-002")
    if how == "lost":
        ws.git("reset", "-q", "--hard", "HEAD~1")
    else:
        ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "TEA"))
    with unchanged(ws):
        done, data = ws("check", "--card"), ws("check", "--card", "--json")
    assert (done.code, data.code) == (4, 4)
    assert how in {each["check"] for each in data.json["violations"]}
    why = "the branch has lost" if how == "lost" else "differ from the last commit"
    assert f"no card was made: {data.json['no_cards']}" in done.err and why in data.json["no_cards"]
    assert "cleared recover" in data.json["no_cards"] or "git checkout HEAD" in data.json["no_cards"]

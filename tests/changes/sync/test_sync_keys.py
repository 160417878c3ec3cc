"""Entries that are posted once, each with a key, in two clones; and what reviewers have signed."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace
from reviewers import People
from synced import CAFE, follow, left_out, part

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace, Path]
ADD = ("journal", "add", "2025-02-06", "Depreciation", "5220=7", "1590=-7", "--key", "dep-2025-02")


def test_an_entry_with_a_key_is_done_again_and_keeps_its_key(two: Two) -> None:
    ws, _ = part(two)
    assert ws.json(*ADD)["entry_id"] == "2025-02-003"
    assert all(step["now"] for step in ws.json("sync")["steps"])
    again = ws.json(*ADD)
    assert again["is_new"] is False and again["entry_id"] == "2025-02-004"
    ws.in_order()
    ws.ok("journal", "void", again["entry_id"], "--reason", "no")
    assert "was taken back" in ws(*ADD).err


def test_a_key_of_an_earlier_version_counts(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trailer was called as that of who has signed a commit."""
    ws, _ = part(two)
    with monkeypatch.context() as patch:
        patch.setattr("cleared.books.decisions.hand_posting.KEY_TRAILER", "Key")
        assert ws.json(*ADD)["is_new"] and ws.trailers()["Key"] == ADD[-1]
    assert ws.json(*ADD)["is_new"] is False
    assert all(step["now"] for step in ws.json("sync")["steps"])
    assert ws.json(*ADD)["is_new"] is False
    ws.in_order()


def test_the_same_entry_with_the_same_key_counts_once(two: Two) -> None:
    """It is known by what was posted: that others have changed its payee since, and posted the same without a key,
    does not matter."""
    ws, other, _ = two
    other.ok(*ADD[:-2])
    entry = other.json(*ADD)["entry_id"]
    other.ok("queue", "correct", entry, "--counterparty", "Somebody")
    other.ok("sync")
    mine = ws.json(*ADD)["entry_id"]
    ws.ok("journal", "void", mine, "--reason", "no")
    first, second = ws.json("sync")["steps"]
    assert first["now"] is None and not first["left_out"] and second["now"], (first, second)
    standing = {e["entry_id"]: e["status"] for e in ws.entries() if e["description"] == "Depreciation"}
    assert standing == {"2025-02-002": "user-confirmed", entry: "voided"}, standing
    ws.in_order()


@pytest.mark.parametrize(
    ("theirs", "what"),
    [
        (("journal", "add", "2025-02-07", *ADD[3:]), "date"),
        ((*ADD[:4], "5220=8", "1590=-8", *ADD[6:]), "legs"),
        ((*ADD[:3], "Wear", *ADD[4:]), "description"),
        ((*ADD, "--note", "why"), "notes"),
        ((*ADD, "--tag", "x"), "tags"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_another_entry_with_the_same_key_is_named(two: Two, theirs: tuple[str, ...], what: str) -> None:
    ws, other, _ = two
    other.ok(*theirs)
    other.ok("sync")
    ws.ok(*ADD)
    left_out(ws, f"the entry with the key dep-2025-02 is 2025-02-002, and differs in its {what}; nothing was posted")


def test_a_reviewers_entry_with_a_key_is_signed(ws: Workspace, tmp_path: Path) -> None:
    people = People(ws, tmp_path, ("ana",))
    with people.at_the_keyboard("ana"):
        _, other, _ = follow(ws, tmp_path)
        ws.ok(*ADD)
        ws.in_order()
        other.drop("cafe.csv", CAFE)
        other.run("ingest")
        other.ok("sync")
        (step,) = ws.json("sync")["steps"]
        assert step["now"] and ws.json(*ADD)["is_new"] is False
        ws.in_order()


def test_what_a_reviewer_signed_says_why_it_is_left_out_where_there_are_none(ws: Workspace, tmp_path: Path) -> None:
    people = People(ws, tmp_path, ("ana",))
    with people.at_the_keyboard("ana"):
        _, other, _ = follow(ws, tmp_path)
        ws.ok(*ADD)
        config = other.read("config.yaml")
        other.put("config.yaml", config[: config.index("\nreviewers:")] + "\n")
        other.ok("config", "approve")
        other.ok("sync")
        left_out(ws, "it was signed, and nobody is named as a reviewer there")

"""Killed at each step of a run and of its seal: the next command finds all of it or nothing (B13)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from crash_books import AFTER, check_all_or_nothing, check_booked, check_goes_on, check_sound, copy, git, ingest, read
from crash_kill import stopped_at
from kill_points import EVERY, choose_cases

from cleared.books import queries
from cleared.changes.workspace_opening import open_workspace
from cleared.git import STEPS
from cleared.review.queue_cards import read_cards

RUN_STEPS = ("begun", "ran", "checked", *STEPS)
PLACES = [(step, nth) for step in RUN_STEPS for nth in ((1, 2, 5, 9) if step == "file" else (1,))]

FEW = slice(None) if EVERY else slice(1, None, 2)
"""Every other one, that at which the branch moves among them."""


def committed(step: str) -> bool:
    """Whether the commit is made when this step is reached."""
    return step in STEPS and STEPS.index(step) >= STEPS.index("ref")


@pytest.mark.parametrize(
    ("step", "nth", "reading"),
    choose_cases(
        [(step, nth, reading) for step, nth in PLACES for reading in (True, False)],
        lambda case: case[:2],
        lambda case: (case[2], committed(case[0])),
    ),
)
def test_ingest_killed_at_each_step(template: Path, tmp_path: Path, step: str, nth: int, reading: bool) -> None:
    root = copy(template, tmp_path / "w")
    assert stopped_at(root, ["run", "ingest"], step, nth)
    whole = check_all_or_nothing(root, repaired_by_reading=reading)
    if reading:
        assert whole == committed(step)
    check_goes_on(root)


@pytest.mark.parametrize(("step", "nth"), [p for p in PLACES if p[0] in STEPS][FEW])
def test_the_repair_killed_too(template: Path, tmp_path: Path, step: str, nth: int) -> None:
    """Kill the run, kill whoever repairs it at each of its own steps, then repair."""
    root = copy(template, tmp_path / "w")
    assert stopped_at(root, ["run", "ingest"], step, nth)
    for again in ("begun", "objects", "staged", "ref"):
        stopped_at(root, ["run", "ingest"], again)
    check_all_or_nothing(root)


@pytest.mark.parametrize(("step", "nth"), [p for p in PLACES if p[0] in STEPS][:: 1 if EVERY else 2])
def test_a_void_killed_at_each_step(template: Path, tmp_path: Path, step: str, nth: int) -> None:
    root = copy(template, tmp_path / "w")
    ingest(root)
    before = queries.read_balances(open_workspace(root))
    if not stopped_at(root, ["void", "2025-02-001"], step, nth):
        return  # fewer files than that
    entries, said = read(root)
    assert len(said) == (step not in ("objects", "done"))
    voided = {e["entry_id"]: e["status"] for e in entries}
    assert len(entries) == len(AFTER) + committed(step)
    assert (voided["2025-02-001"] == "voided") == committed(step)
    check_sound(root, written=step != "objects")  # the note had not its name yet
    after = {r["account_id"]: r["balance"] for r in queries.read_balances(open_workspace(root))}
    if committed(step):
        left = sum((amount for _, _, amount in AFTER), Decimal("42.10"))  # its newest line is not paid after all
        assert after[1010] == str(left)
        assert ingest(root) == []
        assert len(read(root)[0]) == len(AFTER) + 1
    else:
        assert after == {r["account_id"]: r["balance"] for r in before}
        check_booked(root, entries, AFTER)


@pytest.mark.parametrize("step", STEPS[:: 1 if EVERY else 3])
def test_a_close_killed_at_each_step(template: Path, tmp_path: Path, step: str) -> None:
    root = copy(template, tmp_path / "w")
    ingest(root)
    host = open_workspace(root)
    for card in read_cards(host):
        if card["entry_id"] and card["entry_id"].startswith("2025-01"):
            assert stopped_at(root, ["void", card["entry_id"]], "nowhere") is False
    assert stopped_at(root, ["close", "2025-01-31"], step)
    entries, said = read(root)
    assert len(said) == (step not in ("objects", "done"))
    assert [p["through"] for p in queries.read_periods(host)] == (["2025-01-31"] if committed(step) else [])
    assert ingest(root) == []
    assert len(read(root)[0]) == len(entries)
    check_sound(root)


@pytest.mark.parametrize(("step", "nth"), [(s, n) for s in STEPS for n in ((1, 6, 12) if s == "file" else (1,))][FEW])
def test_an_init_killed_at_each_step(tmp_path: Path, step: str, nth: int) -> None:
    """The same command again makes it, or finishes it, and then there is a workspace."""
    root = tmp_path / "w"
    assert stopped_at(root, ["init"], step, nth)
    if step != "done":  # nothing is left to do then, and nothing tells that the user was not told
        assert stopped_at(root, ["init"], "nowhere") is False
    check_sound(root)
    assert git(root, "log", "--format=%s").splitlines() == ["init: Acme"]
    assert ingest(root) == []
    assert read(root) == ([], [])

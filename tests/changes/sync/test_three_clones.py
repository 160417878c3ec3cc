"""Three clones that decide about the same rows, each in its own way: nothing counts twice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clones import clone
from harness import Workspace, chase, trust_books
from synced import follow, tip_of

ROWS = {n: (f"{1 + n // 12:02d}/{1 + n % 12:02d}/2025", f"PAYEE {n}", f"-{n + 1}.07") for n in range(20)}
"""Of each the amount is its own."""
ACTS = (
    "import",
    "import",
    "approve",
    "correct",
    "reject",
    "void",
    "split",
    "undo",
    "take back",
    "close",
    "reopen",
    "sync",
)


def amount_of(entry: dict[str, Any]) -> float:
    return max(float(leg["debit"]) for leg in entry["lines"])


def is_standing(entry: dict[str, Any]) -> bool:
    return entry["status"] != "voided" and not entry["description"].startswith(("Void ", "Correct "))


def act(ws: Workspace, rand: random.Random, files: int) -> None:
    """One act, which may be refused: another clone's test says when."""
    standing = [entry for entry in ws.entries() if is_standing(entry)]
    entry = rand.choice(standing) if standing else None
    what = rand.choice(ACTS)
    if what == "import":
        rows = rand.sample(sorted(ROWS), rand.randint(1, 4))
        name = f"{files}.csv" if rand.random() < 0.5 else "bank.csv"
        dropped = ws.drop(name, chase(*(ROWS[row] for row in rows)))
        ws("agent", "run", "ingest")
        dropped.unlink(missing_ok=True)  # its month was closed
    elif what == "undo":
        ws("queue", "undo")
    elif what == "take back":
        ws("import", "undo", f"{rand.randint(0, files)}.csv", "--reason", "no")
    elif what == "close":
        ws("period", "close", "2025-01", "--despite", "it may be")
    elif what == "reopen":
        ws("period", "reopen", "2025-01", "--reason", "no")
    elif what == "sync":
        ws.ok("sync")
    elif entry is not None:
        name = entry["entry_id"]
        words = {
            "approve": ("queue", "approve", name),
            "correct": ("queue", "correct", name, "--account", rand.choice(["5050", "5060"])),
            "reject": ("queue", "reject", name, "--reason", "no", "--outcome", "personal"),
            "void": ("journal", "void", name, "--reason", "no"),
            "split": ("split", name, "5060=1.00", f"5050={amount_of(entry) - 1:.2f}"),
        }
        ws(*words[what])


@pytest.mark.parametrize("seed", range(2))
def test_who_decides_otherwise_is_left_out_and_nothing_counts_twice(ws: Workspace, tmp_path: Path, seed: int) -> None:
    rand = random.Random(seed)
    one, two, shared = follow(ws, tmp_path)
    three = clone(Workspace(shared), tmp_path / "three")
    trust_books(three.root)
    clones = [one, two, three]
    for files in range(45):
        act(rand.choice(clones), rand, files)
    for each in (*clones, *clones):
        each.ok("sync")
    assert {each.head() for each in clones} == {tip_of(shared)}
    for each in clones:
        each.in_order()
    entries = one.entries()
    booked = Counter(f"{amount_of(entry):.2f}" for entry in entries if is_standing(entry))
    assert max(booked.values()) == 1, booked
    waiting = {entry["entry_id"] for entry in entries if entry["status"] == "pending-review"}
    asked = Counter(card["entry_id"] for card in one.cards() if card["kind"] == "entry")
    assert set(asked) == waiting and all(number == 1 for number in asked.values()), (asked, waiting)

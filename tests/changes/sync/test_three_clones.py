"""Three clones that decide about the same rows, each in its own way: nothing counts twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clones import clone
from harness import Workspace, chase, take_shown, trust_books
from proposing import live, write
from synced import follow, tip_of
from tables import MAY, define
from tasking import Tasks, task

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
    "account",
    "row",
    "row",
    "task",
    "agent",
    "switch",
    "sync",
    "sync",
)


def amount_of(entry: dict[str, Any]) -> float:
    return max(float(leg["debit"]) for leg in entry["lines"])


def is_standing(entry: dict[str, Any]) -> bool:
    return entry["status"] != "voided" and not entry["description"].startswith(("Void ", "Correct "))


def take_tasks(ws: Workspace) -> Tasks:
    """The tasks of a clone that has a ledger already."""
    tasks = object.__new__(Tasks)
    tasks.ws = ws
    return tasks


def change_probe(ws: Workspace, rand: random.Random) -> None:
    """Another version of an agent, proposed and approved."""
    write(ws, f'git_commit("agent: probe")\n{rand.randint(1, 3)}')
    made = ws("agent", "propose", "probe", "--json")
    if made.code == 0 and rand.random() < 0.8:
        take_shown(ws, "agent", "approve", made.json["id"])
    ws.git("checkout", "-q", "--", "agents/probe.py")


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
    elif what == "account":
        ws("accounts", "add", str(rand.randint(5990, 5994)), f"Account {rand.randint(1, 6)}", "--type", "expense")
    elif what == "row":
        put = f'table_put("prices", {{"sku": "{rand.choice("ABC")}", "price": "{rand.randint(1, 9)}"}})'
        path = write(ws, put, f"put{ws.root.name}", MAY)
        ws.commit(path, *ws.approve(path), message="what it puts")
        ws("agent", "run", f"put{ws.root.name}")
    elif what == "task":
        Tasks.plan(take_tasks(ws), task(rand.randint(1, 5), title=f"Task {rand.randint(1, 9)}"))
    elif what == "agent":
        change_probe(ws, rand)
    elif what == "switch":
        ws("agent", rand.choice(["disable", "enable"]), "probe")
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


def live_and_join(ws: Workspace, tmp_path: Path, seed: int, acts: int = 60) -> None:
    """Three clones in which each does whatever it likes, and what is true once all is joined."""
    rand = random.Random(seed)
    define(ws)
    live(ws, 'git_commit("agent: probe")\n0')
    Tasks(ws)
    one, two, shared = follow(ws, tmp_path)
    three = clone(Workspace(shared), tmp_path / "three")
    trust_books(three.root)
    clones = [one, two, three]
    for files in range(acts):
        act(rand.choice(clones), rand, files)
    for each in (*clones, *clones):
        each.ok("sync")
    assert {each.head() for each in clones} == {tip_of(shared)}
    for each in clones:
        each.in_order()
    entries = one.entries()
    booked = Counter(f"{amount_of(entry):.2f}" for entry in entries if is_standing(entry))
    assert max(booked.values(), default=1) == 1, booked
    waiting = {entry["entry_id"] for entry in entries if entry["status"] == "pending-review"}
    asked = Counter(card["entry_id"] for card in one.cards() if card["kind"] == "entry")
    assert set(asked) == waiting and all(number == 1 for number in asked.values()), (asked, waiting)
    states = {each["name"]: each["state"] for each in one.json("agent", "list")}
    assert states["probe"] in ("approved", "disabled"), states
    lines = [line.split(",") for line in one.read("records/prices.csv").splitlines()[1:]] if has(one) else []
    assert [line[0] for line in lines] == sorted({line[0] for line in lines})
    made = {path.stem: json.loads(path.read_text())["title"] for path in (one.root / "docs/tasks").glob("T-*.json")}
    assert {row["id"]: row["title"] for row in one.json("task", "list")} == made


def has(ws: Workspace) -> bool:
    return (ws.root / "records/prices.csv").exists()


@pytest.mark.parametrize("seed", range(2))
def test_who_decides_otherwise_is_left_out_and_nothing_counts_twice(ws: Workspace, tmp_path: Path, seed: int) -> None:
    live_and_join(ws, tmp_path, seed)

"""``cleared sync``: two clones, and no rule to keep."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase
from synced import follow, tip_of

PAYEES = ("GITHUB", "CORNER CAFE", "STRANGE")
ROWS = {n: (f"{1 + n // 20:02d}/{1 + n % 20:02d}/2025", f"{PAYEES[n % 3]} {n}", f"-{n + 1}.07") for n in range(24)}
"""Of each the amount is its own: by it an entry is known, whatever its id."""


def amount_of(entry: dict[str, Any]) -> str:
    return str(max(float(leg["debit"]) for leg in entry["lines"]))


def is_standing(entry: dict[str, Any]) -> bool:
    return entry["status"] != "voided" and not entry["description"].startswith(("Void ", "Correct "))


class Pair:
    """Two clones, and what is true of both once all is synced."""

    def __init__(self, ws: Workspace, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        *clones, self.shared = follow(ws, folder)
        self.clones: list[Workspace] = clones
        self.imported: set[int] = set()
        self.decided: dict[int, tuple[str, int | None]] = {}
        """Row → what was decided last, and the account where it was corrected."""
        self.manual: Counter[str] = Counter()
        self.files = 0
        self.seen: Counter[str] = Counter()

    def find(self, ws: Workspace, row: int) -> dict[str, Any] | None:
        """The entry that books a row and stands, as one clone has it."""
        wanted = f"{row + 1}.07"
        return next((e for e in ws.json("journal", "list") if amount_of(e) == wanted and is_standing(e)), None)

    def step(self) -> None:
        number = self.random.randrange(2)
        ws = self.clones[number]
        act = self.random.choice(("import", "import", "import", "confirm", "correct", "reject", "add", "void", "sync"))
        row = self.random.choice([n for n in ROWS if n % 2 == number])  # each decides about rows of its own
        entry = self.find(ws, row) if act in ("confirm", "correct", "reject") else None
        if act == "import":
            self.files += 1
            rows = self.random.sample(sorted(ROWS), self.random.randint(1, 3))
            ws.drop(f"{self.files if self.random.random() < 0.5 else 'bank'}.csv", chase(*(ROWS[n] for n in rows)))
            assert ws.run("ingest")["status"] == "succeeded"
            self.imported |= {*rows}
        elif act == "add":
            text = f"by hand by {number}, {len(self.manual)}"
            ws.ok("journal", "add", "2025-02-03", text, "5070=9", "1010=-9")
            self.manual[text] += 1
        elif act == "sync":
            self.sync(ws)
        elif act == "void" and (
            mine := [e for e in ws.entries() if is_standing(e) and f"by {number}" in e["description"]]
        ):
            ws.ok("journal", "void", mine[-1]["entry_id"], "--reason", "no")
            self.manual[mine[-1]["description"]] -= 1
        elif entry is not None and row not in self.decided:
            if act == "confirm":
                ws.ok("queue", "approve", entry["entry_id"])
            elif act == "correct":
                ws.ok("queue", "correct", entry["entry_id"], "--account", "5060")
            else:
                ws.ok("queue", "reject", entry["entry_id"], "--reason", "no", "--outcome", "personal")
            self.decided[row] = act, 5060 if act == "correct" else None

    def sync(self, ws: Workspace) -> None:
        done = ws.json("sync")
        self.seen.update(["redone" if step["now"] else "dropped" for step in done["steps"]])
        self.seen.update((done["renamed"] and ["renamed"]) or [])

    def settle(self) -> None:
        """Sync both, until neither has anything to do."""
        for ws in (*self.clones, *self.clones):
            self.sync(ws)
        assert {ws.head() for ws in self.clones} == {tip_of(self.shared)}

    def check(self) -> None:
        for ws in self.clones:
            assert "in order" in ws.ok("check").out
            entries = ws.json("journal", "list")
            standing = [e for e in entries if is_standing(e)]
            texts = Counter(e["description"] for e in standing if e["description"].startswith("by hand"))
            assert texts == +self.manual
            for row in self.imported:
                mine = [e for e in standing if amount_of(e) == f"{row + 1}.07"]
                assert len(mine) == 1, (
                    row,
                    self.decided.get(row),
                    [e for e in entries if amount_of(e) == f"{row + 1}.07"],
                )
                act, account = self.decided.get(row, ("", None))
                if act == "correct":
                    text = f"Correct {mine[0]['entry_id']}: "
                    made = [e for e in entries if e["description"].startswith(text)]
                    assert len(made) == 1 and account in [leg["account_id"] for leg in made[0]["lines"]], (row, made)
                if act == "confirm":
                    assert mine[0]["status"] == "user-confirmed"
            waiting = {e["entry_id"] for e in entries if e["status"] == "pending-review"}
            asked = Counter(c["entry_id"] for c in ws.json("queue", "list") if c["kind"] == "entry")
            assert set(asked) == waiting and all(n == 1 for n in asked.values()), (asked, waiting)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_two_clones_do_they_end_with_the_same_true_books(ws: Workspace, tmp_path: Path, seed: int) -> None:
    pair = Pair(ws, tmp_path, seed)
    for _ in range(40):
        pair.step()
    pair.settle()
    pair.check()
    assert pair.seen["redone"] > 3 and pair.seen["renamed"] > 0, pair.seen

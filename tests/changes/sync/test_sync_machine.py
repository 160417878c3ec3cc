"""Clones in which everybody does what they like, and syncs when they like: all end with the same true books.

Runs, decisions, manual entries, imports and what takes them back, months closed and opened, accounts, rows, tasks,
versions of an agent, settings, commits by hand; plain pulls by git; a sync that is killed at any step. In the end every
clone has the same history, all is in order, nothing counts twice, and one clone that does the acts of that history, in
its order, has the same books. ``CLEARED_SYNC_EXAMPLES=200`` goes on for longer, another way each time.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from clones_world import ROWS, Act, World
from harness import remove_tree
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

LONGER = "CLEARED_SYNC_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CLEARED_SYNC_EXAMPLES", "3"))
STEPS = 60
KILLS = ("machine", "objects", "intent", "prepared", "index", "ref", "file", "worktree", "done")
"""Steps of a sync."""
ACTS = (
    *("import", "import more", "import more", "approve", "correct", "reject", "void", "split", "add", "undo"),
    *("take back", "close", "reopen", "account", "row", "row", "event", "task", "version", "switch", "setting", "hand"),
    *("sync", "sync", "sync", "kill", "pull", "push"),
)


class SyncMachine(RuleBasedStateMachine):
    """Two or three clones. One rule, and a number to draw from, so that all acts are as likely in each life."""

    template: Path
    seen: Counter[str]

    @initialize(number=st.integers(2, 3))
    def begin(self, number: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.template, self.folder, number)
        self.files, self.steps = 0, count()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.settle()
            self.world.check_books()
            self.world.compare_alone()
        except BaseException as error:
            error.add_note(f"look at {self.folder}")
            raise
        self.seen.update(self.world.seen)
        remove_tree(self.folder)

    @rule(seed=st.integers(0, 10**9))
    def act(self, seed: int) -> None:
        rand = random.Random(f"{seed} {next(self.steps)}")
        what, who = rand.choice(ACTS), rand.randrange(len(self.world.clones))
        one, two = rand.randrange(1000), rand.randrange(1000)
        joins: dict[str, Callable[[], None]] = {
            "sync": lambda: self.world.sync(who),
            "kill": lambda: self.world.kill_sync(who, KILLS[one % len(KILLS)], 1 + two % 3),
            "pull": lambda: self.world.pull(who, ("--no-rebase", "--rebase")[one % 2]),
            "push": lambda: self.world.push(who),
        }
        if what in joins:
            joins[what]()
        else:
            self.world.do(who, self.make_act(what, who, one, two))

    def make_act(self, what: str, who: int, one: int, two: int) -> Act:
        few, other = str(1 + one % 5), str(1 + two % 5)
        month = f"2025-0{1 + one % 2}"
        if what.startswith("import"):
            self.files += 1
            rows = [list(ROWS)[(one + n * (1 + two % 7)) % len(ROWS)] for n in range(1 + two % 4)]
            return Act("import", "bank.csv" if what == "import" else f"{self.files}.csv", tuple(dict.fromkeys(rows)))
        if what in ("approve", "correct", "reject", "void", "split"):
            amount = self.world.pick_amount(who, one)
            parts = {"correct": ("5050", "5060")[two % 2 :][:1], "split": ("5060=0.50", f"5050={float(amount) - 0.5}")}
            return Act(what, amount, parts.get(what, ()))
        number = next(self.world.numbers)
        made = {
            "add": (f"{100 + number}.11", f"{month}-05"),
            "take back": (f"{1 + one % max(self.files, 1)}.csv",),
            "close": (month,),
            "reopen": (month,),
            "account": (f"599{few}", f"Account {other}"),
            "row": (f"put{who}", "ABC"[one % 3], other, f"for the {number}th time"),
            "event": (f"day {few}",),
            "task": (few, f"Task {other}"),
            "version": (few,),
            "switch": (("disable", "enable")[one % 2],),
            "setting": ("sync.minutes", few),
            "hand": (f"{few}.md", f"text {number}"),
        }
        name, *more = made.get(what, ("",))
        return Act(what, name, tuple(more))


@pytest.fixture
def machine(
    starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[SyncMachine]]:
    monkeypatch.setattr(SyncMachine, "template", starting_point, raising=False)
    monkeypatch.setattr(SyncMachine, "seen", Counter(), raising=False)
    yield SyncMachine


def test_whatever_clones_do_they_end_with_the_same_true_books(machine: type[SyncMachine]) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=not LONGER,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            report_multiple_bugs=False,
        ),
    )
    expected = {"redone", "left out", "killed", *(("dropped", "pulled") if EXAMPLES > 9 else ())}
    assert expected <= (+machine.seen).keys(), machine.seen

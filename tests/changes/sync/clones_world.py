"""Clones of one workspace in which each does what it likes, and one in which the same is done once more, in the order
in which the joined history has it."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from clones import clone
from harness import Done, Workspace, chase, copy_books, no_traceback, take_ok, take_shown, trust_books
from proposing import live, write
from stepped import run_stepped
from synced import follow, tip_of
from tables import MAY, define
from tasking import Tasks, task

from cleared.base.errors import ClearedError
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_command
from cleared.workspace.location import cleared_home

PAYEES = ("ALDER", "BIRCH", "CEDAR", "ELM", "FIR", "GINKGO", "HAZEL", "LARCH", "MAPLE", "OAK", "PINE", "ROWAN")
ROWS = {
    f"{n + 1}.07": (f"{1 + n // 6:02d}/{1 + n % 6:02d}/2025", name, f"-{n + 1}.07") for n, name in enumerate(PAYEES)
}
"""Of each the amount is its own: by it an entry is known, whatever its id."""
RENT = "70.01"
"""Of which there may be several, one for each event."""
_RENT = (
    '"""\nname: rent\ntrigger: on_demand\n"""\n'
    + f'journal_add_double("2025-02-09", "rent", 5070, 1010, "{RENT}")\n1\n'
)
_OF_THE_WAY = ("left_out", "proposal", "duplicate_file")
"""Kinds of cards that tell how something came into the books, not what is in them."""
_MEANT = "@orig_date="
"""The day of an entry for which its clone had closed the month itself: it has another, and the close was left out."""
_ID = re.compile(r"\d{4}-\d{2}-\d{3,}[a-z]?")
_HELD = re.compile(r"\S+ -([0-9.]+) .*: its day was closed")
_VALUE = "%(trailers:key={},valueonly,separator=)"
_FORMAT = "%x1e%H%x1f" + "".join(map(_VALUE.format, ("Run", "Decision", "Proposed"))) + "%x1f%s"


class Act(NamedTuple):
    """What somebody does. Entries are named by their amounts, so that it can be done in other books, too."""

    what: str
    name: str = ""
    more: tuple[str, ...] = ()


def perform(ws: Workspace, act: Act) -> str:
    """Do it; it may be refused, and why is returned."""
    what, name, more = act
    if what == "import":
        path = ws.drop(name, chase(*(ROWS[row] for row in more)))
        told = ws("agent", "run", "ingest")
        path.unlink(missing_ok=True)  # its month was closed
    elif what == "row":
        path = write(ws, f'table_put("prices", {{"sku": "{more[0]}", "price": "{more[1]}"}})', name, MAY)
        _commit_by_hand(ws, path, *ws.approve(path), message=f"{name} puts {more}")
        told = ws("agent", "run", name)
    elif what == "task":
        told = Tasks.plan(_tasks_of(ws), task(int(name), title=more[0]))
    elif what == "version":
        write(ws, f'git_commit("agent: probe")\n{name}')
        told = ws("agent", "propose", "probe", "--json")
        if told.code == 0:
            told = take_shown(ws, "agent", "approve", told.json["id"])
        ws.git("checkout", "-q", "--", "agents/probe.py")
    elif what == "event":
        try:
            run_command(open_workspace(ws.root), "rent", key=name)
        except ClearedError as error:  # it was run
            return str(error)
        return ""
    elif what == "hand":
        ws.put(f"notes/{name}", more[0])
        _commit_by_hand(ws, "notes", message=f"hand {name} {more[0]}")
        return ""
    else:
        told = ws(*_say(ws, act))
    no_traceback(told)
    return told.err if told.code else ""


def _commit_by_hand(ws: Workspace, *paths: str, message: str) -> None:
    """Where a sync was killed while it held git's index, git refuses it; the next command gives the index back."""
    if (ws.root / ".git/index.lock").exists():
        with pytest.raises(AssertionError, match=r"index\.lock': File exists"):
            ws.commit(*paths, message=message)
        ws.ok("check")
    ws.commit(*paths, message=message)


def _say(ws: Workspace, act: Act) -> tuple[str, ...]:
    what, name, more = act
    entry = _find_entry(ws, name)
    words: dict[str, tuple[str, ...]] = {
        "approve": ("queue", "approve", entry),
        "correct": ("queue", "correct", entry, "--account", *more),
        "reject": ("queue", "reject", entry, "--reason", "no", "--outcome", "personal"),
        "void": ("journal", "void", entry, "--reason", "no"),
        "split": ("split", entry, *more),
        "add": ("journal", "add", *more[:1], f"by hand {name}", f"5070={name}", f"1010=-{name}"),
        "undo": ("queue", "undo"),
        "take back": ("import", "undo", name, "--reason", "no"),
        "close": ("period", "close", name, "--despite", "it may be"),
        "reopen": ("period", "reopen", name, "--reason", "no"),
        "account": ("accounts", "add", name, *more, "--type", "expense"),
        "switch": ("agent", name, "probe"),
        "setting": ("config", "set", name, *more),
    }
    return words[what]


def _find_entry(ws: Workspace, amount: str) -> str:
    """The entry of an amount that stands, else one that does not exist."""
    found = (each for each in ws.entries() if is_standing(each) and f"{amount_of(each):.2f}" == amount)
    return next((str(each["entry_id"]) for each in found), "2025-01-999")


def amount_of(entry: dict[str, Any]) -> float:
    return max(float(leg["debit"]) for leg in entry["lines"])


def is_standing(entry: dict[str, Any]) -> bool:
    return entry["status"] != "voided" and not entry["description"].startswith(("Void ", "Correct "))


def _tasks_of(ws: Workspace) -> Tasks:
    """The tasks of a clone that has a ledger already."""
    tasks = object.__new__(Tasks)
    tasks.ws = ws
    return tasks


class Clone(Workspace):
    """A clone on a machine of its own, of the same person."""

    def __init__(self, root: Path, home: Path) -> None:
        super().__init__(root)
        self._home = Path(shutil.copytree(cleared_home(), home))

    @contextmanager
    def at_home(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLEARED_HOME", str(self._home))
            yield

    def __call__(self, *argv: str) -> Done:
        with self.at_home():
            return super().__call__(*argv)


class World:
    """``clones``, each of which follows ``shared``; ``alone``: the books with which all began."""

    def __init__(self, template: Path, folder: Path, number: int) -> None:
        ws = Workspace(copy_books(template, folder / "books"))
        define(ws)
        live(ws, 'git_commit("agent: probe")\n0')
        ws.put("agents/rent.py", _RENT)
        ws.commit("agents/rent.py", *ws.approve("agents/rent.py"), message="rent")
        Tasks(ws)
        one, two, self.shared = follow(ws, folder)
        more = [clone(Workspace(self.shared), folder / name) for name in ("three", "alone")]
        for each in more:
            trust_books(each.root)
        three, self.alone = (Clone(each.root, folder / f"home-{each.root.name}") for each in more)
        self.clones = [*(Clone(each.root, folder / f"home-{each.root.name}") for each in (one, two)), three][:number]
        self._made: dict[str, Act] = {}
        """What made a commit: its run or decision, or the subject of one by hand."""
        self.seen: Counter[str] = Counter()
        self.numbers = iter(range(1, 10_000))

    def do(self, number: int, act: Act) -> None:
        """Somebody does it in a clone."""
        ws = self.clones[number]
        before = ws.head()
        with ws.at_home():
            perform(ws, act)
        made = [name for _, name in _list_made(ws, f"{before}..HEAD")]
        self.seen[f"{act.what}{'' if made else ' refused'}"] += 1
        if made and not (act.what == "row" and made[-1].startswith(f"{act.name} puts")):  # the run had no effect
            self._made[made[-1]] = act._replace(name=self._find_undone(ws)) if act.what == "undo" else act

    def _find_undone(self, ws: Workspace) -> str:
        """What the last commit has taken back: a decision, else the last approval of a version."""
        named = ws.git("log", "-1", f"--format={_VALUE.format('Undoes')}").strip()
        versions = [name for _, name in _list_made(ws, "HEAD") if self._made.get(name, Act("")).what == "version"]
        return named or versions[-1]

    def pick_amount(self, number: int, which: int) -> str:
        """The amount of one of the entries that stand in a clone."""
        found = sorted(
            {f"{amount_of(each):.2f}" for each in self.clones[number].entries() if is_standing(each)} - {RENT}
        )
        return found[which % len(found)] if found else "0.00"

    # -- how clones come together ----------------------------------------------------------------------------------

    def sync(self, number: int) -> None:
        for step in self.clones[number].json("sync")["steps"]:
            self.seen["left out" if step["left_out"] else "redone" if step["now"] else "dropped"] += 1

    def kill_sync(self, number: int, step: str, nth: int) -> None:
        """It is killed at a step; whatever comes next finds the books as they were, or as they are to be."""
        ws = self.clones[number]
        with ws.at_home():
            done = run_stepped(["sync", "-C", str(ws.root)], step, nth)
        assert done.returncode in (0, -signal.SIGKILL), done
        self.seen["killed"] += done.returncode != 0

    def pull(self, number: int, how: str) -> None:
        """A plain pull by git, which is taken back where the books are not in order with it."""
        ws = self.clones[number]
        before = ws.head()
        ws.git("pull", "-q", "--no-edit", how, check=False)
        for way in ("merge", "rebase"):
            ws.git(way, "--abort", check=False)
        is_right = ws("check").code == 0
        if not is_right:
            ws.git("reset", "-q", "--keep", before)
            if "[lost]" in ws("check").out:  # what was pulled was seen, and is given up
                take_ok(ws, "recover", "--forget")
        self.seen["pulled" if is_right and ws.head() != before else "not pulled"] += 1

    def push(self, number: int) -> None:
        self.clones[number].git("push", "-q", check=False)

    # -- what is true in the end -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Sync all, until none has anything to do. What was given up and came back is taken."""
        for ws in [*self.clones, *self.clones]:
            self.sync(self.clones.index(ws))
            for commit in re.findall(r"cleared recover --forget.*cleared accept (\S+) ", ws("check").out):
                ws.ok("accept", commit, "--reason", "it is to stand")
                self.seen["taken again"] += 1
            self.sync(self.clones.index(ws))
        assert {ws.head() for ws in self.clones} == {tip_of(self.shared)}
        for ws in self.clones:
            ws.in_order()

    def check_books(self) -> None:
        """Whatever was done: no bank line is booked twice, and each that waits is asked about once."""
        ws = self.clones[0]
        entries = ws.entries()
        booked = Counter(f"{amount_of(entry):.2f}" for entry in entries if is_standing(entry) and amount_of(entry) < 70)
        assert max(booked.values(), default=1) == 1, booked
        waiting = {entry["entry_id"] for entry in entries if entry["status"] == "pending-review"}
        asked = Counter(card["entry_id"] for card in ws.cards() if card["kind"] == "entry")
        assert set(asked) == waiting and all(number == 1 for number in asked.values()), (asked, waiting)

    def compare_alone(self) -> None:
        """One clone in which the same acts are done in the order of the history has the same books."""
        names = [name for _, name in _list_made(self.clones[0], "HEAD") if name in self._made]
        acts = [self._made[name] for name in names]
        with self.alone.at_home():
            told = [(act, perform(self.alone, act)) for act in acts if act.what != "undo" or act.name in names]
        story = "\n".join(f"{act} {why}" for act, why in told)
        self.alone.in_order()
        held = {found[1] for card in self.clones[0].cards() if (found := _HELD.match(card["title"]))}
        joined, alone = (read_books(ws, held) for ws in (self.clones[0], self.alone))
        for part, found in joined.items():
            assert found == alone[part], (part, list(_differ(found, alone[part])), story)


def _list_made(ws: Workspace, commits: str) -> Iterator[tuple[str, str]]:
    """Commits, oldest first, and what made each."""
    out = ws.git("log", "--topo-order", "--reverse", f"--format={_FORMAT}", commits)
    for record in out.split("\x1e")[1:]:
        commit, made, subject = record.strip("\n").split("\x1f")
        yield commit, made.replace("\n", "") or subject


def read_books(ws: Workspace, held: Set[str]) -> dict[str, list[Any]]:
    """What two clones have in common that have done the same, under whatever ids, but of what an entry replaces, as
    whoever imports it last knows that. ``held``: amounts that do not count, as a clone has held their rows for a month
    that it had closed itself, and the close was left out later."""
    entries = [
        (
            next((tag.removeprefix(_MEANT) for tag in each["tags"] if tag.startswith(_MEANT)), each["date"]),
            each["description"],
            each["status"],
            [tag for tag in each["tags"] if not tag.startswith(("@replaces=", _MEANT))],
            [(leg["account_id"], leg["debit"], leg["credit"]) for leg in each["lines"]],
        )
        for each in ws.entries()
        if f"{amount_of(each):.2f}" not in held
    ]
    cards = [
        (each["kind"], each["title"])
        for each in ws.cards()
        if each["kind"] not in _OF_THE_WAY and not any(f"{amount} " in each["title"] for amount in held)
    ]
    tree = [line.split() for line in ws.git("ls-tree", "-r", "HEAD", "notes/", "docs/tasks/").splitlines()]
    prices = ws.root / "records/prices.csv"
    return {
        "entries": _mask(entries),
        "cards": _mask(cards),
        "accounts": _mask([(each["account_id"], each["account_name"]) for each in ws.json("accounts", "list")]),
        "periods": _mask([(each["through"], each["state"]) for each in ws.json("period", "list")]),
        "rows": _mask(prices.read_text().splitlines() if prices.exists() else []),
        "tasks": _mask([(each["id"], each["title"], each["status"]) for each in ws.json("task", "list")]),
        "agents": _mask(
            [(each["name"], each["state"]) for each in ws.json("agent", "list") if each["name"] == "probe"]
        ),
        "settings": _mask([ws.ok("config", "get", "sync.minutes").out]),
        "files": _mask([(each[3], each[2]) for each in tree]),
    }


def _mask(values: list[Any]) -> list[Any]:
    return sorted(_ID.sub("ID", json.dumps(value)) for value in values)


def _differ(one: list[Any], two: list[Any]) -> Iterator[str]:
    yield from (f"joined only: {each}" for each in (Counter(one) - Counter(two)).elements())
    yield from (f"alone only: {each}" for each in (Counter(two) - Counter(one)).elements())

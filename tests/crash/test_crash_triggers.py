"""C8: the service killed at each of its steps and at those of its runs: nothing is lost, nothing is done twice.

In one life of it: a batch of files with a poisoned one that is found by splitting and is set aside, a file nobody
takes away, an event for each import, a schedule with times to make up for, a chain of events that is stopped.
``CLEARED_EVERY_POINT=1`` kills at every point there is, instead of at one of each kind.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from crash_service import Services
from harness import Workspace, chase, copy_books, here, remove_tree, use_machine_of

pytestmark = pytest.mark.slow

BEFORE, AT = "2025-02-10T07:00:00+00:00", "2025-02-10T09:00:30+00:00"
LATER = "2025-02-10T09:05:00+00:00"
TAKE = (
    'for f in importer_scan():\n    for t in importer_parse(f["name"]):\n'
    '        if "POISON" in t["description"]:\n            1 / 0\n'
    '        journal_add_double(date=t["date"], description=t["description"], debit_account=1010, credit_account=4010,'
    ' amount=t["amount"], reference=t["reference"])\n    importer_mark_processed(f["name"])\n'
)
AGENTS = {
    "take": ("trigger: file_watch\nwatch: import/\nretries: 0\n", TAKE),
    "look": ("trigger: file_watch\nwatch: letters/\n", 'ctx_emit("letter", ctx_event()["payload"])'),
    "count": ("trigger: event\nevent: import.new\noverlap: queue\n", 'ctx_emit("counted")'),
    "beat": ("trigger: schedule\nschedule: 0 * * * *\ncatch_up: all\n", 'ctx_emit("beat")'),
    "ping": ("trigger: event\nevent: pong\n", 'ctx_emit("ping")'),
    "pong": ("trigger: event\nevent: ping\n", 'ctx_emit("pong")'),
}
GOOD = {name: chase(("01/03/2025", f"INVOICE {name}", "5.00")) for name in ("a", "b", "d")}
BAD = chase(("01/04/2025", "INVOICE c", "6.00"), ("01/04/2025", "POISON", "7.00"))
SEALED = ("objects", "staged", "verified", "worktree", "index", "checked")
"""Steps of a seal that are tested elsewhere, and here only among all."""
INSTANTS = [f"schedule 2025-02-10T{hour:02}:00:00Z" for hour in (7, 8, 9)]


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with Services() as found:
        yield found


@pytest.fixture(scope="module")
def waiting(
    tmp_path_factory: pytest.TempPathFactory, starting_point: Path, _nobody: None, services: Services
) -> Iterator[Path]:
    """A workspace whose service has had one run of its schedule, and has all of that to do since then."""
    root = tmp_path_factory.mktemp("waiting") / "books"
    with use_machine_of(root):
        ws = Workspace(copy_books(starting_point, root))
        ws.config("import.settle_seconds=0", "triggers.max_depth=2")
        ws.git("rm", "-q", *(f"agents/{name}.py" for name in ("ingest", "monthly_summary", "review_reminder")))
        paths = [f"agents/{name}.py" for name in AGENTS]
        for (name, (header, body)), path in zip(AGENTS.items(), paths, strict=True):
            ws.put(path, f'"""\nname: {name}\n{header}"""\n{body}\n')
        ws.git("commit", "-q", "-m", "only what this is about")
        ws.commit(*paths, *ws.approve(*paths))
        services.serve(root, BEFORE.replace("07:", "06:"))
        services.serve(root, BEFORE)
        assert here("event", "emit", "ping", "-C", str(root)).code == 0
        for name, data in GOOD.items():
            ws.drop(f"{name}.csv", data)
        ws.drop("c.csv", BAD)
        ws.put("letters/x.txt", "dear all")
        yield root


@pytest.fixture(scope="module")
def points(waiting: Path, services: Services, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What an undisturbed service comes by; what it leaves is as it should be."""
    root = copy_books(waiting, tmp_path_factory.mktemp("calm") / "books")
    found = services.serve(root, AT)
    check(root, Left())
    assert services.serve(root, AT)[-1:] != ["after count_start"]
    return found


@dataclass(frozen=True)
class Left:
    """How a kill left it."""

    lost: bool = False
    """``.cleared/`` went with it."""
    by_hand: bool = False
    """It went while a commit was being written out: a person took the files from the commit."""


def check(root: Path, left: Left) -> None:
    """The history is that of an undisturbed service."""
    ws = Workspace(root)
    assert ws.json("check") == {"ok": True, "violations": []}
    assert Counter(e["description"] for e in ws.entries()) == Counter(f"INVOICE {name}" for name in GOOD)
    assert ws.git("fsck", "--strict", "--no-dangling", "--no-progress") == ""
    assert set(ws.git("status", "--porcelain", "-uall").splitlines()) == {"?? letters/x.txt"}
    assert not list((root / "import").glob("*.csv"))
    aside = sorted(p.name for p in (root / "import/failed").glob("*.csv"))
    assert aside == ["c.csv"] or (left.by_hand and aside == ["c-2.csv", "c.csv"])
    commits = trailers(ws)
    had = Counter((t["Agent"], t["Event"]) for t in commits if "Event" in t)
    assert all(times == 1 for times in had.values()), had
    by_agent = {name: sorted(event for agent, event in had if agent == name) for name in AGENTS}
    assert by_agent["beat"] == INSTANTS
    assert [event.split()[0] for event in by_agent["look"]] == ["file_watch"]
    assert len(by_agent["pong"]) == len(by_agent["ping"]) == 1, "each once, then it is stopped"
    imports = sorted(f"event {t['Run']}/import.new" for t in commits if "Imports" in t)
    assert by_agent["count"] == imports
    with (root / "books/bank/imports-2025-02.csv").open(newline="") as file:
        names = Counter(row["name"] for row in csv.DictReader(file))
    if left.by_hand:
        assert set(names) == {"a.csv", "b.csv", "d.csv"}
    else:
        assert names == {"a.csv": 1, "b.csv": 1, "d.csv": 1}
        assert sorted(p.name for p in (root / "import/processed").glob("*.csv")) == ["a.csv", "b.csv", "d.csv"]
    kinds = Counter(card["kind"] for card in ws.cards())
    # What it failed at before it was set aside is told by that card, and needs no other.
    assert kinds["event_cycle"] == 1 and kinds["set_aside"] == len(aside) and not kinds["failed_run"], kinds
    opened = Counter(
        json.loads(line)["id"]
        for path in (root / "queue").glob("*.jsonl")
        for line in path.read_text().splitlines()
        if json.loads(line)["event"] == "open"
    )
    assert all(times == 1 for times in opened.values()), opened


def trailers(ws: Workspace) -> list[dict[str, str]]:
    shown = ws.git("log", "--reverse", "--format=%(trailers:only,unfold)%x00").split("\0")[:-1]
    return [dict(line.split(": ", 1) for line in commit.strip().splitlines() if line) for commit in shown]


def only(waiting: Path, root: Path, name: str, header: str, body: str) -> Workspace:
    """A workspace with this agent alone, in which nothing waits."""
    copy_books(waiting, root)
    shutil.rmtree(root / ".cleared")
    for path in (*(root / "import").glob("*.csv"), *(root / "letters").iterdir()):
        path.unlink()
    ws = Workspace(root)
    ws.git("rm", "-q", *(f"agents/{other}.py" for other in AGENTS))
    ws.git("commit", "-q", "-m", "one agent alone")
    ws.put(f"agents/{name}.py", f'"""\nname: {name}\n{header}"""\n{body}\n')
    ws.commit(f"agents/{name}.py", *ws.approve(f"agents/{name}.py"))
    return ws


def logged(root: Path, what: str) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (root / ".cleared/service.log").read_text().splitlines()]
    return [row for row in rows if row["what"] == what]


def test_a_run_that_the_process_dies_of_each_time_is_given_up(
    waiting: Path, services: Services, tmp_path: Path
) -> None:
    """Also where it has failed before in another way, and a restart follows each death."""
    ws = only(waiting, tmp_path / "w", "take", "trigger: file_watch\nwatch: import/\nretries: 1\n", TAKE)
    services.serve(ws.root, BEFORE)
    ws.drop("c.csv", BAD)
    services.serve(ws.root, "2025-02-10T08:00:00+00:00")
    assert len(logged(ws.root, "run.failed")) == 1
    for _ in range(5):
        assert services.serve(ws.root, "2025-02-10T08:00:10+00:00", 1, "begun")[-1] == "begun"
    services.serve(ws.root, "2025-02-10T08:00:10+00:00")
    assert len(logged(ws.root, "run.failed")) == 1 and len(logged(ws.root, "file.set_aside")) == 1
    [card] = [card for card in ws.cards() if card["kind"] == "set_aside"]
    assert "the process died 5 times" in card["title"]


def test_a_kill_counts_as_no_failure(waiting: Path, services: Services, tmp_path: Path) -> None:
    """A good file whose runs were killed is booked all the same."""
    ws = only(waiting, tmp_path / "w", "take", "trigger: file_watch\nwatch: import/\nretries: 0\n", TAKE)
    services.serve(ws.root, BEFORE)
    ws.drop("a.csv", GOOD["a"])
    for name in ("begun", "ran", "checked", "verified"):
        assert services.serve(ws.root, AT, 1, name)[-1] == name
    services.serve(ws.root, AT)
    assert [entry["description"] for entry in ws.entries()] == ["INVOICE a"]
    assert logged(ws.root, "run.failed") == []


def chosen(points: list[str], lost: bool) -> list[int]:
    """One of each kind, at random: of every fourth kind where the state is kept, of another fourth where it is lost.

    CLEARED_EVERY_POINT takes them all.
    """
    if os.environ.get("CLEARED_EVERY_POINT"):
        return list(range(1, len(points) + 1))
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(points, 1):
        if name.split()[-1] not in SEALED:
            numbers.setdefault(name, []).append(number)
    draw = random.Random(4)
    return sorted(draw.choice(of_kind) for of_kind in list(numbers.values())[lost::4])


@pytest.mark.parametrize("lost", [False, True], ids=["state kept", "state lost"])
def test_c8_the_service_killed_at_each_of_its_steps(
    waiting: Path, points: list[str], services: Services, tmp_path: Path, lost: bool
) -> None:
    """Row C8. Every other time, the one that comes after it is killed as well."""
    kinds = {
        "after add_delivery",
        "before count_start",
        "ran",
        "ref",
        "file",
        "before _handle_result",
        "before finish_delivery",
        "after finish_delivery",
        "report_event_cycle ref",
        "after report_event_cycle",
        "after set_cursor",
        "set_file_aside intent",
        "set_file_aside file",
        "after set_file_aside",
        "before _split_files",
        "after drop_delivery",
    }
    assert kinds <= set(points), kinds - set(points)
    draw = random.Random(5)
    for number in chosen(points, lost):
        root = copy_books(waiting, tmp_path / f"at-{number}")
        left = Left(lost=lost)
        try:
            assert services.serve(root, AT, number)[-1] == points[number - 1]
            if draw.random() < 0.5:
                services.serve(root, AT, draw.randint(1, 60))
            if lost:
                # What a commit that was being made is about stands in git's lock, too, once that is taken.
                began = (root / ".cleared/seal.json").exists()
                left = Left(True, by_hand=began and not (root / ".git/index.lock").exists())
                shutil.rmtree(root / ".cleared")
                if left.by_hand:
                    Workspace(root).git("reset", "-q", "--hard")
                    Workspace(root).git(
                        "clean", "-fdq", "--", "books", "logs", "queue", "import/processed", "import/failed"
                    )
            services.serve(root, LATER if left.by_hand else AT)
            check(root, left)
        except BaseException as error:
            error.add_note(f"killed at point {number}, {points[number - 1]}: look at {root}")
            raise
        remove_tree(root)

"""What the thousandth day costs beside the tenth: ``python -m bench --age``.

A day is a bank file, its run, and ten decisions, each a commit of its own: about nine entries, and the rows that came
before. The file has 18 new rows and repeats those of the file before, each with the balance after it, as banks write
them; the opening balance is booked. At each age, commands are measured in processes that have imported everything:
processor seconds, with those of the programs they start.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from bench.measure import seconds
from bench.steady import Hand, resident
from bench.workspaces import HEADER, copy, git, remove_places, workspace
from cleared.base.clock import FixedClock
from cleared.books.decisions.opening_balances import post_opening_balances
from cleared.cards.kinds import DUPLICATE_FILE
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.changes.workspace_opening import open_workspace
from cleared.cli import GC_THRESHOLD
from cleared.cli.command_runner import run
from cleared.gate.manual_runs import run_now
from cleared.review.card_decisions import answer_card, confirm_records
from cleared.review.queue_cards import read_cards

AGES = (10, 50, 200, 1_000)
"""In runs; the last takes an hour."""
OLDEST = 5_000
ROWS = 18
TEXTS = ("GITHUB INC", "AWS EMEA", "CORNER SHOP", "BLUE BAKERY")
REPEATS = 5
TRIES = 3
SETTLED = 4
"""Seconds after which what was read of a file is kept."""
COMMANDS = ("check", "queue list", "status", "doctor")
_NAMES = {"check": "check again", "status": "status again"}
"""Before, they are measured after a decision, whose month is judged again, and after an import."""
BEGIN = date(2024, 1, 1)
OPENING = 100_000_000_00
"""What the account held before the first row, in cents."""
_CYCLE = 9_000
"""Rows of different amounts."""
_TURN = sum(range(100, 100 + _CYCLE))


@dataclass(frozen=True)
class Age:
    """The figures of one age in runs: processor seconds by name, and the bytes of ``.git`` as it is and packed."""

    runs: int
    costs: dict[str, float]
    git_bytes: int
    packed_bytes: int
    memory: int
    """Resident bytes of the program that has lived through the days, with its git and its worker."""


def choose_ages(is_old: bool, is_quick: bool) -> tuple[int, ...]:
    return AGES[:2] if is_quick else (*AGES, OLDEST) if is_old else AGES


def measure_ages(ages: tuple[int, ...]) -> list[Age]:
    """Live through the days, and measure at each age."""
    root, clock, found = workspace(), Hand(), []
    session = HostCache(lambda: open_workspace(root, clock=clock))
    for day in range(ages[-1] + 1):
        if day in ages:
            found.append(_measure(root, clock, day))
            print(f"{day} runs: {found[-1]}", file=sys.stderr, flush=True)
        if day == ages[-1]:
            break
        _drop_file(root, clock, day)
        run = run_now(session(), "ingest")
        assert run.status == "succeeded", run
        if day == 0:
            post_opening_balances(session())
        for card in _entries(session())[: ROWS // 2]:
            clock.at += timedelta(seconds=7)
            confirm_records(session(), [card])
        for card in [each["id"] for each in read_cards(session()) if each["kind"] == DUPLICATE_FILE.name]:
            answer_card(session(), card, "seen")
    return found


def _entries(host: Host) -> list[str]:
    """The cards about entries that wait."""
    return [card["id"] for card in read_cards(host) if card["kind"] == "entry"]


def _drop_file(root: Path, clock: Hand, day: int) -> None:
    """The bank file of a day, five days in a row on one date."""
    at = _find_date(day)
    clock.at = datetime(at.year, at.month, at.day, 8, tzinfo=clock.at.tzinfo) + timedelta(hours=day % 5)
    rows = []
    for n in range(max(day - 1, 0) * ROWS, (day + 1) * ROWS):
        cents, balance = _count_cents(n), OPENING - sum(map(_count_cents, range(n % _CYCLE + 1))) - n // _CYCLE * _TURN
        rows.append(
            f"DEBIT,{_find_date(n // ROWS):%m/%d/%Y},{TEXTS[n % 4]} {n:06d},-{cents / 100:.2f},ACH_DEBIT,"
            f"{balance / 100:.2f},,"
        )
    (root / "import" / f"{day:05d}.csv").write_text("\n".join([HEADER, *reversed(rows), ""]))


def _find_date(day: int) -> date:
    return BEGIN + timedelta(days=day // 5)


def _count_cents(row: int) -> int:
    """What a row takes."""
    return 100 + row % _CYCLE


def _measure(root: Path, clock: Hand, day: int) -> Age:
    """Each command on a copy, so that what is measured does not age the books. In a new copy all files are new: a first
    run reads them, and the second is measured."""
    made, at = copy(root), clock.at
    time.sleep(SETTLED)
    for n in range(2):
        _drop_file(made, clock, day + n)
        costs = {"run": _spend(made, clock, "run")}
        costs["status"] = _spend(made, clock, "status")
    cards = _entries(open_workspace(made, clock=clock))
    decisions, checks = [], []
    for card in cards[:REPEATS]:
        decisions.append(_spend(made, clock, "decide", card))
        checks.append(_spend(made, clock, "check"))
    costs["decision"], costs["check"] = statistics.median(decisions), min(checks)
    for command in COMMANDS:
        # The first time makes what can be kept between commands.
        costs[_NAMES.get(command, command)] = min(_spend(made, clock, *command.split()) for _ in range(TRIES))
    journal = max(made.glob("books/*/*/journal.csv"))
    journal.write_bytes(journal.read_bytes().replace(b"BLUE BAKERY", b"GREEN BAKERY", 1))
    git(made, "commit", "-qam", "by hand")
    costs["check after a commit by hand"] = min(_spend(made, clock, "check") for _ in range(TRIES))
    clock.at = at
    git_bytes = _size(root / ".git")
    subprocess.run(["git", "gc", "-q"], cwd=made, check=True)
    return Age(day, costs, git_bytes, _size(made / ".git"), resident(os.getpid()))


def _spend(root: Path, clock: Hand, *words: str) -> float:
    """Processor seconds of one command, as ``spend`` counts them, in a process that has imported everything."""
    child = [sys.executable, "-c", "from bench.age import spend; spend()", clock.at.isoformat(), *words]
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    return float(subprocess.run(child, cwd=root, env=here, check=True, stdout=subprocess.PIPE, text=True).stdout)


def spend() -> None:
    """In a process of its own: do what the arguments say, and print the processor seconds of it and its programs."""
    at, *words = sys.argv[1:]
    clock = FixedClock(datetime.fromisoformat(at))
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.set_threshold(*GC_THRESHOLD)  # as in each command
    before = _count_seconds()
    if words == ["run"]:
        assert run_now(open_workspace(Path(), clock=clock), "ingest").status == "succeeded"
    elif words[0] == "decide":
        confirm_records(open_workspace(Path(), clock=clock), words[1:])
    else:
        run(words)
    os.write(out, f"{_count_seconds() - before}\n".encode())
    remove_places()
    os._exit(0)


def _count_seconds() -> float:
    """Of this process and the programs that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def render_ages(ages: list[Age]) -> str:
    """A row for each age, as Markdown."""
    names = list(ages[0].costs)
    lines = [
        "| age in runs | " + " | ".join(names) + " | `.git` (packed) | memory |",
        "| --- |" + " --- |" * (len(names) + 2),
    ]
    for age in ages:
        cells = [seconds(age.costs[name]) for name in names]
        git = f"{age.git_bytes / 1e6:.1f} MB ({age.packed_bytes / 1e6:.1f})"
        lines.append(f"| {age.runs:,} | " + " | ".join([*cells, git, f"{age.memory / 1e6:.0f} MB"]) + " |")
    return "\n".join(lines) + "\n"

"""A workspace with a past, the files that the killed run is to book, and what must be true afterwards."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness import copy_books
from patience import PATIENCE

from cleared.base.clock import SystemClock
from cleared.books import queries
from cleared.changes.audit.record_violations import find_violations
from cleared.changes.host import Host
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now

HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
Line = tuple[str, str, Decimal]
"""Date, text, amount as the bank has it."""

JANUARY: list[Line] = [
    ("2025-01-02", "STRIPE PAYOUT", Decimal("900.00")),
    ("2025-01-15", "GITHUB INC", Decimal("-4.00")),
    ("2025-01-15", "GITHUB INC", Decimal("-4.00")),
    ("2025-01-31", 'COFFEE, "HOT" ☕', Decimal("-3.50")),
]
FEBRUARY: list[Line] = [
    ("2025-02-03", "AWS EMEA", Decimal("-42.10")),
    ("2025-02-03", "RENT", Decimal("-300.00")),
    ("2025-02-20", "STRIPE PAYOUT", Decimal("250.00")),
    ("2025-02-28", "AWS EMEA", Decimal("-42.10")),
]
MARCH: list[Line] = [
    ("2025-03-01", "GITHUB INC", Decimal("-4.00")),
    ("2025-03-02", "=SUM(A1)", Decimal("-12.00")),
]
#: The second file repeats the end of the first, so the run books two files that overlap.
FEBRUARY_OPENING = sum((amount for _, _, amount in JANUARY), Decimal(0))
DROPPED = {"february.csv": FEBRUARY, "march.csv": [*FEBRUARY[2:], *MARCH]}
BEFORE: list[Line] = JANUARY
AFTER: list[Line] = [*JANUARY, *FEBRUARY, *MARCH]
TEMPORARY = re.compile(r"\.tmp$|^cleared-index-|\.lock$")  # git takes its own tmp_obj_… away
KEPT = {"import/.gitkeep", "import/processed/.gitkeep", "import/processed/january.csv"}


def bank_file(lines: Iterable[Line], opening: Decimal = Decimal(0)) -> bytes:
    """As Chase writes it: newest first, with a running balance."""
    rows, balance = [], opening
    for day, text, amount in lines:
        balance += amount
        when = f"{day[5:7]}/{day[8:]}/{day[:4]}"
        quoted = '"' + text.replace('"', '""') + '"'
        rows.append(f"{'DEBIT' if amount < 0 else 'CREDIT'},{when},{quoted},{amount},ACH,{balance},,\n")
    return (HEADER + "".join(reversed(rows))).encode()


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *args], check=False, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def make_template(root: Path) -> Path:
    """January is booked, a run that found nothing has left its rows waiting, February and March lie in ``import/``."""
    create_workspace(root, name="Acme", entity_type="llc_single_member", currency="USD", clock=SystemClock())
    (root / "import/january.csv").write_bytes(bank_file(JANUARY))
    for _ in range(2):
        assert run_now(open_workspace(root), "ingest").status == "succeeded"
    assert (root / ".cleared/waiting-log.csv").exists()
    drop(root)
    return root


def drop(root: Path) -> None:
    (root / "import/february.csv").write_bytes(bank_file(FEBRUARY, FEBRUARY_OPENING))
    opening = FEBRUARY_OPENING + sum((amount for _, _, amount in FEBRUARY[:2]), Decimal(0))
    (root / "import/march.csv").write_bytes(bank_file(DROPPED["march.csv"], opening))


def copy(template: Path, root: Path) -> Path:
    return copy_books(template, root)


class Watcher:
    """A workspace opened in this process, and what it said."""

    def __init__(self, root: Path) -> None:
        self.said: list[str] = []
        self.host: Host = open_workspace(root, say=self.said.append)

    def repairs(self) -> list[str]:
        return [line for line in self.said if "interrupted commit" in line or "lock of a git" in line]


def read(root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """What a reading command shows, and what it said of repairs."""
    watcher = Watcher(root)
    entries = queries.read_journal(watcher.host)
    assert watcher.said == watcher.repairs()
    return entries, watcher.said


def ingest(root: Path) -> list[str]:
    """A run of the agent in this process; what it said of repairs."""
    watcher = Watcher(root)
    result = run_now(watcher.host, "ingest")
    assert result.status == "succeeded", result.error
    assert result.warnings == []
    return watcher.repairs()


def journal_of(entries: list[dict[str, Any]]) -> Counter[tuple[str, str, Decimal]]:
    """Date, text, and what the entry moves on the bank's account."""
    found: Counter[tuple[str, str, Decimal]] = Counter()
    for entry in entries:
        moved = sum(
            (Decimal(x["debit"]) - Decimal(x["credit"]) for x in entry["lines"] if x["account_id"] == 1010), Decimal(0)
        )
        found[(entry["date"], entry["description"], moved)] += 1
    return found


def files(root: Path, below: str) -> set[str]:
    return {p.relative_to(root).as_posix() for p in (root / below).rglob("*") if p.is_file()}


def rows(root: Path, path: str) -> list[list[str]]:
    file = root / path
    return list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))[1:] if file.exists() else []


def check_sound(root: Path, *, written: bool = True) -> None:
    """What holds after every repair, whatever was killed.

    ``written``: a writing command has run since; what a seal had not even begun with (half of a note in
    ``.cleared/``, new files beside git's index) it is that sweeps up.
    """
    found = find_violations(open_workspace(root))
    assert found == [], [each.message for each in found]
    assert git(root, "fsck", "--strict", "--no-dangling", "--no-progress") == ""
    assert git(root, "status", "--porcelain", "-uall") == ""
    assert git(root, "rev-list", "--merges", "HEAD") == ""
    stray = [str(p) for p in root.rglob("*") if TEMPORARY.search(p.name)]
    unbegun = () if written else ("/.cleared/", "/.git/cleared-index-")
    assert [p for p in stray if not any(place in p for place in unbegun)] == []
    assert not (root / ".cleared/seal.json").exists()
    opened = Counter(
        json.loads(line)["id"]
        for path in (root / "queue").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
        if json.loads(line)["event"] == "open"
    )
    assert all(n == 1 for n in opened.values()), opened
    log = Counter(tuple(row) for row in rows(root, "logs/agent-log-2025-02.csv"))
    assert all(n == 1 for n in log.values()), [row for row, n in log.items() if n > 1]


def check_lines(root: Path, expected: Iterable[Line]) -> None:
    """Every line of the bank is recorded once, and posted once and whole."""
    lines = [row for path in sorted((root / "books/bank/checking").glob("*.csv")) for row in rows(root, str(path))]
    recorded = Counter((row[1], row[5], Decimal(row[3])) for row in lines)
    assert recorded == Counter(expected)
    paths = sorted((root / "books/bank").glob("matches-*.csv"))
    matches = Counter(row[0] for path in paths for row in rows(root, str(path)))
    assert matches == Counter(row[0] for row in lines)


def check_booked(root: Path, entries: list[dict[str, Any]], expected: list[Line]) -> None:
    """Exactly these lines are in the journal, each once; each dropped file is in one place."""
    assert journal_of(entries) == Counter(expected)
    check_lines(root, expected)
    names = {"january.csv", *DROPPED}
    if len(expected) == len(AFTER):
        assert files(root, "import") == KEPT | {f"import/processed/{name}" for name in names}
    else:
        assert files(root, "import") == KEPT | {f"import/{name}" for name in DROPPED}


def owes_files(root: Path) -> bool:
    """Whether a killed seal still owes files to the working tree; what it owes to the index alone is paid silently."""
    try:
        return bool(json.loads((root / ".cleared/seal.json").read_bytes())["paths"])
    except FileNotFoundError:
        return False


def check_all_or_nothing(root: Path, *, repaired_by_reading: bool = True, steps: bool = True) -> bool:
    """The checks after a killed ingest: a reading command and an ingest, or the other way round. Whether the kill
    left all of it.

    The first repairs, and says so in one line at most; then nobody has anything more to repair. ``steps``: what was
    killed stands still by now, with no git of its own still at work.
    """
    before = git(root, "rev-parse", "HEAD").strip()
    interrupted = owes_files(root)
    if repaired_by_reading:
        entries, said = read(root)
        deadline = time.monotonic() + PATIENCE
        while not steps and owes_files(root) and time.monotonic() < deadline:
            # A git that the killed one had started still holds its lock; the next command repairs.
            assert said == []
            time.sleep(0.05)
            entries, said = read(root)
        assert len(said) <= 1, said
        assert said or not interrupted
        assert not steps or before == git(root, "rev-parse", "HEAD").strip()
    else:
        said = ingest(root)
        assert len(said) <= 1, said
        entries, again = read(root)
        assert again == []
    subject = git(root, "log", "-1", "--format=%s")
    whole = len(entries) == len(AFTER)
    assert whole == subject.startswith("import: 6 ")
    check_booked(root, entries, AFTER if whole else BEFORE)
    if repaired_by_reading:
        check_sound(root, written=False)
        assert ingest(root) == []
    entries, said = read(root)
    assert said == []
    check_booked(root, entries, AFTER)
    check_sound(root)
    subjects = git(root, "log", "--format=%s").splitlines()
    assert len(subjects) == 3, subjects
    assert sum(s.startswith("import: ") for s in subjects) == 2
    return whole


def check_goes_on(root: Path) -> None:
    """The next file is booked as if nothing had been, and the log has every row once."""
    more = [("2025-04-01", "GITHUB INC", Decimal("-4.00"))]
    (root / "import/april.csv").write_bytes(bank_file(more, Decimal("738.30")))
    assert ingest(root) == []
    entries, said = read(root)
    assert said == []
    assert journal_of(entries) == Counter([*AFTER, *more])
    check_lines(root, [*AFTER, *more])
    check_sound(root)
    assert not (root / ".cleared/waiting-log.csv").exists()


def workers_of(pid: int) -> set[int]:
    """The live processes below this one."""
    if not Path("/proc").is_dir():
        return set()
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            rest = stat.rsplit(")", 1)[1].split()
            if rest[0] != "Z":
                parents[int(entry)] = int(rest[1])
    found: set[int] = set()
    while more := {p for p, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"

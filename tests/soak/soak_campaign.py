"""A campaign: files are dropped while the service is killed, and the books are those of one that nobody disturbed."""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness import Workspace
from soak_files import Dropped, expected, files, write
from soak_service import Up, booked, commits, workspace

EVERY = 20
"""Files between two kills, on average."""


@dataclass
class Told:
    """Figures of a campaign."""

    files: int
    entries: int
    kills: int
    in_runs: int
    in_starts: int
    terms: int
    lost: int
    torn: int
    runs: int
    failed_runs: int
    seconds: float


def campaign(folder: Path, count: int, seed: int, *, pause: float = 0.2, lose: float = 0.0) -> Told:
    """Drop so many files, ``pause`` seconds apart at most; ``lose``: how often ``.cleared/`` goes with a kill.

    Raises ``AssertionError`` where the books are not those of an undisturbed run, or anything was lost or done twice.
    """
    dropped = files(count, seed)
    calm = _undisturbed(folder, dropped)
    began = time.monotonic()
    ws = workspace(folder / "disturbed")
    draw = random.Random(seed + 1)
    writing: list[tuple[Dropped, Future[bool]]] = []
    torn: list[Dropped] = []
    lost = 0
    with Up(ws) as up, ThreadPoolExecutor(3) as writers:
        for file in dropped:
            job = writers.submit(write, ws.root / "import", file, random.Random(draw.random()))
            writing.append((file, job))
            time.sleep(draw.uniform(0, pause))
            up.check_alive()
            if draw.random() >= 1 / EVERY:
                continue
            if draw.random() < 0.1:
                up.end()
            else:
                if draw.random() < 0.6:
                    up.catch(draw, 2.0)
                up.kill()
                # Without it nobody knows of a commit whose files are not written out yet: that is a person's to mend.
                if draw.random() < lose and not (ws.root / ".cleared/seal.json").exists():
                    shutil.rmtree(ws.root / ".cleared")
                    lost += 1
            up.start()
        for file, job in writing:
            if not job.result():
                # This machine stood still for longer than a file has to: what it wrote is dropped once more, whole.
                again = replace(file, name=f"again-{file.name}", way="rename")
                write(ws.root / "import", again, draw)
                torn.append(again)
        staying = {file.name for file in [*dropped, *torn] if file.kind == "bad"}
        up.quiet(staying, 120 + count / 4)
        up.end()
    _check(ws, dropped, torn)
    assert booked(ws) == calm, "not the books of the undisturbed run"
    trailers = commits(ws)
    return Told(
        count,
        calm.total(),
        up.kills,
        up.in_runs,
        up.in_starts,
        up.terms,
        lost,
        len(torn),
        sum("Run" in t for t in trailers),
        sum(t.get("Outcome") == "failed" for t in trailers),
        time.monotonic() - began,
    )


def _undisturbed(folder: Path, dropped: list[Dropped]) -> Counter[object]:
    """The books, where nobody kills anything and every file is there at once."""
    ws = workspace(folder / "undisturbed")
    with Up(ws) as up:
        for start in range(0, len(dropped), 100):
            for file in dropped[start : start + 100]:
                write(ws.root / "import", replace(file, way="plain"), random.Random(0))
            up.quiet({file.name for file in dropped[: start + 100] if file.kind == "bad"}, 120)
        up.end()
    _check(ws, dropped, [])
    return Counter(booked(ws))


def _check(ws: Workspace, dropped: list[Dropped], torn: list[Dropped]) -> None:
    """The books are right, every file is in its place, every event was delivered once."""
    assert ws.json("check") == {"ok": True, "violations": []}
    rows = Counter({row: n for (row, _, _), n in booked(ws).items()})
    assert rows == expected(dropped), (rows - expected(dropped), expected(dropped) - rows)
    bad = {file.name for file in [*dropped, *torn] if file.kind == "bad"}
    changed = {line[3:] for line in ws.git("status", "--porcelain", "-uall").splitlines()}
    assert changed <= {f"import/{name}" for name in bad}, changed
    _check_files(ws, dropped, {file.name.removeprefix("again-") for file in torn})
    trailers = commits(ws)
    had = Counter((t["Agent"], t["Event"]) for t in trailers if "Event" in t)
    assert all(times == 1 for times in had.values()), [event for event, times in had.items() if times > 1]
    imports = Counter(f"event {t['Run']}/import.new" for t in trailers if "Imports" in t)
    counted = Counter(t["Event"] for t in trailers if t.get("Agent") == "count")
    assert counted == imports, (counted - imports, imports - counted)


def _check_files(ws: Workspace, dropped: list[Dropped], torn: set[str]) -> None:
    """Each file that was dropped is in one place, whole: ``processed/``, ``failed/``, or where it was dropped."""
    folder = ws.root / "import"
    for place, kind in (("processed", "good"), ("failed", "poisoned"), (".", "bad")):
        lie: Counter[str] = Counter()
        for path in (folder / place).glob("*"):
            if path.is_file() and path.name != ".gitkeep":
                lie[hashlib.sha256(path.read_bytes()).hexdigest()] += 1
        wanted = Counter(file.digest for file in dropped if file.kind == kind)
        if torn:
            assert lie.keys() >= wanted.keys(), place
        else:
            assert lie == wanted, (place, lie - wanted, wanted - lie)

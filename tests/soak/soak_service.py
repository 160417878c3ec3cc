"""The real ``cleared up`` of a workspace, killed and started again; and what the workspace is found to be after."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from harness import Workspace, here
from patience import PATIENCE
from soak_files import SETTLE, Row

from cleared.triggers.pending_deliveries import peek_deliveries

TAKE = (
    'for f in importer_scan():\n    for t in importer_parse(f["name"]):\n'
    '        if "POISON" in t["description"]:\n            1 / 0\n'
    '        if t["amount"] < 0:\n'
    '            journal_add_double(date=t["date"], description=t["description"], debit_account=5030,'
    ' credit_account=1010, amount=abs(t["amount"]), reference=t["reference"])\n'
    "        else:\n"
    '            journal_add_double(date=t["date"], description=t["description"], debit_account=1010,'
    ' credit_account=4010, amount=t["amount"], reference=t["reference"])\n'
    '    importer_mark_processed(f["name"])\n'
)
AGENTS = {
    "take": ("trigger: file_watch\nwatch: import/\nretries: 1\n", TAKE),
    "count": ("trigger: event\nevent: import.new\n", 'ctx_emit("counted", len(ctx_event()["payload"]["files"]))'),
}


def workspace(root: Path) -> Workspace:
    """With an agent that takes files, and one that is told of each import."""
    done = here("init", str(root), "--name", "Acme")
    assert done.code == 0, done
    ws = Workspace(root)
    ws.git("rm", "-q", *(f"agents/{name}.py" for name in ("ingest", "monthly_summary", "review_reminder")))
    ws.git("commit", "-q", "-m", "only what this is about")
    ws.config(f"import.settle_seconds={SETTLE}", "triggers.retry_seconds=0.1", "triggers.max_event_runs=1000000")
    for name, (header, body) in AGENTS.items():
        path = f"agents/{name}.py"
        ws.put(path, f'"""\nname: {name}\n{header}"""\n{body}\n')
        ws.commit(path, *ws.approve(path), message=f"agent: {name}")
    return ws


class Up:
    """The service, as a process."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.said = ws.root.parent / f"{ws.root.name}.said"
        self.kills = self.terms = self.in_runs = self.in_starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "CLEARED_CLOCK"}
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cleared", "up", "-C", str(self.ws.root)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
            )

    def check_alive(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, self.said.read_text()[-4_000:]

    def kill(self) -> None:
        """SIGKILL."""
        self.check_alive()
        assert self.process is not None
        board = self.board()
        self.in_runs += bool(board.get("running"))
        self.in_starts += not board.get("ready")
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def end(self) -> None:
        """SIGTERM: the run that is on ends, then the process, with success."""
        assert self.process is not None
        for _ in range(1_000):  # before it is up, the signal would end it as it ends any program
            self.check_alive()
            if self.board().get("ready"):
                break
            time.sleep(0.02)
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=PATIENCE) == 0, self.said.read_text()[-4_000:]
        self.terms += 1

    def board(self) -> dict[str, Any]:
        """What the process says of itself."""
        assert self.process is not None
        try:
            found = json.loads((self.ws.root / ".cleared/service.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and found.get("pid") == self.process.pid else {}

    def catch(self, draw: random.Random, seconds: float) -> None:
        """Wait until a run is on, for a while, and then somewhere into it."""
        into, end = draw.uniform(0, 0.15), time.monotonic() + seconds  # what is drawn next never depends on the time
        while time.monotonic() < end:
            if self.board().get("running"):
                time.sleep(into)
                return
            time.sleep(0.002)

    def quiet(self, staying: set[str], seconds: float) -> None:
        """Wait until nothing is left to do but these files in ``import/``, which stay."""
        end, since = time.monotonic() + seconds, None
        while since is None or time.monotonic() - since < 2 * SETTLE + 0.5:
            assert time.monotonic() < end, (
                self.left() - staying,
                peek_deliveries(self.ws.root / ".cleared"),
                self.tail(),
            )
            self.check_alive()
            idle = not self.board().get("running") and not peek_deliveries(self.ws.root / ".cleared")[1]
            if not idle or self.left() != staying:
                since = None
            elif since is None:
                since = time.monotonic()
            time.sleep(0.05)

    def left(self) -> set[str]:
        """What lies in ``import/`` itself."""
        found = (self.ws.root / "import").iterdir()
        return {path.name for path in found if path.is_file() and path.name != ".gitkeep"}

    def tail(self) -> str:
        return self.said.read_text(errors="replace")[-3_000:]


def booked(ws: Workspace) -> Counter[tuple[Row, str, tuple[int, ...]]]:
    """The journal without ids and runs: date, text, what moved on the bank's account, the bank's line, accounts."""
    found: Counter[tuple[Row, str, tuple[int, ...]]] = Counter()
    for entry in ws.entries():
        moved = sum(
            (Decimal(x["debit"]) - Decimal(x["credit"]) for x in entry["lines"] if x["account_id"] == 1010), Decimal(0)
        )
        accounts = tuple(sorted(x["account_id"] for x in entry["lines"]))
        found[(entry["date"], entry["description"], moved), entry["reference"], accounts] += 1
    return found


def commits(ws: Workspace) -> list[dict[str, str]]:
    """The trailers of each commit, oldest first."""
    shown = ws.git("log", "--reverse", "--format=%(trailers:only,unfold)%x00")
    return [
        dict(line.split(": ", 1) for line in commit.strip().splitlines() if line) for commit in shown.split("\0")[:-1]
    ]

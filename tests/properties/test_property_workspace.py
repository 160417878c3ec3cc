"""Random operations through real runs and decisions on a real repository, killed ones among them (B1, B9, B13)."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from books_world import Row, chase

from cleared.base.clock import FixedClock
from cleared.base.errors import ClearedError
from cleared.books import queries
from cleared.books.decisions.entry_voiding import void_entry
from cleared.books.decisions.period_closing import close_period, reopen_period
from cleared.changes.audit.record_violations import find_violations
from cleared.changes.host import Host
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.git import STEPS
from cleared.review.queue_cards import read_cards

pytestmark = pytest.mark.slow

NOW = datetime(2025, 12, 1, 6, tzinfo=UTC)
FIRST = date(2025, 1, 1)
ROUNDS = 14


class Stop(BaseException):
    """As a kill: nothing that tidies up may count on running."""


class Workspace:
    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        create_workspace(root, name="Acme", entity_type="llc_single_member", currency="USD", clock=FixedClock(NOW))
        self.lines: Counter[Row] = Counter()
        self.files = 0

    def host(self, stop: str = "") -> Host:
        def on_step(step: str) -> None:
            if step == stop:
                raise Stop

        return open_workspace(self.root, clock=FixedClock(NOW), on_step=on_step if stop else None)

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def bytes(self) -> dict[str, bytes]:
        kept = ("books", "queue", "accounts", "import")
        return {str(p): p.read_bytes() for k in kept for p in (self.root / k).rglob("*") if p.is_file()}

    def _but_the_queue(self, files: dict[str, bytes]) -> dict[str, bytes]:
        return {p: b for p, b in files.items() if not p.startswith(str(self.root / "queue"))}

    # -- what can be done -----------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Some rows, old ones among them; equal rows of a day come all together, as the bank gives them."""
        self.files += 1
        rows: Counter[Row] = Counter()
        for _ in range(self.random.randint(1, 4)):
            day = FIRST + timedelta(days=self.random.randint(0, 80))
            rows[(day, self.random.choice("AB☕"), Decimal(self.random.choice([-100, -250, 300])) / 100)] += 1
        if self.lines and self.random.random() < 0.5:
            old = self.random.choice(sorted(self.lines, key=str))
            rows[old] = self.lines[old]
        data = chase(sorted(rows.elements(), key=lambda r: r[0]))
        (self.root / f"import/{self.files}.csv").write_bytes(data)
        self.dropped = rows

    def ingest(self, stop: str = "") -> None:
        self.drop()
        before = self.bytes()
        try:
            result = run_now(self.host(stop), "ingest")
        except Stop:
            made = f"import/processed/{self.files}.csv" in self.git("log", "-1", "--name-only", "--format=").split()
            queries.read_journal(self.host())  # repairs
            if not made:  # though what may have been stopped is the record of a failure: its card is there then
                assert self._but_the_queue(self.bytes()) == self._but_the_queue(before)
                (self.root / f"import/{self.files}.csv").unlink()
            else:
                self.lines |= self.dropped
            return
        assert result.status == "succeeded", result
        self.lines |= self.dropped

    def void(self, stop: str = "") -> None:
        entries = [e for e in queries.read_journal(self.host()) if e["status"] != "voided"]
        if not entries:
            return
        chosen = self.random.choice(entries)
        balances = {r["account_id"]: Decimal(r["balance"]) for r in queries.read_balances(self.host())}
        try:
            void_entry(self.host(stop), chosen["entry_id"], "why")
        except Stop:
            done = {e["entry_id"]: e["status"] for e in queries.read_journal(self.host())}[
                chosen["entry_id"]
            ] == "voided"
        else:
            done = True
        if done:
            for line in chosen["lines"]:
                balances[line["account_id"]] -= Decimal(line["debit"]) - Decimal(line["credit"])
        assert {r["account_id"]: Decimal(r["balance"]) for r in queries.read_balances(self.host())} == balances

    def close(self, stop: str = "") -> None:
        try:
            close_period(
                self.host(stop), FIRST + timedelta(days=self.random.randint(0, 80)), despite="tested", with_pending=True
            )
        except (Stop, ClearedError):
            pass  # closed already

    def reopen(self, stop: str = "") -> None:
        try:
            reopen_period(self.host(stop), FIRST + timedelta(days=self.random.randint(0, 80)), "why")
        except (Stop, ClearedError):
            pass

    def check(self) -> None:
        host = self.host()
        assert find_violations(host) == []
        assert self.git("status", "--porcelain", "-uall") == ""
        posted = Counter(
            (
                date.fromisoformat(e["date"]),
                e["description"],
                -Decimal(e["amount"]) if e["lines"][1]["account_id"] == 1010 else Decimal(e["amount"]),
            )
            for e in queries.read_journal(host)
            if not e["description"].startswith("Void ")
        )
        cards = read_cards(host, "open")
        late = [c["details"] for c in cards if c["kind"] == "line" and "was closed" in c["title"]]
        waiting = Counter((date.fromisoformat(d["date"]), d["text"], Decimal(d["amount"])) for d in late)
        assert posted + waiting == self.lines, (
            "each row is posted, or waits on a card: its day was closed before it came"
        )


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_on_a_real_workspace(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    work = Workspace(tmp_path / "w", seed)
    for _ in range(ROUNDS):
        act = work.random.choice([work.ingest, work.ingest, work.void, work.void, work.close, work.reopen])
        act(work.random.choice(["", "", *STEPS]))
        work.check()
    assert work.git("rev-list", "--merges", "HEAD") == ""
    subprocess.run(["git", "fsck", "--strict", "--no-progress"], cwd=work.root, check=True, capture_output=True)

"""Versions of an agent that are watched after their approval: good ones stay, bad ones are taken back in time.

Everything is real: gate, approval, runs, their attestations, and the look after each run. Made up is what comes in,
from a fixed seed, and how each version turns out an hour after it is live.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from bench.measure import Result
from bench.workspaces import HEADER, copy, workspace
from cleared.base.clock import format_iso
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.command_runner import run
from cleared.gate.manual_runs import run_command
from cleared.gate.proposals.approval import approve_proposal
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.gate.proposals.submission import propose_changes

WINDOW = 20
"""Runs within which a bad version goes."""
GOOD = 50
SHARE = 11
"""Of 100 lines the last of the good versions asks about so many."""
_START = datetime(2025, 1, 1, 6, tzinfo=UTC)
_APART = timedelta(days=3)

_PROBE = '''"""
name: Probe
trigger: on_demand
"""
told = ctx_event()["payload"] or {{}}
turned = ctx_now() > "{since}"
if told.get("luck", 99) < ({fails} if turned else 2):
    print(1 // 0)
if turned and told.get("number") == {breaks}:
    for file in importer_scan():
        importer_parse(file["name"])
        importer_mark_processed(file["name"])
for luck in told.get("lines", [0, 50]):
    journal_add_double(date=ctx_today(), description="a line", debit_account=5020, credit_account=1010, amount="1.00",
        status="pending-review" if luck < ({share} if turned else 20) else "auto-confirmed", confidence=0.99,
        evidence="version {number}")
git_commit("agent: probe")
'''


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a version turns out. ``share``: of 100 lines it asks about so many; ``fails``: of 100 runs so many;
    ``breaks``: in which run it leaves an invariant broken."""

    share: int = SHARE
    fails: int = 2
    breaks: int = 0


class _Clock:
    """A clock that is put forward."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, instant: datetime) -> None:
        self.instant = instant

    def now(self) -> datetime:
        return self.instant


BAD: Sequence[_Kind] = (
    *(_Kind(share=share) for share in (22, 24, 27, 33)),
    *(_Kind(breaks=3) for _ in range(3)),
    *(_Kind(fails=fails) for fails in (40, 60, 80)),
)


def make_live(at: Host, agent: str, text: str) -> None:
    """Propose and approve a version of an agent, as its owner."""
    path = f"agents/{agent}.py"
    author = Author("bench", is_human=True, is_asked=True)
    proposal, _ = propose_changes(at, [path], texts={path: text.encode()}, message="Another version", author=author)
    with expecting({proposal.folder: read_shown_proposal(at, proposal.folder).digest}):
        approve_proposal(at, proposal.folder, proposal.id)


def good_versions(quick: bool) -> Result:
    """Fifty versions, one after the other, each as good as the one before or a little better: none goes."""
    count = 3 if quick else GOOD
    taken = _run_good_versions(count)[1]
    return Result(
        f"good versions of {count} that are taken back",
        str(taken),
        "—",
        None,
        "0",
        not taken,
        f"{WINDOW} runs of each",
    )


def bad_versions(quick: bool) -> Result:
    """Ten that double the queue, break an invariant on the third run, or fail: each goes within the window."""
    root, _ = _run_good_versions(3 if quick else GOOD)
    kinds = BAD[::4] if quick else BAD
    within = [_count_until_taken(copy(root), number, kind) for number, kind in enumerate(kinds)]
    taken = sum(1 for each in within if each)
    return Result(
        f"bad versions of {len(kinds)} that are taken back within {WINDOW} runs",
        f"{taken}, after {', '.join(str(each) if each else '—' for each in within)} runs",
        "—",
        None,
        str(len(kinds)),
        taken == len(kinds),
    )


@cache
def _run_good_versions(count: int) -> tuple[Path, int]:
    """Books in which these have run, and how many were taken back."""
    root, taken = workspace(), 0
    run(["config", "set", "gate.history_runs", "1", "-C", str(root)])  # what the gate costs is another figure
    for number in range(count):
        kind = _Kind(share=SHARE + (count - 1 - number) // 5)
        taken += _count_until_taken(root, number, kind, _START + number * _APART) > 0
    return root, taken


def _count_until_taken(root: Path, number: int, kind: _Kind, start: datetime | None = None) -> int:
    """After how many of its runs a version was taken back; 0 where all of them came to their end."""
    start = start or _START + GOOD * _APART
    text = _PROBE.format(
        since=format_iso(start + timedelta(hours=1)),
        share=kind.share,
        fails=kind.fails,
        breaks=kind.breaks,
        number=number,
    )
    chance, clock = random.Random(f"{number} {kind}"), _Clock(start)
    host = open_workspace(root, clock=clock, say=lambda _: None)
    with host.keep_executor():
        make_live(host, "probe", text)
        for nth in range(1, WINDOW + 1):
            clock.instant = start + timedelta(hours=2, minutes=nth)
            if nth == kind.breaks:
                row = f"DEBIT,{clock.instant:%m/%d/%Y},A LINE,-1.00,ACH_DEBIT,,"
                (root / "import" / "left.csv").write_text(f"{HEADER}\n{row}\n")
            lines = [chance.randrange(100) for _ in range(chance.randint(5, 40))]
            run_command(host, "probe", data={"number": nth, "luck": chance.randrange(100), "lines": lines})
            if (root / "agents/probe.py").read_text() != text:
                return nth
    return 0

"""What deciding costs: seeing a long queue, one decision, a batch of them."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.durable_steps import write_durably
from bench.measure import Result, compare, seconds
from bench.startup import CLEARED
from bench.workspaces import chase, copy, git, host, place, workspace, write_and_commit
from cleared.cards.card import Card, card_id
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host_cache import HostCache
from cleared.gate.manual_runs import run_now
from cleared.review.card_decisions import confirm_records
from cleared.review.queue_cards import read_cards

CARDS = 10_000
BATCH = 500
MONTH = 100
"""Cards of the month that one decision is about."""
AT = "2025-12-31T12:00:00Z"


def fill_queue() -> Path:
    """A workspace with 10,000 open cards."""
    root = workspace()
    cards = []
    for n in range(CARDS):
        details = {
            "description": f"CORNER SHOP {n:06d}",
            "confidence": "0.0",
            "amount": "12.50",
            "evidence": "no confident match",
            "accounts": [5030, 1010],
        }
        entry = f"2025-01-{n + 1:03d}"
        title = f"2025-01-05 12.50 CORNER SHOP {n:06d}"
        run = "20251231T120000Z-000000"
        cards.append(Card(card_id("entry", entry), "entry", title, AT, run, entry, "ingest", details))

    def stage_cards(decision_context: DecisionContext) -> Decision:
        for card in cards:
            decision_context.context.cards.add_card(card)
        return Decision(commit_messages.cycle_recorded("bench"))

    commit_decision(host(root), "bench", stage_cards)  # so that this machine attests them
    return root


def listing(quick: bool) -> Result:
    """The list of 10,000 open cards, as a command."""
    root = fill_queue()

    def process(*argv: str) -> Callable[[], Callable[[], object]]:
        def act() -> None:
            subprocess.run([CLEARED, *argv], cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        return lambda: act

    return compare(
        f"cleared queue list, {CARDS:,} open cards / cleared --help",
        process("queue", "list"),
        process("--help"),
        1.5,
        5 if quick else 15,
    )


def book_month(cards: int) -> Path:
    """A month with three times as many lines."""
    root = workspace(files={"bank.csv": chase(3 * cards)})
    assert run_now(host(root), "ingest").status == "succeeded"
    return root


PATHS = ("books/2025/01/journal.csv", "queue/2025-12.jsonl", "logs/agent-log-2025-12.csv")


def decision_floor(quick: bool) -> Result:
    """The least that makes as much durable in the same order, without deciding or looking at anything: objects; what
    to do after a kill, new files and index; the branch with its logs; the files in their places."""
    root, ours, theirs = book_month(MONTH), place(), place()
    contents = {path: (root / path).read_bytes() for path in PATHS}
    for each in (ours, theirs):
        each.mkdir()
        git(each, "init", "-q", "-b", "main")
        write_and_commit(each, contents)
    numbers = iter([b"%d\n" % n for n in range(1_000)])

    def least() -> Callable[[], object]:
        number = next(numbers)
        files = {ours / path: data + number for path, data in contents.items()}
        return lambda: write_durably(ours / ".git", files, number)

    def plain() -> Callable[[], object]:
        number = next(numbers)
        return lambda: write_and_commit(theirs, {path: data + number for path, data in contents.items()})

    found = compare(
        "what a decision makes durable, in plain steps / git add + git commit", least, plain, 1, 5 if quick else 25
    )
    return Result(found.name, found.measured, found.baseline, found.ratio, "—", ok=True)


def decision(quick: bool) -> Result:
    """One confirmation in a program that is open, against git for the files it wrote."""
    root, plain = book_month(MONTH), place()
    plain.mkdir()
    git(plain, "init", "-q", "-b", "main")
    session = HostCache(lambda: host(root))
    opened = session()
    waiting = iter([c["id"] for c in read_cards(opened)])
    write_and_commit(plain, {p: (root / p).read_bytes() for p in PATHS})

    def ours() -> Callable[[], object]:
        name = next(waiting)
        return lambda: confirm_records(session(), [name])

    def theirs() -> Callable[[], object]:
        next_files = {p: (root / p).read_bytes() + b"\n" for p in PATHS}
        number = next(numbers)
        return lambda: write_and_commit(plain, {p: data + number for p, data in next_files.items()})

    numbers = iter([b"%d\n" % n for n in range(1_000)])
    return compare(
        "a decision in an open session / git add + git commit of its files", ours, theirs, 1.5, 5 if quick else 25
    )


def batch(quick: bool) -> Result:
    """500 confirmations at once."""
    root, times = book_month(BATCH), []
    names = [c["id"] for c in read_cards(host(root))][:BATCH]
    for _ in range(1 if quick else 5):
        opened = host(copy(root))
        began = time.perf_counter()
        done = confirm_records(opened, names)
        times.append(time.perf_counter() - began)
        assert len(done.records) == BATCH and len(done.cards) == BATCH
    took = statistics.median(times)
    return Result(f"{BATCH} decisions in one commit", seconds(took), "—", None, "2 s", took <= 2)

"""Reading large books, in processor seconds of the process and its children; beside other programs of plain-text
accounting, where they are installed (``ledger`` and ``hledger``, as Debian packages; ``beancount`` from PyPI)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from bench.bulk import SCRIPT, run_command
from bench.measure import Result, seconds
from bench.pace import judge_time, take_paced, time_act
from bench.startup import CLEARED
from bench.workspaces import chase, host, place, use_own_home, workspace
from cleared.books import queries
from cleared.books.exports.journal_export import export_journal
from cleared.books.index.journal_index import EntryFilter, JournalIndex
from cleared.changes.host import Host

ROWS = 100_000
_FORMATS = {"ledger": "hledger", "hledger": "hledger", "bean-check": "beancount"}
"""Program → the format that it reads."""


def balance(quick: bool) -> Result:
    """``journal balance``, when it was asked before."""
    return beside_help(
        "journal balance, 100,000 entries, warm",
        ["journal", "balance"],
        1.5,
        quick,
        peers={"ledger": ["balance"], "hledger": ["balance"]},
    )


def month_list(quick: bool) -> Result:
    """``journal list --month``, likewise."""
    argv = ["journal", "list", "--month", "2025-06"]
    return beside_help("journal list --month, of 100,000 entries", argv, 2, quick)


def whole_list(quick: bool) -> Result:
    """``journal list`` of everything, in memory that does not grow with the books."""
    return _alone("journal list, 100,000 entries", ["journal", "list"], 3, 100, quick, peers={"hledger": ["print"]})


def check_again(quick: bool) -> Result:
    """``check``, when nothing has changed since the books were right."""
    return _alone("check, 100,000 entries, nothing changed", ["check"], 2, 250, quick)


def check_changed(quick: bool) -> Result:
    """``check``, after one more entry: its month is judged."""

    def add_entry(root: Path) -> None:
        words = ["2025-12-31", "a further one", "5020=1.00", "1010=-1.00"]
        subprocess.run([CLEARED, "journal", "add", *words], cwd=root, check=True, capture_output=True)

    return _alone("check, 100,000 entries, one of them new", ["check"], 2, 250, quick, add_entry)


def check_whole(quick: bool) -> Result:
    """``check`` without anything that an earlier one has left."""

    def forget(root: Path) -> None:
        shutil.rmtree(root / ".cleared/books", ignore_errors=True)

    return _alone(
        "check, 100,000 entries, the first time",
        ["check"],
        5,
        250,
        quick,
        forget,
        peers={"hledger": ["check"], "bean-check": []},
    )


def export_hledger(quick: bool) -> Result:
    """``export hledger`` of everything, in memory that does not grow with the books."""
    argv = ["export", "hledger", str(place()), "--force"]
    return _alone("export hledger, 100,000 entries", argv, 5, 150, quick, peers={"hledger": ["print"]})


def reports(quick: bool) -> Result:
    """The slowest of the questions that reports ask of an index that stays open."""
    opened = open_large_books()

    def ask(index: JournalIndex) -> Iterator[Callable[[], object]]:
        quarter = date(2025, 4, 1), date(2025, 6, 30)
        yield lambda: index.sum_accounts(*quarter)
        yield lambda: index.day_balances(through=date(2025, 6, 15)).trial_balance()
        yield lambda: list(index.iter_entries(EntryFilter(text="github inc 0042")))
        yield lambda: list(index.iter_entries(EntryFilter(text="aws"), limit=100))
        yield lambda: list(
            index.iter_postings(EntryFilter(account=5020, start=date(2025, 5, 1), end=date(2025, 5, 10)))
        )

    def ask_all() -> float:
        with queries.open_journal_index(opened) as (index, _books_of_it):
            return max(time_act(question) for question in ask(index))

    first, again = ask_all(), take_paced(ask_all, 2 if quick else 8)
    opened.close()
    return judge_time(
        "a report's question, 100,000 entries, index open",
        again,
        0.05,
        baseline=seconds(first),
        ratio=again.measured / first,
        note="the slowest of six: sums, searches, an account's ledger of ten days; the baseline is the first time",
    )


def open_large_books() -> Host:
    """Books of 100,000 entries, as a process has them that stays open."""
    opened = host(_books())
    opened.stays_open = True
    return opened


def _books() -> Path:
    use_own_home()
    return _make_books()


@cache
def _make_books() -> Path:
    root = workspace(files={"bank.csv": chase(ROWS, days=365)}, agents={"bulk": SCRIPT})
    run_command(root, "agent", "run", "bulk")
    return root


def beside_help(
    name: str, argv: Sequence[str], at_most: float, quick: bool, peers: dict[str, list[str]] | None = None
) -> Result:
    root = _books()
    measure_command([CLEARED, *argv], root)
    sides = [CLEARED, *argv], [CLEARED, "--help"]
    pairs = [[measure_command(side, root)[0] for side in sides] for _ in range(3 if quick else 11)]
    took, baseline = (min(times) for times in zip(*pairs, strict=True))
    ratio = took / baseline
    return Result(
        f"{name} / cleared --help",
        seconds(took),
        seconds(baseline),
        ratio,
        f"≤ {at_most:g}×",
        ratio <= at_most,
        _measure_peers(peers or {}, took),
    )


def _alone(
    name: str,
    argv: Sequence[str],
    most: float,
    most_memory: float,
    quick: bool,
    prepare: Callable[[Path], None] = lambda _: None,
    peers: dict[str, list[str]] | None = None,
) -> Result:
    root = _books()
    measure_command([CLEARED, *argv], root)
    memory = []

    def run() -> float:
        prepare(root)
        took, peak = measure_command([CLEARED, *argv], root)
        memory.append(peak)
        return took

    took = take_paced(run, 1 if quick else 5)
    return judge_time(
        name, took, most, memory=(max(memory), most_memory), note=_measure_peers(peers or {}, took.measured)
    )


_STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def measure_command(argv: Sequence[str], root: Path) -> tuple[float, float]:
    """Processor seconds of a program and its children, and its peak memory in MB."""
    # A child's peak begins at its parent's, so a small program starts it.
    starter = [sys.executable, "-S", "-c", _STARTER, *argv]
    done = subprocess.run(starter, cwd=root, check=True, capture_output=True, text=True)
    code, took, peak = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"{argv} ended with {code}")
    return float(took), int(peak) * (1 if sys.platform == "darwin" else 1024) / 1e6


def _measure_peers(peers: dict[str, list[str]], took: float) -> str:
    """How long other programs take for the same; those that are not installed are left out."""
    said = []
    for program, arguments in peers.items():
        path = shutil.which(program)
        if path is not None:
            file = _export(_FORMATS[program])
            argv = [path, *arguments, str(file)] if program == "bean-check" else [path, "-f", str(file), *arguments]
            try:
                peer, memory = measure_command(argv, file.parent)
            except RuntimeError as error:
                said.append(str(error))
                continue
            said.append(f"{program} {peer:.2f} s, {memory:.0f} MB ({peer / took:.1f}×)")
    return f"others, for the same: {'; '.join(said)}" if said else ""


@cache
def _export(kind: str) -> Path:
    """The books in another program's format."""
    return Path(export_journal(host(_books()), kind, place().with_suffix(f".{kind}"))["file"])

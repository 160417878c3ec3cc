"""Many rows at once, and reading them again."""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Result, seconds
from bench.pace import judge_time, take_paced, time_act
from bench.workspaces import chase, copy, host, workspace
from cleared.books import queries

ROWS = 100_000
PAGE = 5_000
SCRIPT = f'''"""
name: Bulk
trigger: on_demand
"""
for f in importer_scan():
    offset = 0
    txns = importer_parse(f["name"], offset=0, limit={PAGE})
    while txns:
        journal_add_many([
            {{"date": t["date"], "description": t["description"], "debit_account": 5020, "credit_account": 1010,
             "amount": abs(t["amount"]), "reference": t["reference"], "confidence": 0.98, "status": "auto-confirmed"}}
            for t in txns])
        offset = offset + len(txns)
        txns = importer_parse(f["name"], offset=offset, limit={PAGE})
    importer_mark_processed(f["name"])
git_commit("bulk")
None
'''


def many(quick: bool) -> Result:
    """100,000 rows of a year by parts, one commit: the whole command, with the default limits; in processor seconds, as
    the machine may be busy."""
    template = workspace(files={"bank.csv": chase(ROWS, days=365)}, agents={"bulk": SCRIPT})
    runs = []

    def run() -> float:
        runs.append(run_command(copy(template), "agent", "run", "bulk"))
        return runs[-1].host + runs[-1].others

    took = take_paced(run, 1 if quick else 3)
    return judge_time(
        "100,000 rows by journal_add_many, one commit",
        took,
        8,
        memory=(max(usage.host_peak for usage in runs), 350),
        note=f"that is the host; the worker with a part of the rows peaked at "
        f"{max(usage.worker_peak for usage in runs):.0f} MB; "
        f"{statistics.median(usage.others for usage in runs):.1f} s are the worker and git",
    )


_CHILD = """
import atexit, os, resource, sys, threading, time
from pathlib import Path
peak = 0
def watch():  # RUSAGE_CHILDREN would count what a git inherits of this process before it starts
    global peak
    while True:
        for task in Path("/proc/self/task").glob("*/children"):
            for child in task.read_text().split():
                try:
                    if "monty" in os.readlink(f"/proc/{child}/exe"):
                        fields = dict(x.split(":", 1) for x in Path(f"/proc/{child}/status").read_text().splitlines())
                        peak = max(peak, int(fields["VmHWM"].split()[0]))
                except OSError:
                    pass
        time.sleep(0.1)
def tell():
    own, all_ = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = [own.ru_utime + own.ru_stime, all_.ru_utime + all_.ru_stime]
    Path(".cleared/peaks").write_text(" ".join(map(str, (own.ru_maxrss, peak, *spent))))
if sys.platform == "linux":
    threading.Thread(target=watch, daemon=True).start()
atexit.register(tell)
from cleared.cli import main
main()
"""


@dataclass(frozen=True)
class Usage:
    """What a command took: processor seconds of the host and of its worker and git, peaks in MB."""

    host: float
    others: float
    host_peak: float
    worker_peak: float


def run_command(root: Path, *args: str) -> Usage:
    """One command in a process of its own. Fails where the command does."""
    subprocess.run([sys.executable, "-c", _CHILD, *args], cwd=root, check=True, capture_output=True)
    host_kb, worker_kb, host_seconds, others = (float(n) for n in (root / ".cleared/peaks").read_text().split())
    return Usage(host_seconds, others, host_kb * 1024 / 1e6, worker_kb * 1024 / 1e6)


def document(quick: bool) -> Result:
    """100,000 rows by the agent that ``cleared init`` puts into a workspace, a call for each row and a card for each
    third, with the default limits; against a tenth of them. In processor seconds, with the worker's."""
    spent = []
    for rows in (ROWS, ROWS // 10):
        template = workspace(files={"bank.csv": chase(rows, days=365)})
        runs = [run_command(copy(template), "agent", "run", "ingest") for _ in range(1 if quick else 3)]
        spent.append(min(runs, key=lambda usage: usage.host + usage.others))
    large, small = (usage.host + usage.others for usage in spent)
    return Result(
        f"ingest {ROWS:,} rows of a year / {ROWS // 10:,} rows",
        seconds(large),
        seconds(small),
        large / small,
        "≤ 11×",
        large <= 11 * small,
        f"the host peaked at {spent[0].host_peak:.0f} MB, the worker at {spent[0].worker_peak:.0f} MB",
    )


def month_query(quick: bool) -> Result:
    """A month of books that hold 100,000 legs, asked for again in the same process."""
    rows = ROWS // 2
    template = workspace(files={"bank.csv": chase(rows, days=365)}, agents={"bulk": SCRIPT})
    run_command(template, "agent", "run", "bulk")
    opened = host(template)

    def ask() -> float:
        return time_act(lambda: queries.read_journal(opened, month="2025-06"))

    first, again = ask(), take_paced(ask, 2 if quick else 8)
    return judge_time(
        "month query over 100,000 legs, second time",
        again,
        0.05,
        baseline=seconds(first),
        ratio=again.measured / first,
        note="the baseline is the first time",
    )

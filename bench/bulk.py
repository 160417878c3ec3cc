"""Many rows at once, and reading them again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Result, seconds
from bench.workspaces import chase, copy, host, workspace
from cleared import queries

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
    """100,000 rows of a year in ten calls, one commit: the whole command, with the default limits.

    Ten calls and not one, because a script has 512 MB, and a list of so many dicts beside the rows is more.
    """
    template = workspace(files={"bank.csv": chase(ROWS, days=365)}, agents={"bulk": SCRIPT})
    found = [fill_books(copy(template)) for _ in range(1 if quick else 3)]
    took, peak, worker = sorted(found)[len(found) // 2]
    return Result(
        "100,000 rows by journal_add_many, one commit", f"{took:.1f} s, {peak:.0f} MB", "—", None, "10 s, 500 MB",
        took <= 10 and peak <= 500, f"that is the host; the worker with the script's data peaked at {worker:.0f} MB",
    )  # fmt: skip


_CHILD = """
import atexit, resource, sys
from pathlib import Path
def tell():
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    Path(".cleared/peaks").write_text(" ".join(map(str, peaks)))
atexit.register(tell)
from cleared.cli import main
main()
"""


def fill_books(root: Path) -> tuple[float, float, float]:
    """``cleared agent run bulk``: its seconds, its peak memory and its largest child's, in MB."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _CHILD, "agent", "run", "bulk"], cwd=root, check=True, capture_output=True)
    took = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    host, worker = (int(peak) * unit / 1e6 for peak in (root / ".cleared/peaks").read_text().split())
    return took, host, worker


def month_query(quick: bool) -> Result:
    """A month of books that hold 100,000 legs, asked for again in the same process."""
    rows = ROWS // 2
    template = workspace(files={"bank.csv": chase(rows, days=365)}, agents={"bulk": SCRIPT})
    fill_books(template)
    times = []
    opened = host(template)
    for _ in range(3 if quick else 9):
        began = time.perf_counter()
        found = queries.read_journal(opened, month="2025-06")
        times.append(time.perf_counter() - began)
    again = sorted(times[1:])[len(times[1:]) // 2]
    return Result(
        "month query over 100,000 legs, second time", seconds(again), seconds(times[0]), again / times[0], "≤ 50 ms",
        again <= 0.05, f"{len(found)} entries in the month; the baseline is the first time",
    )  # fmt: skip

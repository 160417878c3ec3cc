"""What a run reads and writes does not grow with the books: counted in bytes, so that no clock or machine matters."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from harness import Workspace, chase

from cleared.base.csv_text import format_record
from cleared.books.ledger.bank_lines import LINE_COLUMNS, MATCH_COLUMNS
from cleared.books.ledger.entry import HEADER

MEASURE = """
import atexit, os, sys
from pathlib import Path
from cleared.__main__ import main
from cleared.git import known_files

known_files._SETTLED_SECONDS = 0  # else it reads again what the test has just written, which no old books have

def count():  # of this process and the programs that it has waited for
    found = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(found["rchar"]) + int(found["wchar"])

sys.argv[0] = "cleared"
before = count()
atexit.register(lambda: os.write(2, f"bytes {count() - before}".encode()))
main()
"""
LINES = 400
"""Of each month."""


def write_past(ws: Workspace, *months: tuple[int, int]) -> int:
    """Books of past months, as if they had been made run by run; returns their size."""
    files: dict[str, list[str]] = {}
    for month in months:
        name = f"{month[0]}-{month[1]:02d}"
        lines = files[f"books/bank/checking/{name}.csv"] = [format_record(LINE_COLUMNS)]
        matches = files[f"books/bank/matches-{name}.csv"] = [format_record(MATCH_COLUMNS)]
        journal = files[f"books/{month[0]}/{month[1]:02d}/journal.csv"] = [format_record(HEADER)]
        for n in range(LINES):
            day = date(*month, 1) + timedelta(days=n * 28 // LINES)
            mark = hashlib.sha256(f"{name} {n}".encode()).hexdigest()  # git compresses what is alike
            line, entry, text = f"f1:{mark[:24]}", f"{name}-{n + 1:03d}", f"SHOP NUMBER {n} {mark[24:32]}"
            lines.append(f"{line},{day},,-4.00,USD,{text},,,posted,{n:064x},{n + 2},1,,ACH_DEBIT\n")
            matches.append(f"{line},{entry}b,-4.00\n")
            for leg, account, debit, credit in (("a", 5030, "4.00", ""), ("b", 1010, "", "4.00")):
                journal.append(
                    f"{entry}{leg},{day},{account},{text},{debit},{credit},,{line},0.90,user-confirmed,,,,\n"
                )
    for path, rows in files.items():
        ws.put(path, "".join(rows))
    ws.commit(*files)
    return sum(len("".join(rows)) for rows in files.values())


def count_bytes(ws: Workspace, *argv: str) -> int:
    """The bytes that a command reads and writes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *argv], cwd=ws.root, env=os.environ, capture_output=True, text=True, check=True
    )
    return int(done.stderr.rpartition("bytes ")[2])


def count_day(ws: Workspace, day: int) -> tuple[int, int]:
    """Those of a run over a small file of this day, and of a decision about what it asks."""
    ws.drop(f"{day}.csv", chase((f"01/{day:02d}/2025", f"CORNER SHOP {day}", f"-4.{day:02d}")))
    run = count_bytes(ws, "agent", "run", "ingest")
    (card,) = ws.json("queue", "list")
    return run, count_bytes(ws, "queue", "approve", card["id"])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this system does not count bytes")
def test_a_run_and_a_decision_read_and_write_no_more_after_three_years(ws: Workspace) -> None:
    """Row I11: after half a year they look back as far as they ever do."""
    write_past(ws, *((2024, month) for month in range(7, 13)))
    new = [count_day(ws, day) for day in (1, 2, 3)][-1]
    past = write_past(ws, *((year, month) for year in (2021, 2022, 2023) for month in range(1, 13)))
    old = [count_day(ws, day) for day in (4, 5, 6)][-1]
    assert {found["check"] for found in ws("check", "--json").json["violations"]} == {"provenance"}, "it is right books"
    assert past > 6_000_000, "else there is nothing to leave alone"
    for before, after in zip(new, old, strict=True):
        assert after - before < 200_000, f"{new} bytes, and {old} beside {past}: git's index has 108 files more"

"""hledger and beancount, as programs: what they make of a file. Tests that need one say so where it is missing."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest


def run_hledger(journal: Path, *argv: str) -> str:
    """What ``hledger ARGV`` prints about a journal; the test fails where it refuses."""
    return _run([_find_program("hledger", "apt-get install hledger"), "-f", str(journal), *argv])


def read_hledger_balances(journal: Path) -> dict[str, Decimal]:
    """Name of each account that was posted to → its balance."""
    rows = csv.reader(io.StringIO(run_hledger(journal, "bal", "-N", "--flat", "-E", "-O", "csv")))
    next(rows)
    return {name: Decimal(balance.split(" ")[0]) for name, balance in rows}


def check_beancount(file: Path) -> str:
    """What ``bean-check`` says; empty where it accepts the file."""
    program = _find_program("bean-check", "pip install '.[dev]'")
    return subprocess.run([program, "--no-cache", str(file)], capture_output=True, text=True, check=False).stderr


def _run(argv: list[str]) -> str:
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _find_program(name: str, remedy: str) -> str:
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.is_file() else shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed, so its view of exports is not compared: {remedy}")
    return program

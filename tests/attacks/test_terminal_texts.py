"""Texts of banks do not steer the terminal on which a report is printed; a file has them as they are."""

from __future__ import annotations

import pytest
from harness import Workspace, chase
from terminals import run_on_terminal

HOSTILE = "RED \x1b[31m \x1b]0;pwn\x07 \u202eX"


@pytest.mark.parametrize("format", ["csv", "json", "table"])
def test_a_report_on_a_terminal_is_escaped(ws: Workspace, format: str) -> None:
    ws.drop("january.csv", chase(("01/03/2025", HOSTILE, "-4.00")))
    ws.run("ingest")
    code, shown = run_on_terminal(ws.root, ["report", "ledger", "--format", format], [])
    assert code == 0 and "RED" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.replace("\x1b[0m", "")), repr(shown)
    assert "\x1b[31m" in ws.ok("report", "ledger", "--format", "csv").out

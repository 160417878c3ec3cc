"""Rows of the log that wait for the next commit."""

from __future__ import annotations

import csv
import io

from harness import Workspace

from cleared.changes.agent_log import MAX_WAITING_BYTES, add_waiting_rows, read_waiting_rows
from cleared.changes.workspace_opening import open_workspace


def test_the_oldest_rows_go_where_too_many_wait(ws: Workspace) -> None:
    """Whole ones: a text of one may have several lines. What fits stays."""
    host = open_workspace(ws.root)
    rows = [f'2025-02-10T06:00:00Z,probe,note,"row {n}\nand ""more"" of it",,run:x\n' for n in range(30_000)]
    add_waiting_rows(host, "".join(rows[:1_000]))
    assert read_waiting_rows(host).decode() == "".join(rows[:1_000])
    add_waiting_rows(host, "".join(rows[1_000:]))
    kept = read_waiting_rows(host)
    assert MAX_WAITING_BYTES - 2 * len(rows[-1]) < len(kept) <= MAX_WAITING_BYTES
    found = list(csv.reader(io.StringIO(kept.decode(), newline="")))
    assert kept.decode() == "".join(rows[-len(found) :])

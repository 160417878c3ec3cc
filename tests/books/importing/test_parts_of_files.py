"""Large bank files: read by parts, and with the time that their size gives."""

from __future__ import annotations

import pytest
from harness import Workspace, chase, refused
from msgspec.structs import replace

from cleared.sandbox.effective_limits import BYTES_A_SECOND, add_reading_time
from cleared.sandbox.header import Header
from cleared.sandbox.limits import Limits
from cleared.workspace.settings.model import Sandbox

POST = """
            journal_add_double(date=t["date"], description=t["description"], debit_account=5020, credit_account=1010,
                amount=abs(t["amount"]), reference=t["reference"])"""
BY_PARTS = f"""
sizes = []
for f in importer_scan():
    txns = importer_parse(f["name"], limit=2)
    while txns:
        sizes.append(len(txns))
        for t in txns:{POST}
        txns = importer_parse(f["name"], offset=sum(sizes), limit=2)
    importer_mark_processed(f["name"])
git_commit("by parts")
sizes
"""
ROWS = [(f"01/{day:02}/2025", f"SHOP {day}", f"-{day}.00") for day in range(1, 6)]


def test_a_file_by_parts_is_what_it_is_whole(ws: Workspace) -> None:
    """Each row once, in order; one commit; and nothing again the second time."""
    ws.drop("bank.csv", chase(*ROWS))
    assert ws.script(BY_PARTS)["result"] == [2, 2, 1]
    entries = ws.json("journal", "list")
    assert sorted(e["description"] for e in entries) == [f"SHOP {day}" for day in range(1, 6)]
    ws.ok("check")
    ws.drop("again.csv", chase(*ROWS))
    assert ws.run("probe")["result"] == []


def test_rows_of_parts_that_were_not_asked_for_stop_the_commit(ws: Workspace) -> None:
    ws.drop("bank.csv", chase(*ROWS))
    result = ws.script(BY_PARTS.replace("while txns:", "if txns:"), code=1)
    assert "neither posted, held nor ignored" in str(result["error"]) and not ws.json("journal", "list")


@pytest.mark.parametrize("given", ["offset=-1", "limit=-2"])
def test_a_part_before_the_first_row_is_refused(ws: Workspace, given: str) -> None:
    ws.drop("bank.csv", chase(*ROWS))
    ws.agent("probe", f'importer_parse("bank.csv", {given})\nNone\n')
    refused(ws("agent", "run", "probe"), 1, "Count from 0")


def test_waiting_files_give_time_up_to_the_cap() -> None:
    """Not where a header asks for a time: a person has approved that one."""
    usual, sandbox = Limits(seconds=30.0), Sandbox()

    def seconds(size: int, header: Header | None = None, **settings: float) -> float:
        return add_reading_time(usual, replace(sandbox, **settings), header, size).seconds

    assert seconds(BYTES_A_SECOND - 1) == 30 and seconds(10 * BYTES_A_SECOND) == 40
    assert seconds(10**12) == sandbox.timeout_cap and seconds(10**12, timeout_cap=20.0) == 30
    assert seconds(10**9, Header("A", timeout=5.0)) == 30 and seconds(10**9, Header("A")) > 30

"""``cleared agent shadow``: a proposed version beside the live one, without side effects. N8."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Workspace, refused, take_ok
from proposing import live, propose, write

from cleared.gate import shadow
from cleared.workspace.lock import writer_lock

POST = 'journal_add_double(date="2025-01-03", description="coffee", debit_account={}, credit_account=1010, amount="1")'
ODD = "5030 if ctx_event()['payload'] == {'odd': True} else 5020"
SENDS = 'notify_send("hello", "there")\nctx_emit("probe.done")\n'


@pytest.fixture
def beside(ws: Workspace) -> Workspace:
    """A live version, and a proposed one that books odd payloads elsewhere, sends a message and emits an event."""
    live(ws, f"{POST.format(5020)}")
    write(ws, f"{SENDS}{POST.format(ODD)}")
    propose(ws, "probe")
    ws.ok("agent", "shadow", "start", "P2", "--days", "14")
    return ws


def status(ws: Workspace) -> dict[str, Any]:
    (found,) = ws.json("agent", "shadow", "status")
    assert isinstance(found, dict)
    return found


def test_n8_it_runs_on_every_real_event_and_nothing_of_it_is_kept(beside: Workspace) -> None:
    ws = beside
    assert status(ws)["compared"] == 0 and status(ws)["agreement"] is None
    first = ws.run("probe")["run_id"]
    head = ws.head()
    odd = ws.run("probe", "--data", '{"odd": true}')["run_id"]
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1", "the live run alone"
    assert "probe.done" not in ws.git("grep", "-c", "probe.done", "--", "logs", check=False)
    found = status(ws)
    assert found["compared"] == 2 and found["same"] == 0, "it emits an event that the live one does not"
    assert [each["run"] for each in found["differing"]] == [first, odd]
    assert "2025-01-03 coffee 1.00: 5020 Software and subscriptions → 5030 Uncategorised expense" in str(
        found["differing"][1]["what"]
    )
    assert not any("5030" in text for text in found["differing"][0]["what"])
    assert ws.json("check")["ok"]
    card = next(c for c in ws.cards() if c["kind"] == "proposal")
    shown = ws.ok("agent", "diff", "P2", "--impact").out
    assert "The same in 0 of 2 runs: 0.0 %" in shown and odd in shown and card["id"]
    ws.ok("agent", "shadow", "stop", "P2")
    ws.run("probe")
    assert status(ws)["compared"] == 2 and status(ws)["ended"] == "stopped"


def test_n8_agreement_and_the_end_by_approval(ws: Workspace) -> None:
    live(ws, POST.format(5020))
    write(ws, POST.format(5020) + "\nlen(journal_query(limit=1))")
    propose(ws, "probe")
    ws.ok("agent", "shadow", "start", "P2")
    ws.run("probe")
    assert status(ws)["agreement"] == 1.0
    take_ok(ws, "agent", "approve", "P2")
    ws.run("probe")
    assert status(ws)["ended"] == "it was approved" and status(ws)["compared"] == 1


def test_n8_what_cannot_be_a_shadow(ws: Workspace) -> None:
    write(ws, POST.format(5020))
    propose(ws, "probe")
    refused(ws("agent", "shadow", "start", "P1"), 2, "no agent that is live")
    refused(ws("agent", "shadow", "stop", "P1"), 2, "beside nothing")
    refused(ws("agent", "shadow", "start", "P9"), 2)


def test_n8_a_proposal_that_somebody_edits_is_run_no_more(beside: Workspace) -> None:
    ws = beside
    path = next(p for p in ws.git("ls-files", "queue/proposals").split() if "/P2-" in p and p.endswith(".py"))
    ws.put(path, ws.read(path).replace("coffee", "gold"))
    ws.commit(path)
    ws.run("probe")
    assert status(ws)["ended"] == "the proposal is another one by now" and status(ws)["compared"] == 0


def test_n8_two_at_once_lose_nothing_of_each_other(beside: Workspace) -> None:
    """Who reads and writes what shadows have seen has it alone; a run that comes in between is gone through later."""
    ws = beside
    ws.config("lock.wait_seconds=0")
    with writer_lock(ws.root / ".cleared", 0.0, "another run", name="shadow.lock"):
        assert ws.process("agent", "run", "probe").code == 0
        refused(ws.process("agent", "shadow", "stop", "P2"), 5, "another run")
    assert status(ws)["compared"] == 0 and not status(ws)["ended"]
    ws.run("probe")
    assert status(ws)["compared"] == 2


class Killed(BaseException):
    """What is not caught on the way out, as a kill is not."""


def test_n8_a_kill_before_it_is_written_loses_nothing_and_counts_nothing_twice(
    beside: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its one write is atomic: killed before, the run is gone through once more."""
    ws = beside

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(shadow, "write_atomic", die)
        ws("agent", "run", "probe")
    assert status(ws)["compared"] == 0
    ws.run("probe")
    assert status(ws)["compared"] == 2
    assert ws.json("check")["ok"]


def test_n8_a_damaged_record_is_said_and_stops_no_run(beside: Workspace) -> None:
    beside.put(".cleared/shadow.json", '{"x": [')
    assert "shadow.json is damaged" in beside.ok("agent", "shadow", "status").err
    assert beside.run("probe")["status"] == "succeeded"
    beside.ok("agent", "shadow", "start", "P2")
    assert status(beside)["compared"] == 0

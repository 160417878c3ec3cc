"""Runs and the gate do for the records of another domain what they do for entries."""

from __future__ import annotations

from harness import Workspace
from modelled import open_host
from notes_domain import HEADER, PATH

from cleared.gate.examination import Gate
from cleared.runs.execution import run_agent

MAY_PUT = "grants: [notes.write]\n"


def test_what_a_run_puts_is_in_its_result_and_its_commit(noted: Workspace) -> None:
    noted.agent("probe", 'note_put("one")\nnote_put("two")', MAY_PUT)
    host = open_host(noted.root)
    tried = run_agent(host, "probe", dry_run=True)
    assert tried.to_json_object()["notes"] == [{"note_id": "N1", "text": "one"}, {"note_id": "N2", "text": "two"}]
    assert tried.to_json_object()["entries"] == [] and not (noted.root / PATH).exists()
    made = run_agent(host, "probe")
    assert made.error is None and len(made.commits) == 1 and list(made.records["notes"]) == ["N1", "N2"]
    assert noted.read(PATH) == f"{HEADER}N1,one\nN2,two\n"
    assert "succeeded: 2 notes, 0 cards" in noted.read("logs/agent-log-2025-02.csv")


def test_what_is_wrong_with_its_records_stops_the_run(noted: Workspace) -> None:
    noted.agent("probe", 'note_put("")', MAY_PUT)
    made = run_agent(open_host(noted.root), "probe")
    assert made.error is not None and "the note N1 says nothing" in made.error.message
    assert not (noted.root / PATH).exists() and made.to_json_object()["notes"] == []


def test_the_gate_compares_its_records(noted: Workspace) -> None:
    noted.agent("probe", 'note_put("one")', MAY_PUT)
    host = open_host(noted.root)
    assert run_agent(host, "probe").error is None
    path = "agents/probe.py"
    texts = {path: noted.read(path).replace("one", "other").encode()}
    with Gate(host) as gate:
        report = gate.examine(gate.gather_candidate([path], texts=texts))
    impact = report.total_impact()
    assert report.passed and impact.records["notes"] == 2, "one is gone, one has come"
    assert [entry["change"] for entry in impact.entries] == ["removed", "added"]

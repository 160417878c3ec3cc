"""``cleared agent propose``, ``diff``, ``reject``: what gets as far as a card, and what it says as data."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import Any

import pytest
from harness import Workspace, chase, refused, take_ok, take_shown, unchanged
from proposing import edit, findings, history, live, proposal, propose, text, threshold, write

POST = 'journal_add_double(date="2025-01-03", description="x", debit_account={}, credit_account=1010, amount="1")'

# -- what a proposal is -----------------------------------------------------------------------------------------------


def test_a_proposal_is_one_commit_and_leaves_the_live_script(ws: Workspace) -> None:
    committed = ws.git("show", "HEAD:agents/ingest.py")
    threshold(ws)
    before = ws.state()
    found = propose(ws, "ingest", "-m", "ask more")
    after = ws.state()
    folder = f"queue/proposals/{proposal(ws, 'P1')['folder']}"
    assert after.changed_since(before) == {
        f"{folder}/proposal.json",
        f"{folder}/files/agents/ingest.py",
        "queue/2025-02.jsonl",
        "logs/agent-log-2025-02.csv",
        "logs/attestations-2025-02.jsonl",
    }
    assert ws.git("show", "HEAD:agents/ingest.py") == committed
    assert ws.git("log", "-1", "--format=%s").strip() == "agent: P1 proposed: Change ingest"
    assert ws.trailers()["Proposed"] and ws.trailers()["Proposal"].startswith("P1-")
    assert ws.git("rev-list", "--count", f"{before.head}..HEAD").strip() == "1"
    assert (found["id"], found["status"], found["message"]) == ("P1", "open", "ask more")
    assert found["behaviour"]["history"] == {
        "runs": 0,
        "changed": 0,
        "added": 0,
        "removed": 0,
        "entries": [],
        "not_comparable": [],
        "failed": [],
        "outputs": [],
        "before": {},
        "after": {},
        "new_primitives": [],
        "calls": {"before": {}, "after": {}},
    }
    assert ws.run("ingest")["edited"] == ["agents/ingest.py"], "what is live stays live"


def test_d1_what_does_not_pass_is_not_proposed(ws: Workspace) -> None:
    """D1: a failing stage ends it: exit 1 with every finding, no proposal, no commit, no card."""
    write(ws, "import os\naccounts_get(9999)")
    with unchanged(ws):
        done = ws("agent", "propose", "probe", "--json")
    assert findings(done) == ["import", "unknown-account"]
    stages = done.json["stages"]["agents/probe.py"]
    assert [s["stage"] for s in stages] == [
        "lint",
        "traps",
        "types",
        "rehearsal",
        "invariants",
        "watched",
        "behaviour",
        "regression",
    ]
    assert {s["status"] for s in stages[3:]} == {"skipped"}
    assert {"file", "line", "column", "rule", "why", "message", "remedy"} <= set(done.json["findings"][0])
    assert "nothing was proposed" in done.err and "agents/probe.py:7" in done.err
    with unchanged(ws):
        assert "✗ language" in ws("agent", "propose", "probe").out


def test_a_name_that_differs_only_in_capitals_is_refused(ws: Workspace) -> None:
    """On macOS and Windows both names are one file: whoever proposes one would change the other there."""
    write(ws, "1", name="Ingest")
    with unchanged(ws):
        refused(ws("agent", "propose", "Ingest"), 2, "agents/Ingest.py differs from agents/ingest.py only")


BAD = [
    pytest.param("n = 9998\n" + POST.format("n + 1"), "rehearsal", id="fails when run"),
    pytest.param(
        'for f in importer_scan():\n    importer_parse(f["name"])\n    importer_mark_processed(f["name"])',
        "invariants",
        id="loses bank lines",
    ),
    pytest.param("if not ctx_dry_run():\n    " + POST.format(5020), "watched", id="D16"),
    pytest.param("while True:\n    pass", "rehearsal", id="never ends"),
    pytest.param("x = [0]\nwhile True:\n    x = x + x", "rehearsal", id="takes all memory"),
]


@pytest.mark.parametrize(("body", "rule"), BAD)
def test_d16_what_only_a_rehearsal_shows_is_not_proposed(ws: Workspace, body: str, rule: str) -> None:
    """D16: also what acts differently when ``ctx_dry_run()`` is true; D2: nothing is written."""
    write(ws, body, header="timeout: 1\nmemory_mb: 64\n")
    with unchanged(ws):
        assert rule in findings(ws("agent", "propose", "probe", "--json"))


def test_d16_an_existing_agent_is_watched_too(ws: Workspace) -> None:
    """D16: real files and the made-up month are rehearsed with ``ctx_dry_run()`` true and false."""
    edit(ws, "agents/ingest.py", "if confidence >= threshold:", "if confidence >= threshold and ctx_dry_run():")
    with unchanged(ws):
        assert findings(ws("agent", "propose", "ingest", "--json")) == ["watched"]


# -- several files ----------------------------------------------------------------------------------------------------


def test_changed_shared_scripts_come_along(ws: Workspace) -> None:
    ws.put("scripts/inner.py", 'accounts_get(1010)["account_name"]\n')
    ws.put("scripts/outer.py", 'script_run("inner")\n')
    ws.put("scripts/unused.py", "1\n")
    write(ws, 'script_run("outer")')
    found = propose(ws, "probe")
    assert [f["path"] for f in found["files"]] == ["agents/probe.py", "scripts/inner.py", "scripts/outer.py"]
    assert found["grants"]["agents/probe.py"] == ["accounts_get", "script_run"]
    take_ok(ws, "agent", "approve", "P1")
    assert ws.run("probe")["result"] == "Business checking"
    assert ws.git("status", "--porcelain").split() == ["??", "scripts/unused.py"]


def test_a_shared_script_by_itself_is_rehearsed_by_the_agents_that_run_it(ws: Workspace) -> None:
    ws.put("scripts/inner.py", "1010\n")
    live(ws, 'accounts_get(script_run("inner"))')
    ws.put("scripts/inner.py", "9999\n")
    with unchanged(ws):
        done = ws("agent", "propose", "scripts/inner.py", "--json")
        assert set(findings(done)) == {"rehearsal"}
        assert done.json["findings"][0]["file"] == "agents/probe.py"
    ws.put("scripts/inner.py", "1020\n")
    found = propose(ws, "scripts/inner.py")
    assert [f["path"] for f in found["files"]] == ["scripts/inner.py"]
    assert any("used by probe" in line for line in found["card"])


def test_one_bad_file_keeps_all_from_being_proposed(ws: Workspace) -> None:
    write(ws, "1", "good")
    write(ws, "import os", "bad")
    with unchanged(ws):
        assert findings(ws("agent", "propose", "good", "bad", "--json")) == ["import"]


def test_agents_settings_and_a_case_are_approved_as_one(ws: Workspace) -> None:
    ws.drop("january.csv")
    run = ws.run("ingest")["run_id"]
    case = ws.json("test", "add", run, "-m", "January stays")["path"]
    edit(ws, case, "January stays", "January stays as it was")
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    edit(ws, "config.yaml", "auto_confirm: 0.95", "auto_confirm: 0.94")
    write(ws, 'config_get("thresholds.auto_confirm")')
    found = propose(ws, "ingest", "probe", "config.yaml", case)
    assert [f["path"] for f in found["files"]] == ["agents/ingest.py", "agents/probe.py", "config.yaml", case]
    assert [f["kind"] for f in found["files"]] == ["agent", "agent", "config", "case"]
    before = ws.head()
    shown = take_ok(ws, "agent", "approve", "P1", "--json").json
    assert shown["files"] == [f["path"] for f in found["files"]]
    assert ws.git("rev-list", "--count", f"{before}..HEAD").strip() == "1"
    assert ws.run("probe")["result"] == 0.94
    assert {c["state"] for c in ws.json("test", "list")} == {"approved"}
    ws.in_order()


def test_the_gates_own_rules_change_alone(ws: Workspace) -> None:
    write(ws, "x = round(1.005, 2)")
    ws.put("config.yaml", ws.read("config.yaml") + "\ngate:\n  rules:\n    round-money: warn\n")
    with unchanged(ws):
        assert "policy-alone" in findings(ws("agent", "propose", "probe", "config.yaml", "--json"))
        assert "round-money" in findings(ws("agent", "propose", "probe", "--json")), "not before it is approved"
    found = propose(ws, "config.yaml")
    assert "gate.rules" in found["card"][0]
    take_ok(ws, "agent", "approve", "P1")
    assert any("Attention" in line for line in propose(ws, "probe")["card"])


def test_an_agent_can_be_proposed_away(ws: Workspace) -> None:
    path = live(ws, "1")
    (ws.root / path).unlink()
    found = propose(ws, "probe")
    assert found["title"] == "Remove agent probe" and "will not run any more" in found["card"][1]
    take_ok(ws, "agent", "approve", "P2")
    assert ws.git("ls-tree", "HEAD", path) == ""
    refused(ws("agent", "run", "probe"), 2, "no agent")


def test_a_secret_does_not_get_into_the_repository_by_a_proposal(ws: Workspace) -> None:
    ws.config("notifications.smtp_password=sk-planted-0123456789")
    edit(ws, "config.yaml", "auto_confirm: 0.95", "auto_confirm: 0.94")
    with unchanged(ws):
        refused(ws("agent", "propose", "config.yaml"), 3, "config.yaml", "a secret that is not committed")
    edit(ws, "config.yaml", "sk-planted-0123456789", "null")
    take_ok(ws, "agent", "approve", propose(ws, "config.yaml")["id"])


def test_targets_that_are_none(ws: Workspace) -> None:
    with unchanged(ws):
        for target in ("nobody", "../x", "queue/2025-02.jsonl", "agents/../config.yaml", ".git/config", "scripts/x.py"):
            refused(ws("agent", "propose", target), 2)
        refused(ws("agent", "propose", "ingest"), 2, "nothing to propose")
        refused(ws("agent", "propose"), 2)
        refused(ws("agent", "diff", "P9"), 2, "no proposal")
        refused(take_shown(ws, "agent", "approve", "P9"), 2, "no proposal", "Open: none")


# -- what it is compared with -----------------------------------------------------------------------------------------


def test_what_was_committed_by_hand_is_refused_and_can_be_proposed(ws: Workspace) -> None:
    """A commit is no approval: run says so (3) with the command; the comparison is with the version approved last."""
    history(ws)
    threshold(ws)
    ws.commit("agents/ingest.py", message="agent: ingest\n\nApproved-by: me\nProposal: P1")
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 3, "cleared agent propose ingest", "nobody has approved")
    found = propose(ws, "ingest")["behaviour"]["history"]
    assert (found["runs"], found["changed"]) == (2, 2)
    take_ok(ws, "agent", "approve", "P1")
    ws.run("ingest")


def test_an_approved_version_that_is_not_committed_needs_no_proposal(ws: Workspace) -> None:
    """After a commit by hand the text that was approved once runs when it is committed again; after a removal not."""
    path = live(ws, "1")
    ws.commit(write(ws, "2"))
    write(ws, "1")
    with unchanged(ws):
        refused(ws("agent", "propose", "probe"), 2, "as it was approved", f"git add {path}")
    ws.commit(path)
    ws.run("probe")
    (ws.root / path).unlink()
    take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    with unchanged(ws):
        refused(ws("agent", "propose", "probe"), 2, "no agent")
    write(ws, "1")
    assert "the script was removed" in " ".join(propose(ws, "probe")["card"])


def test_the_same_change_is_the_same_proposal(ws: Workspace) -> None:
    threshold(ws)
    first = propose(ws, "ingest")
    with unchanged(ws):
        assert propose(ws, "ingest", "-m", "again") == first
        assert "Proposed before as P1" in ws.ok("agent", "propose", "ingest").err


def test_a_newer_change_takes_the_place_of_an_open_one(ws: Workspace) -> None:
    write(ws, "1")
    propose(ws, "probe")
    write(ws, "2")
    assert propose(ws, "probe")["id"] == "P2"
    assert proposal(ws, "P1")["decision"]["status"] == "superseded"
    assert [c["title"] for c in ws.cards()] == ["P2: New agent probe"]
    assert "It takes the place of P1" in " ".join(proposal(ws, "P2")["card"])
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 3, "superseded", "P2 took its place")


def test_a_program_does_not_take_the_place_of_a_persons_change(ws: Workspace) -> None:
    """Both are asked about; whichever is approved first makes the other stale."""
    write(ws, "1")
    propose(ws, "probe")
    for number, waiting in (("2", ["P1", "P2"]), ("3", ["P1", "P3"])):
        write(ws, number)
        propose(ws, "probe", "--author", "a model")
        assert [c["title"].split(":")[0] for c in ws.cards()] == waiting
    write(ws, "4")
    propose(ws, "probe", "--author", "another model")
    assert [c["title"].split(":")[0] for c in ws.cards()] == ["P1", "P3", "P4"], "nor of another program's"
    take_ok(ws, "agent", "approve", "P3")
    write(ws, "1")
    refused(take_shown(ws, "agent", "approve", "P1"), 3, "stale", "another approved version")


def test_two_clones_may_both_have_a_first_proposal(ws: Workspace) -> None:
    """Merged, a number is two proposals: the name in full says which."""
    write(ws, "1")
    propose(ws, "probe")
    folder = str(proposal(ws, "P1")["folder"])
    other = "P1-00000000"
    shutil.copytree(ws.root / "queue/proposals" / folder, ws.root / "queue/proposals" / other)
    ws.commit(f"queue/proposals/{other}")
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 2, folder, other)
        assert "+1" in ws.ok("agent", "diff", folder).out
    take_ok(ws, "agent", "approve", folder)


# -- your own history -------------------------------------------------------------------------------------------------


def entries(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Which entry, its status before and after."""
    return [(e["entry_id"], e["before"]["status"], e["after"]["status"]) for e in found["entries"]]


def test_d14_a_changed_threshold_names_exactly_the_past_entries(ws: Workspace) -> None:
    """D14: a higher threshold asks about AWS (0.96) where it was booked; no other entry is named."""
    history(ws)
    threshold(ws)
    found = propose(ws, "ingest")
    past = found["behaviour"]["history"]
    assert (past["runs"], past["changed"], past["added"], past["removed"]) == (2, 2, 0, 0)
    assert entries(past) == [
        ("2025-01-003", "auto-confirmed", "pending-review"),
        ("2025-02-002", "auto-confirmed", "pending-review"),
    ]
    assert {e["entry_id"] for e in past["entries"]} == {e["entry_id"] for e in ws.entries("--text", "AWS")}
    shown = ws.ok("agent", "diff", "P1", "--impact").out
    assert re.findall(r"2025-0\d-\d\d\d ", shown) == ["2025-01-003 ", "2025-02-002 "]
    assert "Over the last 2 runs, 2 entries would differ." in shown


def test_d14_a_changed_vendor_rule_names_its_entries(ws: Workspace) -> None:
    """D14: another account for AWS, a new rule for coffee."""
    history(ws)
    edit(
        ws,
        "agents/ingest.py",
        '("AWS", "Amazon Web Services", 5020, 0.96)',
        '("COFFEE", "Coffee", 5040, 0.99), ("AWS", "Amazon Web Services", 5040, 0.96)',
    )
    past = propose(ws, "ingest")["behaviour"]["history"]
    assert [e["entry_id"] for e in past["entries"]] == ["2025-01-003", "2025-01-004", "2025-02-002"]
    assert past["entries"][0]["after"]["accounts"] == "5040:+45.10 1010:-45.10"


def test_d14_a_changed_setting_names_its_entries(ws: Workspace) -> None:
    """D14: the threshold in config.yaml, which the agent reads."""
    history(ws)
    edit(ws, "config.yaml", "auto_confirm: 0.95", "auto_confirm: 0.97")
    found = propose(ws, "config.yaml")
    assert [e["entry_id"] for e in found["behaviour"]["history"]["entries"]] == ["2025-01-003", "2025-02-002"]
    assert "The setting thresholds.auto_confirm becomes 0.97 (it is 0.95)." in found["card"]


def test_at_most_twenty_differences_are_shown_and_all_are_data(ws: Workspace) -> None:
    ws.drop("many.csv", chase(*[(f"01/{d:02}/2025", f"AWS {d}", f"-{d}.00") for d in range(1, 29)]))
    ws.run("ingest")
    threshold(ws)
    propose(ws, "ingest")
    shown = ws.ok("agent", "diff", "P1", "--impact").out
    assert len(re.findall(r"2025-01-\d\d\d ", shown)) == 20 and "and 8 more" in shown
    assert len(ws.json("agent", "diff", "P1")["behaviour"]["history"]["entries"]) == 28


def test_the_code_is_shown_on_request(ws: Workspace) -> None:
    threshold(ws)
    propose(ws, "ingest")
    shown = ws.ok("agent", "diff", "P1").out
    assert "--- approved/agents/ingest.py" in shown and "+++ P1/agents/ingest.py" in shown
    assert '-    threshold = config_get("thresholds.auto_confirm")' in shown and "+    threshold = 0.97" in shown
    assert ws.json("agent", "diff", "P1")["code"]["agents/ingest.py"].rstrip("\n") == shown.rstrip("\n")


SURE = "if confidence >= threshold:"
EVERYTHING = "over past runs, it confirms everything now: 6 entries, none left for review"
DOUBLED = "over past runs, the review queue would double: 2 cards before, 6 now"


@pytest.mark.parametrize(("now", "said"), [("if threshold > 0:", EVERYTHING), ("if threshold > 1:", DOUBLED)])
def test_d3_confirming_everything_and_a_doubled_queue_are_told(ws: Workspace, now: str, said: str) -> None:
    """D3: flagged with counts; a warning as shipped, a blocker with ``gate.behaviour: block``."""
    history(ws)
    edit(ws, "agents/ingest.py", SURE, now)
    found = propose(ws, "ingest")
    assert said in found["behaviour"]["warnings"]
    assert f"Attention: {said}." in found["card"]
    assert said in ws.ok("agent", "diff", "P1", "--impact").out
    ws.ok("agent", "reject", "P1", "--reason", "too much")
    ws.config("gate.behaviour=block")
    with unchanged(ws):
        done = ws("agent", "propose", "ingest", "--json")
        assert set(findings(done)) == {"behaviour"}
        assert said in [f["message"] for f in done.json["findings"]]


def test_runs_whose_files_are_not_in_the_repository_are_counted(ws: Workspace) -> None:
    ws.config("import.keep=local")
    history(ws)
    threshold(ws)
    found = propose(ws, "ingest")
    assert len(found["behaviour"]["history"]["not_comparable"]) == 2
    assert any("2 more runs cannot be compared" in line for line in found["card"])
    assert "2 more runs cannot be compared" in ws.ok("agent", "diff", "P1", "--impact").out


def test_how_many_runs_are_compared_is_configured(ws: Workspace) -> None:
    history(ws)
    ws.config("gate.history_runs=1")
    threshold(ws)
    past = propose(ws, "ingest")["behaviour"]["history"]
    assert (past["runs"], [e["entry_id"] for e in past["entries"]]) == (1, ["2025-02-002"])


# -- rejecting --------------------------------------------------------------------------------------------------------


def test_d6_a_rejected_proposal_keeps_its_reason_and_the_live_script(ws: Workspace) -> None:
    """D6: the reason is stored; the same change proposed again says so, on the card and as data."""
    committed = ws.git("show", "HEAD:agents/ingest.py")
    threshold(ws)
    first = propose(ws, "ingest")
    with unchanged(ws):
        refused(ws("agent", "reject", "P1"), 2, "reason")
        refused(ws("agent", "reject", "P1", "--reason", "  "), 2, "reason")
    ws.ok("agent", "reject", "P1", "--reason", "AWS is\nfine as it is")
    assert proposal(ws, "P1")["decision"]["reason"] == "AWS is fine as it is"
    assert ws.git("show", "HEAD:agents/ingest.py") == committed and "0.97" in ws.read("agents/ingest.py")
    assert ws.git("log", "-1", "--format=%s").startswith("agent: P1 rejected: AWS is fine")
    assert not ws.cards() and ws.cards("--status", "all")[0]["resolution"].startswith("rejected: AWS")
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 3, "rejected already", "AWS is fine as it is")
        refused(ws("agent", "reject", "P1", "--reason", "x"), 3, "rejected already")
    again = propose(ws, "ingest")
    assert again["id"] == "P2" and again["fingerprint"] == first["fingerprint"]
    assert again["rejected_before"]["id"] == "P1" and again["rejected_before"]["reason"] == "AWS is fine as it is"
    assert any("rejected before" in line and "AWS is fine as it is" in line for line in again["card"])
    told = [line for line in ws.ok("agent", "history", "ingest").out.splitlines() if "rejected" in line]
    assert told and "AWS is fine" in told[0]


def test_d6_another_change_was_not_rejected_before(ws: Workspace) -> None:
    """D6: it is the change that is remembered, not the agent."""
    write(ws, "1")
    propose(ws, "probe")
    ws.ok("agent", "reject", "P1", "--reason", "no")
    write(ws, "2")
    assert propose(ws, "probe")["rejected_before"] is None


# -- how often --------------------------------------------------------------------------------------------------------


def by_program(ws: Workspace, number: int, name: str = "probe") -> list[str]:
    write(ws, f"{number}", name)
    return ["agent", "propose", name, "--author", "a model"]


def test_d10_the_sixth_change_of_an_agent_in_a_day_is_refused(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: five a day for each agent, of those that no person made; a new day is a new day."""
    for number in range(5):
        ws.ok(*by_program(ws, number))
    sixth = by_program(ws, 6)
    with unchanged(ws):
        refused(ws(*sixth), 3, "agents/probe.py", "5 changes", "max_changes_per_agent")
    ws.ok(*by_program(ws, 1, "other"))
    write(ws, "60")
    ws.ok("agent", "propose", "probe")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T06:00:00Z")
    ws.ok(*sixth[:-2], "--author", "a model")


def test_d10_the_twenty_first_change_in_a_day_is_refused(ws: Workspace) -> None:
    """D10: in all, over agents; as configured."""
    ws.config("self_improvement.max_changes_per_night=3")
    for number in range(3):
        ws.ok(*by_program(ws, number, f"a{number}"))
    more = by_program(ws, 4, "a4")
    with unchanged(ws):
        refused(ws(*more), 3, "3 changes", "max_changes_per_night")
    ws.ok("agent", "propose", "a4")


def test_d10_the_limits_as_shipped(ws: Workspace) -> None:
    """D10: 5 and 20 a day, 24 hours of rest."""
    found = [
        ws.json("config", "get", f"self_improvement.{key}")
        for key in ("max_changes_per_agent", "max_changes_per_night", "cooldown_hours")
    ]
    assert [f["value"] if isinstance(f, dict) else f for f in found] == [5, 20, 24]


def test_d10_programs_leave_an_agent_alone_for_a_day(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: within 24 hours of an approval refused; a person may."""
    live(ws, "1")
    again = by_program(ws, 2)
    with unchanged(ws):
        refused(ws(*again), 3, "agents/probe.py", "2025-02-11T06:00:00Z")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T05:59:59Z")
    with unchanged(ws):
        refused(ws(*again), 3, "cooldown_hours")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T06:00:00Z")
    ws.ok(*again)
    live(ws, "3")
    ws.config("self_improvement.cooldown_hours=0")
    ws.ok(*by_program(ws, 4))


def test_d10_a_job_is_a_program_whether_it_says_so_or_not(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: what is proposed inside a job counts; an author without a name is refused."""
    ws.config("self_improvement.max_changes_per_agent=1")
    monkeypatch.setenv("CLEARED_JOB", "job 7")
    write(ws, "1")
    assert propose(ws, "probe")["author"] == {"name": "job job 7", "human": False}
    write(ws, "2")
    with unchanged(ws):
        refused(ws("agent", "propose", "probe"), 3, "max_changes_per_agent")
    monkeypatch.delenv("CLEARED_JOB")
    with unchanged(ws):
        for name in ("", " \n"):
            refused(ws("agent", "propose", "probe", "--author", name), 2)


# -- what came from elsewhere -----------------------------------------------------------------------------------------


def forge(ws: Workspace, **changes: Any) -> str:
    """Commit P1 with other fields by hand; the folder."""
    folder = f"queue/proposals/{proposal(ws, 'P1')['folder']}"
    data = json.loads(ws.read(f"{folder}/proposal.json"))
    ws.put(f"{folder}/proposal.json", json.dumps({**data, **changes}))
    ws.commit(folder)
    return folder


def test_a_damaged_proposal_blocks_itself_alone_and_the_cards_of_others_name_it(ws: Workspace) -> None:
    ws.put("queue/proposals/P9-deadbeef/proposal.json", "{}")
    ws.commit("queue")
    write(ws, "1")
    found = propose(ws, "probe")
    left_out = [line for line in found["card"] if "P9-deadbeef/proposal.json: this is not a proposal" in line]
    assert left_out and "git rm -r queue/proposals/P9-deadbeef" in left_out[0], found["card"]
    refused(ws("agent", "approve", "P9"), 4, "not a proposal", "git rm -r queue/proposals/P9-deadbeef")
    ws.ok("agent", "approve", found["id"])


FILES = [
    pytest.param("../../outside.py", "agent", id="out of the workspace"),
    pytest.param("/tmp/outside.py", "agent", id="absolute"),
    pytest.param("agents/../../outside.py", "agent", id="dots"),
    pytest.param("agents/sub/x.py", "agent", id="below"),
    pytest.param(".git/hooks/pre-commit", "agent", id="a hook"),
    pytest.param(".git/hooks/x.py", "script", id="a hook as a script"),
    pytest.param(".git/hooks/x.json", "case", id="a hook as a case"),
    pytest.param("config.yaml", "agent", id="settings as an agent"),
    pytest.param("config.yaml", "case", id="settings as a case"),
    pytest.param("agents/ingest.py", "case", id="an agent as a case"),
    pytest.param("agents/ingest.py", "script", id="an agent as a script"),
    pytest.param("agents/ingest.py", "config", id="an agent as settings"),
    pytest.param("books/2025/01/journal.csv", "case", id="the books"),
    pytest.param("accounts/chart-of-accounts.csv", "case", id="the chart"),
    pytest.param("agents/approvals/config.json", "case", id="an approval"),
    pytest.param("agents/.hidden.py", "agent", id="hidden"),
    pytest.param("agents/con.py", "agent", id="a device"),
    pytest.param(7, "agent", id="a number"),
    pytest.param("agents/probe.py", ["agent"], id="a list"),
]


@pytest.mark.parametrize(("path", "kind"), FILES)
def test_a_forged_proposal_names_nothing_but_what_can_be_proposed(ws: Workspace, path: Any, kind: Any) -> None:
    write(ws, "1")
    found = propose(ws, "probe")
    file = {**found["files"][0], "path": path, "kind": kind}
    if isinstance(path, str) and ".." not in path and not path.startswith("/"):
        ws.put(f"queue/proposals/{proposal(ws, 'P1')['folder']}/files/{path}", text("1"))
    forge(ws, files=[file])
    outside = set((ws.root.parent).iterdir())
    with unchanged(ws):
        for command in (["approve", "P1"], ["reject", "P1", "--reason", "x"], ["diff", "P1"]):
            refused(ws("agent", *command), 4, "not a proposal", "git rm -r queue/proposals/P1-")
    assert set((ws.root.parent).iterdir()) == outside
    assert not (ws.root / ".git/hooks/pre-commit").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": None},
        {"card": 7},
        {"card": [7]},
        {"title": None},
        {"author": {}},
        {"behaviour": {}},
        {"pins": {"probe": {}}},
        {"message": "\ud800"},
        {"created_at": "0001-01-01T00:00:00+14:00"},
        {"pins": {"probe": {"now": "2025-02-10T06:00:00", "run": None, "files": {}}}},
        {"pins": {"probe": {"now": "2025-02-10T06:00:00Z", "run": "a\0b", "files": {}}}},
        {"pins": {"probe": {"now": "2025-02-10T06:00:00Z", "run": None, "files": {"x": 1}}}},
        {"grants": []},
        {"created_at": "yesterday"},
        {"version": 2},
        {"digest": 1},
        {"author": {"name": "x", "human": "yes"}},
    ],
    ids=str,
)
def test_a_damaged_proposal_is_refused_in_one_sentence(ws: Workspace, change: dict[str, Any]) -> None:
    write(ws, "1")
    propose(ws, "probe")
    forge(ws, **change)
    with unchanged(ws):
        for command in (["approve", "P1"], ["diff", "P1", "--impact"], ["diff", "P1"], ["history", "probe"]):
            refused(ws("agent", *command), 4, "not a proposal")


def test_words_and_names_that_are_no_text_are_kept_all_the_same(ws: Workspace) -> None:
    """Arguments and file names can hold any bytes."""
    ws.drop(os.fsdecode(b"\xff.csv"))
    threshold(ws)
    found = propose(ws, "ingest", "-m", "a\udcffb", "--author", "m\udcffx")
    assert found["message"] == "a?b" and found["author"]["name"] == "mx"
    ws.ok("agent", "reject", "P1", "--reason", "no\udcff")
    edit(ws, "agents/ingest.py", "0.97", "0.96")
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])


LIES: list[Any] = [
    pytest.param({"card": ["Corrects a comment."]}, "its card", id="card"),
    pytest.param({"title": "Correct a comment"}, "its title", id="title"),
    pytest.param({"grants": {"agents/probe.py": ["journal_void"]}}, "granted", id="grants"),
    pytest.param({"digest": "sha256:" + "0" * 64}, "effects", id="digest"),
    pytest.param({"checks": {"passed": True, "stages": {}}}, "its checks", id="report"),
]


@pytest.mark.parametrize(("lie", "said"), LIES)
def test_what_a_forged_proposal_says_of_itself_is_not_believed(ws: Workspace, lie: dict[str, Any], said: str) -> None:
    """It is examined again here and told anew: another card takes its place, nothing is approved."""
    write(ws, POST.format(5020))
    propose(ws, "probe")
    forge(ws, **lie)
    refused(
        take_shown(ws, "agent", "approve", "P1"), 3, "stale", said, "nothing was approved", "cleared agent approve P2"
    )
    assert ws.git("ls-tree", "HEAD", "agents/probe.py") == ""
    told = ws.json("agent", "diff", "P2")
    assert told["id"] == "P2" and "post entries" in " ".join(proposal(ws, "P2")["card"])
    take_ok(ws, "agent", "approve", "P2")


def test_a_forged_proposal_that_does_not_pass_is_not_approved(ws: Workspace) -> None:
    write(ws, "1")
    found = propose(ws, "probe")
    bad = text("import os")
    from cleared.trust.approval_record import digest_of

    ws.put(f"queue/proposals/{proposal(ws, 'P1')['folder']}/files/agents/probe.py", bad)
    ws.put("agents/probe.py", bad)
    forge(ws, files=[{**found["files"][0], "digest": digest_of(bad.encode())}])
    refused(take_shown(ws, "agent", "approve", "P1"), 3, "stale", "does not pass", "nothing was approved")
    assert ws.git("ls-tree", "HEAD", "agents/probe.py") == ""


def test_a_forged_decision_makes_nothing_live(ws: Workspace) -> None:
    write(ws, "1")
    propose(ws, "probe")
    folder = f"queue/proposals/{proposal(ws, 'P1')['folder']}"
    ws.put(f"{folder}/decision.json", '{"status": "approved", "by": "you", "at": "2025-01-01", "reason": ""}')
    ws.commit(folder, "agents/probe.py")
    assert "nothing was to be done" in take_ok(ws, "agent", "approve", "P1").out
    refused(ws("agent", "run", "probe"), 3, "nobody has approved")
    ws.put(f"{folder}/decision.json", '{"status": "open", "by": 1, "at": 2, "reason": ""}')
    ws.commit(folder)
    refused(take_shown(ws, "agent", "approve", "P1"), 4, "not a proposal")


def test_what_git_log_shows_does_not_make_a_proposal_stale(ws: Workspace) -> None:
    """Proposing is a commit too; a rehearsal sees the history without it."""
    write(ws, 'for c in git_log(3):\n    ctx_emit("seen.it", c["message"])\n', "teller")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "teller")["id"])


def test_a_removed_agent_is_approved_in_none_of_its_versions(ws: Workspace) -> None:
    write(ws, "1", "passing")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "passing")["id"])
    text = ws.read("agents/passing.py")
    (ws.root / "agents/passing.py").unlink()
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "passing")["id"])
    ws.put("agents/passing.py", text)
    ws.commit("agents/passing.py")
    done = ws("agent", "run", "passing")
    assert done.code == 3 and "removed" in done.err
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "passing")["id"])
    assert ws.run("passing")["result"] == 1

"""What agents keep from run to run: each its own, with the run's commit, and no more than a little."""

from __future__ import annotations

import pytest
from harness import Workspace, fails, refused

MAY = "grants: [state.read, state.write, git.commit]\n"


def test_an_agent_keeps_values_for_its_next_run(ws: Workspace) -> None:
    """Row A20."""
    body = """
before = state_get("seen", [])
state_set("seen", [*before, Decimal("4.20"), {"at": "2026-01-01"}])
before
""".replace("Decimal(", "str(")
    first = ws.script(body, header=MAY)
    assert first["result"] == [] and len(first["commits"]) == 1
    assert first["kept_values"] == [
        {"agent": "probe", "key": "seen", "before": None, "after": ["4.20", {"at": "2026-01-01"}]}
    ]
    assert ws.run("probe")["result"] == ["4.20", {"at": "2026-01-01"}]
    assert ws.read("state/probe.json").startswith('{\n "seen": ["4.20", {"at"')
    ws.in_order()


def test_no_other_agent_sees_them(ws: Workspace) -> None:
    ws.script('state_set("mine", 1)', header=MAY)
    assert ws.script('state_get("mine", "none")', name="other", header=MAY)["result"] == "none"


def test_a_run_that_fails_keeps_the_old_value(ws: Workspace) -> None:
    ws.script('state_set("n", 1)', header=MAY)
    fails(ws, 'state_set("n", 2)\n1 // 0', "", header=MAY)
    assert ws.script('[state_get("n"), state_set("n", None), state_get("n", 0)]', header=MAY)["result"] == [1, None, 0]
    assert ws.read("state/probe.json") == "{}\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('state_set("n", "x" * 9000)\nfor i in range(9):\n    state_set(str(i), "x" * 9000)', "64 kB"),
        ("for i in range(300):\n    state_set(str(i), i)", "200 values"),
        ('state_set("", 1)', "cannot name a value"),
        ('state_set("x" * 101, 1)', "cannot name a value"),
        ('state_set("n", {"$decimal": "x"})', "not a decimal number"),
        ('state_set("n", float("nan"))', "not a finite number"),
    ],
)
def test_what_is_too_much_or_no_value_is_refused(ws: Workspace, call: str, said: str) -> None:
    fails(ws, call, said, header=MAY)
    assert not (ws.root / "state").exists()


def test_what_somebody_edits_is_named_and_not_used(ws: Workspace) -> None:
    ws.script('state_set("n", 1)', header=MAY)
    ws.put("state/probe.json", '{"n": 2}\n')
    refused(ws("agent", "run", "probe"), 4, "state/probe.json")
    ws.commit("state/probe.json")
    checks = {v["check"] for v in ws("check", "--json").json["violations"]}
    assert {"state", "provenance"} <= checks
    fails(ws, 'state_get("n")', "damaged", header=MAY)


def test_what_a_run_kept_goes_back_with_it_and_what_read_it_too(ws: Workspace) -> None:
    """Else the agent would take for done what was taken back. Nothing of another agent, and nothing newer."""
    count = 'state_set("n", state_get("n", 0) + 1)\nstate_set("by", "{}")\n'
    first = ws.script(count.format("first"), header=MAY)["run_id"]
    ws.script('state_set("n", 9)\nstate_get("n")', name="other", header=MAY)
    later = ws.run("probe")["run_id"]
    newer = ws.script('state_set("by", "hand")', header=MAY)["run_id"]
    plan = ws.json("revert", first, "--plan")
    assert [run["run"] for run in plan["runs"]] == [later, first] and plan["may_have_read"] == [], newer
    assert "state_get at agents/probe.py:" in plan["runs"][0]["why"]
    done = ws.json("revert", first, "--yes")
    assert [(run["voided"], run["kept"]) for run in done["runs"]] == [(["probe/n"], []), (["probe/n"], ["probe/by"])]
    assert ws.read("state/probe.json") == '{\n "by": "hand"\n}\n' and '"n": 9' in ws.read("state/other.json")
    assert done["again"] == ["cleared agent run probe"]
    ws.in_order()
    refused(ws("queue", "approve", "probe/by"), 2, "there is no card, entry or row 'probe/by'")


def test_what_a_kept_value_names_was_read_with_it(ws: Workspace) -> None:
    """The id of an entry that another agent posted lies in what this one keeps."""
    post = (
        'journal_add_double(date="2025-01-03", description="tea", debit_account=5020, credit_account=1010, amount="1")'
    )
    first = ws.script(post, name="poster")["run_id"]
    ws.script('state_set("seen", "2025-01-001")', header=MAY)
    later = ws.script('state_get("seen")\nstate_set("n", 1)', header=MAY)["run_id"]
    runs = [run["run"] for run in ws.json("revert", first, "--plan")["runs"]]
    assert runs[0] == later and runs[-1] == first

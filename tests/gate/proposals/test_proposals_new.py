"""``cleared agent new`` and ``check``, and what ``agent list`` says of approvals: nothing is decided by these."""

from __future__ import annotations

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged
from proposing import live, propose, write

NIGHTLY = [
    "nightly_accruals",
    "nightly_close_rehearsal",
    "nightly_learning",
    "nightly_reconciliation",
    "nightly_testing",
]
TEMPLATES = ["blank", "digest", "categorize", *NIGHTLY]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_a_working_copy_that_passes_unchanged(ws: Workspace, template: str) -> None:
    before = ws.state()
    done = ws.json("agent", "new", "mine", "--template", template)
    assert done == {"path": "agents/mine.py", "template": template}
    after = ws.state()
    assert after.head == before.head and after.changed_since(before) == {"agents/mine.py"}
    text = ws.read("agents/mine.py")
    assert "name: mine" in text and "{{" not in text
    assert any(line.startswith("#") and "trigger" in line for line in text.splitlines()), "the header is explained"
    with unchanged(ws):
        stages = ws.json("agent", "check", "mine")["mine"]["stages"]
    assert {s["status"] for s in stages} == {"passed"}
    take_ok(ws, "agent", "approve", propose(ws, "mine")["id"])
    ws.run("mine")


def test_the_categorize_template_books_what_it_knows_and_asks_about_the_rest(ws: Workspace) -> None:
    ws.ok("agent", "new", "mine", "--template", "categorize")
    take_ok(ws, "agent", "approve", propose(ws, "mine")["id"])
    ws.drop("january.csv")
    found = ws.run("mine")
    assert found["result"] == {"posted": 4, "asked": 2}
    assert [(e["status"], e["confidence"]) for e in ws.entries("--text", "AWS")] == [("auto-confirmed", "0.97")]
    ws.in_order()


def test_the_nightly_templates_say_what_waits_to_be_done(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transfer with one side in; a rent that has not come; entries in the way of closing the month."""
    rent = [(f"{month:02}/03/2025", "AWS EMEA", "-50.00") for month in (1, 2, 3)]
    ws.drop("a.csv", chase(*rent, ("04/02/2025", "PAYMENT TO CHASE CARD", "-90.00"), ("04/03/2025", "TEA", "-3.00")))
    monkeypatch.setenv("CLEARED_CLOCK", "2025-04-26T06:00:00Z")
    ws.run("ingest")
    said = {}
    for name in ("nightly_reconciliation", "nightly_accruals", "nightly_close_rehearsal"):
        ws.ok("agent", "new", name, "--template", name)
        take_ok(ws, "agent", "approve", propose(ws, name)["id"])
        said[name] = ws.run(name)["result"]
    assert said["nightly_reconciliation"] == ["1090 Transfers in transit is 90.00, and nil once both sides are in"]
    assert said["nightly_accruals"] == ["Amazon Web Services: about 50.00 to 5020"]
    assert said["nightly_close_rehearsal"][0] == "2 of 2 entries wait for you"
    assert [m["subject"] for m in ws.run("nightly_accruals")["messages"]] == ["1 to expect this month"]
    ws.in_order()


def test_blank_is_what_there_is_without_a_template(ws: Workspace) -> None:
    assert ws.json("agent", "new", "mine")["template"] == "blank"


def test_templates_are_listed_with_the_workspaces_own(ws: Workspace) -> None:
    ws.put("templates/house.py", '"""\nname: {{name}}\ntrigger: on_demand\ndescription: the house style\n"""\n1\n')
    found = {t["name"]: t["about"] for t in ws.json("agent", "new", "any", "--list")}
    assert {*TEMPLATES, "ingest", "house"} <= set(found) and found["house"] == "the house style"
    assert "the house style" in ws.ok("agent", "new", "any", "--list").out
    ws.ok("agent", "new", "mine", "--template", "house")
    assert "name: mine" in ws.read("agents/mine.py")


def test_an_unknown_template_is_refused_with_those_there_are(ws: Workspace) -> None:
    with unchanged(ws):
        refused(ws("agent", "new", "mine", "--template", "../ingest"), 2, "blank", "digest", "categorize")


def test_an_agent_is_never_overwritten(ws: Workspace) -> None:
    write(ws, "1")
    (ws.root / "agents/link.py").symlink_to("/dev/null")
    with unchanged(ws):
        for name in ("probe", "ingest", "link"):
            refused(ws("agent", "new", name), 2, f"agents/{name}.py", "already")


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "", "x\ny", "con", "~x", "x" * 200, "a\u202eb"])
def test_a_name_that_could_lead_elsewhere_is_refused(ws: Workspace, name: str) -> None:
    with unchanged(ws):
        refused(ws("agent", "new", name), 2, "name")


# -- check ------------------------------------------------------------------------------------------------------------


def test_check_all_names_each_agent_and_its_findings(ws: Workspace) -> None:
    write(ws, "import os")
    with unchanged(ws):
        done = ws("agent", "check", "--all", "--json")
    assert done.code == 1
    assert {name: found["passed"] for name, found in done.json.items()} == {
        "ingest": True,
        "monthly_summary": True,
        "review_reminder": True,
        "probe": False,
    }
    shown = ws("agent", "check", "--all")
    assert shown.code == 1 and "ingest: passed" in shown.out and "probe: not passed" in shown.out
    assert "agents/probe.py:6:1: [import]" in shown.out


def test_one_that_cannot_be_looked_at_does_not_hide_the_others(ws: Workspace) -> None:
    (ws.root / "agents/monthly_summary.py").unlink()
    (ws.root / "agents/link.py").symlink_to("/etc/hostname")
    (ws.root / "agents/folder.py").mkdir()
    write(ws, "1", "con")
    with unchanged(ws):
        done = ws("agent", "check", "--all", "--json")
        assert done.code == 1 and "monthly_summary.py is missing" in done.err
        assert {n for n, found in done.json.items() if found["passed"]} == {"ingest", "review_reminder"}
        assert {n for n, found in done.json.items() if "error" in found} >= {"monthly_summary", "link", "con"}
        shown = ws("agent", "check", "--all")
        assert shown.code == 1 and "ingest: passed" in shown.out
        refused(ws("agent", "check", "monthly_summary"), 2, "missing", "git checkout HEAD -- agents/monthly_summary.py")
        refused(ws("agent", "diff", "monthly_summary"), 2, "missing")
        refused(ws("agent", "check", "link"), 4, "symbolic link")


def test_a_finding_says_where_which_rule_why_and_what_to_do(ws: Workspace) -> None:
    write(ws, "import os\naccounts_get(9999)")
    stages = ws("agent", "check", "probe", "--json").json["probe"]["stages"]
    found = {f["rule"]: f for s in stages for f in s["findings"]}
    assert (found["import"]["file"], found["import"]["line"], found["import"]["column"]) == ("agents/probe.py", 6, 1)
    for one in found.values():
        assert one["message"] and one["why"] and one["remedy"], one


def test_what_cannot_be_read_is_found_once(ws: Workspace) -> None:
    """The header's reader and the linter say the same of a text that neither can read."""
    (ws.root / "agents/probe.py").write_bytes(b"\x00")
    stages = ws("agent", "check", "probe", "--json").json["probe"]["stages"]
    assert [f["rule"] for f in stages[0]["findings"]] == ["character"]


# -- what is approved -------------------------------------------------------------------------------------------------


def states(ws: Workspace) -> dict[str, str]:
    found = {a["name"]: a["state"] for a in ws.json("agent", "list")}
    for name, state in found.items():
        assert ws.json("agent", "show", name)["state"] == state
        assert state in ws.ok("agent", "show", name).out and state in ws.ok("agent", "list").out
    return found


def test_the_list_says_what_is_approved(ws: Workspace) -> None:
    live(ws, "1")
    live(ws, "1", "edited")
    write(ws, "2", "edited")
    ws.commit(write(ws, "3", "handmade"))
    write(ws, "4", "fresh")
    assert states(ws) == {
        "ingest": "starter",
        "monthly_summary": "starter",
        "review_reminder": "starter",
        "probe": "approved",
        "edited": "approved",
        "handmade": "not approved",
        "fresh": "not committed",
    }
    assert [a["name"] for a in ws.json("agent", "list") if a["edited"]] == ["edited"]
    assert ws.ok("agent", "list").out.count("approved, edited") == 1
    assert "(P1-" in ws.json("agent", "show", "probe")["approval"]
    assert ws.json("agent", "show", "fresh")["approval"] is None


def test_the_list_says_what_was_rolled_back_or_is_not_trusted(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    path = live(ws, "1")
    bad = ws.read(path)
    ws.ok("agent", "rollback", "probe", "--reason", "wrong")
    ws.put(path, bad)
    ws.commit(path)
    assert states(ws)["probe"] == "quarantined"
    live(ws, "2", "other")
    elsewhere = ws.root.parent / "another machine"
    monkeypatch.setenv("CLEARED_HOME", str(elsewhere))
    assert states(ws)["other"] == "not trusted"

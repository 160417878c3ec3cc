"""Approvals, switches and settings of two clones: as they were signed, once, or a card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import clone
from harness import Workspace, chase, take_ok, take_shown
from proposing import edit, live, propose, threshold
from synced import SHOP, follow, left_out

from cleared.workspace.location import cleared_home

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace]


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> Iterator[Two]:
    """Two clones of books with one entry that waits, and an agent of each that is live in both."""
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    live(ws, 'git_commit("agent: probe")\n1')
    own, other, _ = follow(ws, tmp_path)
    yield own, other


def approve(ws: Workspace, value: str) -> str:
    """A change of ingest, approved; the proposal."""
    threshold(ws, value)
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    return max(path.name for path in (ws.root / "queue/proposals").iterdir())


def diverge(other: Workspace) -> None:
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")


def shared_of(ws: Workspace) -> str:
    return ws.git("remote", "get-url", "origin").strip()


def standing(ws: Workspace, name: str) -> str:
    return next(str(each["state"]) for each in ws.json("agent", "list") if each["name"] == name)


def test_an_approval_that_others_did_not_touch_comes_along(two: Two) -> None:
    ws, other = two
    live(other, 'git_commit("agent: other")\n2', name="other")
    other.ok("sync")
    approve(ws, "0.97")
    records = sorted(path.name for path in (ws.root / "agents/approvals/agents/ingest").iterdir())
    signed = {path: ws.read(f"agents/approvals/agents/ingest/{path}") for path in records}
    assert all(step["now"] for step in ws.json("sync")["steps"])
    other.ok("sync")
    for each in two:
        assert {path: each.read(f"agents/approvals/agents/ingest/{path}") for path in records} == signed
        assert [standing(each, name) for name in ("ingest", "other", "probe")] == ["approved"] * 3
        each.in_order()


def test_the_same_approval_of_both_counts_once(two: Two) -> None:
    ws, other = two
    for each in (other, ws):
        approve(each, "0.97")
        each is other and each.ok("sync")
    steps = ws.json("sync")["steps"]
    assert [(step["now"], step["left_out"]) for step in steps] == [(None, None)] * 2
    assert ws.head() == other.head() and standing(ws, "ingest") == "approved"
    ws.in_order()


def test_the_same_change_beside_other_proposals_counts_once(two: Two) -> None:
    ws, other = two
    live(other, 'git_commit("agent: other")\n2', name="other")
    for each in (other, ws):
        approve(each, "0.97")
        each is other and each.ok("sync")
    steps = ws.json("sync")["steps"]
    assert not any(step["left_out"] for step in steps), steps
    assert standing(ws, "ingest") == "approved"
    ws.in_order()


def test_another_approval_of_the_same_agent_is_stale(two: Two) -> None:
    """The proposal still waits; what its version did stays."""
    ws, other = two
    approve(other, "0.97")
    other.ok("sync")
    mine = approve(ws, "0.96")
    ws.drop("aws.csv", chase(("02/06/2025", "AWS EMEA", "-31.00")))
    ws.run("ingest")
    steps = ws.json("sync")["steps"]
    assert [bool(step["left_out"]) for step in steps] == [False, True, False] and "stale" in steps[1]["left_out"]
    assert "0.97" in ws.read("agents/ingest.py") and standing(ws, "ingest") == "approved"
    assert {card["kind"] for card in ws.cards()} >= {"left_out", "proposal"}
    assert "AWS EMEA" in [entry["description"] for entry in ws.entries()]
    ws.in_order()
    done = take_shown(ws, "agent", "approve", mine)
    assert done.code == 3 and "stale" in done.err
    ws.in_order()


def test_an_approval_is_stale_where_others_have_changed_settings(two: Two) -> None:
    ws, other = two
    take_ok(other, "config", "set", "thresholds.auto_confirm", "0.99")
    other.ok("sync")
    approve(ws, "0.97")
    assert "settings" in ws.json("sync")["steps"][1]["left_out"]
    ws.in_order()


SHARED = 'script_run("words")\ngit_commit("agent: talks")\n'


def test_an_approval_is_stale_beside_another_shared_script(two: Two) -> None:
    ws, other = two
    ws.shared("words", "1")
    live(ws, SHARED, name="talks")
    ws.ok("sync")
    other.ok("sync")
    other.put("scripts/words.py", "2")
    take_ok(other, "agent", "approve", propose(other, "scripts/words.py")["id"])
    other.ok("sync")
    edit(ws, "agents/talks.py", "agent: talks", "agent: talks more")
    take_ok(ws, "agent", "approve", propose(ws, "talks")["id"])
    assert "scripts/words.py" in ws.json("sync")["steps"][1]["left_out"]
    assert standing(ws, "talks") == "approved"
    ws.in_order()


@pytest.mark.parametrize("mine", ["disable", "enable"])
def test_a_switch_of_both(two: Two, mine: str) -> None:
    """The same counts once; what forbids stands."""
    ws, other = two
    ws.ok("agent", "disable", "probe")
    ws.ok("sync")
    other.ok("sync")
    for each in (other, ws):
        each.ok("agent", "enable", "probe")
    other.ok("sync")
    assert [step["now"] for step in ws.json("sync")["steps"]] == [None]
    ws.ok("agent", "disable", "probe")
    if mine == "enable":
        ws.ok("agent", "enable", "probe")
        other.ok("agent", "disable", "probe")
    else:
        diverge(other)
    other.ok("sync")
    steps = ws.json("sync")["steps"]
    assert bool(steps[-1]["left_out"]) == (mine == "enable"), steps
    assert standing(ws, "probe") == "disabled"
    ws.in_order()


def test_settings_of_both(two: Two) -> None:
    ws, other = two
    for each in (other, ws):
        take_ok(each, "config", "set", "thresholds.auto_confirm", "0.99")
        each is other and each.ok("sync")
    assert [step["left_out"] for step in ws.json("sync")["steps"]] == [None]
    other.ok("sync")
    for each, value in ((other, "0.97"), (ws, "0.96")):
        take_ok(each, "config", "set", "thresholds.auto_confirm", value)
        each is other and each.ok("sync")
    left_out(ws, "stale")
    assert "0.97" in ws.read("config.yaml")


def forge(from_: Workspace, path: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The clone of somebody who can push and has signed a text with a key that nobody here trusts."""
    home = str(cleared_home())
    monkeypatch.setenv("CLEARED_HOME", f"{home}-of-a-stranger")
    stranger = clone(from_, from_.root.parent / "stranger")
    stranger.put(path, text)
    stranger.commit(path, *stranger.approve(path), message="looks approved")
    monkeypatch.setenv("CLEARED_HOME", home)
    return stranger


def test_a_strangers_approval_of_the_same_text_is_no_approval(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    ws, other = two
    approve(ws, "0.97")
    forge(other, "agents/ingest.py", ws.read("agents/ingest.py"), monkeypatch).git("push", "-q", shared_of(ws))
    assert "not trusted" in ws.json("sync")["steps"][1]["left_out"]
    assert standing(ws, "ingest") == "not trusted"
    ws.drop("more.csv", chase(("02/06/2025", "AWS EMEA", "-31.00")))
    assert ws("agent", "run", "ingest").code == 3


def test_a_strangers_shared_script_does_not_come_under_an_approval(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    ws, other = two
    ws.shared("words", "1")
    ws.ok("sync")
    other.ok("sync")
    text = 'journal_add_double("2025-02-02", "theft", 5070, 1010, 900)'
    forge(other, "scripts/words.py", text, monkeypatch).git("push", "-q", shared_of(ws))
    live(ws, SHARED, name="talks")
    assert "scripts/words.py" in ws.json("sync")["steps"][1]["left_out"]
    assert not (ws.root / "agents/talks.py").exists()


def test_a_strangers_approval_in_this_clone_is_not_brought_along(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came from a stick, or in a patch."""
    ws, other = two
    diverge(other)
    text = ws.read("agents/probe.py").replace("\n1\n", "\n2\n")
    ws.git("pull", "-q", "--ff-only", str(forge(ws, "agents/probe.py", text, monkeypatch).root), "main")
    left_out(ws, "approves nothing here")
    assert standing(ws, "probe") == "approved"


def test_a_version_that_others_took_back_stays_so(two: Two) -> None:
    ws, other = two
    approve(ws, "0.97")
    ws.ok("sync")
    other.ok("sync")
    other.ok("agent", "rollback", "ingest", "--reason", "no")
    other.ok("sync")
    edit(ws, "agents/ingest.py", "0.97", "0.96")
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    assert "stale" in ws.json("sync")["steps"][1]["left_out"]
    assert standing(ws, "ingest") != "approved" or "0.9" not in ws.read("agents/ingest.py").split("VENDORS")[0]
    ws.in_order()


def test_old_settings_that_somebody_pushes_do_not_count(two: Two) -> None:
    ws, other = two
    old = ws.head()
    take_ok(ws, "config", "set", "thresholds.auto_confirm", "0.99")
    ws.ok("sync")
    other.ok("sync")
    other.git("checkout", "-q", old, "--", "config.yaml", "agents/approvals/config.json")
    other.git("commit", "-q", "-m", "as it was")
    other.git("push", "-q")
    take_ok(ws, "config", "set", "thresholds.auto_confirm", "0.98")
    assert "stale" in ws.json("sync")["steps"][-1]["left_out"]
    done = ws("agent", "run", "ingest")
    assert done.code == 3 and "older than the last" in done.err, done
    take_ok(ws, "config", "approve")
    ws.in_order()
    assert ws("agent", "run", "ingest").code == 0


def test_what_was_approved_is_not_under_a_name_of_others(two: Two) -> None:
    """Somebody has pushed a proposal with the folder of this clone's, and another text in it."""
    ws, other = two
    approve(ws, "0.97")
    folder = max(path.name for path in (ws.root / "queue/proposals").iterdir())
    name = f"queue/proposals/{folder}"
    other.put(f"{name}/proposal.json", ws.read(f"{name}/proposal.json"))
    other.put(f"{name}/files/agents/ingest.py", 'journal_add_double("2025-02-02", "theft", 5070, 1010, 900)')
    other.git("add", name)
    other.git("commit", "-q", "-m", "planted")
    other.git("push", "-q")
    steps = ws.json("sync")["steps"]
    assert all(step["left_out"] for step in steps), steps
    assert "theft" not in ws.read("agents/ingest.py")
    assert standing(ws, "ingest") != "approved"

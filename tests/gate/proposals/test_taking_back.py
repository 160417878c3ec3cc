"""A change that turns out badly is taken back by the host, within its window, and only by what runs attest. D11."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from harness import CLOCK, Workspace, chase, take_ok
from proposing import live, propose
from world import World

from cleared.base.clock import clock_from
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.taking_back import take_back_bad_changes
from cleared.runs.execution import run_agent

POST = (
    'journal_add_double(date="2025-01-03", description="coffee", debit_account=5020, credit_account=1010, amount="1", '
    'status="auto-confirmed")\n'
)
BREAKS = "[importer_mark_processed(file['name']) for file in importer_scan() if importer_parse(file['name'])]"
"""Lines of the bank that are neither posted nor set aside."""


class Times:
    """Moves the clock of the commands by a minute before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = datetime.fromisoformat(CLOCK)
        self._patch = monkeypatch

    def later(self, **more: float) -> str:
        self._now += timedelta(**more or {"minutes": 1})
        at = self._now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._patch.setenv("CLEARED_CLOCK", at)
        return at


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


def run_often(ws: Workspace, times: Times, count: int, code: int = 0) -> None:
    for _ in range(count):
        times.later()
        ws.run("probe", code=code)


def change(ws: Workspace, times: Times, body: str) -> str:
    """A new version of the agent, approved; its text."""
    times.later()
    live(ws, body)
    times.later()
    return ws.read("agents/probe.py")


def from_tomorrow(ws: Workspace, times: Times, body: str) -> str:
    """A version that passes the gate, and does this from tomorrow on; its text."""
    bad = change(ws, times, f'{POST}if "2025-02-12" > ctx_now() > "2025-02-11":\n    {body}')
    times.later(days=1)
    return bad


@pytest.fixture
def unlooked(ws: Workspace, times: Times) -> tuple[str, str]:
    """A run has broken an invariant, and nobody has looked at that yet: as where the machine lost its power. The texts
    of the version before, and of this one."""
    ws.config("self_improvement.cooldown_hours=0")
    good = change(ws, times, POST)
    run_often(ws, times, 1)
    bad = from_tomorrow(ws, times, BREAKS)
    run_often(ws, times, 2)
    ws.drop("january.csv")
    times.later()
    host = open_workspace(ws.root, clock=clock_from(os.environ["CLEARED_CLOCK"]))
    assert "violated" in str(run_agent(host, "probe").error)
    return good, bad


def look(ws: Workspace, on_step: Callable[[str], None] | None = None) -> list[str]:
    host = open_workspace(ws.root, clock=clock_from(os.environ["CLEARED_CLOCK"]), on_step=on_step)
    return take_back_bad_changes(host)


def test_d11_a_version_that_fails_is_taken_back_and_the_one_before_runs(ws: Workspace, times: Times) -> None:
    ws.config("self_improvement.cooldown_hours=0")
    good = change(ws, times, POST)
    run_often(ws, times, 14)
    bad = from_tomorrow(ws, times, "print(1 // 0)")
    for number in range(1, 11):  # noqa: B007  # how many it took
        times.later()
        head = ws.head()
        done = ws("agent", "run", "probe", "--json")
        if "was taken back" in done.err:
            break
        assert done.code == 1, done
    assert number <= 9 and ws.read("agents/probe.py") == good != bad
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "2", "the failed run, and one commit of the host"
    assert ws.trailers()["By"] == "cleared"
    card = next(c for c in ws.cards() if c["kind"] == "taken_back")
    assert "failed since" in card["title"] and card["details"]["why"]
    times.later()
    assert ws.run("probe")["status"] == "succeeded"
    assert ws.cards()[-1] and [c["kind"] for c in ws.cards()].count("taken_back") == 1
    ws.ok("queue", "answer", card["id"], "seen")
    ws.in_order()
    # What was taken back is refused until a person approves it again.
    ws.put("agents/probe.py", bad)
    ws.commit("agents/probe.py")
    assert "rolled back" in ws("agent", "run", "probe").err
    times.later(days=1)
    again = propose(ws, "probe")
    take_ok(ws, "agent", "approve", again["id"])
    assert ws.read("agents/probe.py") == bad


def test_d11_one_broken_invariant_is_enough_and_the_card_lists_what_it_made(
    ws: Workspace, times: Times, unlooked: tuple[str, str]
) -> None:
    good, bad = unlooked
    (told,) = look(ws)
    assert "1 run since would have broken what always holds" in told and "2 records" in told
    assert ws.read("agents/probe.py") == good
    (card,) = [c for c in ws.cards() if c["kind"] == "taken_back"]
    assert [e["description"] for e in card["details"]["made"]] == ["coffee", "coffee"]
    assert look(ws) == [], "once"
    shown = ws.ok("queue", "show", card["id"]).out
    assert "cleared agent propose probe" in shown and "broken what always holds" in shown
    assert ws.json("agent", "history", "probe")[-1]["event"] == "rolled back"
    ws.in_order()
    # Nor does the old commit, brought back by plain git, bring the approval back on this machine.
    ws.git("revert", "--no-edit", "HEAD")
    done = ws("agent", "run", "probe")
    assert done.code == 3 and ws.read("agents/probe.py") == bad, done


def test_d11_a_newer_change_of_a_person_stays(ws: Workspace, times: Times, unlooked: tuple[str, str]) -> None:
    """What was seen of the version before it says nothing about it."""
    newer = change(ws, times, POST + "1 + 1")
    assert look(ws) == [] and ws.read("agents/probe.py") == newer


def test_d11_a_service_that_comes_up_looks_at_what_ran_meanwhile(
    ws: Workspace, times: Times, unlooked: tuple[str, str]
) -> None:
    (ws.root / "import/january.csv").unlink()
    with World(ws, times.later()) as world:
        world.settle()
        assert world.log("change.taken_back") and ws.read("agents/probe.py") == unlooked[0]


def import_lines(ws: Workspace, times: Times, name: str, texts: list[str]) -> str:
    """A bank file with these texts, imported, of amounts that no other has; what the command says beside its result."""
    times.later()
    cents = len(ws.entries())
    rows = ((f"01/{n:02}/2025", f"{text} {name}", f"-{n}{cents:03}.00") for n, text in enumerate(texts, 1))
    ws.drop(f"{name}.csv", chase(*rows))
    return ws.ok("agent", "run", "ingest").err


@pytest.mark.parametrize("is_bad", [False, True])
def test_d11_strangers_who_send_more_are_no_fault_of_a_change(ws: Workspace, times: Times, is_bad: bool) -> None:
    """Over the same files the version before would have asked as much; one that asks more by itself goes."""
    ws.config("self_improvement.cooldown_hours=0")
    for number in range(8):
        import_lines(ws, times, f"before{number}", ["GITHUB", "GITHUB", "GITHUB", "SOMEBODY"])
    times.later()
    ws.ok("teach", "ZOOM", "5020", "--yes")
    before = ws.read("agents/ingest.py")
    texts = [f"STRANGER {chr(65 + n)}" for n in range(12)]
    if is_bad:
        times.later()
        sure = "            if confidence >= threshold:"
        ws.put("agents/ingest.py", before.replace(sure, sure.replace(":", ' and not f["name"].startswith("new"):')))
        take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
        texts = ["GITHUB"] * 12
    told = [import_lines(ws, times, f"new{number}", texts) for number in range(2 if is_bad else 4)]
    assert any("was taken back" in each for each in told) == is_bad, told
    assert ws.read("agents/ingest.py") == before
    ws.in_order()


def test_d11_a_rise_that_counts_cannot_prove_is_rehearsed(ws: Workspace, times: Times) -> None:
    """From one card in two lines to two in two: no count of so few runs is large enough to be sure."""
    ws.config("self_improvement.cooldown_hours=0")
    ws.ok("teach", "ZOOM", "5020", "--yes")
    for number in range(6):
        import_lines(ws, times, f"before{number}", ["GITHUB", "GITHUB", "SOMEBODY", "SOMEBODY"])
    times.later()
    before, sure = ws.read("agents/ingest.py"), "            if confidence >= threshold:"
    ws.put("agents/ingest.py", before.replace(sure, sure.replace(":", ' and not f["name"].startswith("new"):')))
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    told = [
        import_lines(ws, times, f"new{number}", ["GITHUB", "GITHUB", "SOMEBODY", "SOMEBODY"]) for number in range(3)
    ]
    assert "was taken back" in told[-1] and ws.read("agents/ingest.py") == before, told
    ws.in_order()


def test_d11_only_attested_runs_count(ws: Workspace, times: Times, unlooked: tuple[str, str]) -> None:
    """Whoever can push writes commits, cards and lines; none of that is evidence, and none of it brings a version
    back."""
    good, bad = unlooked
    path = next(p for p in ws.git("ls-files", "logs").split() if "attestations" in p)
    lines = ws.read(path).splitlines(keepends=True)
    told = [line for line in lines if '"violates":' in line]
    ws.put(path, "".join(line.replace('"violates":', '"violatez":') for line in lines))
    ws.commit(path)
    assert len(told) == 1 and look(ws) == [] and ws.read("agents/probe.py") == bad
    ws.put(path, "".join(lines))
    ws.commit(path)
    # The version that would come back is the approved one, whatever lies there as its text.
    (kept,) = [p for p in ws.git("ls-files", "agents/approvals").split() if p.endswith(".py") and ws.read(p) == good]
    ws.put(kept, good.replace("coffee", "gold"))
    ws.commit(kept)
    (done,) = look(ws)
    assert "was stopped" in done and ws.read("agents/probe.py") == bad
    assert ws("agent", "run", "probe").code == 3


def test_d11_without_an_approved_version_before_it_is_only_stopped(ws: Workspace, times: Times) -> None:
    """A starter counts no more by itself once there was another version, so it takes a person to bring it back."""
    starter = ws.read("agents/ingest.py")
    ws.config("self_improvement.cooldown_hours=0")
    times.later()
    wrong = 'amount=abs(amount) if ctx_now() < "2025-02-11" else "1",'
    ws.put("agents/ingest.py", starter.replace("amount=abs(amount),", wrong))
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    times.later(days=1)
    ws.drop("january.csv")
    done = ws("agent", "run", "ingest")
    assert "ingest was stopped" in done.err, done
    (card,) = [c for c in ws.cards() if c["kind"] == "taken_back"]
    assert "cleared agent rollback ingest" in card["details"]["remedy"]
    assert ws("agent", "run", "ingest").code == 3
    times.later()
    ws.ok("agent", "rollback", "ingest")
    assert ws.read("agents/ingest.py") == starter and ws.run("ingest")["status"] == "succeeded"


@pytest.mark.parametrize("step", ["intent", "ref", "worktree"])
def test_d11_killed_at_each_step_it_is_done_once(
    ws: Workspace, times: Times, unlooked: tuple[str, str], step: str
) -> None:
    if (child := os.fork()) == 0:
        look(ws, lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == step else None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    look(ws)
    assert ws.read("agents/probe.py") == unlooked[0] and look(ws) == []
    assert ws.git("log", "--format=%s").count("taken back") == 1
    assert [c["kind"] for c in ws.cards()].count("taken_back") == 1
    (ws.root / "import/january.csv").unlink()
    assert ws.run("probe")["status"] == "succeeded"
    ws.in_order()

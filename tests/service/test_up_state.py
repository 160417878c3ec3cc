"""The service in a process of its own, where something about its workspace is unusual: its state deleted, a fresh
clone, agents that may not run; and what it says when it is told to end."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from harness import Workspace, no_traceback
from patience import PATIENCE
from running import Up, eventually
from test_up import SLOW

pytestmark = pytest.mark.slow

HEARS = "trigger: event\nevent: ping\n"


def test_c8_with_its_state_deleted_it_takes_its_place_again(up: Up) -> None:
    """Row C8: whoever empties ``.cleared/`` under a running service does not get a second one."""
    first = up.start()
    shutil.rmtree(up.ws.root / ".cleared")
    up.ws.ok("event", "emit", "ping")
    # What it meets in the middle of the deletion it says, and tries again.
    eventually(lambda: up.board().get("ready") and up.ws.json("status")["up"])
    eventually(lambda: up.ws.json("status")["trouble"] == [])
    assert up.ws.json("status")["pid"] == first.pid
    second = up.ws.process("up")
    assert second.code == 5 and f"process {first.pid}" in second.err
    no_traceback(second)
    assert up.stop()[0] == 0
    assert not up.ws.json("status")["up"], "nothing of it stays behind"


def test_where_another_one_took_its_place_it_ends_and_names_that_one(up: Up) -> None:
    """Row C8: of two that met by a deleted ``.cleared/``, the one that was there first gives way."""
    old = up.start()
    os.kill(old.pid, signal.SIGSTOP)
    try:
        eventually(lambda: Path(f"/proc/{old.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        shutil.rmtree(up.ws.root / ".cleared")
        up.process = None
        new = up.start()
    finally:
        os.kill(old.pid, signal.SIGCONT)
    up.ws.ok("event", "emit", "ping")
    _, err = old.communicate(timeout=PATIENCE)
    assert old.returncode == 5 and f"process {new.pid}" in err.decode() and "Traceback" not in err.decode()
    assert up.ws.json("status")["pid"] == new.pid, "the other one serves on"
    assert up.stop()[0] == 0


def test_detached_it_comes_up_in_a_fresh_clone(up: Up, tmp_path: Path) -> None:
    """A clone has no ``.cleared/`` before the first command that writes."""
    up.ws.git("clone", "-q", str(up.ws.root), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    assert not (clone.root / ".cleared").exists()
    done = clone.process("up", "-d")
    try:
        assert done.code == 0 and "cleared down" in done.err, done
        assert clone.json("status")["ready"]
        assert not up.ws.json("status")["up"], "it is the clone's service only"
    finally:
        clone.ok("down")
    assert clone.git("status", "--porcelain") == ""


def test_status_names_each_agent_that_is_not_run_and_why(up: Up) -> None:
    """Row C7: committed without an approval, or with a header that cannot be read. D17, fault 15: one whose working
    copy somebody edits is run as approved, without a word."""
    up.agent("edited", HEARS, 'ctx_emit("x")')
    for name, header in (("mine", HEARS), ("torn", "trigger: event\nschedule: noon\n")):
        up.ws.put(f"agents/{name}.py", f'"""\nname: {name}\n{header}"""\nctx_emit("x")\n')
        up.ws.commit(f"agents/{name}.py")
    up.ws.put("agents/edited.py", f'"""\nname: edited\n{HEARS}"""\nctx_emit("y")\n')
    up.start()
    found = up.ws.json("status")
    states = {agent["name"]: agent["state"] for agent in found["agents"]}
    assert (states["mine"], states["torn"], states["edited"]) == ("unapproved", "unreadable", "approved")
    trouble = {line.split()[0]: line for line in found["trouble"]}
    assert trouble.keys() == {"mine", "torn"}
    assert all(" is not run: " in line for line in trouble.values())
    for name, why in (("mine", "nobody has approved"), ("torn", "`event:` line")):
        assert why in trouble[name]
    done = up.ws("status", "--check")
    assert done.code == 1 and all(line in done.out for line in trouble.values()), done
    shown = up.ws.ok("status").out
    assert all(f"! {line}" in shown for line in trouble.values())
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: {row["agent"] for row in up.log("run.refused")} == {"mine"} and up.log("run.succeeded"))
    assert {row["agent"] for row in up.log("run.succeeded")} == {"edited"}
    said = up.ws.read_events()
    assert '"name":"x"' in said and '"name":"y"' not in said, "what was approved, not the edit"
    assert up.stop()[0] == 0


def test_schedule_says_what_will_not_be_run_and_refuses_an_agent_without_one(up: Up) -> None:
    up.ws.put("agents/mine.py", '"""\nname: mine\ntrigger: schedule\nschedule: 0 9 * * *\n"""\nctx_today()\n')
    up.ws.commit("agents/mine.py")
    up.agent("hears", HEARS, 'ctx_emit("x")')
    assert {row["state"] for row in up.ws.json("schedule", "--agent", "mine")} == {"unapproved"}
    assert {row["state"] for row in up.ws.json("schedule", "--agent", "ingest")} == {"starter"}
    assert "unapproved: not run" in up.ws.ok("schedule", "--agent", "mine").out
    for name in ("nope", "hears"):  # one that is not there, and one that something else starts
        done = up.ws("schedule", "--agent", name)
        assert done.code == 2 and f"'{name}'" in done.err and "ingest" in done.err, done
        no_traceback(done)


def test_the_first_sigterm_says_that_it_was_heard(up: Up) -> None:
    """A run may take a while to end; meanwhile log, status and terminal tell why it is still there."""
    up.agent("slow", f"{HEARS}timeout: 60\n", SLOW.replace("60000000", "20000000"))
    process = up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.board().get("running"))
    process.send_signal(signal.SIGTERM)
    eventually(lambda: up.log("service.stopping"))
    assert process.poll() is None, "it is said while the run is on"
    assert up.ws.json("status")["stopping"] and "ends after the current run" in up.ws.ok("status").out
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "ends after the current run" in err.decode()
    assert len(up.log("service.stopping")) == len(up.log("run.succeeded")) == 1
    assert not up.log("run.interrupted")

"""Stopping, restarting and looking at the loop of cycles, with real processes and signals.

(F22–F26, F28, F30, F31, F35)"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_engine import FakeEngine, begin_hanging, good
from harness import Workspace, refused, unchanged
from patience import PATIENCE
from running import has_ended
from terminals import run_on_terminal

from cleared.base.process_identity import process_start
from cleared.work.cycles.cycle_state import initial_state, read_state, write_state
from cleared.work.cycles.engines import load_engine
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_f24_f25_an_immediate_stop_leaves_nothing(cyc: Workspace, engines: dict[str, FakeEngine], name: str) -> None:
    """F24, F25: --now and SIGTERM, for all engines alike: no child is left, and the pid file is gone."""
    engine = engines[name]
    engine.plan({"hang": True, "ignore_term": True, "grandchild": "detached"})
    for way in ("now", "signal"):
        (engine.folder / "grandchild").unlink(missing_ok=True)
        process = begin_hanging(cyc, engine, name=name)
        pid_file = cyc.root / load_engine(name).pid_file
        assert int(pid_file.read_text()) == read_state(cyc.root)["pid"]
        if way == "now":
            cyc.ok("cycle", "stop", "--now")
        else:
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert has_ended(engine.folder / "grandchild")
        assert not pid_file.exists() and read_state(cyc.root)["status"] == "stopped"
        assert read_state(cyc.root)["last_cycle"]["outcome"] == "stopped"


def test_f22_a_stop_lets_the_cycle_end(cyc: Workspace, engine: FakeEngine) -> None:
    """F22: the stop file drains: the cycle is finished and taken over, exit code 0."""
    engine.plan(good(hang=True))
    process = begin_hanging(cyc, engine, "--interval", "600")
    assert "after the cycle" in cyc.ok("cycle", "stop").err
    assert (cyc.root / ".auto-loop-stop").exists()
    engine.let_go()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and read_state(cyc.root)["last_cycle"]["outcome"] == "ok"
    assert len(engine.calls) == 1 and not (cyc.root / ".auto-loop-stop").exists()
    assert "No loop" in cyc.ok("cycle", "stop").err


def test_f26_one_loop_a_workspace(cyc: Workspace, engine: FakeEngine) -> None:
    """F26: a second start is refused; what a killed loop left, and a pid that is somebody else's now, is recovered."""
    engine.plan({"hang": True})
    process = begin_hanging(cyc, engine)
    second = cyc(*engine.argv())
    assert second.code == 5 and "runs already" in second.err
    assert cyc("cycle", "reset-consensus", "--yes").code == 5
    status = cyc.json("cycle", "status")
    assert (status["status"], status["engine"], status["cycle"]) == ("running", "claude", 1)
    pid = read_state(cyc.root)["pid"]
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert cyc.json("cycle", "status")["reason"] == "its process died while it was running"
    text = cyc.read(".auto-loop-state").replace(f'"pid": {pid}', f'"pid": {os.getpid()}')
    cyc.put(".auto-loop-state", text)
    cyc.put(".auto-loop-claude.pid", f"{os.getpid()}\n")
    assert "No loop" in cyc.ok("cycle", "stop", "--now").err, "another process that has the number is not signalled"
    engine.plan(good())
    done = cyc(*engine.argv())
    assert done.code == 0 and read_state(cyc.root)["cycle"] == 2


def test_f28_looking_at_an_empty_and_a_stopped_loop(cyc: Workspace, engine: FakeEngine) -> None:
    with unchanged(cyc):
        assert "stopped" in cyc.ok("cycle", "status").out and "No cycle" in cyc.ok("cycle", "last").err
        assert cyc.json("cycle", "cycles") == []
    engine.plan(good("State of things.", stderr="working on it\n"))
    assert cyc(*engine.argv()).code == 0
    shown = cyc.ok("cycle", "status").out
    assert "1: ok: done" in shown and "State of things." in shown
    assert "working on it" in cyc.ok("cycle", "last").out
    assert "logs/cycle-claude-0001-" in cyc.ok("cycle", "cycles").out
    monitor = cyc.start("cycle", "monitor")
    assert monitor.stdout is not None
    lines = [monitor.stdout.readline().decode() for _ in range(2)]
    monitor.send_signal(signal.SIGINT)
    monitor.communicate(timeout=PATIENCE)
    assert "cycle 1 begins" in lines[0] and "cycle 1: ok" in lines[1]


def test_f35_the_consensus_is_reset_after_a_question(cyc: Workspace, engine: FakeEngine) -> None:
    """F35: it asks, keeps a backup, and refuses where nobody answers."""
    cyc.put("memories/consensus.md", "mine")
    command, question = ["cycle", "reset-consensus"], "memories/consensus.md by the initial one?"
    with unchanged(cyc):
        assert run_on_terminal(cyc.root, command, [(question, "n")])[0] == 1
        refused(cyc.process(*command, stdin=b"y\n"), 2, "there is no terminal to ask on: pass --yes", "ARGS=--yes")
    code, shown = run_on_terminal(cyc.root, command, [(question, "y")])
    assert code == 0, shown
    assert "Nothing has been done yet" in cyc.read("memories/consensus.md")
    assert [path.read_text() for path in (cyc.root / "memories").glob("consensus.md.2*.bak")] == ["mine"]


def test_the_documented_names_exist_and_work(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """The twelve make targets and the scripts of the published loop, from the top of the workspace."""
    scripts = ["auto-loop", "auto-loop-qwen", "auto-loop-opencode", "auto-loop-claude", "monitor", "stop-loop"]
    assert all(os.access(cyc.root / f"scripts/core/{name}.sh", os.X_OK) for name in scripts)
    ignored = cyc.git(
        "check-ignore",
        ".auto-loop.pid",
        ".auto-loop-state",
        ".auto-loop-stop",
        "logs/auto-loop.log",
        "logs/cycle-0001-20250101-000000.log",
        "memories/consensus.md.bak",
        check=False,
    )
    assert len(ignored.split()) == 6 and "PROMPT.md" in cyc.git("ls-files")
    assert cyc.json("cycle", "init")["made"] == []
    tool = tmp_path / "bin/cleared"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m cleared "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "CLAUDE_BIN": str(engine.binary)}
    engine.plan(good())

    def run(*argv: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, cwd=cyc.root, env=environment, capture_output=True, check=False, timeout=PATIENCE)

    started = run("scripts/core/auto-loop-claude.sh", "--max-cycles", "1")
    assert started.returncode == 0 and len(engine.calls) == 1, started
    assert run("scripts/core/stop-loop.sh").returncode == 0
    if shutil.which("make"):
        targets = ["status", "stop"]
        assert [run("make", target).returncode for target in targets] == [0] * len(targets)
        listed = {
            "start",
            "start-awake",
            "stop",
            "status",
            "monitor",
            "last",
            "cycles",
            "pause",
            "resume",
            "install",
            "clean-logs",
            "reset-consensus",
        }
        assert all(run("make", "-n", target).returncode == 0 for target in listed)
        assert run("make", "reset-consensus").returncode != 0, "there is no terminal"
        cyc.put("memories/consensus.md", "mine")
        assert run("make", "reset-consensus", "ARGS=--yes").returncode == 0
        assert "Nothing has been done yet" in cyc.read("memories/consensus.md")


def test_f30_the_service_file(cyc: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """F30: a unit that restarts after a crash and not after a stop; the permission only where it was given."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    refusal = cyc("cycle", "install", "--print")
    assert refusal.code == 3 and "--allow-ai" in refusal.err
    text = cyc.ok("cycle", "install", "--print", "--allow-ai", "--engine", "qwen").out
    assert 'cycle" "start" "--engine" "qwen"' in text or "cycle start --engine qwen" in text.replace('"', "")
    assert "Restart=on-failure" in text and "CLEARED_ALLOW_AI=1" in text and "cleared cycle uninstall" in text
    if shutil.which("systemd-analyze"):
        unit = cyc.root.parent / "x.service"
        unit.write_text(text)
        checked = subprocess.run(["systemd-analyze", "verify", "--user", str(unit)], capture_output=True, check=False)
        assert b"Unknown" not in checked.stderr, checked
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    plist = cyc.ok("cycle", "install", "--print", "--allow-ai").out
    assert "<string>cycle</string>" in plist and "Crashed" in plist and "SuccessfulExit" not in plist


def test_f31_keeping_awake(cyc: Workspace, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: the system's program is used where there is one; else it is refused, with nothing started. The cycles end it
    also where it ignores SIGTERM."""
    engine.plan(good())
    folder = tmp_path / "path"
    folder.mkdir()
    for name in ("git", "sleep"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    argv = engine.argv("--awake")
    refusal = cyc(*argv)
    assert refusal.code == 2 and "systemd-inhibit" in refusal.err and engine.calls == []
    tool = folder / "systemd-inhibit"
    tool.write_text(f'#!/bin/sh\ntrap "" TERM\necho "$@" > {tmp_path}/inhibited\nsleep 600\n')
    tool.chmod(0o755)
    assert cyc(*argv).code == 0
    assert "--what=idle:sleep" in (tmp_path / "inhibited").read_text() and len(engine.calls) == 1


def test_a_forged_state_has_no_stranger_killed(cyc: Workspace) -> None:
    """The state is a file that git can bring. Only who holds the lock of the loop is it, and gets a signal."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        forged = initial_state() | {"status": "running", "engine": "claude", "pid": stranger.pid}
        write_state(cyc.root, forged | {"pid_started": process_start(stranger.pid)})
        assert cyc.json("cycle", "status")["status"] == "stopped"
        assert "No loop of cycles runs here" in cyc.ok("cycle", "stop", "--now").err
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("name", [".gitignore", "scripts", "memories"])
def test_init_writes_through_no_link(ws: Workspace, tmp_path: Path, name: str) -> None:
    """Whoever can push puts one there: what git is to ignore was added to whatever file it leads to."""
    outside = tmp_path / "outside"
    if name == ".gitignore":
        outside.write_text("mine\n")
    else:
        outside.mkdir()
    if (ws.root / name).exists():
        (ws.root / name).rename(tmp_path / "before")
    (ws.root / name).symlink_to(outside)
    with unchanged(ws):
        refused(ws("cycle", "init"), 4, f"{name}: it is a link")
    assert outside.read_text() == "mine\n" if name == ".gitignore" else not list(outside.iterdir())

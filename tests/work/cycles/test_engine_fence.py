"""What an engine tries on what lies outside of its fence, and what is left of it when its loop is killed.

With the fence switched off each attempt succeeds.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from fake_engine import FakeEngine, good, wait_until
from fence_attack import ALWAYS, ATTACK, SENT_OUT, aimed_at, close_key, possible
from harness import Workspace
from running import HOLD_MARK, has_ended

from cleared.processes import fences, landlock
from cleared.processes.confinement import landlock_abi
from cleared.processes.fences import make_fence
from cleared.processes.namespaces import OfferedNamespaces, offered_namespaces
from cleared.work.cycles import cycle
from cleared.work.cycles.engine_keeper import EngineKeeper

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")


@pytest.mark.parametrize("fence", ["whole", "without namespaces", "on an older kernel", "off"])
def test_an_engine_reaches_nothing_outside(
    cyc: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, fence: str
) -> None:
    """On an older kernel Landlock does not keep signals in, nor what truncates a file. Having the machine's network, it
    sees which sockets there are."""
    if fence in ("without namespaces", "on an older kernel"):
        monkeypatch.setattr(fences, "offered_namespaces", OfferedNamespaces)
    if fence == "on an older kernel":
        monkeypatch.setattr(fences, "landlock_abi", lambda: 2)
    (engine.folder / "attack.py").write_text(ATTACK)
    if fence == "off":
        monkeypatch.setattr(cycle, "engine_fence", lambda *_: None)
    with aimed_at(cyc) as outside:
        engine.plan(good(run=[str(engine.folder / "attack.py"), *outside.argv(cyc)]))
        cyc(
            "cycle",
            "start",
            "--engine",
            "claude",
            "--allow-ai",
            "--claude-bin",
            str(engine.binary),
            "--interval",
            "0",
            "--max-cycles",
            "1",
        )
        close_key()
        found = possible(cyc.ok("cycle", "last").out)
        wanted = {"off": ALWAYS, "on an older kernel": SENT_OUT}.get(fence, set()) | {"names of sockets"}
        assert found >= wanted if fence == "off" else found == wanted, (found - wanted, wanted - found)
        assert outside.has_heard() is (fence == "off")


DAEMON = (
    HOLD_MARK
    + """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        held = hold_mark("mark")
        time.sleep(600)
    os._exit(0)
held = hold_mark("first")
time.sleep(600)
"""
)


@pytest.mark.parametrize("fenced", ["whole", "without namespaces", "off"])
def test_a_daemon_of_an_engine_ends_when_loop_and_keeper_are_killed_at_once(tmp_path: Path, fenced: str) -> None:
    """It has left the session and its parent, and ignores what it can. Without namespaces its guard ends it."""
    if fenced == "whole" and not offered_namespaces().processes:
        pytest.skip("this machine gives no namespaces")
    clone, probe = tmp_path / "clone", tmp_path / "probe"
    marks = [clone / name for name in ("mark", "first")]
    clone.mkdir()
    probe.write_text("x")
    rules = [landlock.read_rule(Path(place)) for place in (sys.prefix, sys.base_prefix)]
    offered = offered_namespaces() if fenced == "whole" else OfferedNamespaces()
    fence = make_fence([tmp_path / "books"], rules, [clone], outside=probe, network="machine", namespaces=offered)
    assert fence is not None
    reading, writing = os.pipe()
    loop = os.fork()
    if loop == 0:
        keeper = EngineKeeper(
            [sys.executable, "-c", DAEMON], clone, clone, {"PATH": os.defpath}, fence if fenced != "off" else None
        )
        os.write(writing, f"{keeper._pid}\n".encode())
        signal.pause()
        os._exit(0)
    keeper_pid = int(os.read(reading, 20))
    for mark in marks:
        wait_until(mark.exists)
        assert not has_ended(mark)
    for pid in (keeper_pid, loop):
        os.kill(pid, signal.SIGSTOP)
    for pid in (loop, keeper_pid):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(loop, 0)
    for mark in marks:
        if fenced != "off":
            wait_until(lambda mark=mark: has_ended(mark))
        else:
            assert not has_ended(mark)
            os.kill(int(mark.read_text()), signal.SIGKILL)

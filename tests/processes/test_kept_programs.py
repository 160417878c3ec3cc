"""Programs that end with whoever started them, whoever of them is killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from running import HOLD_MARK, eventually, has_ended

from cleared.base.errors import WorkspaceError
from cleared.processes import landlock, leftovers
from cleared.processes.confinement import landlock_abi
from cleared.processes.fences import make_fence
from cleared.processes.kept_programs import ProgramKeeper, run_kept
from cleared.processes.namespaces import OfferedNamespaces, offered_namespaces
from cleared.processes.program import Ending, Program, end_at

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
while not os.path.exists("mark"):
    time.sleep(0.01)
time.sleep(float(sys.argv[1]))
"""
)


def daemon(folder: Path, seconds: float = 600.0) -> Program:
    """A program that leaves a process behind: without its session and its parent, and deaf to what can be ignored."""
    folder.mkdir(exist_ok=True)
    environment = {"PATH": os.defpath, leftovers.FOLDER_VARIABLE: str(folder)}
    return Program([sys.executable, "-c", DAEMON, str(seconds)], folder, environment)


def marks_of(folder: Path) -> list[Path]:
    return [folder / name for name in ("mark", "first")]


@pytest.mark.parametrize("wall", [True, False])
def test_what_it_leaves_behind_is_ended_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """By its keeper, which has become the parent. Without a process in between it stays."""
    if wall:
        assert run_kept(daemon(tmp_path, 0.0), bool, str) == Ending(0, "")
    else:
        from cleared.processes.program import run_program

        assert run_program(daemon(tmp_path, 0.0), bool, str) == Ending(0, "")
    assert has_ended(tmp_path / "mark") is wall
    if not wall:
        os.kill(int((tmp_path / "mark").read_text()), signal.SIGKILL)


def test_it_is_ended_at_its_limit_and_what_it_wrote_is_there(tmp_path: Path) -> None:
    out, errors = bytearray(), bytearray()
    text = "import sys, time; sys.stderr.write('e' * 100_000); print('o' * 100_000, flush=True); time.sleep(600)"
    program = Program([sys.executable, "-c", text], tmp_path, {"PATH": os.defpath})
    ending = run_kept(program, out.extend, end_at(1.0), errors.extend)
    assert ending.reason == "stopped at its limit of 1 s" and ending.code == -signal.SIGTERM
    assert (out.strip(), errors) == (b"o" * 100_000, b"e" * 100_000)


FLOOD = "import os\nwhile True: os.write(1, b'x' * 65536)"


def slow_take(then: Callable[[int], object]) -> Callable[[bytes], None]:
    """Slower than any program writes, and it says so when nobody asks for a reason any more."""
    taken = 0

    def take(data: bytes) -> None:
        nonlocal taken
        taken += 1
        assert taken < 200, "what it writes is taken without end"
        time.sleep(0.02)
        then(taken)

    return take


@pytest.mark.parametrize("reason", ["limit", "stop", "signal"])
def test_who_writes_faster_than_it_is_taken_is_ended_too(tmp_path: Path, reason: str) -> None:
    """At its limit, when somebody wants that, and on a signal to this process."""
    asked: list[Callable[[], str]] = []

    def ask(taken: int) -> None:
        if taken == 3 and reason == "signal":
            os.kill(os.getpid(), signal.SIGUSR1)
        elif taken == 3:
            asked.append(end_at(0.3) if reason == "limit" else lambda: reason)

    before = signal.signal(signal.SIGUSR1, lambda *_: asked.append(lambda: reason))
    try:
        program = Program([sys.executable, "-c", FLOOD], tmp_path, {"PATH": os.defpath})
        ending = run_kept(program, slow_take(ask), lambda: "".join(find_reason() for find_reason in asked))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ending == Ending(-signal.SIGTERM, "stopped at its limit of 0.3 s" if reason == "limit" else reason)


def test_requests_do_not_wait_for_what_is_not_taken(tmp_path: Path) -> None:
    """Of a program nothing is read while its owner does other things; it waits, and others are started and end."""

    def give_up(number: int, frame: object) -> None:
        raise AssertionError("owner and keeper wait for each other")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(100)
    with ProgramKeeper() as keeper:
        flood = Program([sys.executable, "-c", FLOOD], tmp_path, {"PATH": os.defpath})
        loud = [keeper.start(flood, lambda data: time.sleep(0.02)) for _ in range(3)]
        time.sleep(0.2)
        large = Program(["/bin/cat"], tmp_path, {"PATH": os.defpath}, input=b"x" * (8 << 20), log=tmp_path / "log")
        assert keeper.wait(keeper.start(large), 60.0) == Ending(0, "") and (tmp_path / "log").stat().st_size == 8 << 20
        for pid in loud:
            keeper.end(pid, "enough")
        assert [keeper.wait(pid, 60.0) for pid in loud] == [Ending(-signal.SIGTERM, "enough")] * 3
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_one_that_ends_takes_no_other_with_it(tmp_path: Path) -> None:
    with ProgramKeeper() as keeper:
        long, short = keeper.start(daemon(tmp_path / "long")), keeper.start(daemon(tmp_path / "short", 0.0))
        eventually(lambda: all(mark.exists() for mark in marks_of(tmp_path / "long")))
        assert keeper.wait(short, 60.0) == Ending(0, "")
        assert all(has_ended(mark) for mark in marks_of(tmp_path / "short"))
        assert not any(has_ended(mark) for mark in marks_of(tmp_path / "long"))
        keeper.end(long, "enough")
        assert keeper.wait(long, 60.0) == Ending(-signal.SIGTERM, "enough")
        assert all(has_ended(mark) for mark in marks_of(tmp_path / "long"))


def test_a_killed_keeper_takes_its_programs_with_it(tmp_path: Path) -> None:
    """They are known by their folder; and it starts nothing more."""
    with ProgramKeeper() as keeper:
        pid = keeper.start(daemon(tmp_path))
        eventually(lambda: all(mark.exists() for mark in marks_of(tmp_path)))
        os.kill(keeper.pid, signal.SIGKILL)
        assert keeper.wait(pid, 60.0) == Ending(-9, "the process that watches over it was killed")
        eventually(lambda: all(has_ended(mark) for mark in marks_of(tmp_path)))
        with pytest.raises(WorkspaceError, match="ended by itself"):
            keeper.start(daemon(tmp_path))


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    with ProgramKeeper() as keeper:
        with pytest.raises(FileNotFoundError):
            keeper.start(Program(["/no/such/program"], tmp_path, {}))
        with pytest.raises(FileNotFoundError):
            keeper.start(Program(["/bin/true"], tmp_path / "gone", {}))
        assert keeper.wait(keeper.start(Program(["/bin/true"], tmp_path, {})), 60.0) == Ending(0, "")


@pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("fenced", ["whole", "without namespaces", "off"])
def test_a_daemon_ends_when_owner_and_keeper_are_killed_at_once(tmp_path: Path, fenced: str) -> None:
    """The kernel ends it; without namespaces its guard does. With no fence it stays."""
    if fenced == "whole" and not offered_namespaces().processes:
        pytest.skip("this machine gives no namespaces")
    folder, probe = tmp_path / "clone", tmp_path / "probe"
    folder.mkdir()
    probe.write_text("x")
    rules = [landlock.read_rule(Path(place)) for place in (sys.prefix, sys.base_prefix)]
    offered = offered_namespaces() if fenced == "whole" else OfferedNamespaces()
    fence = make_fence([tmp_path / "books"], rules, [folder], outside=probe, network="machine", namespaces=offered)
    assert fence is not None
    argv = [sys.executable, "-c", DAEMON, "600"]
    program = Program(argv, folder, {"PATH": os.defpath}, fence if fenced != "off" else None)
    reading, writing = os.pipe()
    owner = os.fork()
    if owner == 0:
        keeper = ProgramKeeper()
        keeper.start(program)
        os.write(writing, f"{keeper.pid}\n".encode())
        signal.pause()
        os._exit(0)
    keeper_pid = int(os.read(reading, 20))
    eventually(lambda: all(mark.exists() for mark in marks_of(folder)))
    assert not any(has_ended(mark) for mark in marks_of(folder))
    for pid in (keeper_pid, owner):
        os.kill(pid, signal.SIGSTOP)
    for pid in (owner, keeper_pid):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(owner, 0)
    if fenced != "off":
        eventually(lambda: all(has_ended(mark) for mark in marks_of(folder)))
        return
    for mark in marks_of(folder):
        assert not has_ended(mark)
        os.kill(int(mark.read_text()), signal.SIGKILL)

"""One program: how it is started, what it writes, and that nothing of it is left, however it ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from running import HOLD_MARK, eventually, has_ended

from cleared.processes.message_pipe import MessagePipe
from cleared.processes.program import Ending, Program, RunningProgram, end_at, run_program

ENVIRONMENT = {"PATH": os.defpath}
STUBBORN = (
    HOLD_MARK
    + """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = os.fork()
held = hold_mark("child" if child == 0 else "first")
print("begun", flush=True)
time.sleep(600)
"""
)


def python(folder: Path, text: str, **more: object) -> Program:
    return Program([sys.executable, "-c", text], folder, ENVIRONMENT, **more)  # type: ignore[arg-type]


def test_what_it_reads_and_writes(tmp_path: Path) -> None:
    """A large input that it does not read to the end holds up nobody; all that it has written is there."""
    text = (
        "import sys; sys.stdin.read(3); sys.stdout.write('o' * 300_000); sys.stderr.write('e' * 300_000); sys.exit(3)"
    )
    out, errors = bytearray(), bytearray()
    program = python(tmp_path, text, input=b"x" * (1 << 20))
    assert run_program(program, out.extend, str, errors.extend) == Ending(3, "")
    assert (out, errors) == (b"o" * 300_000, b"e" * 300_000)
    both = bytearray()
    assert run_program(program, both.extend, str).code == 3
    assert (both.count(b"o"), both.count(b"e")) == (300_000, 300_000)


def test_a_log_is_a_new_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = python(tmp_path, "import sys; print('one'); sys.stderr.write('two')", log=log)
    run_program(program, bool, str)
    assert sorted(log.read_text().split()) == ["one", "two"] and log.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        run_program(program, bool, str)
    log.unlink()
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        run_program(program, bool, str)
    assert not (tmp_path / "elsewhere").exists()


def test_at_its_limit_its_whole_group_is_killed(tmp_path: Path) -> None:
    """Though all of it ignores SIGTERM. What it wrote until then is there."""
    marks, out = [tmp_path / "child", tmp_path / "first"], bytearray()

    def find_reason() -> str:
        return "long enough" if all(mark.exists() for mark in marks) else ""

    ending = run_program(python(tmp_path, STUBBORN), out.extend, find_reason)
    assert ending == Ending(-signal.SIGKILL, "long enough") and b"begun" in out
    eventually(lambda: all(has_ended(mark) for mark in marks))


def test_who_writes_without_end_is_ended_too(tmp_path: Path) -> None:
    ending = run_program(python(tmp_path, "while True: print('x' * 10_000)"), bool, end_at(0.5))
    assert ending.reason == "stopped at its limit of 0.5 s" and ending.code < 0


def test_who_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    """Whatever is raised while it runs, the program is ended."""

    def interrupt() -> str:
        if (tmp_path / "first").exists():
            raise KeyboardInterrupt
        return ""

    with pytest.raises(KeyboardInterrupt):
        run_program(python(tmp_path, STUBBORN), bool, interrupt)
    assert has_ended(tmp_path / "first")


@pytest.mark.parametrize("may_leave", [True, False])
def test_what_it_has_started_may_stay_where_that_is_wanted(tmp_path: Path, may_leave: bool) -> None:
    """Only where it ends by itself."""
    text = STUBBORN.replace("time.sleep(600)", "time.sleep(600 if child == 0 else 0)").replace(
        'print("begun", flush=True)', "while child and not os.path.exists('child'): time.sleep(0.01)"
    )
    assert run_program(python(tmp_path, text, may_leave=may_leave), bool, str).code == 0
    if not may_leave:
        eventually(lambda: has_ended(tmp_path / "child"))
    else:
        assert not has_ended(tmp_path / "child")
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_its_number_is_its_own_until_it_is_settled(tmp_path: Path) -> None:
    """It is not reaped before its group has been killed: a signal must reach no stranger."""
    running = RunningProgram(python(tmp_path, ""), bool)
    eventually(lambda: not running.step())
    assert Path(f"/proc/{running.pid}").exists() or sys.platform != "linux"
    assert running.settle() == Ending(0, "")
    with pytest.raises(ChildProcessError):
        os.waitpid(running.pid, os.WNOHANG)


def test_messages_come_whole_and_in_order() -> None:
    one, other = MessagePipe.make_pair()
    child = os.fork()
    if child == 0:
        one.close()
        for message in ("first", b"x" * 5_000_000, {"last": 3}):
            other.send(message)
        os._exit(0)
    other.close()
    time.sleep(0.05)
    assert one.has_message(10.0)
    assert [one.receive() for _ in range(3)] == ["first", b"x" * 5_000_000, {"last": 3}]
    os.waitpid(child, 0)
    one.send("nobody reads this")
    with pytest.raises(EOFError):
        one.receive()
    one.close()

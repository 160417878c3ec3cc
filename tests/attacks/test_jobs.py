"""Fault 7: what a plug-in's job tries on processes that are not its own, on the machine and on what is left of it.

Each attack is a script that a real job runs. With the one wall that is for it switched off, it succeeds.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, no_traceback, refused

from cleared import app
from cleared.loop import job_confinement, job_processes
from cleared.sandbox import landlock, seccomp, syscalls
from cleared.sandbox.confinement import landlock_abi

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a job with")
KINDS = '''
import ctypes, json, os, signal, sys, time
from cleared.jobs.job_types import JobType

attack = JobType("attack", "An attack.", function="attack_kinds:do_attack", target="path", default_target="attack.py",
              writes=("made",), timeout=30)


def do_attack(job):
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number, *arguments):
        """0 where it is done, else the error's number."""
        ctypes.set_errno(0)
        found = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
        if found == 0 and number == CLONE:
            os._exit(0)
        return ctypes.get_errno() if found == -1 else 0

    CLONE = 56 if os.uname().machine == "x86_64" else 220
    said = {}
    exec(compile((job.root / "attack.py").read_text(), "attack.py", "exec"), globals() | locals())
    (job.root / "made/said").write_text(json.dumps(said))
    return "tried"
'''
COLUMN = 0 if platform.machine() == "x86_64" else 1


class Jobs:
    """A workspace whose loop runs ``attack.py`` as a job, in processes that are forked from this one."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws

    def run(self, text: str) -> Any:
        """What the attack has found out; None where it did not come to its end."""
        said = self.ws.root / "made/said"
        said.unlink(missing_ok=True)
        self.ws.put("attack.py", text)
        self.ws("loop", "run", "--once", "--enqueue", "attack", "--sleep", "0")
        return json.loads(said.read_text()) if said.exists() else None

    def calls(self, *wanted: tuple[str, tuple[int, ...]]) -> dict[str, int]:
        """The error of each system call, 0 where it was done."""
        lines = [f"said[{name!r}] = call({syscalls.NUMBERS[name][COLUMN]}, *{args!r})" for name, args in wanted]
        found: dict[str, int] = self.run("\n".join(lines))
        return found


@pytest.fixture
def jobs(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    folder = tmp_path / "plugin"
    info = folder / "attack_kinds-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "attack_kinds.py").write_text(KINDS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: attack_kinds\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cleared.jobs]\nattack = attack_kinds:attack\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv("CLEARED_CLOCK")
    ws.config("loop.plugins=[attack]", "loop.max_failures=1000")
    (ws.root / "made").mkdir()
    yield Jobs(ws)
    sys.modules.pop("attack_kinds", None)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the same user."""
    found = subprocess.Popen(["sleep", "60"])
    yield found
    found.kill()
    found.wait()


def no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = seccomp._pack_filter([(seccomp._RET, 0, 0, seccomp._ALLOW)])
    monkeypatch.setattr(seccomp, "job_program", lambda *_, **__: everything)


def no_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel before Landlock's sixth ABI."""
    monkeypatch.setattr(landlock, "SCOPES", 99)
    job_confinement._system_rules.cache_clear()


NICER = 17
"""A priority that no test run has itself."""


def on_others(pid: int) -> list[tuple[str, tuple[int, ...]]]:
    return [
        ("sched_setaffinity", (pid, 0, 0)), ("sched_setscheduler", (pid, -1, 0)), ("sched_setparam", (pid, 0)),
        ("sched_setattr", (pid, 0, 0)), ("setpriority", (0, pid, NICER)), ("ioprio_set", (1, pid, 3 << 13)),
        ("fcntl", (0, 8, pid)), ("prlimit64", (pid, resource.RLIMIT_NOFILE, 0, 0)),
    ]  # fmt: skip


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_does_nothing_to_other_processes(
    jobs: Jobs, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7"""
    if not wall:
        no_filter(monkeypatch)
    found = jobs.calls(*on_others(stranger.pid))
    assert {name for name, error in found.items() if error == errno.EPERM} == (set(found) if wall else set()), found
    assert (os.getpriority(os.PRIO_PROCESS, stranger.pid) == NICER) is not wall


LIMIT = """
import resource
try:
    resource.prlimit({pid}, resource.RLIMIT_NOFILE, (7, 7))
    said["done"] = True
except PermissionError:
    said["done"] = False
"""


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_sets_no_limit_of_another_process(
    jobs: Jobs, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: with a limit of no CPU time it killed any process of its user, its supervisor among them."""
    if not wall:
        no_filter(monkeypatch)
    assert jobs.run(LIMIT.format(pid=stranger.pid)) == {"done": not wall}
    assert (resource.prlimit(stranger.pid, resource.RLIMIT_NOFILE) == (7, 7)) is not wall


def test_a_job_does_to_itself_what_programs_do(jobs: Jobs) -> None:
    """Fault 7: the walls are for others."""
    found = jobs.run(
        "import resource, subprocess, threading\n"
        "resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "os.nice(1); os.setpriority(os.PRIO_PROCESS, 0, 3); os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        "thread = threading.Thread(target=lambda: said.update(thread=1)); thread.start(); thread.join()\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True); child.terminate()\n"
        "said['child'] = child.wait()\n"
        "pid = os.fork()\n"
        "if not pid: signal.pause()\n"
        "signal.pidfd_send_signal(os.pidfd_open(pid), 9)\n"
        "said['forked'] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "said['shell'] = subprocess.run('sleep 60 & kill $!; wait; echo x | cat', shell=True).returncode\n"
    )
    assert found == {"thread": 1, "child": -15, "forked": -9, "shell": 0}


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_reaches_neither_the_machine_nor_what_processes_share(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: each call with arguments that no kernel takes, so that none of them is ever done."""
    if not wall:
        no_filter(monkeypatch)
    names = [name for name in syscalls.JOB_MAY_NOT if syscalls.NUMBERS[name][COLUMN] >= 0 and name != "vhangup"]
    found = jobs.calls(*[(name, (-1, 0) if name == "msgget" else (-1,) * 6) for name in names])
    said = {name for name, error in found.items() if error == errno.EPERM}
    if wall:
        assert said == set(names)
    else:
        assert not said & {"shmget", "semget", "msgget", "mq_open", "unshare", "kcmp", "keyctl", "io_uring_enter"}


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_makes_no_namespaces(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    """Fault 7: by ``clone``, whose flags are looked at, and by ``clone3``, which is said not to be there."""
    if not wall:
        no_filter(monkeypatch)
    user, plain = 0x10000000 | int(signal.SIGCHLD), int(signal.SIGCHLD)
    found = [jobs.calls(("clone", (flags, 0, 0, 0, 0)), ("clone3", (0, 0))) for flags in (user, plain)]
    assert [f["clone"] for f in found] == [errno.EPERM if wall else 0, 0], found
    assert found[0]["clone3"] == (errno.ENOSYS if wall else errno.EINVAL)


SIGNALS = """
import os
for name, pid in {{"stranger": {pid}, "watcher": os.getppid(), "all": -1}}.items():
    try:
        os.kill(pid, 0)
        said[name] = True
    except PermissionError:
        said[name] = False
"""


@pytest.mark.skipif(landlock_abi() < landlock.SCOPES, reason="this kernel does not keep signals inside")
def test_a_job_sends_no_signal_to_others(
    jobs: Jobs, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 7; and what holds where Landlock does not see to it: who watches over the job gets none."""
    text = SIGNALS.format(pid=stranger.pid)
    assert jobs.run(text) == {"stranger": False, "watcher": False, "all": False}
    no_scopes(monkeypatch)
    assert jobs.run(text) == {"stranger": True, "watcher": False, "all": False}
    no_filter(monkeypatch)
    assert jobs.run(text) == {"stranger": True, "watcher": True, "all": True}


STRAY = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        (job.root / "made/stray").write_text(str(os.getpid()))
        os.execve(sys.executable, [sys.executable, "-I", "-c", "import time; time.sleep(60)"], {})
    os._exit(0)
os.wait()
while not (job.root / "made/stray").exists():
    time.sleep(0.01)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(30)
"""


@pytest.mark.parametrize("wall", [True, False])
def test_what_a_job_leaves_behind_is_ended_when_its_watcher_is_killed(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: a child that has left session, parent and environment; whoever killed the watcher."""
    no_scopes(monkeypatch)
    no_filter(monkeypatch)
    if not wall:
        monkeypatch.setattr(job_processes, "end_children", lambda: None)
    jobs.run(STRAY)
    pid = int((jobs.ws.root / "made/stray").read_text())
    try:
        (job,) = jobs.ws.json("loop", "jobs")
        assert job["status"] == "failed_or_no_result", job
        state = Path(f"/proc/{pid}/stat")
        assert wall is not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] not in "ZX")
    finally:
        if not wall:
            os.kill(pid, signal.SIGKILL)


LOCK_OUT = """
from pathlib import Path
home = Path({home!r})
for path in (home / "approval-key", home / "loop-key", home / "workspaces", home):
    os.chmod(path, {mode})
said["done"] = True
"""


@contextmanager
def as_others_are() -> Iterator[None]:
    """Without what lets root read any file (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH), where this is root."""
    if os.geteuid():
        yield
        return
    libc, head, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, sets) == 0
    before = sets[0]
    sets[0] &= ~0b110
    assert libc.capset(head, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(head, sets) == 0


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_does_not_lock_a_person_out(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: it takes the right to read the key away; the next approval works all the same."""
    home = Path(os.environ["CLEARED_HOME"]) if "CLEARED_HOME" in os.environ else tmp_path / "home/cleared"
    assert jobs.run(LOCK_OUT.format(home=str(home), mode=0)) == {"done": True}
    assert home.stat().st_mode & 0o777 == 0
    if not wall:
        monkeypatch.setattr(app, "restore_access", list)
    try:
        with as_others_are():
            done = jobs.ws("config", "set", "sandbox.confine", "require")
    finally:
        for path in (home, *home.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
    no_traceback(done)
    assert (done.code == 0) is wall and ("it is given back" in done.err) is wall, done


def test_a_key_that_a_job_has_opened_to_others_is_refused_with_what_to_do(jobs: Jobs, tmp_path: Path) -> None:
    """Fault 7"""
    home = tmp_path / "home/cleared"
    assert jobs.run(LOCK_OUT.format(home=str(home), mode=0o755)) == {"done": True}
    done = jobs.ws("config", "set", "sandbox.confine", "require")
    refused(done, 4, "others can read the approval key", f"chmod 600 {home}/approval-key")
    (home / "approval-key").chmod(0o600)
    jobs.ws.ok("config", "set", "sandbox.confine", "require")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_both_machines_have_their_own_numbers(machine: str) -> None:
    """Fault 7: each call that is refused by name is compared with that machine's number."""
    made = seccomp.job_program(machine, own=False, scoped=False, guarded=(1234,))
    assert made is not None and len(made) % 8 == 0 and len(made) // 8 < 4096
    column = 0 if machine == "x86_64" else 1
    compared = {int.from_bytes(made[at + 4 : at + 8], "little") for at in range(0, len(made), 8) if made[at] == 0x15}
    wanted = {syscalls.NUMBERS[name][column] for name in (*syscalls.JOB_MAY_NOT, "clone3", "prlimit64", "kill")}
    assert wanted - {-1} <= compared
    assert len({n[column] for n in syscalls.NUMBERS.values() if n[column] >= 0}) == sum(
        n[column] >= 0 for n in syscalls.NUMBERS.values()
    ), "no number is there twice"
    assert seccomp.job_program("riscv64", own=False, scoped=True) is None

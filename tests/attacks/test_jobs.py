"""Fault 7: what a plug-in's job tries on processes that are not its own, on the machine and on what is left of it.

Each attack is a script that a real job runs. With the one wall that is for it switched off, it succeeds. Each wall
stands alone here, as on a machine that gives no namespaces; what those add is tested where ``namespaces`` is true.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fence_attack import ALWAYS, ATTACK, SENT_OUT, aimed_at, possible
from harness import no_traceback, refused
from held_jobs import COLUMN, Jobs, as_others_are
from running import has_ended

from cleared.changes import workspace_opening
from cleared.processes import fenced_start, fences, landlock, leftovers, seccomp, syscalls
from cleared.processes.confinement import landlock_abi
from cleared.processes.namespaces import OfferedNamespaces, offered_namespaces
from cleared.processes.syscall_numbers import NUMBERS

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a job with")


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the same user."""
    found = subprocess.Popen(["sleep", "60"])
    yield found
    found.kill()
    found.wait()


def no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = seccomp._pack_filter([(seccomp._RET, 0, 0, seccomp._ALLOW)])
    monkeypatch.setattr(seccomp, "confined_program", lambda *_, **__: everything)


def no_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel before Landlock's sixth ABI."""
    monkeypatch.setattr(landlock, "SCOPES", 99)
    fences._system_rules.cache_clear()


@pytest.mark.parametrize("fence", ["whole", "without namespaces", "on an older kernel", "off"])
def test_a_job_reaches_nothing_outside(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, fence: str) -> None:
    """All that engines and verification commands try, too; the file that it may read is its own target."""
    if fence == "whole":
        monkeypatch.setattr(fences, "offered_namespaces", offered_namespaces)
    if fence == "on an older kernel":
        monkeypatch.setattr(fences, "landlock_abi", lambda: 2)
    with aimed_at(jobs.ws) as outside:
        if fence == "off":
            jobs.ws.config("sandbox.confine=off")
        argv = outside.argv(jobs.ws, jobs.ws.root / "attack.py")
        said = jobs.run(
            "import subprocess\n"
            f"done = subprocess.run([sys.executable, '-I', '-c', {ATTACK!r}, *{argv!r}], cwd=job.root / 'made',\n"
            "                      stdout=subprocess.PIPE)\n"
            "said['text'] = done.stdout.decode()\n"
        )
        found = possible(said["text"])
        wanted = {"off": ALWAYS, "on an older kernel": SENT_OUT}.get(fence, set())
        assert found >= wanted if fence == "off" else found == wanted, (found - wanted, wanted - found)
        assert outside.has_heard() is (fence == "off")


NICER = 17
"""A priority that no test run has itself."""


def on_others(pid: int) -> list[tuple[str, tuple[int, ...]]]:
    return [
        ("sched_setaffinity", (pid, 0, 0)),
        ("sched_setscheduler", (pid, -1, 0)),
        ("sched_setparam", (pid, 0)),
        ("sched_setattr", (pid, 0, 0)),
        ("setpriority", (0, pid, NICER)),
        ("ioprio_set", (1, pid, 3 << 13)),
        ("fcntl", (0, 8, pid)),
        ("prlimit64", (pid, resource.RLIMIT_NOFILE, 0, 0)),
    ]


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_does_nothing_to_other_processes(
    jobs: Jobs, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7"""
    if not wall:
        no_filter(monkeypatch)
        monkeypatch.setattr(
            fenced_start, "drop_capabilities", lambda: None
        )  # else root's were out of reach all the same
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
        "os.nice(1); os.setpriority(os.PRIO_PROCESS, 0, os.nice(0) + 1)\n"
        "os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        "thread = threading.Thread(target=lambda: said.update(thread=1)); thread.start(); thread.join()\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True); child.terminate()\n"
        "said['child'] = child.wait()\n"
        "pid = os.fork()\n"
        "if not pid: signal.pause()\n"
        "signal.pidfd_send_signal(os.pidfd_open(pid), 9)\n"
        "said['forked'] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "said['shell'] = subprocess.run('sleep 60 & kill $!; wait; cat /dev/null', shell=True).returncode\n"
    )
    assert found == {"thread": 1, "child": -15, "forked": -9, "shell": 0}


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_reaches_neither_the_machine_nor_what_processes_share(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: each call with arguments that no kernel takes, so that none of them is ever done."""
    if not wall:
        no_filter(monkeypatch)
    names = [name for name in syscalls.CONFINED_MAY_NOT if NUMBERS[name][COLUMN] >= 0 and name != "vhangup"]
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
for name, pid in {{"stranger": {pid}, "watcher": os.getppid(), "loop": {loop}, "all": -1}}.items():
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
    """Fault 7; and what holds where Landlock does not see to it: none of the processes above the job gets one."""
    text = SIGNALS.format(pid=stranger.pid, loop=os.getpid())
    assert jobs.run(text) == {"stranger": False, "watcher": False, "loop": False, "all": False}
    no_scopes(monkeypatch)
    assert jobs.run(text) == {"stranger": True, "watcher": False, "loop": False, "all": False}
    no_filter(monkeypatch)
    assert jobs.run(text) == {"stranger": True, "watcher": True, "loop": True, "all": True}


STRAY = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        held = hold_mark(job.root / "made/stray")
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
    """Fault 7: a child that has left session, parent and environment; whoever killed the guard."""
    no_scopes(monkeypatch)
    no_filter(monkeypatch)
    if not wall:
        monkeypatch.setattr(leftovers, "end_children", lambda: None)
        monkeypatch.setattr(leftovers, "end_job_processes", lambda *_: None)
    jobs.run(STRAY)
    mark = jobs.ws.root / "made/stray"
    try:
        (job,) = jobs.ws.json("loop", "jobs")
        assert job["status"] == "failed", job
        assert has_ended(mark) is wall
    finally:
        if not wall:
            os.kill(int(mark.read_text()), signal.SIGKILL)


LOCK_OUT = """
from pathlib import Path
home = Path({home!r})
for path in (home / "approval-key", home / "loop-key", home / "workspaces", home, job.root / "agents/ingest.py"):
    for change in (lambda: os.chmod(path, {mode}), lambda: os.utime(path, (1, 1)), lambda: os.chown(path, 1, 1),
                   lambda: os.setxattr(path, "user.x", b"1")):
        try:
            change()
        except OSError:
            pass
said["done"] = True
"""


def no_attribute_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if what the job may not write were mounted read-only, which it is not."""
    made = seccomp.confined_program
    monkeypatch.setattr(seccomp, "confined_program", lambda *args, **more: made(*args, **more | {"attributes": "own"}))


def facts(folder: Path) -> dict[str, tuple[int, int, int, list[str]]]:
    """Mode, owner, time and attributes of all in a folder."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, os.listxattr(path))
    return found


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("wall", [True, False])
def test_a_job_changes_nothing_about_files_that_are_not_its_own(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespaces: bool, wall: bool
) -> None:
    """Neither modes nor owners, times or attributes, of keys and of the workspace: with read-only mounts, or none."""
    if namespaces and not offered_namespaces().mounts:
        pytest.skip("this machine gives no namespaces")
    if namespaces:
        offered = offered_namespaces() if wall else OfferedNamespaces()
        monkeypatch.setattr(fences, "offered_namespaces", lambda: offered)
    if not wall:
        no_attribute_wall(monkeypatch)
    home, agents = tmp_path / "home/cleared", jobs.ws.root / "agents"
    assert jobs.run("") == {}, "the keys are made by now"
    before = facts(home), facts(agents)
    assert jobs.run(LOCK_OUT.format(home=str(home), mode=0o755)) == {"done": True}
    after = facts(home), facts(agents)
    (home / "approval-key").chmod(0o600)
    assert (after == before) is wall


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("wall", [True, False])
def test_a_job_makes_no_file_that_others_run_as_this_user(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, namespaces: bool, wall: bool
) -> None:
    """Though it may change modes of its own files."""
    if namespaces:
        monkeypatch.setattr(fences, "offered_namespaces", offered_namespaces)
    if not wall:
        no_filter(monkeypatch)
    jobs.run(
        "import shutil; shutil.copy('/bin/sh', job.root / 'made/sh')\n"
        "for mode in (0o4755, 0o2755):\n"
        "    try:\n"
        "        os.chmod(job.root / 'made/sh', mode)\n"
        "    except PermissionError:\n"
        "        pass\n"
        "try:\n"
        "    os.close(os.open(job.root / 'made/other', os.O_CREAT | os.O_WRONLY, 0o4755))\n"
        "except PermissionError:\n"
        "    pass\n"
    )
    made = [path.stat().st_mode & 0o6000 for path in (jobs.ws.root / "made").iterdir() if path.name != "said"]
    assert (not any(made)) is wall and made


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_does_not_lock_a_person_out(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 7: it takes the right to read the key away; the next approval works all the same."""
    no_attribute_wall(monkeypatch)
    home = Path(os.environ["CLEARED_HOME"]) if "CLEARED_HOME" in os.environ else tmp_path / "home/cleared"
    assert jobs.run(LOCK_OUT.format(home=str(home), mode=0)) == {"done": True}
    assert home.stat().st_mode & 0o777 == 0
    if not wall:
        monkeypatch.setattr(workspace_opening, "restore_access", list)
    try:
        with as_others_are():
            done = jobs.ws("config", "set", "sandbox.confine", "require")
    finally:
        for path in (home, *home.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
    no_traceback(done)
    assert (done.code == 0) is wall and ("it is given back" in done.err) is wall, done


def test_a_key_that_a_job_has_opened_to_others_is_refused_with_what_to_do(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 7"""
    no_attribute_wall(monkeypatch)
    home = tmp_path / "home/cleared"
    assert jobs.run(LOCK_OUT.format(home=str(home), mode=0o755)) == {"done": True}
    done = jobs.ws("config", "set", "sandbox.confine", "require")
    refused(done, 4, "others can read the approval key", f"chmod 600 {home}/approval-key")
    (home / "approval-key").chmod(0o600)
    jobs.ws.ok("config", "set", "sandbox.confine", "require")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_job_that_must_be_confined_is_not_started_without_namespaces(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """``sandbox.confine: require``: the result names the wall that is missing."""
    if is_there and not offered_namespaces().processes:
        pytest.skip("this machine gives no namespaces")
    offered = offered_namespaces() if is_there else OfferedNamespaces(problem="no read-only mounts: it is forbidden")
    monkeypatch.setattr(fences, "offered_namespaces", lambda: offered)
    jobs.ws.config("sandbox.confine=require")
    found = jobs.run("said['ran'] = True")
    (job,) = jobs.ws.json("loop", "jobs")
    assert (found == {"ran": True}) is is_there
    assert is_there or (job["status"] == "failed" and "it is forbidden" in job["summary"]), job


@pytest.mark.skipif(not offered_namespaces().processes, reason="this machine gives no namespaces")
def test_a_job_sees_no_process_but_its_own(
    jobs: Jobs, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process namespace; nor the environment of what started it, nor the kernel's keyrings."""
    monkeypatch.setattr(fences, "offered_namespaces", offered_namespaces)
    found = jobs.run(
        "said['pids'] = sorted(int(name) for name in os.listdir('/proc') if name.isdigit())\n"
        "said['keys'] = open('/proc/keys').read()\n"
        "for name in ('/proc/1/environ', '/proc/1/mem', '/proc/1/fd/3', '/proc/1/root/etc/passwd', '/etc/shadow'):\n"
        "    try:\n"
        "        said[name] = open(name, 'rb').read(1).hex()\n"
        "    except OSError as error:\n"
        "        said[name] = 'refused'\n"
    )
    assert found["pids"][0] == 1 and stranger.pid not in found.pop("pids") and found.pop("keys") == ""
    assert set(found.values()) == {"refused"}, found


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_both_machines_have_their_own_numbers(machine: str) -> None:
    """Fault 7: each call that is refused by name is compared with that machine's number."""
    made = seccomp.confined_program(machine, own=False, scoped=False, guarded=(1234,), attributes="none")
    assert made is not None and len(made) % 8 == 0 and len(made) // 8 < 4096
    column = 0 if machine == "x86_64" else 1
    compared = {int.from_bytes(made[at + 4 : at + 8], "little") for at in range(0, len(made), 8) if made[at] == 0x15}
    refused_by_name = (
        *syscalls.CONFINED_MAY_NOT,
        *dict(syscalls.CHANGING_MODES),
        *syscalls.CHANGING_TIMES,
        *syscalls.CHANGING_TIMES_BEFORE,
        *syscalls.CHANGING_OWNERS,
        *syscalls.CHANGING_EXTENDED,
        *syscalls.READING_EXTENDED,
    )
    wanted = {
        NUMBERS[name][column] for name in (*refused_by_name, "clone3", "prlimit64", "kill", "socketpair", "listen")
    }
    assert wanted - {-1} <= compared
    numbers = [found[column] for found in NUMBERS.values() if found[column] >= 0]
    assert len(set(numbers)) == len(numbers), "no number is there twice"
    assert seccomp.confined_program("riscv64") is None

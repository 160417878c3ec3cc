"""A18: confinement beneath the interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sandbox_samples import run, worker_pids

from cleared.base.errors import WorkspaceError
from cleared.processes.confinement import (
    ConfinementLevel,
    ConfinementUnavailable,
    limit_processor_time,
    run_restricted,
    worker_restrictions,
)
from cleared.sandbox import worker_pool
from cleared.sandbox.monty import Sandbox

ROOT = Path(__file__).parents[2]
LEVEL = worker_pool.confinement_level()
needs_all = pytest.mark.skipif(not LEVEL.is_full, reason=f"this system reaches {LEVEL}")

# Everything a broken interpreter might try, by the C library's thin wrappers around the system calls.
PROBE = """
import ctypes, os, signal, sys
from pathlib import Path
from cleared.processes.confinement import worker_restrictions, run_restricted
from cleared.sandbox.worker_pool import _find_binary
libc = ctypes.CDLL(None, use_errno=True)
argv = (ctypes.c_char_p * 2)(b"sh", None)
libc.mmap.restype = ctypes.c_long
path, out = b"/etc/passwd", str(Path(sys.argv[1]) / "out").encode()
parent = os.getppid()
probes = dict(
    read=lambda: libc.open(path, os.O_RDONLY),
    list=lambda: libc.open(b"/", os.O_RDONLY | os.O_DIRECTORY),
    proc=lambda: libc.open(b"/proc/self/mem", os.O_RDONLY),
    write=lambda: libc.open(out, os.O_WRONLY | os.O_CREAT, 0o600),
    append=lambda: libc.open(path, os.O_RDWR),
    mkdir=lambda: libc.mkdir(out, 0o700),
    unlink=lambda: libc.unlink(path),
    rename=lambda: libc.rename(path, out),
    tcp=lambda: libc.socket(2, 1, 0),
    udp=lambda: libc.socket(2, 2, 0),
    unix=lambda: libc.socket(1, 1, 0),
    pair=lambda: libc.socketpair(1, 1, 0, (ctypes.c_int * 2)()),
    shell=lambda: libc.execv(b"/bin/sh", argv),
    fork=lambda: libc.fork(),
    kill=lambda: libc.kill(parent, 0),
    ptrace=lambda: libc.ptrace(16, parent, 0, 0),
    peek=lambda: libc.process_vm_readv(parent, None, 0, None, 0, 0),
    memfd=lambda: libc.memfd_create(b"x", 0),
    code=lambda: libc.mmap(None, 4096, 7, 0x22, -1, 0),
    unlimit=lambda: libc.setrlimit(7, (ctypes.c_ulong * 2)(1 << 20, 1 << 20)),
    mount=lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    chroot=lambda: libc.chroot(b"/tmp"),
    unshare=lambda: libc.unshare(0x10000000),
    setuid=lambda: libc.setuid(0),
)
done = {}
def attempt():
    for name, probe in probes.items():
        done[name] = probe()
run_restricted(worker_restrictions(_find_binary()), attempt)
print(sorted(name for name, result in done.items() if result != -1), len(done))
libc.open.restype = ctypes.c_int
print("host", libc.open(path, os.O_RDONLY) >= 0, libc.socket(2, 1, 0) >= 0)
"""

HELPER = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    char *argv[] = {"sh", 0};
    int bad = 0;
    if (open("/etc/passwd", O_RDONLY) >= 0) bad |= 1;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) bad |= 2;
    if (open("out", O_WRONLY | O_CREAT, 0600) >= 0) bad |= 4;
    if (fork() >= 0) bad |= 8;
    execv("/bin/sh", argv);
    printf("%d\\n", bad);
    return 0;
}
"""


@needs_all
def test_A18_system_calls_fail_under_the_restrictions(tmp_path: Path) -> None:
    """A18: no file, socket, process or new code by system call; the host's other threads stay free."""
    command = [sys.executable, "-c", PROBE, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "[] 24\nhost True True\n", done.stderr
    assert list(tmp_path.iterdir()) == []


@needs_all
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_A18_a_started_program_inherits_them(tmp_path: Path) -> None:
    """A18: what holds for the starting thread holds for the program it starts, as for a worker."""
    (tmp_path / "helper.c").write_text(HELPER)
    helper = tmp_path / "helper"
    subprocess.run(["cc", "-o", str(helper), str(tmp_path / "helper.c")], check=True)
    reader, writer = os.pipe()
    pids = []

    def start() -> None:
        actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
        pids.append(os.posix_spawn(helper, ["helper"], {}, file_actions=actions))

    run_restricted(worker_restrictions(helper), start)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "0\n"
    assert os.waitpid(pids[0], 0)[1] == 0


@needs_all
def test_A18_the_worker_itself_is_confined() -> None:
    """A18: read from the kernel, for the process that runs the script."""

    def restricted() -> list[str]:
        lines = Path("/proc/thread-self/status").read_text().splitlines()
        return [line for line in lines if line.startswith(("NoNewPrivs", "Seccomp"))]

    before = restricted()
    with Sandbox(confine="require") as sandbox:
        assert run(sandbox, "1") == 1
        (pid,) = worker_pids()
        status = Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert [line.split()[-3:-1] for line in limits.splitlines() if "open files" in line] == [["32", "32"]]
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert sandbox.level.is_full
        assert str(sandbox.level) == "landlock+seccomp+rlimits"
    assert restricted() == before, "the host's own thread stays as it was"


def test_A18_off_and_best_run_everywhere() -> None:
    for confine in ("off", "best"):
        with Sandbox(confine=confine) as sandbox:  # type: ignore[arg-type]
            source = "import datetime\nstr(datetime.datetime.now())"
            assert run(sandbox, source, timezone="Asia/Tokyo") == "2025-02-01 15:00:00"


def test_A18_require_refuses_what_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "observe_level", lambda pid, wanted: ConfinementLevel(rlimits=True))
    monkeypatch.setattr(worker_pool, "_refused_restrictions", {})
    with Sandbox(confine="require") as sandbox, pytest.raises(WorkspaceError, match="cannot be confined") as caught:
        run(sandbox, "1")
    assert caught.value.remedy
    assert worker_pids() == [] or sys.platform != "linux"
    with Sandbox(confine="best") as sandbox:
        assert run(sandbox, "1") == 1


@needs_all
def test_A18_a_start_that_fails_for_a_moment_lowers_no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """A18: nor are the restrictions taken as refused by the kernel, now or for later workers."""
    start, failures = worker_pool._start_confined, iter([True, True])

    def start_at_last(*arguments: Any) -> worker_pool.Worker:
        if next(failures, False):
            raise BlockingIOError("no process can be had now")
        return start(*arguments)

    monkeypatch.setattr(worker_pool, "_start_confined", start_at_last)
    with Sandbox(confine="best") as sandbox:
        assert run(sandbox, "1") == 1 and sandbox.level.is_full
    failures = iter([True] * 20)
    with pytest.raises(WorkspaceError, match="no process can be had now"):
        worker_pool.start_worker("require", 60.0)


@needs_all
def test_A18_what_the_kernel_refuses_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def refuse(binary: Any, wanted: Any, request_timeout: float) -> worker_pool.Worker:
        tries.append(wanted)
        raise ConfinementUnavailable("landlock: Operation not permitted")

    monkeypatch.setattr(worker_pool, "_start_confined", refuse)
    monkeypatch.setattr(worker_pool, "_refused_restrictions", {})
    with pytest.raises(WorkspaceError, match="Operation not permitted"):
        worker_pool.start_worker("require", 60.0)
    assert len(tries) == len(set(tries))
    monkeypatch.undo()
    assert worker_pool.confinement_level("require").is_full


def test_A18_levels_read_well() -> None:
    assert str(ConfinementLevel()) == "none" and not ConfinementLevel().is_full
    assert str(ConfinementLevel(seccomp=True, rlimits=True)) == "seccomp+rlimits"


@pytest.mark.skipif(sys.platform != "linux", reason="only there a worker can be limited from outside")
def test_the_kernel_ends_a_worker_whose_processor_time_is_used_up() -> None:
    """What bounds a type check: processor time, so that a busy machine gives the same findings."""
    from pydantic_monty import MontyCrashedError

    worker = worker_pool.start_worker("best", 600.0)
    try:
        limit_processor_time(worker.pid, 0.5)
        limits = {"max_feed_duration_secs": 600.0}
        with worker.pool.checkout(limits=limits) as session, pytest.raises(MontyCrashedError, match="SIGXCPU"):
            session.feed_run("while True:\n    pass")
    finally:
        worker.stop()

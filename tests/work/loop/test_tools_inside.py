"""What people use works inside the fence: git, Python, a compiler, node, a terminal."""

from __future__ import annotations

import errno
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, copy_books
from held_jobs import COLUMN, Jobs, holding

from cleared.processes import fenced_start, fences
from cleared.processes.confinement import landlock_abi
from cleared.processes.namespaces import offered_namespaces
from cleared.processes.syscall_numbers import NUMBERS

pytestmark = [
    pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a job with"),
    pytest.mark.slow,
]
SCRIPT = "printf '#!/bin/sh\\necho hi\\n' > s"
TOOLS = {
    "git": "git init -q r && cd r && git config user.name x && git config user.email x@example.com && echo > f && "
    "chmod +x f && git add f && git commit -qm x && git clone -q . ../s && test -x ../s/f && git gc -q && git fsck",
    "tar": "echo > a && touch -d 2001-02-03 a && cp -p a b && test $(stat -c %Y b) = $(stat -c %Y a) && chmod 700 a && "
    "tar cf t a b && rm a b && tar xpf t && test $(stat -c %a:%Y a) = 700:$(stat -c %Y b)",
    "install": "echo > a && install -m 755 a c && test $(stat -c %a c) = 755 && ln -s a l && touch -h -d 2001-02-03 l",
    "sh": f"{SCRIPT} && chmod +x s && ./s && chmod 644 /dev/fd/3 3< s && ! ./s && chmod a+x /proc/self/cwd/s && ./s",
    "bash": "bash -c 'cat <(echo x) > /dev/null; set -m; sleep 0.01 & wait; mkfifo p; echo x > p & cat p'",
    sys.executable: f"{sys.executable} -I -m venv --without-pip v && v/bin/python -c 'import ssl, sqlite3' && "
    f"{sys.executable} -c 'import pip._vendor.distro as d; d.version(); import getpass; getpass.getuser()'",
    "gcc": "echo 'int main(void) { return 0; }' > m.c && gcc m.c -o m && ./m",
    "make": "printf 'x: y\\n\\ttouch x\\n' > Makefile && touch y && make -s && make -q && "
    "touch -d 2001-02-03 x && ! make -q",
    "node": "echo \"require('child_process').execFileSync('true'); require('fs').chmodSync('n.js', 0o700)\" > n.js && "
    "node n.js && test $(stat -c %a n.js) = 700",
}
"""By the program that each needs."""
OF_THEIR_OWN = {
    "script": "script -qec 'test -t 0 && stty size' /dev/null && test $(ls /dev/pts | wc -l) = 1",
    sys.executable: f"{sys.executable} -c 'import multiprocessing as m, os; os.openpty(); m.Queue().put(1)' && "
    "test $(ls /dev/shm | wc -l) = 0",
}
"""What takes devices of a program's own, which only a mount namespace has."""


@pytest.fixture
def jobs(starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Not in shared memory, of which each program gets its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        monkeypatch.setenv("CLEARED_HOME", f"{folder}/home")
        with holding(Workspace(copy_books(starting_point, Path(folder, "books"))), monkeypatch) as found:
            yield found


def use(jobs: Jobs, lines: dict[str, str]) -> dict[str, str]:
    """What each that failed said."""
    there = [line for name, line in lines.items() if shutil.which(name)]
    said: dict[str, str] = jobs.run(
        "import subprocess, tempfile\n"
        f"for line in {there!r}:\n"
        "    folder = tempfile.mkdtemp(dir=job.root / 'made')\n"
        "    done = subprocess.run(['sh', '-c', line], cwd=folder, capture_output=True, text=True)\n"
        "    if done.returncode:\n"
        "        said[line] = done.stderr[-300:] + done.stdout[-300:]\n"
    )
    return said


@pytest.mark.parametrize("namespaces", [True, False])
def test_tools_work_inside(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, namespaces: bool) -> None:
    """Modes and times of its own files are changed by the kernel, or by who watches over the job."""
    if namespaces:
        monkeypatch.setattr(fences, "offered_namespaces", offered_namespaces)
    assert use(jobs, TOOLS) == {}


@pytest.mark.skipif(not offered_namespaces().mounts, reason="this machine gives no namespaces")
@pytest.mark.parametrize("wall", [True, False])
def test_programs_have_terminals_and_shared_memory_of_their_own(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Where they have none of their own they have none at all."""
    if wall:
        monkeypatch.setattr(fences, "offered_namespaces", offered_namespaces)
    assert len(use(jobs, OF_THEIR_OWN)) == (0 if wall else len([name for name in OF_THEIR_OWN if shutil.which(name)]))


def test_programs_go_on_where_nobody_can_be_asked(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As inside another fence: modes and times seem to be set."""

    def refuse(*_: object, **more: object) -> int:
        if more:
            raise fenced_start.ConfinementUnavailable("somebody listens already")
        return install(*_)

    install = fenced_start.install_filter
    monkeypatch.setattr(fenced_start, "install_filter", refuse)
    assert set(use(jobs, TOOLS)) == {TOOLS[name] for name in ("tar", "install", "sh", "gcc", "git", "make", "node")}
    assert use(jobs, {"sh": f"{SCRIPT} && chmod +x s && touch -d 2001-02-03 s && cp -p s t && git init -q r"}) == {}


def test_a_request_that_fails_says_why(jobs: Jobs) -> None:
    """What is asked for is done as the kernel does it: the number of the error is the same."""
    tried = {
        "no file": ("chmod('nothing', 0o600)", 2),
        "no path": ("chmod('', 0o600)", 2),
        "a file as a folder": ("chmod('said.py/x', 0o600)", 20),
        "a closed descriptor": ("chmod(99, 0o600)", 2),
        "outside": ("chmod('/usr', 0o600)", 1),
        "by a link": ("chmod('link', 0o600)", 1),
        "time of it": ("utime('link', (1, 1))", 1),
        "the link itself": ("utime('link', (1, 1), follow_symlinks=False)", 0),
        "memory": ("chmod(os.memfd_create('x'), 0o600)", 1),
    }
    found = jobs.run(
        "os.chdir(job.root / 'made')\n"
        "os.symlink('/usr/bin', 'link')\n"
        "open('said.py', 'w').close()\n"
        f"for name, (line, _) in {tried!r}.items():\n"
        "    try:\n"
        "        eval('os.' + line)\n"
        "        said[name] = 0\n"
        "    except OSError as error:\n"
        "        said[name] = error.errno\n"
    )
    assert found == {name: number for name, (_, number) in tried.items()}


def test_addresses_that_lead_nowhere_are_refused_and_all_goes_on(jobs: Jobs) -> None:
    """Above what any process has, where nothing is, and times that end where the memory does."""
    chmod, utimes = (NUMBERS[name][COLUMN] for name in ("fchmodat", "utimensat"))
    found = jobs.run(
        "import mmap\n"
        "os.chdir(job.root / 'made')\n"
        "open('made', 'w').close()\n"
        "libc.mmap.restype = ctypes.c_void_p\n"
        "memory = libc.mmap(None, ctypes.c_long(2 * mmap.PAGESIZE), 3, 0x22, -1, ctypes.c_long(0))\n"
        "end = memory + mmap.PAGESIZE\n"
        "libc.munmap(ctypes.c_void_p(end), ctypes.c_long(mmap.PAGESIZE))\n"
        "name = ctypes.create_string_buffer(b'made')\n"
        "ctypes.memset(end - 16, ord('x'), 16)\n"
        "for address in (1 << 63, (1 << 64) - 1, 1, end, end - 16):\n"
        f"    said[f'path {{address:x}}'] = call({chmod}, -100, address, 0o600)\n"
        "ctypes.memset(end - 16, 0, 16)\n"
        "for address in (1 << 63, 1, end, end - 16):\n"
        f"    said[f'times {{address:x}}'] = call({utimes}, -100, ctypes.addressof(name), address, 0)\n"
        "os.chmod('made', 0o640)\n"
        "said['mode'] = os.stat('made').st_mode & 0o777\n"
    )
    assert found.pop("mode") == 0o640
    assert len(found) == 9 and set(found.values()) == {errno.EFAULT}, found

"""Where the tests' processor time goes: theirs and that of all processes that they start, by folder and by test.

    python tests/support/processor_time.py tests/git tests/runs -n 2

What else the machine does changes these seconds little, unlike those of a clock. The words are pytest's; ``--most 40``
shows that many tests. As a plugin this file notes in each of pytest's processes what a test took.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTES = "TESTS_NOTE_THEIR_TIME_IN"
"""Names the folder of notes; tests take away variables that begin as the program's do."""
_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_servers: list[Path] = []
_known: object = None


def _own_seconds() -> float:
    """Of this process, of its children that have ended, and of the processes that forked others for it."""
    return sum(os.times()[:4]) + sum(_seconds_of(server) for server in _find_servers())


def _seconds_of(process: Path) -> float:
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _find_servers() -> list[Path]:
    """No children of this process, but they have its environment. Looked for where a new one was started."""
    global _known
    preloaded = sys.modules.get("preloaded")
    current = getattr(preloaded.Preloaded, "_fork_server", None) if preloaded else None
    if current is not None and current is not _known:
        _known = current
        ours = {os.fsencode(f"{key}={os.environ.get(key, '')}") for key in (NOTES, "PYTEST_XDIST_WORKER")}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if b"preloaded.py" not in (process / "cmdline").read_bytes() or process in _servers:
                    continue
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if ours - {b"PYTEST_XDIST_WORKER="} <= set(environment):
                _servers.append(process)
    return _servers


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _own_seconds()
    result: Any = yield
    note = json.dumps([item.nodeid, _own_seconds() - before])
    with Path(os.environ[NOTES], f"{os.getpid()}").open("a") as file:
        file.write(note + "\n")
    return result


def _reap_orphans(pytest_process: int) -> int:
    """Wait for pytest, and for all that its tests left to nobody. Returns how pytest ended."""
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == pytest_process:
            code = os.waitstatus_to_exitcode(status)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--most", type=int, default=25, help="how many tests to show")
    options, words = parser.parse_known_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        pytest_process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "processor_time", *words],
            env=os.environ | {NOTES: folder, "PYTHONPATH": path},
        )
        code = _reap_orphans(pytest_process.pid)
        times = os.times()
        notes = [json.loads(line) for each in Path(folder).iterdir() for line in each.read_text().splitlines()]
    by_folder: Counter[str] = Counter()
    by_file: Counter[str] = Counter()
    for test, seconds in notes:
        by_folder["/".join(test.partition("::")[0].split("/")[:2])] += seconds
        by_file[test.partition("::")[0]] += seconds
    whole = times.children_user + times.children_system
    for name, most in ((by_folder, len(by_folder)), (by_file, options.most), (Counter(dict(notes)), options.most)):
        print()
        for key, seconds in name.most_common(most):
            print(f"{seconds:8.2f} s  {key}")
    print(f"\n{whole:8.2f} s  in all, {len(notes)} tests; {whole - sum(by_folder.values()):.2f} s of it in no test")
    return code


if __name__ == "__main__":
    sys.exit(main())

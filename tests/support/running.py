"""A workspace whose service runs in a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import Workspace
from patience import PATIENCE


def eventually(what: Callable[[], Any], seconds: float = PATIENCE, *, pause: float | None = None) -> Any:
    """What it gives, as soon as that is something; asked every ``pause`` seconds, else so that asking takes little of
    the time of what it waits for."""
    end = time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        found = what()
        if found:
            return found
        took = time.monotonic() - asked
        time.sleep(min(max(0.02, 4 * took), 2.0) if pause is None else pause)
    raise AssertionError(f"not within {seconds} s")


HOLD_MARK = """
def hold_mark(path):
    '''Leave a file that stays locked while this process runs; its number means nothing outside of its namespace.'''
    import fcntl, os
    made = open(str(path) + ".new", "w")
    fcntl.flock(made, fcntl.LOCK_EX)
    made.write(str(os.getpid()))
    made.flush()
    os.set_inheritable(made.fileno(), True)
    os.rename(str(path) + ".new", path)
    return made
"""
"""What a program says in whose process a test is interested; ``has_ended`` asks for it."""


def has_ended(mark: Path) -> bool:
    """Whether the process is gone that said ``hold_mark``."""
    with mark.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def list_descendants(pid: int) -> list[int]:
    """All that a process has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


class Up:
    """A workspace and its service."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str, **options: Any) -> subprocess.Popen[bytes]:
        environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
        self.process = self.ws.start("up", *more, env=environment, **options)
        process = self.process
        eventually(
            lambda: process.poll() is not None or (self.board().get("pid") == process.pid and self.board()["ready"])
        )
        assert process.poll() is None, process.communicate()
        return process

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert out == b""
        code, self.process = self.process.returncode, None
        return code, err.decode()

    def board(self) -> dict[str, Any]:
        try:
            found = json.loads((self.ws.root / ".cleared/service.json").read_text())
        except (OSError, ValueError):
            return {}
        assert isinstance(found, dict)
        return found

    def log(self, *what: str) -> list[dict[str, Any]]:
        path = self.ws.root / ".cleared/service.log"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if not what or row["what"] in what]

    def agent(self, name: str, header: str, body: str) -> None:
        path = f"agents/{name}.py"
        self.ws.put(path, f'"""\nname: {name}\n{header}"""\n{body}\n')
        self.ws.commit(path, *self.ws.approve(path), message=f"agent: {name}")

"""Jobs that do as they are told, as a plug-in's: each wall that holds them can be switched off."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness import Workspace
from running import HOLD_MARK

from cleared.processes import fences
from cleared.processes.namespaces import OfferedNamespaces
from cleared.processes.syscall_numbers import NUMBERS

COLUMN = 0 if platform.machine() == "x86_64" else 1
KINDS = '''
import ctypes, json, os, signal, sys, time
from cleared.jobs.job_types import JobType

attack = JobType("attack", "An attack.", function="attack_kinds:do_attack", target="path", default_target="attack.py",
              writes=("made",), timeout=600)


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
        lines = [f"said[{name!r}] = call({NUMBERS[name][COLUMN]}, *{args!r})" for name, args in wanted]
        found: dict[str, int] = self.run("\n".join(lines))
        return found


@contextmanager
def holding(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """As on a machine that gives no namespaces; a test says where it does."""
    folder = ws.root.parent / "plugin"
    info = folder / "attack_kinds-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "attack_kinds.py").write_text(HOLD_MARK + KINDS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: attack_kinds\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cleared.jobs]\nattack = attack_kinds:attack\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv("CLEARED_CLOCK")
    monkeypatch.setattr(fences, "offered_namespaces", OfferedNamespaces)
    ws.config("loop.plugins=[attack]", "loop.max_failures=1000")
    (ws.root / "made").mkdir()
    try:
        yield Jobs(ws)
    finally:
        sys.modules.pop("attack_kinds", None)


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

"""The process that is killed: it does one command in a workspace, and stops itself where it is told to.

    python crash_child.py   then one JSON line on stdin: {"root", "command", "stop", "nth", "hold"}

It says ``ready`` when all is imported, waits for the line, says ``go``, and ``done`` if it lives to the end.
``stop`` is the name of a step (see ``Host.on_step``); at its ``nth`` time the process gets SIGKILL from itself, or
SIGSTOP with ``"hold": true``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import date
from pathlib import Path
from typing import Any

from cleared.base.clock import SystemClock
from cleared.books.decisions.entry_voiding import void_entry
from cleared.books.decisions.period_closing import close_period
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now


class Stopper:
    def __init__(self, stop: str, nth: int, hold: bool) -> None:
        self.stop, self.left = stop, nth
        self.signal = signal.SIGSTOP if hold else signal.SIGKILL

    def __call__(self, step: str) -> None:
        if step == self.stop:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), self.signal)


def act(root: Path, command: list[str], on_step: Stopper) -> None:
    if command[0] == "init":
        create_workspace(
            root, name="Acme", entity_type="llc_single_member", currency="USD", clock=SystemClock(), on_step=on_step
        )
        return
    host = open_workspace(root, on_step=on_step, say=lambda line: print("say", line, flush=True))
    if command[0] == "run":
        result = run_now(host, command[1])
        assert result.status == "succeeded", result.error
    elif command[0] == "void":
        void_entry(host, command[1], "posted by mistake")
    elif command[0] == "close":
        close_period(host, date.fromisoformat(command[1]), despite="both were booked by mistake", with_pending=True)
    elif command[0] == "repair":
        with host.open_for_writing("repair"):
            pass
    else:
        raise AssertionError(command)


def main() -> None:
    print("ready", flush=True)
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    print("go", flush=True)
    act(Path(order["root"]), order["command"], Stopper(order["stop"], order["nth"], order["hold"]))
    print("done", flush=True)


if __name__ == "__main__":
    main()

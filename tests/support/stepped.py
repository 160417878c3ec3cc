"""Real commands that get a signal, or are killed, at a step of their work.

The steps are those that a host reports (``Host.on_step``: of a run and of its commit), and ``machine``: the moment
before a file of this user's (trust, pins, keys) is put in its place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import preloaded

from cleared.changes import workspace_opening

MACHINE = "machine"


def run_stepped(
    argv: Sequence[str], step: str = "", nth: int = 1, number: int = signal.SIGKILL, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """``cleared ARGV``, which sends itself the signal when it comes to a step for the ``nth`` time."""
    return preloaded.run([step, str(nth), str(number), "", *argv], function="stepped:main", **options)


def list_steps(argv: Sequence[str], to: Path, code: int = 0) -> list[str]:
    """The steps that ``cleared ARGV`` comes to, in their order. ``to``: a file to write them to."""
    done = preloaded.run(["", "1", "0", str(to), *argv], function="stepped:main")
    assert done.returncode == code, (argv, done)
    return to.read_text().splitlines()


def main() -> int:
    """The process: step, its number, the signal, a file for the names of all steps, then the command line."""
    from cleared.changes import workspace_creation
    from cleared.cli.command_runner import run
    from cleared.trust.keys import cleared_home

    step, left, number, to = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    home = str(cleared_home())

    def reach(name: str) -> None:
        nonlocal left
        if to:
            with open(to, "a") as file:
                file.write(f"{name}\n")
        left -= name == step
        if name == step and left == 0:
            os.kill(os.getpid(), number)

    def notice(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename" and os.fsdecode(args[1]).startswith(home):
            reach(MACHINE)

    for function in (workspace_opening.open_workspace, workspace_creation.create_workspace):
        watched = partial(function, on_step=reach)
        for module in list(sys.modules.values()):  # some have the name already
            if getattr(module, function.__name__, None) is function:
                setattr(module, function.__name__, watched)
    sys.addaudithook(notice)
    return run(sys.argv[5:])

"""Finding and starting programs so that nothing in the folder one happens to be in has a say.

A workspace is such a folder, and what lies in it changes without anybody's approval.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM)


def own_command(*arguments: str) -> list[str]:
    """How to start ``cleared`` with these arguments; Python looks for modules where it is installed (``-P``)."""
    return [sys.executable, "-P", "-m", "cleared", *arguments]


def search_path(given: str | None = None, *, outside: Path | None = None) -> str:
    """The absolute folders of a ``PATH`` (this process's own where none is given), but none in ``outside``."""
    folders = (given if given is not None else os.environ.get("PATH", os.defpath)).split(os.pathsep)
    absolute = [folder for folder in folders if Path(folder).is_absolute()]
    if outside is not None:
        absolute = [folder for folder in absolute if not Path(folder).resolve().is_relative_to(outside.resolve())]
    return os.pathsep.join(absolute)


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program, looked for in the absolute folders of ``path`` only."""
    return shutil.which(name, path=search_path(path))


@contextmanager
def blocked_signals(*numbers: int) -> Iterator[Collection[int]]:
    """Hold these back, in this thread, for the length of the block; gives those that were held back before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork_process() -> int:
    """``os.fork``. Python calls hooks after it, and ignores what the handler of a signal raises in them: Ctrl-C and
    SIGTERM wait until they are over, or they would be lost."""
    with blocked_signals(*INTERRUPTS):
        return os.fork()

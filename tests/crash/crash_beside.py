"""A seal that is stopped at every call to the system that shows or changes anything, while a person uses git."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import remove_tree

sys.path.insert(0, str(Path(__file__).parents[1] / "git"))

from test_vcs_beside import DEEDS, check, deed, prepare
from vcs_samples import Work

from cleared.base.errors import WorkspaceError
from cleared.git import GitBusy, LocalMove, Repository

_EVENTS = {
    "open",
    "os.rename",
    "os.link",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.utime",
    "os.scandir",
    "subprocess.Popen",
}
_told: Callable[[], None] | None = None


@dataclass
class Found:
    """How many seals were stopped once, and how many of them gave way to git, or took place."""

    stops: int = 0
    sealed: int = 0
    gave_way: int = 0


def _hear(event: str, _: tuple[Any, ...]) -> None:
    if _told is not None and event in _EVENTS and threading.current_thread() is threading.main_thread():
        _told()


@contextmanager
def _at_each(act: Callable[[], None]) -> Iterator[None]:
    """Have ``act`` called before each call to the system."""
    global _told
    sync = os.fsync

    def syncing(descriptor: int) -> None:
        if _told is not None and threading.current_thread() is threading.main_thread():
            _told()
        sync(descriptor)

    busy = False

    def once() -> None:
        nonlocal busy
        if not busy:
            busy = True
            act()
            busy = False

    os.fsync, _told = syncing, once
    try:
        yield
    finally:
        os.fsync, _told = sync, None


def make_template(root: Path) -> Path:
    with Work.make(root) as work:
        prepare(work)
    return root


def stopped(template: Path, root: Path, name: str, number: int) -> tuple[bool, bool]:
    """Seal in a copy, and have the person do this at the ``number``-th call: whether it came there, and whether the
    seal took place. Raises ``AssertionError`` where anything is lost or left."""
    shutil.copytree(template, root, symlinks=True)
    left, sealed = number, None
    with Work(root, Repository.open(root, for_writing=True)) as work:

        def act() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                deed(work, name)

        moves = [LocalMove("drop.csv", "processed/drop.csv", b"rows")]
        try:
            with _at_each(act):
                sealed = work.seal(moves=moves)
        except (GitBusy, WorkspaceError) as error:
            assert "nothing was changed" in str(error) or "differs from" in str(error), error
        check(work, sealed)
        if sealed is None:
            work.git("checkout", "-q", "main", check=False)
            check(work, work.seal(moves=moves))
    remove_tree(root)
    return left <= 0, sealed is not None


def part(job: tuple[Path, Path, str, int, int]) -> Found:
    """One deed at every ``step``-th call from ``first`` on."""
    template, folder, name, first, step = job
    folder.mkdir(parents=True)
    found, number, reached = Found(), first, True
    while reached:
        root = folder / f"at-{number}"
        try:
            reached, sealed = stopped(template, root, name, number)
        except BaseException as error:
            error.add_note(f"git {name} at call {number}: look at {root}")
            raise
        found.stops += reached
        found.sealed += reached and sealed
        found.gave_way += reached and not sealed
        number += step
    return found


sys.addaudithook(_hear)
__all__ = ["DEEDS", "Found", "make_template", "part", "stopped"]

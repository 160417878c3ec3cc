"""The owner's clones of a fleet's workspaces, kept at what was pushed while their pages are open; what is decided in
them is pushed."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Protocol, Self

from cleared.base.errors import ClearedError
from cleared.base.programs import own_command
from cleared.git import Repository
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_owner import open_desk_of
from cleared.service.fleet.job_queue import ask_for_job, open_queue
from cleared.workspace.surroundings import read_checkout

_LOOK_SECONDS: Final = 1.0
_LOOKS: Final = 5
"""After so many, all workspaces and their heads are asked for again: which there are is not told, and a pooler before
PostgreSQL may keep what is from coming."""


class Served(Protocol):
    """What shows the clones."""

    def add_workspace(self, name: str, root: Path) -> None:
        """One was added to the fleet."""

    def remove_workspace(self, name: str) -> None:
        """One is in the fleet no more."""


class DeskSync:
    """Looks every second whose history has moved here, and hears whose has moved there. A context manager; ``roots``:
    name → clone, of those that ``served`` shows already; it is told which come and go."""

    def __init__(self, fleet: Fleet, roots: Mapping[str, Path], say: Callable[[str], None], served: Served) -> None:
        self._fleet, self._roots, self._say, self._served = fleet, dict(roots), say, served
        self._handled: dict[str, tuple[str, str]] = {}
        """Name → the commit here and the one that the fleet has seen, when it was joined last."""
        self._said: dict[str, str] = {}
        """Name → what was said last of what is wrong; empty: of the database."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="desk sync", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with FleetDatabase.connect(self._fleet.database) as database:
                    self._follow(database)
            except ClearedError as error:
                self._say_once("", str(error))
                self._ended.wait(_LOOK_SECONDS)

    def _follow(self, database: FleetDatabase) -> None:
        heads = database.list_heads()
        self._take_in(database, heads)
        for _ in range(_LOOKS):
            if self._ended.is_set():
                return
            self._said.pop("", None)
            for name, root in self._roots.items():
                try:
                    if name in heads:
                        self._join_if_moved(name, root, heads[name])
                    self._said.pop(name, None)
                except (ClearedError, OSError) as error:  # the others are joined all the same
                    self._say_once(name, f"{name}: {error}")
            heads.update(database.await_heads(_LOOK_SECONDS))

    def _take_in(self, database: FleetDatabase, names: Collection[str]) -> None:
        """Show the workspaces that are in the fleet now, and no others."""
        for name in [each for each in self._roots if each not in names]:
            del self._roots[name]
            self._served.remove_workspace(name)
        for name in [each for each in names if each not in self._roots]:
            try:
                root = open_desk_of(self._fleet, database.read_workspace(name))
                self._served.add_workspace(name, root)
                self._roots[name] = root
                self._said.pop(name, None)
            except (ClearedError, OSError) as error:  # the others are shown all the same
                self._say_once(name, f"{name} is not shown: {error}")

    def _say_once(self, name: str, text: str) -> None:
        if self._said.get(name) != text:
            self._say(text)
        self._said[name] = text

    def _join_if_moved(self, name: str, root: Path, seen: str) -> None:
        here = _read_head(root)
        if here == seen or self._handled.get(name) == (here, seen):
            return
        done = subprocess.run(
            [*own_command("sync", "origin", "--json"), "-C", str(root)],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            self._say(f"{name} was not joined with what was pushed: {_read_refusal(done.stdout)}")
        here = _read_head(root)
        if here != seen:  # the workers see it, and what listens to it
            with open_queue(self._fleet.database) as queue:
                ask_for_job(queue, name, "push", here)
        self._handled[name] = here, seen


def _read_head(root: Path) -> str:
    checkout = read_checkout(root)
    if checkout is not None:
        return checkout.commit
    with Repository.open(root, for_writing=False) as repo:
        return repo.read_head()


def _read_refusal(text: bytes) -> str:
    try:
        error = json.loads(text)["error"]
        return f"{error['message']}. {error['remedy'] or ''}".strip()
    except (ValueError, KeyError, TypeError):
        return "cleared sync was ended"

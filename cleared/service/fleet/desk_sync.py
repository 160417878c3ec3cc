"""The owner's clones of a fleet's workspaces, kept at what was pushed while their pages are open; what is decided in
them is pushed."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from cleared.base.errors import ClearedError
from cleared.base.programs import own_command
from cleared.git import Repository
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.job_queue import ask_for_job, open_queue
from cleared.workspace.location import read_checkout

_LOOK_SECONDS: Final = 1.0
_LOOKS: Final = 30
"""After so many, all heads are asked for again: a pooler before PostgreSQL may keep what is told from coming."""


class DeskSync:
    """Looks every second whose history has moved here, and hears whose has moved there. A context manager; ``roots``:
    name → clone."""

    def __init__(self, fleet: Fleet, roots: Mapping[str, Path], say: Callable[[str], None]) -> None:
        self._fleet, self._roots, self._say = fleet, roots, say
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

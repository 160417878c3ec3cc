"""The loop's state: one file, written in one step, with the one before it as a backup."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from cleared.clock import Clock, format_iso
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.records import State
from cleared.jobs.runtime_directory import Runtime

MOST_JOBS: Final = 25
MOST_KNOWN: Final = 50
MOST_STOPS: Final = 50
MOST_NOTICES: Final = 20
_KEPT_ARCHIVES: Final = 20


def fresh(now: datetime, instance: str | None = None) -> State:
    """A state in which nothing has happened yet."""
    return {
        "schema_version": "single_agent_state_v1",
        "instance": instance or secrets.token_hex(8),
        "created_at": format_iso(now), "updated_at": format_iso(now),
        "status": "idle", "paused": False, "stop": None, "cycles": 0,
        "queue": [], "running": None, "jobs": [],
        "counts": {"succeeded": 0, "failed": 0, "failed_or_no_result": 0},
        "failures": {}, "rotation": {"next": None, "turns": 0}, "knowledge": [], "safety_stops": [], "notices": [],
        "cursor": None,
    }  # fmt: skip


def peek(runtime: Runtime) -> State | None:
    """The state as it is now, for readers; the backup where it cannot be read; None where there is none yet."""
    for path in (runtime.state, runtime.backup):
        try:
            found: State = file_schemas.read("state", path, shown=path.name)
        except WorkspaceError:
            continue
        return found
    return None


def load(runtime: Runtime, clock: Clock) -> tuple[State, str]:
    """The state for the loop itself, and what was wrong with it, empty where nothing was.

    A damaged one is set aside, the backup is used, and the state says so too. Raises ``WorkspaceError`` where a file
    cannot be read for another reason.
    """
    if not runtime.state.exists() and not runtime.backup.exists():
        return fresh(clock.now()), ""
    problem = "it was gone"
    if runtime.state.exists():
        try:
            return file_schemas.read("state", runtime.state, shown=runtime.state.name), ""
        except file_schemas.Damaged as error:
            problem = f"{error}; set aside as {runtime.shown(_aside(runtime, clock, 'corrupt'))}"
    try:
        state: State = file_schemas.read("state", runtime.backup, shown=runtime.backup.name)
        text = f"the state could not be used ({problem}); its backup is used"
    except WorkspaceError:
        state = fresh(clock.now())
        text = f"the state could not be used ({problem}), nor its backup; a fresh one is begun"
    note(state, text, clock)
    return state, text


def save(runtime: Runtime, state: State, clock: Clock, *, twice: bool = False, fsync: bool = True) -> None:
    """Raises ``WorkspaceError``; then the state on disk is the one before.

    ``twice``: the backup becomes the same, for what is nowhere else afterwards. ``fsync=False``: where a power cut may
    undo it, as what it says can be found out again.
    """
    state["updated_at"] = format_iso(clock.now())
    del state["jobs"][:-MOST_JOBS], state["knowledge"][:-MOST_KNOWN]
    del state["safety_stops"][:-MOST_STOPS], state["notices"][:-MOST_NOTICES]
    staged = runtime.backup.with_name(f".{runtime.backup.name}.{secrets.token_hex(6)}.tmp")
    with suppress(FileNotFoundError, FileExistsError):
        os.link(runtime.state, staged)
        staged.replace(runtime.backup)
        staged.unlink(missing_ok=True)  # after a write that failed both are one file, and then nothing is renamed
    file_schemas.write("state", runtime.state, state, fsync=fsync)
    if twice:
        file_schemas.write("state", runtime.backup, state)


def note(state: State, text: str, clock: Clock) -> None:
    """Have the state, and so the tree, say something."""
    state["notices"].append({"at": format_iso(clock.now()), "text": text[:1000]})


def archive(runtime: Runtime, clock: Clock) -> Path | None:
    """Keep the state elsewhere, too, before another takes its place; where it lies now."""
    if not runtime.state.exists():
        return None
    aside = _place_aside(runtime, clock, "archived")
    os.link(runtime.state, aside)
    _forget_old(runtime)
    return aside


def _aside(runtime: Runtime, clock: Clock, why: str) -> Path:
    aside = _place_aside(runtime, clock, why)
    runtime.state.replace(aside)
    _forget_old(runtime)
    return aside


def _place_aside(runtime: Runtime, clock: Clock, why: str) -> Path:
    runtime.archive.mkdir(mode=0o700, exist_ok=True)
    stamp = f"{clock.now():%Y%m%dT%H%M%SZ}"
    aside = runtime.archive / f"single_agent_state.{stamp}.{why}.json"
    number = 1
    while aside.exists():
        number += 1
        aside = aside.with_name(f"single_agent_state.{stamp}_{number}.{why}.json")
    return aside


def _forget_old(runtime: Runtime) -> None:
    kept = sorted(runtime.archive.glob("single_agent_state.*.json"), key=lambda p: p.stat().st_mtime_ns)
    for old in kept[:-_KEPT_ARCHIVES]:
        old.unlink(missing_ok=True)

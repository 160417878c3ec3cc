"""The file of the loop's state: written in one step, with the state before it as a backup."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import make_temporary_name
from cleared.jobs import file_schemas
from cleared.jobs.records import LoopState
from cleared.jobs.runtime_directory import RuntimeDirectory

MAX_JOBS: Final = 25
MAX_KNOWLEDGE: Final = 50
MAX_SAFETY_STOPS: Final = 50
MAX_NOTICES: Final = 20
_MAX_ARCHIVES: Final = 20


def fresh_state(now: datetime, instance: str | None = None) -> LoopState:
    """The state of a loop that has not run yet."""
    return {
        "schema_version": "single_agent_state_v1",
        "instance": instance or secrets.token_hex(8),
        "created_at": format_iso(now),
        "updated_at": format_iso(now),
        "status": "idle",
        "paused": False,
        "stop": None,
        "cycles": 0,
        "queue": [],
        "running": None,
        "jobs": [],
        "counts": {"succeeded": 0, "failed": 0, "failed_or_no_result": 0},
        "failures": {},
        "rotation": {"next": None, "turns": 0},
        "knowledge": [],
        "safety_stops": [],
        "notices": [],
        "cursor": None,
    }


def peek_state(runtime: RuntimeDirectory) -> LoopState | None:
    """The state for readers, or its backup where it cannot be read; None where there is none yet."""
    for path in (runtime.state_path, runtime.backup_path):
        try:
            state: LoopState = file_schemas.read_record("state", path, shown=path.name)
        except WorkspaceError:
            continue
        return state
    return None


def load_state(runtime: RuntimeDirectory, clock: Clock) -> tuple[LoopState, str]:
    """The state for the loop itself, and what was wrong with it, empty where nothing was.

    Where the file is damaged it is set aside and the backup is used, with a notice. Raises ``WorkspaceError`` where a
    file cannot be read for another reason.
    """
    if not runtime.state_path.exists() and not runtime.backup_path.exists():
        return fresh_state(clock.now()), ""
    problem = "it was gone"
    if runtime.state_path.exists():
        try:
            return file_schemas.read_record("state", runtime.state_path, shown=runtime.state_path.name), ""
        except file_schemas.DamagedFile as error:
            problem = f"{error}; set aside as {runtime.display_path(_set_aside(runtime, clock))}"
    try:
        state: LoopState = file_schemas.read_record("state", runtime.backup_path, shown=runtime.backup_path.name)
        text = f"the state could not be used ({problem}); its backup is used"
    except WorkspaceError:
        state = fresh_state(clock.now())
        text = f"the state could not be used ({problem}), nor its backup; a fresh one is begun"
    add_notice(state, text, clock)
    return state, text


def save_state(
    runtime: RuntimeDirectory, state: LoopState, clock: Clock, *, twice: bool = False, fsync: bool = True
) -> None:
    """Write the state, and make the one before it the backup. Raises ``WorkspaceError``; then the file is as before.

    ``twice``: write the backup too, where the state holds what exists nowhere else any more. ``fsync=False``: a power
    cut may undo this save, as what changed can be found out again.
    """
    state["updated_at"] = format_iso(clock.now())
    del state["jobs"][:-MAX_JOBS], state["knowledge"][:-MAX_KNOWLEDGE]
    del state["safety_stops"][:-MAX_SAFETY_STOPS], state["notices"][:-MAX_NOTICES]
    staged = runtime.backup_path.with_name(make_temporary_name())
    with suppress(FileNotFoundError, FileExistsError):
        os.link(runtime.state_path, staged)
        staged.replace(runtime.backup_path)
        staged.unlink(missing_ok=True)  # the rename did nothing if both were one file, as after a failed write
    paths = (runtime.state_path, runtime.backup_path) if twice else (runtime.state_path,)
    file_schemas.write_copies("state", paths, state, fsync=fsync)


def add_notice(state: LoopState, text: str, clock: Clock) -> None:
    """Add a notice to the state, and so to the tree."""
    state["notices"].append({"at": format_iso(clock.now()), "text": text[:1000]})


def archive_state(runtime: RuntimeDirectory, clock: Clock) -> Path | None:
    """Keep a copy of the state file in the archive; its path, None where there is no state."""
    if not runtime.state_path.exists():
        return None
    aside = _free_archive_path(runtime, clock, "archived")
    os.link(runtime.state_path, aside)
    _trim_archive(runtime)
    return aside


def _set_aside(runtime: RuntimeDirectory, clock: Clock) -> Path:
    aside = _free_archive_path(runtime, clock, "corrupt")
    runtime.state_path.replace(aside)
    _trim_archive(runtime)
    return aside


def _free_archive_path(runtime: RuntimeDirectory, clock: Clock, why: str) -> Path:
    runtime.archive_folder.mkdir(mode=0o700, exist_ok=True)
    stamp = f"{clock.now():%Y%m%dT%H%M%SZ}"
    aside = runtime.archive_folder / f"single_agent_state.{stamp}.{why}.json"
    number = 1
    while aside.exists():
        number += 1
        aside = aside.with_name(f"single_agent_state.{stamp}_{number}.{why}.json")
    return aside


def _trim_archive(runtime: RuntimeDirectory) -> None:
    archived = sorted(runtime.archive_folder.glob("single_agent_state.*.json"), key=lambda p: p.stat().st_mtime_ns)
    for old in archived[:-_MAX_ARCHIVES]:
        old.unlink(missing_ok=True)

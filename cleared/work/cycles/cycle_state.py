"""The state of the loop of cycles: ``.auto-loop-state`` (JSON, ``cycle_state.schema.json``) and the pid files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.process_identity import process_start
from cleared.base.safe_files import read_stable, write_atomic
from cleared.work.cycles.engines import load_engine
from cleared.work.cycles.engines.engine import Engine
from cleared.workspace.location import Layout
from cleared.workspace.runners import Runner
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES

STATE_FILE: Final = ".auto-loop-state"
LOCK_FILE: Final = "cycle.lock"
STOP_FILE: Final = ".auto-loop-stop"
PAUSE_FILE: Final = ".auto-loop-paused"
SCHEMA_PATH: Final = Path(__file__).parent / "cycle_state.schema.json"
STATUSES: Final = (
    "starting",
    "running",
    "sleeping",
    "cooldown",
    "waiting_limit",
    "paused",
    "stopping",
    "stopped",
    "failed",
)
"""``failed``: it ended by itself, with a reason that a person must see to."""
_WAITING: Final = ("sleeping", "cooldown", "waiting_limit")
_ENDED: Final = ("stopped", "failed")
_MAX_BYTES: Final = 1 << 20
_MOST: Final = 10**12
"""The largest number that is read: the loop goes on counting from it."""


def initial_state() -> dict[str, Any]:
    """The state before the first start."""
    return {
        "schema_version": "cleared_cycle_state_v1",
        "status": "stopped",
        "engine": None,
        "pid": None,
        "pid_started": None,
        "started_at": None,
        "updated_at": None,
        "cycle": 0,
        "consecutive_errors": 0,
        "no_progress": 0,
        "total_cost": "0",
        "total_tokens": 0,
        "total_seconds": 0,
        "until": None,
        "reason": None,
        "next_action": "",
        "stalled": False,
        "last_cycle": None,
    }


def read_state(root: Path) -> dict[str, Any]:
    """The state; the initial one where there is no file. Raises ``WorkspaceError`` for a damaged one."""
    path = root / STATE_FILE
    if not path.exists() and not path.is_symlink():
        return initial_state()
    try:
        text = read_stable(path, _MAX_BYTES, shown=STATE_FILE)[0]
        data = json.loads(text, parse_int=_read_number, parse_float=_read_number, parse_constant=_read_number)
        _validator()(data)
    except (ValueError, RecursionError) as error:
        raise WorkspaceError(
            f"it is no state of the loop of cycles: {str(error)[:200]}",
            place=Place(STATE_FILE),
            remedy=f"Remove it; the number of the last cycle is found in logs/ again: rm {STATE_FILE}",
        ) from None
    checked: dict[str, Any] = data
    return checked


def _read_number(text: str) -> int | float:
    """A number of the state; one such as 1.0 is an integer for the schema, and so it is for who counts."""
    value = float(text)
    if not abs(value) <= _MOST:
        raise ValueError("a number in it is too large")
    return int(value) if value.is_integer() else value


def write_state(root: Path, state: dict[str, Any]) -> None:
    """Check the state and put it in place, in one step."""
    _validator()(state)
    write_atomic(root / STATE_FILE, (json.dumps(state, indent=1) + "\n").encode("utf-8"), fsync=False)


def cycles_of(root: Path) -> Runner:
    """The loop of cycles of a workspace."""
    show, stop = "cleared cycle status", "cleared cycle stop"
    return Runner("the loop of cycles", root / Layout.state, LOCK_FILE, "cycle start", show, stop, root / STOP_FILE)


def is_running(root: Path, state: dict[str, Any]) -> bool:
    """Whether the process that the state names is the loop. The state is a file that anybody may have written; the lock
    is the kernel's."""
    holder = cycles_of(root).find() if state["pid"] is not None else None
    return holder is not None and holder.pid == state["pid"]


def waits_in_queue(state: dict[str, Any]) -> bool:
    """Whether the next cycle waits as a job of ``cleared loop``: no process waits for it."""
    return state["status"] in _WAITING and state["pid"] is None


def has_died(root: Path, state: dict[str, Any]) -> bool:
    """Whether the process that the state names was killed."""
    return state["status"] not in _ENDED and not waits_in_queue(state) and not is_running(root, state)


def was_cut_off(root: Path, state: dict[str, Any]) -> bool:
    """Whether its process was killed while nobody wanted the cycles to end."""
    return state["status"] != "stopping" and has_died(root, state)


def claim_pid_file(root: Path, engine: Engine) -> str:
    """Write this process's number where the documented scripts look for it; when it was started. A file that a dead
    loop left is replaced."""
    write_atomic(root / engine.pid_file, f"{os.getpid()}\n".encode("ascii"), fsync=False)
    return process_start(os.getpid()) or ""


def remove_pid_files(root: Path) -> None:
    """Remove the pid files of every engine: called where no loop runs."""
    for name in ENGINE_NAMES:
        (root / load_engine(name).pid_file).unlink(missing_ok=True)


@cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema

    validator: Callable[[Any], Any] = fastjsonschema.compile(json.loads(SCHEMA_PATH.read_bytes()), use_default=False)
    return validator

"""Runs the loop in a tmux session, which a person can attach to."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Final

from cleared.base.errors import BusyError, UsageError, WorkspaceError
from cleared.base.programs import find_program, own_command
from cleared.changes.host import Host
from cleared.jobs import loop_reader
from cleared.trust.clone_marks import UNATTENDED
from cleared.work.loop.loop_settings import LoopSettings
from cleared.workspace.lock import LockHolder
from cleared.workspace.process_lock import START_SECONDS

_PASSED_VARIABLES: Final = ("CLEARED_HOME", "CLEARED_CLOCK", UNATTENDED)
_MARK_VARIABLE: Final = "CLEARED_LOOP"
"""Set in the session's environment to the runtime directory: which loop the session is for."""
_TEE_SCRIPT: Final = '"$@" 2>&1 | tee -a "$0"'
"""What the session's shell runs. The command comes as arguments, never as text of the script."""
_POLL_SECONDS: Final = 0.02


def start_session(
    host: Host, settings: LoopSettings, session: str, arguments: list[str], output: Path
) -> LockHolder | None:
    """Run ``cleared`` with these arguments in a new session; the loop's process, None where it has ended already
    without a fault.

    Raises ``BusyError`` where there is such a session, ``WorkspaceError`` where the loop does not come up.
    """
    if _has_session(session):
        raise BusyError(
            f"there is a tmux session {session} already",
            remedy=f"Look at it: tmux attach -t {session}; or name another one with --session.",
        )
    output.write_bytes(b"")
    passed = [f"{name}={value}" for name, value in os.environ.items() if name in _PASSED_VARIABLES]
    passed.append(_session_mark(settings))
    command = own_command("-C", str(host.root), *arguments)
    process = subprocess.run(
        [
            _find_tmux(),
            "new-session",
            "-d",
            "-s",
            session,
            "-c",
            str(host.root),
            *(part for variable in passed for part in ("-e", variable)),
            "sh",
            "-c",
            _TEE_SCRIPT,
            str(output),
            *command,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise WorkspaceError(f"tmux did not start the loop: {process.stderr.strip()[:300]}")
    until = host.clock.monotonic() + START_SECONDS
    while host.clock.monotonic() < until:
        has_session = _has_session(session)
        holder = loop_reader.find_running_loop(settings.runtime)
        if holder is not None and settings.runtime.state_path.exists():
            return holder
        if not has_session:
            text = output.read_text("utf-8", "replace").strip()
            if "the loop has ended" in text:
                return None
            raise WorkspaceError(f"the loop did not come up: {text.removeprefix('cleared: ')}")
        time.sleep(_POLL_SECONDS)
    raise WorkspaceError("the loop did not come up in time", remedy=f"Look at it: tmux attach -t {session}.")


def end_session(settings: LoopSettings, session: str) -> None:
    """End a session that was made for this loop; one of the same name that was made for something else is left."""
    query = [_find_tmux(), "show-environment", "-t", f"={session}", _MARK_VARIABLE]
    shown = subprocess.run(query, capture_output=True, text=True, check=False).stdout.rstrip("\n")
    if shown == _session_mark(settings):
        subprocess.run([_find_tmux(), "kill-session", "-t", f"={session}"], capture_output=True, check=False)


def _find_tmux() -> str:
    program = find_program("tmux")
    if program is None:
        raise UsageError("tmux is not installed", remedy="Install it, or start the loop without: leave --session out.")
    return program


def _has_session(session: str) -> bool:
    return subprocess.run([_find_tmux(), "has-session", "-t", f"={session}"], capture_output=True).returncode == 0


def _session_mark(settings: LoopSettings) -> str:
    return f"{_MARK_VARIABLE}={settings.runtime.folder}"

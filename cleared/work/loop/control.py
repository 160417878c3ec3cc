"""Controls a loop from another process: start it in the background, stop it, pause it, enqueue jobs.

Runs the loop in a tmux session, which a person can attach to.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Literal

from cleared.base.errors import BusyError, UsageError, WorkspaceError
from cleared.base.process_identity import is_alive
from cleared.base.programs import find_program, own_command
from cleared.changes.host import Host
from cleared.jobs import inbox, loop_reader
from cleared.jobs.loop_state import peek_state
from cleared.jobs.signing import JobSigner
from cleared.trust.clone_marks import UNATTENDED
from cleared.work.loop.loop_settings import LoopSettings
from cleared.work.loop.runner import hold_loop_lock, open_machine, take_waiting
from cleared.workspace.lock import LockHolder
from cleared.workspace.process_lock import START_SECONDS, launch_command

PERSON: Final = "person"
"""``by`` of a job that a person enqueued."""
_POLL_SECONDS: Final = 0.02
_ORPHAN_SECONDS: Final = 10.0
"""Seconds that a job whose loop was killed has to end, once it is asked to."""


def enqueue_job(host: Host, settings: LoopSettings, job_type: str, target: str | None, by: str = PERSON) -> str:
    """Enqueue a job; its id. Raises ``PolicyError`` for one that may not be run: a running loop stops for it."""
    try:
        return inbox.enqueue_job(settings.runtime, host.config, job_type, target, by, host.clock)
    finally:
        take_waiting(host, settings)


def set_paused(host: Host, settings: LoopSettings, message: Literal["pause", "resume"]) -> None:
    """Have the loop start no further job, or go on. A pause lasts until ``resume``, also when the loop ends."""
    settings.runtime.make_folders()
    inbox.put_message(settings.runtime, host.clock, message)
    take_waiting(host, settings)


def init_loop(host: Host, settings: LoopSettings) -> None:
    """Begin a fresh state; the old one is archived. Raises ``BusyError`` where a loop runs."""
    with (
        hold_loop_lock(settings, "loop init", host.clock),
        closing(open_machine(host, settings, host.show_message)) as machine,
    ):
        machine.begin_run(init=True)


def start_loop(host: Host, settings: LoopSettings) -> LockHolder | None:
    """Start the loop in the background, in tmux where the settings name a session; its process, None where it has
    ended already without a fault.

    Raises ``BusyError`` where one runs already, ``WorkspaceError`` with its output where it does not come up.
    """
    runtime = settings.runtime
    runtime.make_folders()
    holder = loop_reader.find_running_loop(runtime)
    if holder is not None:
        raise loop_reader.loop_of(runtime).refuse_second(holder)
    output = runtime.log_folder / "control_room.out"
    if settings.tmux_session is not None:
        return start_session(host, settings, settings.tmux_session, _build_command(settings), output)

    def is_up(process: subprocess.Popen[bytes]) -> tuple[LockHolder | None] | None:
        holder = loop_reader.find_running_loop(runtime)
        if holder is not None and holder.pid == process.pid and runtime.state_path.exists():
            return (holder,)
        return (None,) if process.poll() == 0 else None

    return launch_command(host.root, _build_command(settings), output, is_up, "the loop", host.clock)[0]


def _build_command(settings: LoopSettings) -> list[str]:
    """``loop run`` with every setting as a flag, as a tmux server has an environment of its own."""

    def switch_flag(name: str, on: bool) -> str:
        return f"--{name}" if on else f"--no-{name}"

    allowed = ["--allow-ai"] if settings.allow_ai else []
    cycles = ["--max-cycles", str(settings.max_cycles)] if settings.max_cycles is not None else []
    return [
        "loop",
        "run",
        "--loop",
        "--runtime-dir",
        str(settings.runtime.folder),
        "--log-dir",
        str(settings.runtime.log_folder),
        "--sleep",
        f"{settings.sleep_seconds:g}",
        *cycles,
        switch_flag("auto-rotate", settings.auto_rotate),
        switch_flag("init", settings.init_on_start),
        switch_flag("allow-ai-turn", settings.allow_ai_turn),
        switch_flag("ai-dry-run", settings.ai_dry_run),
        *allowed,
    ]


def stop_loop(host: Host, settings: LoopSettings, *, now: bool, wait: float) -> LockHolder | None:
    """Have the loop end after its job, with ``now`` end the job too; the process it was, None where none ran.

    Raises ``BusyError`` where it still runs after ``wait`` seconds.
    """

    holder = loop_reader.loop_of(settings.runtime).end(now=now, wait=wait, clock=host.clock)
    if holder is None and now:
        _end_orphan(host, settings)
    if settings.tmux_session is not None:
        end_session(settings, settings.tmux_session)
    return holder


def _end_orphan(host: Host, settings: LoopSettings) -> None:
    """End a job whose loop was killed, if there is one, and record its result."""
    state = peek_state(settings.runtime)
    running = state["running"] if state else None
    if running is None or not JobSigner(settings.runtime.folder).is_valid(running):
        return
    if is_alive(running["pid"], running["pid_started"]):
        with suppress(ProcessLookupError):
            os.kill(running["pid"], signal.SIGTERM)
        until = host.clock.monotonic() + _ORPHAN_SECONDS
        while is_alive(running["pid"], running["pid_started"]) and host.clock.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        if is_alive(running["pid"], running["pid_started"]):
            raise BusyError(
                f"the job {running['job_id']} (process {running['pid']}) has not ended within 10 seconds",
                remedy="See what holds it up, then again: cleared loop stop --now.",
            )
    take_waiting(host, settings)


_PASSED_VARIABLES: Final = ("CLEARED_HOME", "CLEARED_CLOCK", UNATTENDED)
_MARK_VARIABLE: Final = "CLEARED_LOOP"
"""Set in the session's environment to the runtime directory: which loop the session is for."""
_TEE_SCRIPT: Final = '"$@" 2>&1 | tee -a "$0"'
"""What the session's shell runs. The command comes as arguments, never as text of the script."""
_TMUX_POLL_SECONDS: Final = 0.02


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
        time.sleep(_TMUX_POLL_SECONDS)
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

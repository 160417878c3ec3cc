"""A loop from outside: start it in the background, stop it, pause it, ask it for jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import closing, suppress
from typing import Final, Literal

from cleared.approvals.workspace_pin import UNATTENDED
from cleared.changes.host import Host
from cleared.errors import BusyError, UsageError, WorkspaceError
from cleared.jobs import inbox, loop_reader
from cleared.loop.loop_settings import LoopSettings
from cleared.loop.runner import already_running, hold_loop_lock, open_machine, take_waiting
from cleared.service.process_lock import START_SECONDS, end_process, launch_command
from cleared.workspace.lock import LockHolder
from cleared.workspace.processes import is_alive
from cleared.workspace.programs import find_program, own_command

PERSON: Final = "person"
_PASSED_VARIABLES: Final = ("CLEARED_HOME", "CLEARED_CLOCK", UNATTENDED)
_POLL_SECONDS: Final = 0.02
"""Seconds between two looks whether something has come to be."""
_TEE_SCRIPT: Final = '"$@" 2>&1 | tee -a "$0"'
"""What tmux has a shell run: the command is its arguments, never its text."""


def enqueue_job(host: Host, knobs: LoopSettings, kind: str, target: str | None, by: str = PERSON) -> str:
    """Ask for a job; its id. A running loop takes it in at once. Raises ``PolicyError`` for what may not be run."""
    try:
        return inbox.enqueue_job(knobs.runtime, host.config, kind, target, by, host.clock)
    finally:
        take_waiting(host, knobs)


def set_paused(host: Host, knobs: LoopSettings, what: Literal["pause", "resume"]) -> None:
    """Have no further job started, or go on. It lasts beyond the loop's end."""
    knobs.runtime.make_folders()
    inbox.put_message(knobs.runtime, host.clock, what)
    take_waiting(host, knobs)


def init_loop(host: Host, knobs: LoopSettings) -> None:
    """Make a fresh state; the old one is archived. Raises ``BusyError`` where a loop runs there."""
    with hold_loop_lock(knobs, "loop init", host.clock), closing(open_machine(host, knobs, host.show_message)) as found:
        found.begin_run(init=True)


def start_loop(host: Host, knobs: LoopSettings) -> LockHolder | None:
    """Run the loop in the background, with tmux where a session is named; who it is, None where it has ended well
    already.

    Raises ``BusyError`` where one runs there, ``WorkspaceError`` where it does not come up, with what it said.
    """
    runtime = knobs.runtime
    runtime.make_folders()
    found = loop_reader.find_running_loop(runtime)
    if found is not None:
        raise already_running(knobs, found.pid, found.since)
    said = runtime.log_folder / "control_room.out"
    if knobs.tmux_session is None:

        def is_up(process: subprocess.Popen[bytes]) -> tuple[LockHolder | None] | None:
            holder = loop_reader.find_running_loop(runtime)
            if holder is not None and holder.pid == process.pid and runtime.state_path.exists():
                return (holder,)
            return (None,) if process.poll() == 0 else None

        return launch_command(host.root, _build_command(knobs), said, is_up, "the loop", host.clock)[0]
    return _start_in_tmux(host, knobs, knobs.tmux_session)


def _build_command(knobs: LoopSettings) -> list[str]:
    """``loop run`` with all that holds here as flags: a tmux server has an environment of its own."""

    def switch_flag(name: str, on: bool) -> str:
        return f"--{name}" if on else f"--no-{name}"

    bound = ["--max-cycles", str(knobs.max_cycles)] if knobs.max_cycles is not None else []
    return [
        "loop", "run", "--loop", "--runtime-dir", str(knobs.runtime.folder),
        "--log-dir", str(knobs.runtime.log_folder), "--sleep", f"{knobs.sleep_seconds:g}", *bound,
        switch_flag("auto-rotate", knobs.auto_rotate), switch_flag("init", knobs.init_on_start),
        switch_flag("allow-ai-turn", knobs.allow_ai_turn), switch_flag("ai-dry-run", knobs.ai_dry_run),
    ]  # fmt: skip


def _start_in_tmux(host: Host, knobs: LoopSettings, session: str) -> LockHolder | None:
    if _has_session(session):
        raise BusyError(
            f"there is a tmux session {session} already", remedy="Look at it: tmux attach -t "
            f"{session}; or name another one with --session.",
        )  # fmt: skip
    said = knobs.runtime.log_folder / "control_room.out"
    said.write_bytes(b"")
    passed = [f"{name}={value}" for name, value in os.environ.items() if name in _PASSED_VARIABLES]
    passed.append(_session_mark(knobs))
    command = own_command("-C", str(host.root), *_build_command(knobs))
    done = subprocess.run(
        [_find_tmux(), "new-session", "-d", "-s", session, "-c", str(host.root),
         *(x for p in passed for x in ("-e", p)), "sh", "-c", _TEE_SCRIPT, str(said), *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise WorkspaceError(f"tmux did not start the loop: {done.stderr.strip()[:300]}")
    until = host.clock.monotonic() + START_SECONDS
    while host.clock.monotonic() < until:
        here = _has_session(session)
        found = loop_reader.find_running_loop(knobs.runtime)
        if found is not None and knobs.runtime.state_path.exists():
            return found
        if not here:
            text = said.read_text("utf-8", "replace").strip()
            if "the loop has ended" in text:
                return None
            raise WorkspaceError(f"the loop did not come up: {text.removeprefix('cleared: ')}")
        time.sleep(_POLL_SECONDS)
    raise WorkspaceError("the loop did not come up in time", remedy=f"Look at it: tmux attach -t {session}.")


def stop_loop(host: Host, knobs: LoopSettings, *, now: bool, wait: float) -> LockHolder | None:
    """Have the loop end after its job, with ``now`` end the job too; who it was, None where none ran.

    Raises ``BusyError`` where it still runs after ``wait`` seconds.
    """

    def still_running(found: LockHolder) -> BusyError:
        return BusyError(
            f"the loop (process {found.pid}) has not ended within {wait:g} seconds: its job goes on",
            remedy="Wait, or end the job too: cleared loop stop --now.",
        )

    found = end_process(
        lambda: loop_reader.find_running_loop(knobs.runtime), still_running, now=now, wait=wait, clock=host.clock
    )
    if found is None and now:
        _end_orphan(host, knobs)
    if knobs.tmux_session is not None and _is_session_of(knobs.tmux_session, knobs):
        subprocess.run([_find_tmux(), "kill-session", "-t", f"={knobs.tmux_session}"], capture_output=True, check=False)
    return found


def _end_orphan(host: Host, knobs: LoopSettings) -> None:
    """End a job whose loop was killed, if there is one; it has a result then, as any other."""
    from cleared.jobs.loop_state import peek_state
    from cleared.jobs.signing import JobSigner

    state = peek_state(knobs.runtime)
    running = state["running"] if state else None
    if running is None or not JobSigner(knobs.runtime.folder).is_valid(running):
        return
    if is_alive(running["pid"], running["pid_started"]):
        with suppress(ProcessLookupError):
            os.kill(running["pid"], signal.SIGTERM)
        until = host.clock.monotonic() + 10.0
        while is_alive(running["pid"], running["pid_started"]) and host.clock.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        if is_alive(running["pid"], running["pid_started"]):
            raise BusyError(
                f"the job {running['job_id']} (process {running['pid']}) has not ended within 10 seconds",
                remedy="See what holds it up, then again: cleared loop stop --now.",
            )
    take_waiting(host, knobs)


def _find_tmux() -> str:
    found = find_program("tmux")
    if found is None:
        raise UsageError("tmux is not installed", remedy="Install it, or start the loop without: leave --session out.")
    return found


def _has_session(session: str) -> bool:
    return subprocess.run([_find_tmux(), "has-session", "-t", f"={session}"], capture_output=True).returncode == 0


def _session_mark(knobs: LoopSettings) -> str:
    return f"CLEARED_LOOP={knobs.runtime.folder}"


def _is_session_of(session: str, knobs: LoopSettings) -> bool:
    """Whether a session was made for this loop; another one may have its name by chance."""
    asked = [_find_tmux(), "show-environment", "-t", f"={session}", "CLEARED_LOOP"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.rstrip("\n") == _session_mark(
        knobs
    )

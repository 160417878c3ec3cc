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
from cleared.loop.loop_settings import Knobs
from cleared.loop.runner import alone, already, machine, take_in
from cleared.service.process_lock import START_SECONDS, end, launch
from cleared.workspace.lock import Holder
from cleared.workspace.processes import alive
from cleared.workspace.programs import find_program, own_command

PERSON: Final = "person"
_PASSED: Final = ("CLEARED_HOME", "CLEARED_CLOCK", UNATTENDED)
_PAUSE: Final = 0.02
"""Seconds between two looks whether something has come to be."""
_SHOWN: Final = '"$@" 2>&1 | tee -a "$0"'
"""What tmux has a shell run: the command is its arguments, never its text."""


def enqueue(host: Host, knobs: Knobs, kind: str, target: str | None, by: str = PERSON) -> str:
    """Ask for a job; its id. A running loop takes it in at once. Raises ``PolicyError`` for what may not be run."""
    try:
        return inbox.enqueue(knobs.runtime, host.config, kind, target, by, host.clock)
    finally:
        take_in(host, knobs)


def pause(host: Host, knobs: Knobs, what: Literal["pause", "resume"]) -> None:
    """Have no further job started, or go on. It lasts beyond the loop's end."""
    knobs.runtime.make()
    inbox.put(knobs.runtime, host.clock, what)
    take_in(host, knobs)


def init(host: Host, knobs: Knobs) -> None:
    """Make a fresh state; the old one is archived. Raises ``BusyError`` where a loop runs there."""
    with alone(knobs, "loop init", host.clock), closing(machine(host, knobs, host.say)) as found:
        found.begin(init=True)


def start(host: Host, knobs: Knobs) -> Holder | None:
    """Run the loop in the background, with tmux where a session is named; who it is, None where it has ended well
    already.

    Raises ``BusyError`` where one runs there, ``WorkspaceError`` where it does not come up, with what it said.
    """
    runtime = knobs.runtime
    runtime.make()
    found = loop_reader.up(runtime)
    if found is not None:
        raise already(knobs, found.pid, found.since)
    said = runtime.log_folder / "control_room.out"
    if knobs.tmux_session is None:

        def ready(process: subprocess.Popen[bytes]) -> tuple[Holder | None] | None:
            holder = loop_reader.up(runtime)
            if holder is not None and holder.pid == process.pid and runtime.state.exists():
                return (holder,)
            return (None,) if process.poll() == 0 else None

        return launch(host.root, _command(knobs), said, ready, "the loop", host.clock)[0]
    return _tmux(host, knobs, knobs.tmux_session)


def _command(knobs: Knobs) -> list[str]:
    """``loop run`` with all that holds here as flags: a tmux server has an environment of its own."""

    def switch(name: str, on: bool) -> str:
        return f"--{name}" if on else f"--no-{name}"

    bound = ["--max-cycles", str(knobs.max_cycles)] if knobs.max_cycles is not None else []
    return [
        "loop", "run", "--loop", "--runtime-dir", str(knobs.runtime.folder),
        "--log-dir", str(knobs.runtime.log_folder), "--sleep", f"{knobs.sleep_seconds:g}", *bound,
        switch("auto-rotate", knobs.auto_rotate), switch("init", knobs.init_on_start),
        switch("allow-ai-turn", knobs.allow_ai_turn), switch("ai-dry-run", knobs.ai_dry_run),
    ]  # fmt: skip


def _tmux(host: Host, knobs: Knobs, session: str) -> Holder | None:
    if _has(session):
        raise BusyError(
            f"there is a tmux session {session} already", remedy="Look at it: tmux attach -t "
            f"{session}; or name another one with --session.",
        )  # fmt: skip
    said = knobs.runtime.log_folder / "control_room.out"
    said.write_bytes(b"")
    passed = [f"{name}={value}" for name, value in os.environ.items() if name in _PASSED]
    passed.append(_mark(knobs))
    command = own_command("-C", str(host.root), *_command(knobs))
    done = subprocess.run(
        [_program(), "new-session", "-d", "-s", session, "-c", str(host.root), *(x for p in passed for x in ("-e", p)),
         "sh", "-c", _SHOWN, str(said), *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise WorkspaceError(f"tmux did not start the loop: {done.stderr.strip()[:300]}")
    until = host.clock.monotonic() + START_SECONDS
    while host.clock.monotonic() < until:
        here = _has(session)
        found = loop_reader.up(knobs.runtime)
        if found is not None and knobs.runtime.state.exists():
            return found
        if not here:
            text = said.read_text("utf-8", "replace").strip()
            if "the loop has ended" in text:
                return None
            raise WorkspaceError(f"the loop did not come up: {text.removeprefix('cleared: ')}")
        time.sleep(_PAUSE)
    raise WorkspaceError("the loop did not come up in time", remedy=f"Look at it: tmux attach -t {session}.")


def stop(host: Host, knobs: Knobs, *, now: bool, wait: float) -> Holder | None:
    """Have the loop end after its job, with ``now`` end the job too; who it was, None where none ran.

    Raises ``BusyError`` where it still runs after ``wait`` seconds.
    """

    def late(found: Holder) -> BusyError:
        return BusyError(
            f"the loop (process {found.pid}) has not ended within {wait:g} seconds: its job goes on",
            remedy="Wait, or end the job too: cleared loop stop --now.",
        )

    found = end(lambda: loop_reader.up(knobs.runtime), late, now=now, wait=wait, clock=host.clock)
    if found is None and now:
        _end_orphan(host, knobs)
    if knobs.tmux_session is not None and _is_of(knobs.tmux_session, knobs):
        subprocess.run([_program(), "kill-session", "-t", f"={knobs.tmux_session}"], capture_output=True, check=False)
    return found


def _end_orphan(host: Host, knobs: Knobs) -> None:
    """End a job whose loop was killed, if there is one; it has a result then, as any other."""
    from cleared.jobs.loop_state import peek
    from cleared.jobs.signing import Sealer

    state = peek(knobs.runtime)
    running = state["running"] if state else None
    if running is None or not Sealer(knobs.runtime.folder).holds(running):
        return
    if alive(running["pid"], running["pid_started"]):
        with suppress(ProcessLookupError):
            os.kill(running["pid"], signal.SIGTERM)
        until = host.clock.monotonic() + 10.0
        while alive(running["pid"], running["pid_started"]) and host.clock.monotonic() < until:
            time.sleep(_PAUSE)
        if alive(running["pid"], running["pid_started"]):
            raise BusyError(
                f"the job {running['job_id']} (process {running['pid']}) has not ended within 10 seconds",
                remedy="See what holds it up, then again: cleared loop stop --now.",
            )
    take_in(host, knobs)


def _program() -> str:
    found = find_program("tmux")
    if found is None:
        raise UsageError("tmux is not installed", remedy="Install it, or start the loop without: leave --session out.")
    return found


def _has(session: str) -> bool:
    return subprocess.run([_program(), "has-session", "-t", f"={session}"], capture_output=True).returncode == 0


def _mark(knobs: Knobs) -> str:
    return f"CLEARED_LOOP={knobs.runtime.folder}"


def _is_of(session: str, knobs: Knobs) -> bool:
    """Whether a session was made for this loop; another one may have its name by chance."""
    asked = [_program(), "show-environment", "-t", f"={session}", "CLEARED_LOOP"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.rstrip("\n") == _mark(knobs)

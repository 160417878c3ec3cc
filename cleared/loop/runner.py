"""Being the loop: its lock, its signals, its sleep. What a cycle does is the machine's."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from cleared.approvals.keys import publish_keys, run_key
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.clock import Clock, format_iso
from cleared.config.loading import is_secret
from cleared.config.model import Config
from cleared.config.secrets import MIN_LENGTH, Redactor, redactor_of_secrets
from cleared.errors import BusyError, ClearedError, Interrupted, WorkspaceError
from cleared.jobs.job_types import load_job_types, read_rotation
from cleared.jobs.loop_reader import find_running_loop
from cleared.jobs.records import LoopStop, RunningJob
from cleared.jobs.runtime_directory import LOCK_NAME
from cleared.loop.loop_settings import LoopSettings
from cleared.loop.machine import LoopMachine
from cleared.loop.script_requests import NoScriptRequests, ScriptRequests
from cleared.workspace.lock import writer_lock
from cleared.workspace.processes import is_alive, process_start
from cleared.workspace.safe_files import append_rotated, describe_os_error, sweep_temporaries

LOOP_COMMAND: Final = "loop run"
POLL_SECONDS: Final = 0.5
"""Seconds between two looks for the wakeup flag: nobody tells of a file."""
MIN_PAUSE: Final = 1.0
"""Seconds between two rotated jobs of a loop without an end, whatever its sleep: it is not to be busy for nothing."""
LOCK_PATIENCE: Final = 2.0
"""Seconds for which those who are no loop are waited for."""
_MAX_LOG: Final = 2 << 20


class LoopLog:
    """Lines for whoever watches, and into ``control_room.log``; a full disk stops nothing."""

    def __init__(self, path: Path, clock: Clock, say: Callable[[str], None]) -> None:
        self._path, self._clock, self._say = path, clock, say

    def __call__(self, text: str) -> None:
        line = f"{format_iso(self._clock.now())} {' '.join(text.split())}"
        self._say(line)
        with suppress(OSError):
            append_rotated(self._path, f"{line}\n".encode("utf-8", "replace"), _MAX_LOG, 1)


@contextmanager
def hold_loop_lock(knobs: LoopSettings, what: str, clock: Clock) -> Iterator[None]:
    """Be the only one who writes the state. Raises ``BusyError`` where another loop runs there.

    Who only takes in what somebody enqueued is waited for, and a killed loop's last child that is still at letting go.
    """
    knobs.runtime.make_folders()
    other = find_running_loop(knobs.runtime)
    wait = 0.0 if other is not None and process_start(other.pid) else LOCK_PATIENCE
    try:
        with writer_lock(knobs.runtime.folder, wait, what, clock=clock, name=LOCK_NAME):
            for folder in (knobs.runtime.folder, knobs.runtime.tree_path.parent):  # nobody else writes there
                sweep_temporaries(folder)
            yield
    except BusyError:
        other = find_running_loop(knobs.runtime)
        if other is None:
            raise
        raise already_running(knobs, other.pid, other.since) from None


def already_running(knobs: LoopSettings, pid: int, since: str) -> BusyError:
    return BusyError(
        f"a loop runs in {knobs.runtime.folder} already: process {pid}, since {since}",
        remedy="See: cleared loop status. Stop it with: cleared loop stop.",
    )


def open_machine(host: Host, knobs: LoopSettings, say: Callable[[str], None]) -> LoopMachine:
    """The loop of a runtime directory, for whoever is ``alone`` there."""
    asked = (ScriptRequests if knobs.is_own else NoScriptRequests)(host, knobs.runtime)
    log = LoopLog(knobs.runtime.log_path, host.clock, say)
    return LoopMachine(knobs, host.config, host.clock, build_redactor(host), log, asked, host.report_step)


def build_redactor(host: Host) -> Redactor:
    """For the secrets of the configuration, and of the environment, which no job is given."""
    found = {v for k, v in os.environ.items() if is_secret(k) and len(v.strip()) >= MIN_LENGTH}
    return redactor_of_secrets({*host.redactor.secrets, *found})


def take_waiting(host: Host, knobs: LoopSettings) -> None:
    """Where no loop runs: put what waits into the state at once."""
    with (
        suppress(BusyError),
        hold_loop_lock(knobs, "loop take in", host.clock),
        closing(open_machine(host, knobs, lambda _: None)) as found,
    ):
        found.take_messages()
        found.recover_jobs()
        if not found.runtime.state_path.exists():
            found.save_state()
        found.export_tree()


def run_loop(
    host: Host, kept: HostCache, knobs: LoopSettings, *, once: bool = False, init: bool = False
) -> LoopStop | None:
    """Be the loop until it has done its cycles, is told to end, or stops; why it stopped, None where it did not.

    ``init``: begin with a fresh state. Raises ``BusyError`` where there is a loop, ``Interrupted`` where a job was
    broken off by a second signal, ``WorkspaceError`` where the files cannot be written.
    """
    check_settings(host.config, knobs)
    with hold_loop_lock(knobs, LOOP_COMMAND, host.clock), _WakeupPipe(knobs) as bell:
        run_key(host.root, create=True)  # a job can make none
        publish_keys(host.root)
        found = open_machine(host, knobs, host.show_message)
        loop = _Runner(found, bell, kept)
        try:
            with _handled_signals(loop):
                found.begin_run(init=init)
                loop.run_cycles(1 if once else knobs.max_cycles)
        except ClearedError as error:
            found.log(f"the loop has ended: {error}")
            with suppress(WorkspaceError):
                found.request_stop("trouble", str(error))
                found.save_state()
                found.export_tree()
            raise
        finally:
            found.close()
        if loop.broken_off:
            raise Interrupted("the job was broken off", remedy="It is recorded as failed; enqueue it again.")
        return found.state["stop"]


def check_settings(config: Config, knobs: LoopSettings) -> None:
    """Raises ``WorkspaceError`` where the configuration names kinds that there are not, or that do not rotate."""
    load_job_types(config)
    if knobs.auto_rotate:
        read_rotation(config)


class _Runner:
    def __init__(self, machine: LoopMachine, bell: _WakeupPipe, kept: HostCache) -> None:
        self.machine, self._bell, self._kept = machine, bell, kept
        self._trouble = ""
        self.told = 0
        self.broken_off = False

    def run_cycles(self, cycles: int | None) -> None:
        machine, done = self.machine, 0
        machine.log(f"the loop is up (process {os.getpid()}) in {machine.runtime.folder}")
        while not self.told:
            self._read_settings()
            machine.run_cycle(self._wait_for_job)
            done += 1
            if machine.state["stop"] is not None or (cycles is not None and done >= cycles):
                break
            if not machine.state["queue"] or machine.state["paused"] or machine.state["running"]:
                self._sleep_until_woken(cycles is None)
        if self.told and machine.state["stop"] is None:
            machine.request_stop("asked", "told to end")
        elif machine.state["stop"] is None and machine.state["status"] != "paused":
            machine.state["status"] = "running" if machine.state["running"] else "idle"
        machine.save_state()
        machine.export_tree()
        machine.log(f"the loop has ended after {done} {'cycle' if done == 1 else 'cycles'}")

    def _read_settings(self) -> None:
        """Those of now; as long as they are wrong, those from before."""
        try:
            host = self._kept()
            check_settings(host.config, self.machine.settings)
        except ClearedError as error:
            if str(error) != self._trouble:
                self.machine.log(f"the settings are as before, until this is put right: {error}")
            self._trouble = str(error)
            return
        self._trouble = ""
        if host.config is not self.machine.config:
            self.machine.config, self.machine.redactor = host.config, build_redactor(host)

    def request_end(self) -> None:
        self.told += 1
        self._bell.write_byte()

    def _wait_for_job(self, running: RunningJob, ended: int) -> None:
        """Until the job has ended; what comes meanwhile is taken in."""
        sent = False
        while not self._bell.wait_readable(POLL_SECONDS, ended):
            if self.told > 1 and not sent:
                sent = self.broken_off = True
                with suppress(ProcessLookupError):
                    os.kill(running["pid"], signal.SIGTERM)
            if self._bell.take_wakeup() and self.machine.take_messages():
                self.machine.export_tree()

    def _sleep_until_woken(self, endless: bool) -> None:
        machine = self.machine
        seconds = machine.settings.sleep_seconds
        if endless:
            seconds = max(seconds, MIN_PAUSE)
        if seconds <= 0:
            return
        if machine.state["status"] == "idle":
            machine.state["status"] = "sleeping"
            machine.save_state()
            machine.export_tree()
        clock = machine.clock
        end = clock.monotonic() + seconds
        other = machine.state["running"]
        while not self.told and (left := end - clock.monotonic()) > 0:
            if machine.flag.take_raised():
                return
            self._bell.wait_readable(min(left, POLL_SECONDS))
            if self._bell.take_wakeup():
                return
            if other is not None and not is_alive(other["pid"], other["pid_started"]):
                return


class _WakeupPipe:
    """A named pipe that others write a byte to; for signals too."""

    def __init__(self, knobs: LoopSettings) -> None:
        self._path = knobs.runtime.wakeup_pipe
        try:
            if not self._path.is_fifo():
                self._path.unlink(missing_ok=True)
                os.mkfifo(self._path, 0o600)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise WorkspaceError(f"{self._path} cannot be made: {describe_os_error(error)}") from None
        self._rung = False

    def __enter__(self) -> _WakeupPipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write_byte(self) -> None:
        with suppress(OSError):
            os.write(self._descriptor, b".")

    def wait_readable(self, seconds: float, other: int | None = None) -> bool:
        """Until it rings; whether ``other`` became readable."""
        watched = [self._descriptor] if other is None else [self._descriptor, other]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._descriptor in ready:
            self._rung = True
            with suppress(OSError):
                while os.read(self._descriptor, 4096):
                    pass
        return other is not None and other in ready

    def take_wakeup(self) -> bool:
        """Whether it has rung since this was asked last."""
        was, self._rung = self._rung, False
        return was


@contextmanager
def _handled_signals(loop: _Runner) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the loop after the job that is on; a second one ends that job too."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        loop.request_end()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

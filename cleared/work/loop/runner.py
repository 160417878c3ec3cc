"""Runs the loop in this process: the lock, the signals, the sleep between cycles. The machine runs the cycles."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import BusyError, ClearedError, Interrupted, WorkspaceError
from cleared.base.process_identity import is_alive, process_start, restore_handlers
from cleared.base.safe_files import append_rotated, sweep_temporaries
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.jobs.job_types import load_job_types, read_rotation
from cleared.jobs.loop_reader import loop_of
from cleared.jobs.records import LoopStop, RunningJob
from cleared.trust.keys import publish_keys, run_key
from cleared.work.loop.loop_settings import LoopSettings
from cleared.work.loop.machine import LoopMachine
from cleared.work.loop.script_requests import NoScriptRequests, ScriptRequests
from cleared.work.loop.wakeup_pipe import WakeupPipe
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import MIN_LENGTH, Redactor, is_secret, redactor_of_secrets

POLL_SECONDS: Final = 0.5
"""Seconds between two looks for the wakeup flag, which is a plain file."""
MIN_PAUSE: Final = 1.0
"""Least seconds between two cycles of an endless loop that has no job, however short its sleep is set."""
LOCK_PATIENCE: Final = 2.0
"""Seconds to wait for the lock where no loop holds it."""
_MAX_LOG: Final = 2 << 20


class LoopLog:
    """Writes lines to the terminal and to ``control_room.log``. A full disk stops nothing."""

    def __init__(self, path: Path, clock: Clock, say: Callable[[str], None]) -> None:
        self._path, self._clock, self._say = path, clock, say

    def __call__(self, text: str) -> None:
        line = f"{format_iso(self._clock.now())} {' '.join(text.split())}"
        self._say(line)
        with suppress(OSError):
            append_rotated(self._path, f"{line}\n".encode("utf-8", "replace"), _MAX_LOG, 1)


@contextmanager
def hold_loop_lock(settings: LoopSettings, command: str, clock: Clock) -> Iterator[None]:
    """Hold the lock of a loop's runtime directory, so that nobody else writes its state.

    Waits a moment for a command that only takes messages in, and for the last child of a killed loop. Raises
    ``BusyError`` where a loop runs there. ``command`` says in the lock file what holds it, if it is not the loop.
    """
    settings.runtime.make_folders()
    loop = loop_of(settings.runtime)
    holder = loop.find()
    wait = 0.0 if holder is not None and process_start(holder.pid) else LOCK_PATIENCE
    with loop.hold(clock, command, wait):
        for folder in (settings.runtime.folder, settings.runtime.tree_path.parent):  # only the loop writes there
            sweep_temporaries(folder)
        yield


def open_machine(host: Host, settings: LoopSettings, say: Callable[[str], None]) -> LoopMachine:
    """The machine of a runtime directory; the caller must hold the loop's lock."""
    requests = (ScriptRequests if settings.is_own else NoScriptRequests)(host, settings.runtime)
    log = LoopLog(settings.runtime.log_path, host.clock, say)
    return LoopMachine(settings, host.config, build_redactor(host), host.clock, log, requests, host.report_step)


def build_redactor(host: Host) -> Redactor:
    """A redactor for the secrets of the configuration and of this process's environment."""
    secrets = {v for k, v in os.environ.items() if is_secret(k) and len(v.strip()) >= MIN_LENGTH}
    return redactor_of_secrets({*host.redactor.secrets, *secrets})


def take_waiting(host: Host, settings: LoopSettings) -> None:
    """Take waiting messages into the state, and collect an ended job, unless a loop runs, which does it itself."""
    with (
        suppress(BusyError),
        hold_loop_lock(settings, "loop take in", host.clock),
        closing(open_machine(host, settings, lambda _: None)) as machine,
    ):
        machine.take_messages()
        machine.collector.recover_jobs()
        if not machine.runtime.state_path.exists():
            machine.store.save()
        machine.store.export_tree()


def run_loop(
    host: Host, cache: HostCache, settings: LoopSettings, *, once: bool = False, init: bool = False
) -> LoopStop | None:
    """Run the loop until it has run its cycles, is asked to end, or stops; why it stopped, None where it did not.

    ``kept`` gives the host with the settings that hold now. ``init``: begin with a fresh state. Raises ``BusyError``
    where a loop runs already, ``Interrupted`` where a second signal ended a job, ``WorkspaceError`` where the files
    cannot be written.
    """
    check_settings(host.config, settings)
    with hold_loop_lock(settings, "", host.clock), WakeupPipe(settings.runtime.wakeup_pipe) as pipe:
        run_key(host.root, create=True)  # a job, being confined, could not make the key
        publish_keys(host.root)
        machine = open_machine(host, settings, host.show_message)
        runner = _Runner(machine, pipe, cache)
        try:
            with _handled_signals(runner):
                machine.begin_run(init=init)
                runner.run_cycles(1 if once else settings.max_cycles)
        except ClearedError as error:
            machine.store.log(f"the loop has ended: {error}")
            with suppress(WorkspaceError):
                machine.store.request_stop("trouble", str(error))
                machine.store.save()
                machine.store.export_tree()
            raise
        finally:
            machine.close()
        if runner.has_ended_job:
            raise Interrupted("the job was broken off", remedy="It is recorded as failed; enqueue it again.")
        return machine.state["stop"]


def check_settings(config: Config, settings: LoopSettings) -> None:
    """Raises ``WorkspaceError`` where the configuration names job types that do not exist, or that cannot rotate."""
    load_job_types(config)
    if settings.auto_rotate:
        read_rotation(config)


class _Runner:
    """Runs cycles, and sleeps between them, until it is asked to end."""

    def __init__(self, machine: LoopMachine, pipe: WakeupPipe, cache: HostCache) -> None:
        self._machine, self._pipe, self._kept = machine, pipe, cache
        self._config_problem = ""
        self._end_requests = 0
        self.has_ended_job = False
        """Whether a job was ended because of a second signal."""

    def run_cycles(self, cycles: int | None) -> None:
        """Run so many cycles, or endlessly. Ends early where the machine stops or the end is requested."""
        machine, count = self._machine, 0
        machine.store.log(f"the loop is up (process {os.getpid()}) in {machine.runtime.folder}")
        loop = loop_of(machine.runtime)
        while not self._end_requests:
            if not (loop.folder / loop.lock).exists():
                return  # its folder was removed: whatever is written now would bring it back
            self._read_config()
            machine.run_cycle(self._wait_for_job)
            count += 1
            if machine.state["stop"] is not None or (cycles is not None and count >= cycles):
                break
            if not machine.has_startable_job():
                self._sleep_until_woken(endless=cycles is None)
        if self._end_requests and machine.state["stop"] is None:
            machine.store.request_stop("asked", "told to end")
        elif machine.state["stop"] is None and machine.state["status"] != "paused":
            machine.state["status"] = "running" if machine.state["running"] else "idle"
        machine.store.save()
        machine.store.export_tree()
        machine.store.log(f"the loop has ended after {count_noun(count, 'cycle')}")

    def request_end(self) -> None:
        """End after the job that runs; at the second call, end that job too. Called in signal handlers."""
        self._end_requests += 1
        self._pipe.write_byte()

    def _read_config(self) -> None:
        """Use the configuration as it is now. While it is wrong, the earlier one stays in use, and the log says so."""
        try:
            host = self._kept()
            check_settings(host.config, self._machine.settings)
        except ClearedError as error:
            if str(error) != self._config_problem:
                self._machine.store.log(f"the settings are as before, until this is put right: {error}")
            self._config_problem = str(error)
            return
        self._config_problem = ""
        if host.config is not self._machine.config:
            self._machine.use_config(host.config, build_redactor(host))

    def _wait_for_job(self, running: RunningJob, ended: int) -> None:
        """Wait until the descriptor ``ended`` is readable; take in messages meanwhile."""
        while not self._pipe.wait_readable(POLL_SECONDS, ended):
            if self._end_requests > 1 and not self.has_ended_job:
                self.has_ended_job = True
                if is_alive(running["pid"], running["pid_started"]):
                    with suppress(ProcessLookupError):
                        os.kill(running["pid"], signal.SIGTERM)
            if self._pipe.take_wakeup() and self._machine.take_messages():
                self._machine.store.export_tree()

    def _sleep_until_woken(self, *, endless: bool) -> None:
        """Sleep between two cycles; a message, the wakeup flag, a signal or the end of another loop's job ends it."""
        machine = self._machine
        seconds = machine.settings.sleep_seconds
        if endless:
            seconds = max(seconds, MIN_PAUSE)
        if seconds <= 0:
            return
        if machine.state["status"] == "idle":
            machine.store.set_status("sleeping")
        clock = machine.store.clock
        end = clock.monotonic() + seconds
        running = machine.state["running"]
        while not self._end_requests and (left := end - clock.monotonic()) > 0:
            if machine.collector.flag.take_raised():
                return
            self._pipe.wait_readable(min(left, POLL_SECONDS))
            if self._pipe.take_wakeup():
                return
            if running is not None and not is_alive(running["pid"], running["pid_started"]):
                return
            if machine.has_startable_job():  # one whose time has come
                return


@contextmanager
def _handled_signals(runner: _Runner) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the loop after the job that runs; a second one ends that job too."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        runner.request_end()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        restore_handlers(before)

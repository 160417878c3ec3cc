"""Watching over a job: start it, take its output, stop it at its limits with all that it has started, write the result.

In a process of its own (``standby``).
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleared.approvals.keys import cleared_home
from cleared.approvals.person_only import JOB
from cleared.approvals.workspace_pin import UNATTENDED
from cleared.clock import Clock, format_iso
from cleared.config.model import Config
from cleared.config.secrets import Redactor
from cleared.errors import ClearedError, WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_types import JobType
from cleared.jobs.records import JobRequest, JobResult
from cleared.loop import job_process, job_processes
from cleared.loop.job_confinement import is_own, job_restrictions, resolve_paths, runs_agents, writable_paths
from cleared.loop.job_confinement import start_confined as start_fenced
from cleared.loop.job_output import JobOutput, last_line
from cleared.loop.loop_settings import LoopSettings
from cleared.sandbox.confinement import Restrictions

KILL_GRACE: Final = 3.0
"""Seconds between TERM and KILL."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"
_PASSED_VARIABLES: Final = ("CLEARED_CLOCK", "SYSTEMROOT")
_POLL_SECONDS: Final = 0.25
"""Seconds after which it is looked whether somebody wants the job to end."""
_MAX_SUMMARY: Final = 500
_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """A job, and all that is to be known to do it."""

    item: JobRequest
    kind: JobType
    settings: LoopSettings
    config: Config
    clock: Clock
    redactor: Redactor

    @property
    def target(self) -> str:
        """What was asked for; empty where nothing was."""
        return "" if self.item["target"] == self.kind.default_target else self.item["target"]


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: str
    summary: str
    exit_code: int | None


class Supervisor:
    """Does one job after the other. Set ``told`` to have the one that is on ended."""

    def __init__(self) -> None:
        self.told = False

    def run_job(self, work: JobAssignment) -> None:
        """Do the job, and write its result. Raises ``WorkspaceError`` where that cannot be written."""
        _JobRun(work, self).run_to_result()


class _JobRun:
    def __init__(self, work: JobAssignment, watch: Supervisor) -> None:
        self._work, self._watching = work, watch

    def run_to_result(self) -> None:
        work, runtime = self._work, self._work.settings.runtime
        job = work.item["job_id"]
        began, at = work.clock.now(), work.clock.monotonic()
        # That the file is there says that the job was started, for ever.
        output = JobOutput(runtime.output_path(job), work.kind.max_output, work.redactor)
        try:
            ended = self._run_in_loop() if work.kind.in_loop else self._run_process(output)
        except ClearedError as error:
            ended = _Outcome("failed", str(error), None)
        except OSError as error:
            ended = _Outcome("failed", f"the job could not be started: {error.strerror or error}", None)
        with suppress(OSError):
            output.close()
        summary = " ".join(work.redactor.redact_output(ended.summary).split())[:_MAX_SUMMARY]
        result: JobResult = {
            "schema_version": "single_agent_job_result_v1", "job_id": job, "kind": work.item["kind"],
            "target": work.item["target"], "status": "succeeded" if ended.status == "succeeded" else "failed",
            "started_at": format_iso(began), "ended_at": format_iso(work.clock.now()),
            "duration_sec": round(max(0.0, work.clock.monotonic() - at), 3), "exit_code": ended.exit_code,
            "manifest_path": runtime.display_path(runtime.manifest_path(job)),
            "output_path": runtime.display_path(runtime.output_path(job)),
            "summary": summary, "wakeup_written": False,
        }  # fmt: skip
        for attempt in range(_ATTEMPTS):  # a full disk may have room again; else the loop finds no result
            try:
                file_schemas.write_record("result", runtime.result_path(job), result)
                return
            except WorkspaceError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(0.5)

    def _run_in_loop(self) -> _Outcome:
        from cleared.loop.ai_bridge import turn

        work = self._work
        succeeded, summary = turn(work.settings.runtime, work.item, work.settings, work.clock)
        return _Outcome("succeeded" if succeeded else "failed", summary, 0 if succeeded else 1)

    def _run_process(self, output: JobOutput) -> _Outcome:
        work = self._work
        forbidden = ForbiddenFiles(work.settings.runtime.root, work.config.loop.forbidden_paths)
        named = [work.target] if work.target and work.kind.target == "path" else self._default_paths()
        reads = [*resolve_paths(forbidden, work.kind.reads), *resolve_paths(forbidden, named)]
        writes = writable_paths(forbidden, work.kind, work.settings.runtime)
        scratch = work.settings.runtime.scratch_folder(work.item["job_id"])
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            path = job_process.module_search_path(forbidden.root) if work.kind.function else []
            wanted = job_restrictions(
                forbidden, reads, [*writes, scratch], path, trust=is_own(work.kind), asks=runs_agents(work.kind)
            )
            return self._watch_process(self._build_argv(forbidden, path), wanted, scratch, output)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _default_paths(self) -> list[str]:
        """The paths that the configuration names for this kind."""
        key = self._work.kind.reads_setting
        value = getattr(self._work.config.loop, key) if key else ()
        return [value] if isinstance(value, str) else list(value)

    def _build_argv(self, forbidden: ForbiddenFiles, path: list[str]) -> list[str]:
        work = self._work
        if work.kind.function:
            return job_process.build_command(
                work.kind.function, forbidden, work.target, work.item["by"], self._default_paths(), path
            )
        program = shutil.which(work.kind.command[0], path=_PATH)
        if program is None:
            raise WorkspaceError(f"the program {work.kind.command[0]} is not installed")
        return [program, *(work.item["target"] if part == "{target}" else part for part in work.kind.command[1:])]

    def _watch_process(
        self, argv: list[str], wanted: Restrictions | None, scratch: Path, output: JobOutput
    ) -> _Outcome:
        work = self._work
        read_end, write_end = os.pipe()
        begun: list[subprocess.Popen[bytes]] = []

        def start_process() -> None:
            begun.append(
                subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=write_end, stderr=subprocess.STDOUT,
                    cwd=work.settings.runtime.root, process_group=0,
                    env=job_environment(work.item["job_id"], scratch, own=is_own(work.kind)),
                )
            )  # fmt: skip

        try:
            start_fenced(wanted, work.config.sandbox.confine, start_process)
        finally:
            os.close(write_end)
        process = begun[0]
        try:
            why = self._pump_output(process, read_end, output)
        except BaseException:
            self._kill_job(process)  # no result is written while the job goes on
            raise
        finally:
            os.close(read_end)
        return self._judge_exit(process.returncode, why, output)

    def _kill_job(self, process: subprocess.Popen[bytes]) -> None:
        """End a job that cannot be watched any more, with all that it has started."""
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        self._end_leftovers(process.pid)

    def _pump_output(self, process: subprocess.Popen[bytes], read_end: int, output: JobOutput) -> str:
        """Take the output until the job has ended, or is made to; why it was made to, or an empty text."""
        end = self._work.clock.monotonic() + self._work.kind.timeout
        kill_at, why = None, ""
        watched = [read_end]
        exited = _open_pidfd(process.pid)
        if exited is not None:
            watched.append(exited)
        while process.poll() is None:
            now = self._work.clock.monotonic()
            if not why and (self._watching.told or now >= end):
                why = (
                    "stopped by a person"
                    if self._watching.told
                    else f"stopped at its limit of {self._work.kind.timeout:g} s"
                )
                kill_at = now + KILL_GRACE
                _signal_group(process.pid, signal.SIGTERM)
            if kill_at is not None and now >= kill_at:
                _signal_group(process.pid, signal.SIGKILL)
            ready, _, _ = select.select(watched, [], [], min(_POLL_SECONDS, max(0.0, (kill_at or end) - now)))
            if read_end in ready and not _drain_pipe(read_end, output):
                watched.remove(read_end)
                if exited is None:
                    time.sleep(0.01)
        if exited is not None:
            os.close(exited)
        self._end_leftovers(process.pid)
        os.set_blocking(read_end, False)
        with suppress(BlockingIOError):
            while _drain_pipe(read_end, output):
                pass
        return why

    def _end_leftovers(self, group: int) -> None:
        """End what the job has left behind: whoever it was, it has become a child of this process."""
        for _ in range(200):
            try:
                pid, _status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                scratch = self._work.settings.runtime.scratch_folder(self._work.item["job_id"])
                job_processes.end_job_processes(scratch, os.getpid(), group=group)
                time.sleep(0.005)

    def _judge_exit(self, code: int, why: str, output: JobOutput) -> _Outcome:
        said = last_line(output.tail + output.pending)
        if why:
            return _Outcome("failed", f"{why}{': ' + said if said else ''}", code)
        if code < 0:
            return _Outcome("failed", f"killed by {signal.Signals(-code).name}{': ' + said if said else ''}", code)
        if code:
            return _Outcome("failed", said or f"ended with exit code {code}", code)
        return _Outcome("succeeded", said or "done", 0)


def job_environment(job: str, scratch: Path, *, own: bool) -> dict[str, str]:
    """All that a job's process gets: an allow-list. ``own``: of this package, which looks up whom the user trusts."""
    found = {
        "PATH": _PATH, "HOME": str(scratch), "TMPDIR": str(scratch), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",  # a job starts in the workspace, and no module is to come from there
        JOB: job, job_processes.FOLDER_VARIABLE: str(scratch),
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }  # fmt: skip
    if own:
        found["CLEARED_HOME"] = str(cleared_home().absolute())
        if UNATTENDED in os.environ:
            found[UNATTENDED] = os.environ[UNATTENDED]
    return found | {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}


def _drain_pipe(read_end: int, output: JobOutput) -> bool:
    """Take what there is; False at the end."""
    data = os.read(read_end, 65_536)
    if data:
        output.feed_bytes(data)
    return bool(data)


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has such."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        return os.pidfd_open(pid)
    return None

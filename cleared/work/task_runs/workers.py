"""Workers: whatever turns a briefing and a private clone into changes of the clone. What they claim proves nothing.

A person works in the workspace itself, between ``claim`` and ``done``. Another kind of worker is one more class here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from cleared.base.errors import PolicyError, UsageError
from cleared.base.safe_files import write_atomic
from cleared.base.safe_names import relative_problem
from cleared.changes.host import Host
from cleared.gate.manual_runs import run_now
from cleared.runs.attempt import Event
from cleared.work.cycles.cycle_settings import require_opt_in
from cleared.work.cycles.engine_policy import EnginePolicy
from cleared.work.loop.private_clone import write_file
from cleared.work.task_runs.assignment import Assignment, WorkReport
from cleared.work.task_runs.engine_worker import EngineWorker
from cleared.work.task_runs.fenced_command import run_fenced

_MAX_PAYLOAD: Final = 60_000
"""Characters of a briefing that an agent script is handed with its event."""


class Worker(Protocol):
    """A worker. ``name`` stands in the ledger; it may not be a person's."""

    @property
    def name(self) -> str: ...

    def begin(self, host: Host) -> EnginePolicy | None:
        """Before any task is claimed: the policy of its account, None where it has none. Raises ``ClearedError`` where
        it could do no task."""
        ...

    def work(self, host: Host, assignment: Assignment) -> WorkReport:
        """Work in the clone. Raises ``ClearedError`` where it cannot begin."""
        ...


class CommandWorker(Struct, frozen=True):
    """A shell command in the fence: no network, writing only in the clone. The briefing is its standard input."""

    command: str

    @property
    def name(self) -> str:
        word = "".join(c for c in self.command.split()[0] if c.isprintable())
        return f"command {word.rsplit('/', 1)[-1][:40]}".rstrip()

    def begin(self, host: Host) -> None:
        """It costs nothing."""

    def work(self, host: Host, assignment: Assignment) -> WorkReport:
        task = assignment.briefing.task
        result = run_fenced(
            host,
            ["/bin/sh", "-c", self.command],
            assignment.clone,
            name=f"worker of {task.id}",
            seconds=assignment.seconds,
            input_text=assignment.briefing.text,
            environment={"CLEARED_TASK": task.id, "CLEARED_TASK_TITLE": task.title},
            should_stop=assignment.should_stop,
        )
        write_atomic(assignment.output, f"{result.output}\n[{result.summary}]\n".encode(), mode=0o600)
        lines = [line.strip() for line in result.output.splitlines() if line.strip()]
        last = lines[-1][:300] if lines else ""
        failed = f"{self.name}: {result.summary}; {last}".rstrip("; ")
        return WorkReport(result.passed, last if result.passed else failed)


class AgentWorker(Struct, frozen=True):
    """An approved agent script. Its event's payload has the task and the briefing; its result is
    ``{"files": {path: text, or None to delete it}, "summary": text}``, which the host writes into the clone."""

    agent: str

    @property
    def name(self) -> str:
        return f"agent {self.agent}"

    def begin(self, host: Host) -> None:
        """What its model costs, its runs are bounded by."""

    def work(self, host: Host, assignment: Assignment) -> WorkReport:
        task = assignment.briefing.task
        if len(assignment.briefing.text) > _MAX_PAYLOAD:
            raise PolicyError(f"the briefing of {task.id} is too large for an agent script", remedy="Split the task.")
        payload = {"task": task.to_json_object(), "briefing": assignment.briefing.text}
        run = run_now(host, self.agent, event=Event(payload=payload))
        write_atomic(assignment.output, json.dumps(run.to_json_object(), default=str).encode(), mode=0o600)
        if run.error is not None or run.status != "succeeded":
            return WorkReport(False, f"run {run.run_id} {run.status}: {run.error or ''}"[:500])
        files, summary = _read_result(run.result)
        for path, text in files.items():
            problem = relative_problem(path)
            if problem or path.split("/", 1)[0].lower() == ".git":
                return WorkReport(False, f"the agent wrote to {path[:100]!r}, which {problem or 'is in .git'}")
            data = None if text is None else text.encode("utf-8", "replace")
            write_file(assignment.clone, path, data)
        return WorkReport(True, summary or f"run {run.run_id}")


def choose_worker(
    host: Host, command: str | None, agent: str | None, engine: str | None = None, *, allow_ai: bool = False
) -> Worker:
    """The worker that is named, or that the approved settings name (``tasks.command``, ``agent``, ``engine``).

    Raises ``UsageError`` where there is none, or two, ``PolicyError`` for an engine that is not allowed.
    """
    settings = host.config.tasks
    if command is None and agent is None and engine is None:
        command, agent, engine = settings.command, settings.agent, settings.engine
    count = sum(name is not None for name in (command, agent, engine))
    if count != 1:
        raise UsageError(
            "two workers are named" if count else "no worker is named",
            remedy="Pass one of --command, --agent and --engine, or set one of tasks.command, tasks.agent and "
            "tasks.engine in config.yaml.",
        )
    if engine is not None:
        require_opt_in(host.config, allow_ai)
        return EngineWorker(engine, allow_ai)
    if command is not None:
        if not command.strip():
            raise UsageError("the worker's command is empty", remedy="Write a shell command.")
        return CommandWorker(command)
    assert agent is not None
    if not (host.root / host.layout.agent_path(agent)).is_file():
        raise UsageError(f"there is no agent {agent!r}", remedy="See: cleared agent list.")
    return AgentWorker(agent)


def _read_result(value: Any) -> tuple[dict[str, str | None], str]:
    """Files and summary of an agent's result. Raises ``PolicyError`` where it is none."""
    files = value.get("files") if isinstance(value, Mapping) else None
    if not isinstance(files, Mapping) or not all(
        isinstance(path, str) and (text is None or isinstance(text, str)) for path, text in files.items()
    ):
        raise PolicyError("the agent's result is no work", remedy='Let its last expression be {"files": {path: text}}.')
    return dict(files), str(value.get("summary") or "")[:500]

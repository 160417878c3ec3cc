"""Executing one agent for one event: take, rehearse nothing, run once, seal or discard.

There is one path. A dry run is this path without the seal; nothing else in the program knows of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cleared.clock import iso
from cleared.dispatch import Call, Dispatcher
from cleared.errors import ClearedError, Interrupted, Place, PrimitiveError
from cleared.ledger.violations import BooksViolated
from cleared.runs import draft, failure, log
from cleared.runs.host import Host
from cleared.runs.outcome import RunError, RunResult, error_of
from cleared.runs.scripts import Script, limits_of, load_agent, load_script
from cleared.runs.session import make_context, new_run_id, refuse_dirty
from cleared.runs.trace import Traces
from cleared.sandbox.failure import HostCallFailed, Position, ScriptError
from cleared.sandbox.limits import Limits
from cleared.vcs import HeadMoved, Repository, Snapshot

MAX_DEPTH: Final = 8


class Executor(Protocol):
    """What runs a script: the sandbox in this process, or one behind a bridge."""

    def run(
        self, source: str, *, file: str, call: Callable[[str, tuple[object, ...], dict[str, object], Position], object],
        names: Any, limits: Limits, now: Any, timezone: str, seed: str, inputs: Mapping[str, object] | None,
        on_print: Callable[[str], None] | None, deadline: float | None,
    ) -> object: ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Why a run happens. ``key`` makes it idempotent; a run's commit consumes it."""

    kind: str = "on_demand"
    name: str = ""
    payload: Any = None
    key: str | None = None


def run_agent(
    host: Host, executor: Callable[[], contextlib.AbstractContextManager[Executor]], name: str, *,
    dry_run: bool = False, event: Event | None = None,
) -> RunResult:  # fmt: skip
    """Run an agent once. Everything it did is one commit, or nothing.

    Raises ``ClearedError`` for what is refused before the run starts; a run that started is a ``RunResult``, failed
    ones too. Raises ``Interrupted`` on Ctrl-C, with nothing changed.
    """
    event = event or Event()
    host.layout.agent_path(name)
    with _repository(host, name, dry_run) as repo:
        for attempt in (1, 2):
            try:
                return _Run(host, repo, executor, name, event, dry_run).execute()
            except HeadMoved:
                # Somebody committed by hand while the script ran: what it read is old. Once more, on the new HEAD.
                if attempt == 2:
                    raise
                host.say("the branch moved while the script ran; running it again on the new commit")
    raise AssertionError("unreachable")


def _repository(host: Host, name: str, dry_run: bool) -> contextlib.AbstractContextManager[Repository]:
    return host.reading() if dry_run else host.writing(f"agent run {name}")


class _Run:
    """One attempt."""

    def __init__(
        self, host: Host, repo: Repository, executor: Callable[[], contextlib.AbstractContextManager[Executor]],
        name: str, event: Event, dry_run: bool,
    ) -> None:  # fmt: skip
        self.host, self.repo, self.dry_run = host, repo, dry_run
        self.started = host.clock.monotonic()
        self.now = host.clock.now().replace(microsecond=0)
        self.run_id = new_run_id(self.now)
        self.snapshot = Snapshot(repo, repo.head())
        refuse_dirty(host, self.snapshot)
        self.script = load_agent(host, self.snapshot, name, working_copy=dry_run)
        self.limits = limits_of(host, self.script.header)
        self.executor = executor
        self.calls: list[Call] = []
        self.printed: list[str] = []
        self.event: dict[str, Any] = {
            "id": event.key or f"{event.kind}:{self.run_id}", "kind": event.kind, "name": event.name,
            "payload": event.payload,
        }  # fmt: skip
        self.context = make_context(
            host, repo, self.snapshot, agent=name, now=self.now, run_id=self.run_id, event=self.event,
            dry_run=dry_run, on_log=lambda text: host.say(f"{name}: {text}"), run_script=self.run_script,
        )  # fmt: skip
        grants = self.script.header.grants if self.script.header else None
        self.dispatcher = Dispatcher(
            host.registry, self.context, host.env, allowed=frozenset(grants) if grants is not None else None,
            monotonic=host.clock.monotonic, record=self.calls.append,
        )  # fmt: skip
        self.sandbox: Executor | None = None

    # -- the run ------------------------------------------------------------------------------------------------

    def execute(self) -> RunResult:
        traces = Traces(self.host.layout.state_dir)
        with _best_effort(self.host):
            traces.begin(
                {"id": self.run_id, "agent": self.script.name, "dry_run": self.dry_run, "started_at": iso(self.now),
                 "event": self.event, "script": f"{self.script.file}@{self.script.blob}", "head": self.snapshot.commit}
            )  # fmt: skip
        self.host.step("begun")
        result = RunResult(self.run_id, self.script.name, "failed")
        try:
            self._attempt(result)
        except KeyboardInterrupt:
            result.status = "interrupted"
            result.error = RunError("Interrupted", "interrupted; nothing was changed")
            raise Interrupted("interrupted; nothing was changed") from None
        finally:
            result.duration_ms = round((self.host.clock.monotonic() - self.started) * 1000)
            with _best_effort(self.host):
                traces.end(self.run_id, self._traced(result), self.calls, self.started)
        return result

    def _attempt(self, result: RunResult) -> None:
        try:
            result.result = self._run_script()
            self.host.step("ran")
            self._finish(result)
        except HeadMoved:
            raise
        except ClearedError as e:
            result.error = self._explain(e)
            self._fail(result)

    def _run_script(self) -> object:
        with self.executor() as sandbox:
            self.sandbox = sandbox
            try:
                value = self._sandboxed(self.script, None)
            finally:
                self.sandbox = None
        if self.dispatcher.failure is not None:
            raise self.dispatcher.failure
        return value

    def _sandboxed(self, script: Script, inputs: Mapping[str, object] | None) -> object:
        assert self.sandbox is not None
        dispatch = self.dispatcher.call

        def call(name: str, args: tuple[object, ...], kwargs: dict[str, object], at: Position) -> object:
            return dispatch(name, args, kwargs, Place(at.file, at.line, at.column))

        return self.sandbox.run(
            script.source, file=script.file, call=call, names=self.host.registry, limits=self.limits, now=self.now,
            timezone=self.host.config.business.timezone, seed=self.run_id, inputs=inputs, on_print=self._print,
            deadline=self.started + self.limits.seconds,
        )  # fmt: skip

    def _print(self, text: str) -> None:
        self.printed.append(text)

    def run_script(self, name: str, args: Mapping[str, Any]) -> Any:
        """``script_run``: a shared script in the same draft, one level deeper."""
        if self.dispatcher.depth >= MAX_DEPTH:
            raise PrimitiveError(
                f"scripts call each other more than {MAX_DEPTH} deep",
                place=Place(field="name"),
                remedy="Call a script from the agent, not from itself.",
            )
        script = load_script(self.host, self.snapshot, name, working_copy=self.dry_run)
        for key in args:
            if key in self.host.registry or key.startswith("__"):
                raise PrimitiveError(
                    f"{key} cannot be an argument's name", place=Place(field=key), remedy="Name it otherwise."
                )
        self.dispatcher.depth += 1
        try:
            return self._sandboxed(script, args)
        finally:
            self.dispatcher.depth -= 1

    # -- its end ------------------------------------------------------------------------------------------------

    def _finish(self, result: RunResult) -> None:
        context = self.context
        self._note_printed()
        result.entries = [e for entries in context.books.staged.values() for e in entries]
        result.entries = [context.books.entry(e.entry_id) or e for e in result.entries]
        result.cards = list(context.cards.added.values())
        result.events = list(context.events)
        if self.dry_run:
            context.check()
            result.status = "dry_run"
            result.message = self._message()
            return
        context.note("run", f"succeeded: {len(result.entries)} entries, {len(result.cards)} cards")
        if not context.staged:
            log.wait(self.host, log.rows(context, self.now))
        elif context.messages or self.host.config.git.auto_commit:
            result.message = self._message()
            result.commits = [
                draft.commit(self.host, self.repo, self.snapshot, context, result.message, self._trailers("Event"))
            ]
        else:
            result.warnings.append(
                f"{len(result.entries)} entries were discarded: the script did not call git_commit, "
                "and git.auto_commit is off"
            )
            result.entries, result.cards, result.events = [], [], []
        result.status = "succeeded"

    def _message(self) -> str:
        return "; ".join(self.context.messages)[:500] or f"agent: {self.script.name}"

    def _trailers(self, event: str) -> list[tuple[str, str]]:
        return [
            ("Run", self.run_id),
            ("Agent", self.script.name),
            (event, f"{self.event['kind']} {self.event['id']}"),
            ("Script", f"{self.script.file}@{self.script.blob}"),
            ("Clock", iso(self.now)),
            ("Seed", self.run_id),
        ]

    def _explain(self, error: ClearedError) -> RunError:
        """The error as the user reads it: the script's line, the primitive that was refused, the remedy."""
        if isinstance(error, HostCallFailed):
            inner = error.original
            explained = error_of(
                inner if isinstance(inner, ClearedError) else error, primitive=error.name, line=error.position.line,
                file=error.position.file,
            )  # fmt: skip
            explained.traceback = error.traceback
            while isinstance(inner, HostCallFailed):  # a shared script's own call
                explained.message, inner = inner.message, inner.original
            return explained
        if isinstance(error, ScriptError):
            explained = error_of(error)
            explained.type, explained.traceback = error.type, error.traceback
            return explained
        failed = self.dispatcher.failed_call
        if failed is not None and self.dispatcher.failure is error:
            return error_of(error, primitive=failed.name, line=failed.place.line, file=failed.place.file)
        if isinstance(error, BooksViolated):
            return error_of(error, file=self.script.file)
        return error_of(error)

    def _fail(self, result: RunResult) -> None:
        """Discard the draft; keep the log rows and a card in one ``log:`` commit."""
        result.status = "failed"
        if self.dry_run or result.error is None:
            return
        self._note_printed()
        try:
            fresh = make_context(
                self.host, self.repo, self.snapshot, agent=self.script.name, now=self.now, run_id=self.run_id,
                event=self.event, dry_run=False, on_log=self.context.on_log, run_script=self.run_script,
            )  # fmt: skip
            result.commits, result.cards = failure.record(
                self.host, self.repo, self.snapshot, self.context, fresh, result.error, self.script,
                self._trailers("Attempt"),
            )  # fmt: skip
        except ClearedError as e:
            result.warnings.append(f"the failure could not be recorded in the workspace: {e}")

    def _note_printed(self) -> None:
        text = "".join(self.printed)
        for line in text.splitlines()[:1_000]:
            self.context.note("print", line[:2_000])
            self.host.say(f"{self.script.name}: {line}")
        self.printed.clear()

    def _traced(self, result: RunResult) -> dict[str, Any]:
        return {
            "status": result.status, "duration_ms": result.duration_ms, "result": result.result,
            "error": {**result.error.data(), "traceback": result.error.traceback} if result.error else None,
            "message": result.message, "commits": result.commits, "entries": [e.entry_id for e in result.entries],
            "cards": [c.id for c in result.cards],
            "log": [[r.action, r.details, r.entry_id] for r in self.context.log[:5_000]],
        }  # fmt: skip


@contextlib.contextmanager
def _best_effort(host: Host) -> Iterator[None]:
    """The trace is operational: what keeps it from being written is said, and stops nothing."""
    import sqlite3

    try:
        yield
    except (OSError, sqlite3.Error, ClearedError) as e:
        host.say(f"the trace of this run could not be kept: {e}")

"""One execution of a script against one commit: its calls, its draft, its first failure. It commits nothing.

A run is an attempt and then a commit; a dry run is an attempt only.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.bounds import MAX_SHOWN_LINES
from cleared.base.clock import DeadlineExceeded, run_deadline
from cleared.base.errors import ClearedError, Place, PrimitiveError
from cleared.changes.agent_log import name_log
from cleared.changes.host import Host
from cleared.changes.session import make_context, new_run_id
from cleared.changes.traced_calls import TracedCalls
from cleared.domains.record_audit import RecordsViolated
from cleared.git import Repository, Snapshot
from cleared.primitives.context import Context, QuestionState
from cleared.primitives.dispatch import Call, Dispatcher
from cleared.primitives.model_requests import ModelAnswers
from cleared.runs.approved_scripts import Script, Scripts
from cleared.runs.outcome import RunError, make_run_error
from cleared.sandbox.effective_limits import add_reading_time, limits_of
from cleared.sandbox.executor import Executor, ScriptRun
from cleared.sandbox.script_failure import FAULTS, HostCallFailed, Position, ScriptError, format_traceback
from cleared.sandbox.trigger_kinds import ON_DEMAND
from cleared.sandbox.used_primitives import (
    granted_job_types,
    granted_model_budgets,
    header_only_grants,
    is_granted,
)

MAX_DEPTH: Final = 8
_READING: Final = ("importer_parse", "importer_scan")
WatchAnswer = Callable[[str, tuple[Any, ...], Mapping[str, Any], Place, Any], None]


class Event(Struct, frozen=True):
    """Why a run happens. ``key`` makes it idempotent; a run's commit consumes it, for this agent."""

    kind: str = ON_DEMAND.name
    name: str = ""
    payload: Any = None
    key: str | None = None
    depth: int = 0
    """How many events led to it, one run emitting the next one's."""
    files: tuple[tuple[str, str], ...] = ()
    """Path and SHA-256 of the files it is about; of those in ``import/`` the run sees no others."""

    def to_record(self) -> dict[str, Any]:
        """As it is recorded; the inverse of ``parse_event``."""
        record: dict[str, Any] = {"id": self.key, "kind": self.kind, "name": self.name, "payload": self.payload}
        if self.depth:
            record["depth"] = self.depth
        if self.files:
            record["files"] = [list(file) for file in self.files]
        return record


def parse_event(data: Mapping[str, Any]) -> Event:
    """An event as it was recorded. Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is none.

    Half a character in its payload, which nothing can store, becomes ``?``: else no start would ever get past it.
    """
    payload = json.loads(json.dumps(data["payload"], ensure_ascii=False).encode("utf-8", "replace"))
    files = tuple((str(path), str(digest)) for path, digest in data.get("files") or ())
    return Event(str(data["kind"]), str(data["name"]), payload, str(data["id"]), int(data.get("depth") or 0), files)


class Resumption(Struct, frozen=True, eq=False):
    """What a run is about: its event; and where it takes up one that asked, its first id and time, and the answers."""

    event: Event
    card_ids: tuple[str, ...] = ()
    """The questions that it goes on with, or asks anew."""
    run_id: str | None = None
    now: datetime | None = None
    expected_question: str = ""
    """The question that it must come to again; empty where it starts anew."""
    answers: Mapping[str, str] = {}


class Attempt:
    """A script, a commit, an event, and what comes of them. ``dry_run`` is what ``ctx_dry_run()`` says;
    ``scripts`` has the shared ones; ``drop_folder`` stands in for ``import/``. ``stops_to_ask``: whether it may go on
    after a question. ``model_answers``: what language models have answered, by the request's key; no model is asked
    here."""

    def __init__(
        self,
        host: Host,
        repo: Repository,
        snapshot: Snapshot,
        script: Script,
        about: Resumption,
        *,
        dry_run: bool,
        scripts: Scripts,
        drop_folder: Path | None = None,
        say: Callable[[str], None] | None = None,
        stops_to_ask: bool = False,
        model_answers: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.host, self.repo, self.snapshot, self.script = host, repo, snapshot, script
        self.dry_run, self.scripts = dry_run, scripts
        self.say = say if say is not None else host.show_message
        self._lines = self._bytes = 0
        """Of its log, shown so far."""
        self.started = host.clock.monotonic()
        self.now = (about.now or host.clock.now()).replace(microsecond=0)
        self.run_id = about.run_id or new_run_id(self.now)
        self.limits = limits_of(host.config.sandbox, script.header)
        self.calls = TracedCalls()
        """For the trace; ``counts`` has all."""
        self.watch_answer: WatchAnswer | None = None
        """Called with each call that was answered, whole."""
        self.counts: Counter[str] = Counter()
        self.printed: list[str] = []
        event = about.event
        self.event: dict[str, Any] = replace(event, key=event.key or f"{event.kind}:{self.run_id}").to_record()
        self.drop_folder = drop_folder
        self.context = self.fresh_context()
        self.context.questions = QuestionState(about.answers, stops_to_ask)
        if script.header is not None:
            self.context.permissions.header_values = script.header.own_values
            self.context.files.watch = script.header.watch
        allowed = _allowed_primitives(host, script)
        if not allowed.isdisjoint(_READING):
            waiting = sum(part.count_waiting_bytes() for part in self.context.parts.values())
            self.limits = add_reading_time(self.limits, host.config.sandbox, script.header, waiting)
        self.context.permissions.enqueue_grants = granted_job_types(allowed)
        self.context.model_answers = ModelAnswers(model_answers or {}, granted_model_budgets(allowed))
        self.dispatcher = Dispatcher(
            host.registry,
            self.context,
            host.env,
            allowed=allowed,
            monotonic=host.clock.monotonic,
            record=self._record_call,
        )
        self.sandbox: Executor | None = None

    def fresh_context(self) -> Context:
        """A context with nothing staged, for the attempt itself or for the record of its failure."""
        name = self.script.name
        return make_context(
            self.host,
            self.repo,
            self.snapshot,
            agent=name,
            now=self.now,
            run_id=self.run_id,
            event=self.event,
            dry_run=self.dry_run,
            on_log=self._show_log_line,
            run_script=self.run_script,
            drop_folder=self.drop_folder,
            only=self._files_of_event(),
        )

    def _files_of_event(self) -> frozenset[str] | None:
        """Names in ``import/`` that the run is about; None: all that lie there."""
        folder = f"{self.host.layout.import_dir}/"
        names = frozenset(path[len(folder) :] for path, _ in self.event.get("files", ()) if path.startswith(folder))
        return names or None

    def execute_script(self) -> object:
        """Run the script, and ask about what it leaves to a person unasked; its result. Raises ``ClearedError`` for
        every failure, latched ones first."""
        with self.host.executor() as sandbox, self.limit_time():
            self.sandbox = sandbox
            try:
                value = self._run_in_sandbox(self.script, None)
            finally:
                self.sandbox = None
        if self.dispatcher.failure is not None:
            raise self.dispatcher.failure
        with self.limit_time():
            for part in self.context.parts.values():
                part.stage_questions(self.context)
        return self.host.redactor.redact_data(value)

    def limit_time(self) -> contextlib.AbstractContextManager[None]:
        """The time of the run, asked for inside of what the host does for it in this block."""
        return run_deadline(self.started + self.limits.seconds, self.host.clock.monotonic, self.limits.seconds)

    def _run_in_sandbox(self, script: Script, inputs: Mapping[str, object] | None) -> object:
        assert self.sandbox is not None
        dispatch = self.dispatcher.call_primitive

        def call(name: str, args: tuple[object, ...], kwargs: dict[str, object], at: Position) -> object:
            place = Place(at.file, at.line, at.column)
            answer = dispatch(name, args, kwargs, place)
            if self.watch_answer is not None:
                self.watch_answer(name, args, kwargs, place, answer)
            return answer

        return self.sandbox.run(
            ScriptRun(
                script.source,
                file=script.file,
                call=call,
                names=self.host.registry,
                limits=self.limits,
                now=self.now,
                timezone=self.host.config.business.timezone,
                seed=self.run_id,
                inputs=inputs or {},
                on_print=self._collect_print,
                deadline=self.started + self.limits.seconds,
            )
        )

    def _record_call(self, call: Call) -> None:
        self.counts[call.name] += 1
        if self.host.on_call is not None:
            self.host.on_call(call.name)
        dropped = self.calls.add_call(call)
        if dropped is not None:
            self.dispatcher.release_call(dropped)

    def _show_log_line(self, text: str) -> None:
        """A line of the log, for whoever watches; of too many the first."""
        if self._lines > MAX_SHOWN_LINES:
            return
        self._lines += 1
        self._bytes += len(text)
        if self._lines > MAX_SHOWN_LINES or self._bytes > self.limits.max_output_bytes:
            self._lines = MAX_SHOWN_LINES + 1
            text = f"… more lines are not shown; {name_log(self.now)} has them"
        self.say("\n".join(f"{self.script.name}: {line}" for line in text.split("\n")))

    def _collect_print(self, text: str) -> None:
        self.printed.append(text)

    def run_script(self, name: str, args: Mapping[str, Any]) -> Any:
        """``script_run``: a shared script in the same draft, one level deeper."""
        if self.dispatcher.depth >= MAX_DEPTH:
            raise PrimitiveError(
                f"scripts call each other more than {MAX_DEPTH} deep",
                place=Place(field="name"),
                remedy="Call a script from the agent, not from itself.",
            )
        script = self.scripts.load_shared(name)
        for key in args:
            if key in self.host.registry or key.startswith("__"):
                raise PrimitiveError(
                    f"{key} cannot be an argument's name", place=Place(field=key), remedy="Name it otherwise."
                )
        self.dispatcher.depth += 1
        try:
            return self._run_in_sandbox(script, args)
        finally:
            self.dispatcher.depth -= 1

    def explain_error(self, error: ClearedError) -> RunError:
        """The error as the user reads it: the script's line, the primitive that was refused, the remedy."""
        explained = self._locate_error(error)
        clean = self.host.redactor.redact_text
        explained.message = clean(explained.message)
        explained.is_of_script = _is_of_script(error)
        if _is_timeout(error):
            explained.remedy = self._timeout_remedy()
        explained.remedy = clean(explained.remedy) if explained.remedy else None
        explained.traceback = clean(explained.traceback) if explained.traceback else None
        return explained

    def _timeout_remedy(self) -> str:
        requested = self.script.header.timeout if self.script.header is not None else None
        if requested and requested <= self.limits.seconds:
            return (
                "Do less at a time, or raise `timeout:` in the script's header and have the change approved; it comes "
                "before sandbox.timeout in config.yaml, which cleared config approve puts in force."
            )
        key = "sandbox.timeout_cap" if requested else "sandbox.timeout"
        usual = limits_of(self.host.config.sandbox, self.script.header).seconds
        return (
            f"Do less at a time, or raise {key}: cleared config set {key} {min(2 * usual, 86_400):g} "
            "(or edit config.yaml, and then: cleared config approve)."
        )

    def _locate_error(self, error: ClearedError) -> RunError:
        if isinstance(error, HostCallFailed):
            return _explain_call(error)
        if isinstance(error, ScriptError):
            explained = make_run_error(error)
            explained.type, explained.traceback = error.type, error.traceback
            return explained
        failed = self.dispatcher.failed_call
        if failed is not None and self.dispatcher.failure is error:
            return make_run_error(error, primitive=failed.name, line=failed.place.line, file=failed.place.file)
        if isinstance(error, RecordsViolated):
            return make_run_error(error, file=self.script.file)
        return make_run_error(error)

    def log_printed_lines(self) -> None:
        """What the script printed becomes rows of its log."""
        text = self.host.redactor.redact_text("".join(self.printed))
        for line in text.splitlines()[:MAX_SHOWN_LINES]:
            self.context.log_action("print", line[:2_000])
            self.say(f"{self.script.name}: {line}")
        self.printed.clear()


def _is_timeout(error: BaseException) -> bool:
    """Whether time was up, for the script or for what the host did for it."""
    while isinstance(error, HostCallFailed):
        error = error.original
    return isinstance(error, DeadlineExceeded) or (isinstance(error, ScriptError) and error.kind == "timeout")


def _is_of_script(error: BaseException) -> bool:
    while isinstance(error, HostCallFailed):
        error = error.original
    return isinstance(error, PrimitiveError) or (isinstance(error, ScriptError) and error.kind in FAULTS)


def _allowed_primitives(host: Host, script: Script) -> frozenset[str]:
    """What was approved, as far as the header allows it; job types and budgets only where it names them."""
    bound = script.header.grants if script.header else None
    if bound is None:
        return script.grants - header_only_grants(script.grants)
    registry = host.registry
    return frozenset(
        n for n in script.grants if n in bound or (n in registry and is_granted(n, registry[n].grant, bound))
    )


def _explain_call(error: HostCallFailed) -> RunError:
    """A refused call; where shared scripts called each other, the innermost one, and the way there."""
    calls = [error]
    while isinstance(calls[-1].original, HostCallFailed):
        calls.append(calls[-1].original)
    last, cause = calls[-1], calls[-1].original
    at = last.position
    explained = make_run_error(
        cause if isinstance(cause, ClearedError) else last, primitive=last.name, line=at.line, file=at.file
    )
    frames = [frame for call in calls for frame in call.frames]
    if isinstance(cause, ScriptError):  # a shared script failed by itself
        frames += cause.frames
        explained.type = cause.type
    if len(calls) > 1:
        way = ", ".join(f"{c.position.file}:{c.position.line}" for c in reversed(calls[:-1]))
        explained.message = f"{explained.message} (called from {way})"
    explained.traceback = format_traceback(frames, f"{explained.type}: {explained.message}")
    return explained

"""One run in one session: feeding the script, answering its calls, telling its failures."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cleared.errors import Place, PrimitiveError
from cleared.sandbox import result_values
from cleared.sandbox.argument_size import measure_arguments
from cleared.sandbox.limits import Limits
from cleared.sandbox.result_expression import RewrittenScript
from cleared.sandbox.script_failure import FailureKind, Frame, HostCallFailed, Position, ScriptError
from cleared.sandbox.worker_watchdog import RunGuard

if TYPE_CHECKING:
    from pydantic_monty import FunctionSnapshot, MontyError, MontySession

HostCall = Callable[[str, tuple[object, ...], dict[str, object], Position], object]

# The prelude is the session's first feed, the script its second.
_SCRIPT_FEED = "<python-input-1>"
_TIME_LIMITS = ("feed time limit exceeded", "turn time limit exceeded")
_MAX_FRAMES = 100
_UNWIND_SECONDS = 1.0
_MAX_MESSAGE = 10_000


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """What is to be run, and for whom."""

    script: RewrittenScript
    file: str
    call: HostCall
    names: Container[str]
    limits: Limits
    inputs: Mapping[str, object]
    on_print: Callable[[str], None] | None
    monotonic: Callable[[], float]
    seconds: float
    deadline: float
    """In ``monotonic``'s time, ``seconds`` after the start."""
    shorten_deadline: Callable[[float], None]
    """Give the worker at most so many seconds more."""


class ScriptSession:
    """Drives one session by hand: every suspension is answered here, nothing by the client."""

    def __init__(self, job: ScriptRun, guard: RunGuard) -> None:
        self._job = job
        self._guard = guard
        self._calls = 0
        self._handed = 0
        self._printed = 0
        self._print_error: Exception | None = None
        self._positions: dict[int, Position] = {}
        self._last: Position | None = None
        self.reusable = False
        """Whether the session ended in good order, so that its worker may serve again."""

    def run(self, session: MontySession) -> object:
        """The script's result. Raises ``ScriptError`` or ``HostCallFailed``."""
        job = self._job
        self._feed_code(session, result_values.PRELUDE, {})
        self._feed_code(session, job.script.text, dict(job.inputs))
        answer = self._feed_code(session, result_values.build_epilogue(job.limits.max_output_bytes), {})
        self.reusable = True
        try:
            tail, checked = answer if isinstance(answer, list) and len(answer) == 2 else (None, None)
            return result_values.accept_result(checked, job.limits.max_output_bytes)
        except result_values.ResultRefused as refused:
            raise ScriptError(
                f"{refused}, which cannot be a result",
                kind="result",
                type="TypeError",
                place=self._tail_place(tail),
                remedy="End with None, bool, int, float, str, Decimal, date, or lists and dicts of them.",
            ) from None

    def _feed_code(self, session: MontySession, code: str, inputs: dict[str, Any]) -> object:
        from pydantic_monty import MontyError

        try:
            snapshot = session.feed_start(code, inputs=inputs, print_callback=self._take_print)
            return self._answer_suspensions(snapshot)
        except MontyError as error:
            raise self._script_failure(error) from None

    def _answer_suspensions(self, snapshot: Any) -> object:
        """Answer suspension after suspension until the feed is complete. The hot path of the sandbox."""
        from pydantic_monty import FunctionSnapshot, MontyComplete, NameLookupSnapshot

        job, positions = self._job, self._positions
        call, names, monotonic, deadline = job.call, job.names, job.monotonic, job.deadline
        cap, room = job.limits.max_calls, job.limits.memory_bytes
        while True:
            kind = type(snapshot)
            if kind is MontyComplete:
                return snapshot.output
            at = snapshot.position
            position = positions.get(at.start) if at.filename == _SCRIPT_FEED else self._last
            if position is None:
                position = self._locate_call(at)
            self._last = position
            self._calls += 1
            if self._calls > cap:
                raise self._limit_failure("calls", f"the script made more than {cap} calls", "max_calls")
            if kind is FunctionSnapshot and not snapshot.is_os_function:
                name = snapshot.function_name
                if name in names:
                    try:
                        args, kwargs = snapshot.args, snapshot.kwargs
                        self._handed += _measure_call(name, args, kwargs, room - self._handed)
                        value = call(name, args, kwargs, position)
                    except Exception as error:
                        raise self._host_failure(snapshot, name, position, error) from error
                    if monotonic() > deadline:
                        raise self._timeout_failure()
                    snapshot = snapshot.resume({"return_value": value})
                else:
                    unknown = NameError(f"name {name!r} is not defined")
                    snapshot = snapshot.resume({"exception": unknown})
            elif kind is FunctionSnapshot:
                snapshot = self._deny_call(snapshot)
            elif kind is NameLookupSnapshot:
                name = snapshot.variable_name
                known = name in names and snapshot.object_id is None
                snapshot = snapshot.resume(value=_make_function(name)) if known else snapshot.resume()
            else:
                message = "the script waits for something that nothing will ever deliver"
                raise self._make_error("error", "NotImplementedError", message, "Call primitives without await.")

    def _deny_call(self, snapshot: FunctionSnapshot) -> Any:
        """The operating system, as far as a script is concerned: nothing there."""
        name = snapshot.function_name
        if name == "import":
            return snapshot.resume_not_handled()  # ModuleNotFoundError
        return snapshot.resume({"exception": PermissionError(f"{name} is not available to scripts")})

    def _take_print(self, stream: str, text: str) -> None:
        cap = self._job.limits.max_output_bytes
        data = text.encode("utf-8", "replace")
        room = max(cap - self._printed, 0)
        self._printed += len(data)
        if self._job.on_print is not None and room:
            try:
                self._job.on_print(text if len(data) <= room else data[:room].decode(errors="ignore"))
            except Exception as error:
                self._print_error = error
                raise
        if self._printed > cap:
            self._guard.kill()  # an exception would reach the script only at its end

    def _locate_call(self, at: Any) -> Position:
        line, column = self._job.script.original_position(at.start) if at.filename == _SCRIPT_FEED else (1, 1)
        position = Position(self._job.file, line, column)
        if at.filename == _SCRIPT_FEED:
            self._positions[at.start] = position
        return position

    def _host_failure(
        self, snapshot: FunctionSnapshot, name: str, position: Position, error: Exception
    ) -> HostCallFailed:
        """The host's failure, with the frames that an exception in the script's place passes through."""
        from pydantic_monty import MontyRuntimeError

        frames = [self._make_frame(position.line, position.column, "<module>")]
        self._job.shorten_deadline(_UNWIND_SECONDS)  # a script that swallows it gets no more than this, and no answers
        try:
            snapshot.resume({"exception": RuntimeError("the call was refused")})
        except MontyRuntimeError as unwound:
            frames = self._read_frames(unwound) or frames
            self.reusable = self._guard.fired is None
        except Exception:  # noqa: BLE001  (the frames are a courtesy; the host's failure is the story)
            pass
        return HostCallFailed(error, name=name, position=position, frames=frames)

    def _script_failure(self, error: MontyError) -> Exception:
        from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

        if self._guard.fired == "interrupt":
            raise KeyboardInterrupt from None
        if self._print_error is not None:
            return self._print_error
        cap = self._job.limits.max_output_bytes
        if self._printed > cap:
            return self._limit_failure("output", f"the script printed more than {cap} bytes", "its printing")
        if isinstance(error, MontyCrashedError):
            if self._guard.fired == "deadline" or error.timed_out:
                return self._timeout_failure()
            message = "the sandbox's worker died while it ran the script"
            return self._make_error("crash", "RuntimeError", message, "Run it again; other runs are unaffected.")
        inner = error.exception()
        name, message = type(inner).__name__, str(inner)
        if isinstance(inner, TimeoutError) and message.startswith(_TIME_LIMITS):
            return self._timeout_failure()
        frames = self._read_frames(error) if isinstance(error, MontyRuntimeError | MontySyntaxError) else []
        if isinstance(inner, MemoryError):
            size = self._job.limits.memory_bytes >> 20
            message = f"the script needs more than {size} MB of memory"
            return self._make_error("memory", name, message, "Work on less at a time, or raise memory_mb.", frames)
        self.reusable = True
        if isinstance(error, MontySyntaxError) or (
            isinstance(inner, NotImplementedError) and "syntax parser" in message
        ):
            deep = "too deeply nested" in message
            remedy = "Keep long chains of cases in a list and loop over it." if deep else "Correct the line."
            return self._make_error("syntax", "SyntaxError", message, remedy, frames)
        if isinstance(inner, RecursionError):
            return self._make_error("recursion", name, message, "Use a loop.", frames)
        told = f"{name}: {message[:_MAX_MESSAGE]}" if message else name  # it can be as large as the script's heap
        return self._make_error("error", name, told, self._suggest_remedy(inner, message), frames)

    def _suggest_remedy(self, inner: BaseException, message: str) -> str | None:
        if isinstance(inner, NotImplementedError) and "cannot suspend" in message:
            return "Call the primitive in a for loop or a list comprehension, not in map, filter or key=."
        if isinstance(inner, NameError) and message.count("'") >= 2:
            unknown, names = message.split("'")[1], self._job.names
            known = [name for name in names if isinstance(name, str)] if isinstance(names, Iterable) else []
            known += [name for name in dir(builtins) if name.islower() and name[0] != "_"]
            if unknown in known:
                return f"{unknown} is not available to scripts."
            near = get_close_matches(unknown[:80], known, 1, 0.7)
            return f"Did you mean {near[0]}?" if near else "`cleared primitives` lists what there is."
        return None

    def _timeout_failure(self) -> ScriptError:
        where = f"; its last call was on line {self._last.line}" if self._last else ""
        # The limit itself where nearly all of it was left: what a host needs to start is not worth a decimal.
        left, limit = self._job.seconds, self._job.limits.seconds
        seconds = max(round(limit if left > 0.8 * limit else left, 1), 0.1)
        message = f"the script did not end within {seconds:g} s{where}"
        frames = [self._make_frame(self._last.line, self._last.column, "<module>")] if self._last else []
        return self._make_error("timeout", "TimeoutError", message, "Do less at a time, or raise the limit.", frames)

    def _limit_failure(self, kind: FailureKind, message: str, what: str) -> ScriptError:
        frames = [self._make_frame(self._last.line, self._last.column, "<module>")] if self._last else []
        return self._make_error(
            kind, "RuntimeError", message, f"Look for a loop without end, or change {what}.", frames
        )

    def _make_error(
        self, kind: FailureKind, name: str, message: str, remedy: str | None, frames: Iterable[Frame] = ()
    ) -> ScriptError:
        frames = list(frames)
        place = Place(self._job.file)
        if frames:
            inner = next((f for f in reversed(frames) if f.file == self._job.file), frames[-1])
            place = Place(self._job.file, inner.line, inner.column)
        return ScriptError(message, kind=kind, type=name, place=place, remedy=remedy, frames=frames)

    def _tail_place(self, tail: object) -> Place:
        tails = self._job.script.tails
        if type(tail) is int and 0 <= tail < len(tails):
            return Place(self._job.file, *tails[tail])
        return Place(self._job.file)

    def _read_frames(self, error: Any) -> list[Frame]:
        """Outermost first, in the author's positions; our own feeds left out, the middle of a deep one too."""
        raw = [frame for frame in error.traceback() if frame.filename in (_SCRIPT_FEED, "<string>")]
        if len(raw) > _MAX_FRAMES:
            raw = raw[: _MAX_FRAMES // 2] + raw[-_MAX_FRAMES // 2 :]
        found = []
        for frame in raw:
            function = frame.function_name or "<module>"
            if frame.filename == _SCRIPT_FEED:
                column = self._job.script.original_column(frame.line, frame.column)
                found.append(self._make_frame(frame.line, column, function))
            else:
                text = (frame.source_line or "").split("\n")[0]
                found.append(Frame(frame.filename, frame.line, frame.column, function, text))
        return found

    def _make_frame(self, line: int, column: int, function: str) -> Frame:
        return Frame(self._job.file, line, column, function, self._job.script.original_line(line))


def _measure_call(name: str, args: tuple[object, ...], kwargs: dict[str, object], room: int) -> int:
    try:
        return measure_arguments(args, kwargs, room)
    except ValueError as error:
        message = f"{name} cannot take what it is given: {error}"
        raise PrimitiveError(message, remedy="Pass flat, plain data, and less of it at a time.") from None


def _make_function(name: str) -> FunctionType:
    """A function object that crosses the boundary as the primitive ``name``."""
    return FunctionType(_never_called.__code__, {}, name)


def _never_called() -> None:
    """Never called: the sandbox only sees its name."""

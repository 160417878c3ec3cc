"""One run of a script in one session: runs its code, answers its calls, and explains its failures."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from difflib import get_close_matches
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cleared.base.errors import Place, PrimitiveError
from cleared.sandbox import result_values
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.result_values import measure_arguments
from cleared.sandbox.script_failure import FailureKind, Frame, HostCallFailed, Position, ScriptError
from cleared.sandbox.script_source import RewrittenScript
from cleared.sandbox.worker_watchdog import RunGuard

if TYPE_CHECKING:
    from pydantic_monty import FunctionSnapshot, MontyError, MontySession

# What tracebacks call the script: it is the second code of the session, after the prelude.
_SCRIPT_FEED = "<python-input-1>"
_TIME_LIMITS = ("feed time limit exceeded", "turn time limit exceeded")
_MAX_FRAMES = 100
_UNWIND_SECONDS = 1.0
_MAX_MESSAGE = 10_000


class ScriptSession:
    """Runs one script. Every suspension of the interpreter is answered here, none by the client."""

    def __init__(
        self,
        run: ScriptRun,
        script: RewrittenScript,
        began: float,
        guard: RunGuard,
    ) -> None:
        """``script``: the source as it is fed; ``began``: when the run did, in ``run.monotonic``'s time."""
        self._run = run
        self._script = script
        self._end = run.find_end(began)
        self._seconds = round(self._end - began, 3)
        self._guard = guard
        self._calls = 0
        self._argument_bytes = 0
        self._printed = 0
        self._print_error: Exception | None = None
        self._positions: dict[int, Position] = {}
        self._last: Position | None = None
        self.reusable = False
        """Whether the session has ended properly, so that its worker can be used again."""

    def run(self, session: MontySession) -> object:
        """The script's result. Raises ``ScriptError`` or ``HostCallFailed``."""
        run = self._run
        self._feed_code(session, result_values.PRELUDE, {})
        self._feed_code(session, self._script.text, dict(run.inputs))
        answer = self._feed_code(session, result_values.build_epilogue(run.limits.max_output_bytes), {})
        self.reusable = True
        try:
            tail, checked = answer if isinstance(answer, list) and len(answer) == 2 else (None, None)
            return result_values.accept_result(checked, run.limits.max_output_bytes)
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
        """Answer each suspension until the code has ended; its value. This is the sandbox's hot path."""
        from pydantic_monty import FunctionSnapshot, MontyComplete, NameLookupSnapshot

        run, positions = self._run, self._positions
        call, names, monotonic, deadline = run.call, run.names, run.monotonic, self._end
        cap, room = run.limits.max_calls, run.limits.memory_bytes
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
                        self._argument_bytes += _measure_call(name, args, kwargs, room - self._argument_bytes)
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
                is_function = name in names and snapshot.object_id is None
                snapshot = snapshot.resume(value=_make_function(name)) if is_function else snapshot.resume()
            else:
                message = "the script waits for something that nothing will ever deliver"
                raise self._make_error("error", "NotImplementedError", message, "Call primitives without await.")

    def _deny_call(self, snapshot: FunctionSnapshot) -> Any:
        """Refuse a call of the operating system."""
        name = snapshot.function_name
        if name == "import":
            return snapshot.resume_not_handled()  # ModuleNotFoundError
        return snapshot.resume({"exception": PermissionError(f"{name} is not available to scripts")})

    def _take_print(self, stream: str, text: str) -> None:
        cap = self._run.limits.max_output_bytes
        data = text.encode("utf-8", "replace")
        room = max(cap - self._printed, 0)
        self._printed += len(data)
        if self._run.on_print is not None and room:
            try:
                self._run.on_print(text if len(data) <= room else data[:room].decode(errors="ignore"))
            except Exception as error:
                self._print_error = error
                raise
        if self._printed > cap:
            self._guard.kill()  # an exception would reach the script too late

    def _locate_call(self, at: Any) -> Position:
        line, column = self._script.original_position(at.start) if at.filename == _SCRIPT_FEED else (1, 1)
        position = Position(self._run.file, line, column)
        if at.filename == _SCRIPT_FEED:
            self._positions[at.start] = position
        return position

    def _host_failure(
        self, snapshot: FunctionSnapshot, name: str, position: Position, error: Exception
    ) -> HostCallFailed:
        """The failure of a host call, with the script's stack: an exception raised in the script shows it."""
        from pydantic_monty import MontyError, MontyRuntimeError

        frames = [self._make_frame(position.line, position.column, "<module>")]
        self._guard.limit_run(_UNWIND_SECONDS)  # a script that catches it gets no more time, and no answers
        try:
            snapshot.resume({"exception": RuntimeError("the call was refused")})
        except MontyRuntimeError as unwound:
            frames = self._read_frames(unwound) or frames
            self.reusable = self._guard.fired is None
        except MontyError:  # as where the worker has died: the frames are a courtesy, the host's failure is the story
            pass
        return HostCallFailed(error, name=name, position=position, frames=frames)

    def _script_failure(self, error: MontyError) -> Exception:
        from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

        self._guard.raise_interrupt()
        if self._print_error is not None:
            return self._print_error
        cap = self._run.limits.max_output_bytes
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
            size = self._run.limits.memory_bytes >> 20
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
        text = (
            f"{name}: {message[:_MAX_MESSAGE]}" if message else name
        )  # a message can be as large as the script's heap
        return self._make_error("error", name, text, self._suggest_remedy(inner, message), frames)

    def _suggest_remedy(self, inner: BaseException, message: str) -> str | None:
        if isinstance(inner, NotImplementedError) and "cannot suspend" in message:
            return "Call the primitive in a for loop or a list comprehension, not in map, filter or key=."
        if isinstance(inner, NameError) and message.count("'") >= 2:
            unknown, names = message.split("'")[1], self._run.names
            candidates = [name for name in names if isinstance(name, str)] if isinstance(names, Iterable) else []
            candidates += [name for name in dir(builtins) if name.islower() and name[0] != "_"]
            if unknown in candidates:
                return f"{unknown} is not available to scripts."
            near = get_close_matches(unknown[:80], candidates, 1, 0.7)
            return f"Did you mean {near[0]}?" if near else "`cleared primitives` lists what there is."
        return None

    def _timeout_failure(self) -> ScriptError:
        where = f"; its last call was on line {self._last.line}" if self._last else ""
        # Say the limit itself where nearly all of it was left: the host's own start takes a moment of it.
        left, limit = self._seconds, self._run.limits.seconds
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
        place = Place(self._run.file)
        if frames:
            inner = next((f for f in reversed(frames) if f.file == self._run.file), frames[-1])
            place = Place(self._run.file, inner.line, inner.column)
        return ScriptError(message, kind=kind, type=name, place=place, remedy=remedy, frames=frames)

    def _tail_place(self, tail: object) -> Place:
        tails = self._script.tails
        if type(tail) is int and 0 <= tail < len(tails):
            return Place(self._run.file, *tails[tail])
        return Place(self._run.file)

    def _read_frames(self, error: Any) -> list[Frame]:
        """The stack, outermost first, in the author's positions; without our own code and the middle of a deep one."""
        raw = [frame for frame in error.traceback() if frame.filename in (_SCRIPT_FEED, "<string>")]
        if len(raw) > _MAX_FRAMES:
            raw = raw[: _MAX_FRAMES // 2] + raw[-_MAX_FRAMES // 2 :]
        frames = []
        for frame in raw:
            function = frame.function_name or "<module>"
            if frame.filename == _SCRIPT_FEED:
                column = self._script.original_column(frame.line, frame.column)
                frames.append(self._make_frame(frame.line, column, function))
            else:
                text = (frame.source_line or "").split("\n")[0]
                frames.append(Frame(frame.filename, frame.line, frame.column, function, text))
        return frames

    def _make_frame(self, line: int, column: int, function: str) -> Frame:
        return Frame(self._run.file, line, column, function, self._script.original_line(line))


def _measure_call(name: str, args: tuple[object, ...], kwargs: dict[str, object], room: int) -> int:
    try:
        return measure_arguments(args, kwargs, room)
    except ValueError as error:
        message = f"{name} cannot take what it is given: {error}"
        raise PrimitiveError(message, remedy="Pass flat, plain data, and less of it at a time.") from None


def _make_function(name: str) -> FunctionType:
    """A function object that the interpreter takes for the primitive ``name``."""
    return FunctionType(_never_called.__code__, {}, name)


def _never_called() -> None:
    """Gives its code to ``_make_function``; the sandbox only sees the name."""

"""``sandbox.transport: bridge``: the sandbox behind a bridge process, with the results and errors of the direct one."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, cast

from msgspec import structs

import cleared
from cleared.base.errors import ClearedError, Place, WorkspaceError
from cleared.sandbox.bridge import value_codec as values
from cleared.sandbox.bridge.error_codec import read_frames, read_script_error
from cleared.sandbox.bridge.jsonrpc import (
    SERVER_ERROR,
    Frame,
    Request,
    Response,
    RpcError,
    encode_frame,
    error_frame,
    parse_line,
    read_line,
    request_frame,
    result_frame,
    without_nulls,
)
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.script_failure import HostCallFailed, Position, ScriptError
from cleared.sandbox.worker_pool import Confine

Inbox = queue.SimpleQueue[Request | Response | None]

# The bridge ends a script at its limit; a bridge that does not is killed this much later. It has to start, too.
_GRACE: Final = 10.0
_SHUTDOWN_SECONDS: Final = 2.0


class BridgeExecutor:
    """Runs scripts in a bridge process; ``run`` is ``Sandbox.run``, over a pipe. A context manager.

    The process starts with the first run and serves all of them: nested ones, and those of other threads. It is
    killed on Ctrl-C, and by a run whose deadline it misses; what else it was running then ends as a crash.
    """

    def __init__(self, *, confine: Confine = "best", command: Sequence[str] | None = None) -> None:
        self._command = list(command or [sys.executable, "-P", "-m", "cleared.sandbox.bridge", confine])
        self._lock = threading.Lock()
        self._child: _BridgeProcess | None = None
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process. The executor can be used again afterwards."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.shut_down()

    def run(self, run: ScriptRun) -> object:
        """As ``Sandbox.run``. Raises ``ScriptError`` of kind ``crash`` too where the bridge dies."""
        began = run.monotonic()
        end, names = run.find_end(began), run.names
        params = {
            "script": run.source,
            "external_functions": [n for n in names if isinstance(n, str)] if isinstance(names, Iterable) else [],
            "file": run.file,
            "inputs": {k: values.encode_value(v, exact=True) for k, v in run.inputs.items()},
            "limits": {**structs.asdict(run.limits), "seconds": round(end - began, 6)},
            "now": run.now.isoformat(),
            "timezone": run.timezone,
            "seed": run.seed,
            "positions": True,
            "prints": True,
            "exact": True,
        }
        child = self._ensure_process()
        conversation = _Conversation(child, f"run-{next(self._ids)}", run, end)
        try:
            return conversation.run_script(params)
        except Exception:
            if not conversation.ended:
                child.kill()
            raise
        except BaseException:  # Ctrl-C: at once, whatever the script does
            child.kill()
            raise

    def _ensure_process(self) -> _BridgeProcess:
        with self._lock:
            if self._child is None or self._child.dead:
                self._child = _BridgeProcess(self._command)
            return self._child


class _Conversation:
    """That about one script."""

    def __init__(self, child: _BridgeProcess, identity: str, run: ScriptRun, end: float) -> None:
        self._child = child
        self._id = identity
        self._run = run
        self._end = end
        self._failed: tuple[Exception, str, Position] | None = None
        self.ended = False
        """Whether the bridge has said how the script ended."""

    def run_script(self, params: dict[str, Any]) -> object:
        inbox = self._child.register_run(self._id)
        try:
            if not self._child.send_frame(request_frame("run", params, self._id)):
                raise self._crash_error()
            while True:
                message = self._next_message(inbox)
                if isinstance(message, Response):
                    return self._script_result(message)
                if message.notification:
                    self._pass_print(message)
                else:
                    self._answer_call(message)
        finally:
            self._child.unregister_run(self._id)

    def _next_message(self, inbox: Inbox) -> Request | Response:
        try:
            message = inbox.get(timeout=max(self._end - self._run.monotonic(), 0.0) + _GRACE)
        except queue.Empty:
            self._child.kill()
            raise self._host_failure() or ScriptError(
                "the script did not end in time, and the bridge did not end it",
                kind="timeout",
                type="TimeoutError",
                place=Place(self._run.file),
                remedy="Do less at a time, or raise the limit.",
            ) from None
        if message is None:
            raise self._host_failure() or self._crash_error()
        return message

    def _pass_print(self, message: Request) -> None:
        params = message.params
        if self._run.on_print is not None and message.method == "print" and isinstance(params, dict):
            self._run.on_print(str(params.get("text", "")))

    def _answer_call(self, message: Request) -> None:
        position = self._call_position(message)
        name = message.method
        try:
            args, kwargs = _decode_arguments(message)
            result = self._run.call(name, args, kwargs, position)
            try:
                line = encode_frame(result_frame(message.id, values.encode_value(result, exact=True)))
            except ValueError as e:
                raise WorkspaceError(
                    f"the result of {name} cannot cross to the bridge: {e}", remedy="Set sandbox.transport: direct."
                ) from None
        except Exception as error:  # noqa: BLE001  (raised again when the script has ended, as `HostCallFailed`)
            self._failed = (error, name, position)
            line = _encode_refusal(message, error)
        self._child.send_line(line)

    def _call_position(self, message: Request) -> Position:
        at = message.params.get("position") if isinstance(message.params, dict) else None
        match at:
            case {"file": str(file), "line": int(line), "column": int(column)}:
                return Position(file, line, column)
        return Position(self._run.file, 1, 1)

    def _script_result(self, message: Response) -> object:
        self.ended = True
        if self._failed is not None or message.error is not None:
            error = message.error or {}
            data = error.get("data")
            frames = data.get("frames") if isinstance(data, dict) else None
            failure = self._host_failure(frames)
            if failure is not None:
                raise failure from failure.original
            raise read_script_error(error, self._run.file)
        try:
            return values.decode_value(message.result, exact=True)
        except ValueError as e:
            raise read_script_error({"message": str(e)}, self._run.file) from None

    def _host_failure(self, frames: Any = None) -> HostCallFailed | None:
        """The error that the host's function raised, if that ended the script."""
        if self._failed is None:
            return None
        original, name, position = self._failed
        return HostCallFailed(original, name=name, position=position, frames=read_frames(frames))

    def _crash_error(self) -> ScriptError:
        return ScriptError(
            f"the bridge that ran the script {self._child.exit_text()}",
            kind="crash",
            type="RuntimeError",
            place=Place(self._run.file),
            remedy="Run it again; if it happens again, see what `cleared doctor` says.",
        )


class _BridgeProcess:
    """A bridge process, and the thread that passes its messages to the runs."""

    def __init__(self, command: list[str]) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_process_environment(),
                # Ctrl-C does not reach it, and its workers can be killed with it.
                start_new_session=os.name == "posix",
            )
        except OSError as e:
            raise WorkspaceError(f"the bridge cannot start: {e}", remedy="Set sandbox.transport: direct.") from None
        self._state = threading.Lock()
        self._writing = threading.Lock()
        self._inboxes: dict[str, Inbox] = {}
        self.dead = False
        self._reader = threading.Thread(target=self._read_messages, name="cleared-bridge", daemon=True)
        self._reader.start()

    def register_run(self, run: str) -> Inbox:
        """Where the messages for a run will arrive; None is the last of them."""
        inbox: Inbox = queue.SimpleQueue()
        with self._state:
            self._inboxes[run] = inbox
            if self.dead:
                inbox.put(None)
        return inbox

    def unregister_run(self, run: str) -> None:
        with self._state:
            del self._inboxes[run]

    def send_frame(self, frame: Frame) -> bool:
        return self.send_line(encode_frame(frame))

    def send_line(self, line: bytes) -> bool:
        """Send one line. False where the process has ended; then None arrives in every inbox."""
        assert self._process.stdin is not None
        with self._writing:
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (OSError, ValueError):
                return False
        return True

    def shut_down(self) -> None:
        """Ask the process to end, and kill it where it does not."""
        self.send_frame(request_frame("shutdown", {}))
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHUTDOWN_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its workers."""
        with self._state:
            self.dead = True
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                if os.name == "posix":
                    os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._process.kill()
        self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(_SHUTDOWN_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def exit_text(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return "stopped talking"

    def _read_messages(self) -> None:
        stdout = cast("BinaryIO", self._process.stdout)
        with contextlib.suppress(OSError, ValueError, RpcError):
            while (line := read_line(stdout)) is not None:
                message = parse_line(line)
                if isinstance(message, Response):
                    run: object = message.id
                elif isinstance(message, Request) and isinstance(message.params, dict):
                    run = message.params.get("run")
                else:
                    continue
                with self._state:
                    inbox = self._inboxes.get(run) if isinstance(run, str) else None
                if inbox is not None:
                    inbox.put(message)
        with self._state:
            self.dead = True
            for inbox in self._inboxes.values():
                inbox.put(None)


def _decode_arguments(message: Request) -> tuple[tuple[object, ...], dict[str, object]]:
    params = without_nulls(message.params) if isinstance(message.params, dict) else {}
    args = values.decode_value(params.get("args", []), exact=True)
    kwargs = values.decode_value(params.get("kwargs", {}), exact=True)
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError("args is a list and kwargs a dict")
    return tuple(args), kwargs


def _encode_refusal(message: Request, error: Exception) -> bytes:
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:2_000]}
    if isinstance(error, ClearedError):
        data["message"], data["remedy"] = error.message[:2_000], error.remedy
    return encode_frame(error_frame(message.id, RpcError(SERVER_ERROR, data["message"] or data["type"], data)))


def _process_environment() -> dict[str, str]:
    """The bridge runs this very code, and never a ``cleared`` that lies in the current directory (hence ``-P``)."""
    ours = str(Path(cleared.__file__).resolve().parent.parent.parent)
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != ours]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([ours, *others])}

"""``cleared bridge``: runs scripts for a host in another process, which answers their calls.

    host → bridge   run {script, external_functions, …}      reply: the script's bare result, or error -32000
    bridge → host   <name of a primitive> {args, kwargs}      while the script runs; ``kwargs`` left out where empty
    host → bridge   shutdown                                  a notification

Replies are matched by id, in any order; several scripts run at once, each on a thread of its own.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from cleared.base.clock import SystemClock
from cleared.base.errors import BusyError, ClearedError, PrimitiveError
from cleared.sandbox.bridge import stdio
from cleared.sandbox.bridge import value_codec as values
from cleared.sandbox.bridge.error_codec import HostRefused, read_host_refusal, script_failure_error
from cleared.sandbox.bridge.frame_reader import FrameReader
from cleared.sandbox.bridge.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Frame,
    Id,
    Invalid,
    Message,
    Request,
    Response,
    RpcError,
    encode_frame,
    encode_reply,
    error_frame,
    parse_line,
    request_frame,
    result_frame,
)
from cleared.sandbox.bridge.run_request import RunRequest, read_run_request
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import Position
from cleared.sandbox.worker_pool import Confine

MAX_RUNS: Final = 64
_monotonic = SystemClock().monotonic

Inbox = queue.SimpleQueue[Response | Invalid | None]
Reply = Callable[[Frame], None]


def serve_bridge(stdin: BinaryIO, stdout: BinaryIO, *, confine: Confine = "best") -> None:
    """Serve until ``shutdown``, SIGTERM or the end of ``stdin``.

    At the end of ``stdin`` scripts that need their host fail, the others may end; where nobody reads the answers any
    more, everything ends at once. ``KeyboardInterrupt`` comes through.
    """
    ours = stdio.descriptor_number(stdin) == 0 and stdio.lead_own_session()
    with (
        stdio.protected_streams(stdin, stdout) as (source, sink),
        stdio.raise_on_sigterm(),
        Sandbox(confine=confine) as sandbox,
    ):
        bridge = Bridge(source, sink, sandbox)
        try:
            bridge.serve()
        except stdio.Terminated:
            pass
        finally:
            bridge.close()
            if not bridge.running_count:
                bridge.reader.close()
            elif ours:
                stdio.end_children()


class Bridge:
    """One connection: the scripts that run, and the calls that wait for a reply."""

    def __init__(self, stdin: BinaryIO, stdout: BinaryIO, sandbox: Sandbox) -> None:
        self.reader = FrameReader(stdin)
        self._stdout = stdout
        self._sandbox = sandbox
        self._writing = threading.Lock()
        self._state = threading.Lock()
        self._pending: dict[str, Inbox] = {}
        self._runs: set[Id] = set()
        self._alone = 0
        """Scripts that were asked for by notifications; they have no id."""
        self._numbers = itertools.count(1)
        self._closed = False
        self._shutdown = False
        self._ended = False
        """Nothing more is read: ``shutdown`` came, or the end of the input."""

    @property
    def running_count(self) -> int:
        """How many scripts have not ended yet."""
        with self._state:
            return len(self._runs) + self._alone

    def serve(self) -> None:
        """Read until ``shutdown``, or until the end of the input; then wait for the scripts to end."""
        while not self._ended:
            if self._read_frame(None):
                self.reader.offer_turn(self._runs_one_script)
        self.close()
        while not self._shutdown and self.running_count and not stdio.peer_is_gone(self._stdout):
            threading.Event().wait(0.02)

    def close(self) -> None:
        """Fail the calls that wait for a reply, and all further ones: the host is gone."""
        with self._state:
            self._closed = True
            waiting, self._pending = list(self._pending.values()), {}
        for inbox in waiting:
            inbox.put(None)
        self.reader.wake_reader()

    # -- what comes in ------------------------------------------------------------------------------------------

    def _read_frame(self, deadline: float | None) -> bool:
        """Read a line and act on it; whether it was the reply to a call. Raises ``TimeoutError``."""
        try:
            line = self.reader.read_line(deadline)
        except RpcError as e:
            self._send_frame(error_frame(None, e))
            return False
        if line is None:
            self._ended = True
            return False
        message = parse_line(line)
        if isinstance(message, list):
            batch = _Batch(self._send_bytes)
            for part in message:
                self._handle_message(part, batch.add_reply, batch.expect_reply)
            batch.finish_reading()
            return False
        self._handle_message(message, self._send_frame, lambda: None)
        return isinstance(message, Response)

    def _runs_one_script(self) -> bool:
        with self._state:
            return len(self._runs) + self._alone == 1 and not self._closed

    def _await_reply(self, inbox: Inbox, deadline: float) -> Response | Invalid | None:
        """What comes into a script's inbox. Raises ``queue.Empty`` where that is nothing until the deadline."""
        if self.reader.take_turn():
            goes_on = True
            try:
                while goes_on and inbox.empty():
                    self._read_frame(deadline)
                    goes_on = not self._ended and self._runs_one_script()
            except TimeoutError:
                goes_on = False
            finally:
                self.reader.end_turn(goes_on=goes_on)
        return inbox.get(timeout=max(deadline - _monotonic(), 0.0))

    def _handle_message(self, message: Message, reply: Reply, expect: Callable[[], None]) -> None:
        if isinstance(message, Request):
            if not message.notification:
                expect()
            self._handle_request(message, reply if not message.notification else _drop_reply)
            return
        if isinstance(message.id, str):
            with self._state:
                inbox = self._pending.pop(message.id, None)
            if inbox is not None:
                inbox.put(message)
                return
        if isinstance(message, Invalid):
            expect()
            reply(error_frame(message.id, message.error))

    def _handle_request(self, request: Request, reply: Reply) -> None:
        try:
            if request.method == "shutdown":
                self._shutdown = self._ended = True
                reply(result_frame(request.id, None))
            elif request.method == "run":
                self._start_script(request, read_run_request(request), reply)
            else:
                raise RpcError(METHOD_NOT_FOUND, data=f"a bridge knows run and shutdown, not {request.method[:80]!r}")
        except RpcError as e:
            reply(error_frame(request.id, e))

    def _start_script(self, request: Request, run_request: RunRequest, reply: Reply) -> None:
        with self._state:
            if request.id in self._runs:
                raise RpcError(INVALID_REQUEST, data=f"the id {request.id!r} is in use by a script that runs")
            if len(self._runs) + self._alone >= MAX_RUNS:
                busy = BusyError(f"{MAX_RUNS} scripts are running already", remedy="Wait for one to end.")
                raise script_failure_error(busy)
            if request.notification:
                self._alone += 1
            else:
                self._runs.add(request.id)
        threading.Thread(
            target=self._run_script, args=(request, run_request, reply), name="cleared-script", daemon=True
        ).start()

    # -- a script -----------------------------------------------------------------------------------------------

    def _run_script(self, request: Request, run_request: RunRequest, reply: Reply) -> None:
        try:
            frame = result_frame(request.id, self._script_result(request.id, run_request))
        except RpcError as e:
            frame = error_frame(request.id, e)
        except ClearedError as e:
            frame = error_frame(request.id, script_failure_error(e))
        except Exception as e:  # noqa: BLE001  (a fault of ours ends this script, not the bridge)
            error = {"type": type(e).__name__, "message": str(e)[:1_000], "traceback": None}
            frame = error_frame(request.id, RpcError(INTERNAL_ERROR, data=error))
        # Free before it is told, so that the host may use the id again at once; told before it counts as ended.
        with self._state:
            self._runs.discard(request.id)
            self._alone += 0 if request.notification else 1
        self.reader.withdraw_offer()
        reply(frame)
        with self._state:
            self._alone -= 1

    def _script_result(self, run: Id, run_request: RunRequest) -> Any:
        deadline = _monotonic() + run_request.limits.seconds
        result = self._sandbox.run(
            ScriptRun(
                run_request.script,
                file=run_request.file,
                call=self._make_caller(run, run_request, deadline),
                names=run_request.external_functions,
                limits=run_request.limits,
                now=run_request.now,
                timezone=run_request.timezone,
                seed=run_request.seed,
                inputs=run_request.inputs,
                on_print=self._make_printer(run, run_request),
                deadline=deadline,
            )
        )
        return values.encode_value(result, exact=run_request.exact)

    def _make_caller(
        self, run: Id, run_request: RunRequest, deadline: float
    ) -> Callable[[str, tuple[object, ...], dict[str, object], Position], object]:
        inbox: Inbox = queue.SimpleQueue()
        exact = run_request.exact

        def call_host(name: str, args: tuple[object, ...], kwargs: dict[str, object], position: Position) -> object:
            identity = self._next_id()
            try:
                params: dict[str, Any] = {"args": [values.encode_value(a, exact=exact) for a in args]}
                if kwargs:
                    params["kwargs"] = {k: values.encode_value(v, exact=exact) for k, v in kwargs.items()}
                if run_request.positions:
                    params["run"] = run
                    params["position"] = {"file": position.file, "line": position.line, "column": position.column}
                line = encode_frame(request_frame(name, params, identity))
            except ValueError as e:
                raise PrimitiveError(f"{name}: an argument cannot be sent: {e}", remedy="Pass plain data.") from None
            with self._state:
                if self._closed:
                    raise _host_gone(name)
                self._pending[identity] = inbox
            try:
                self._send_bytes(line)
                answer = self._await_reply(inbox, deadline + 0.005)
            except queue.Empty:
                return None  # too late; the sandbox says so
            finally:
                with self._state:
                    self._pending.pop(identity, None)
            return _call_result(name, answer, exact)

        return call_host

    def _next_id(self) -> str:
        with self._state:
            while True:
                identity = f"b{next(self._numbers)}"
                if identity not in self._runs:
                    return identity

    def _make_printer(self, run: Id, run_request: RunRequest) -> Callable[[str], None]:
        if run_request.prints:
            return lambda text: self._send_frame(request_frame("print", {"run": run, "text": text}))
        return _print_on_stderr

    # -- what goes out ------------------------------------------------------------------------------------------

    def _send_frame(self, frame: Frame) -> None:
        self._send_bytes(encode_reply(frame) if "method" not in frame else encode_frame(frame))

    def _send_bytes(self, line: bytes) -> None:
        with self._writing:
            try:
                self._stdout.write(line)
                self._stdout.flush()
            except (OSError, ValueError):
                pass  # nobody reads any more; the end of stdin, or the deadline, ends what runs


class _Batch:
    """The replies to a batch, sent together when the last of them is there."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._replies: list[bytes] = []
        self._expected = 1  # itself, until all of it has been read

    def expect_reply(self) -> None:
        with self._lock:
            self._expected += 1

    def add_reply(self, frame: Frame) -> None:
        self._count_down([encode_reply(frame).rstrip(b"\n")])

    def finish_reading(self) -> None:
        self._count_down([])

    def _count_down(self, replies: list[bytes]) -> None:
        with self._lock:
            self._replies += replies
            self._expected -= 1
            complete = self._expected == 0
        if complete and self._replies:
            self._send(b"[" + b",".join(self._replies) + b"]\n")


def _call_result(name: str, answer: Response | Invalid | None, exact: bool) -> object:
    if answer is None:
        raise _host_gone(name)
    if isinstance(answer, Invalid):
        raise HostRefused(
            f"the host's reply to {name} has neither a result nor an error",
            type="ProtocolError",
            remedy="A primitive without a value replies with a result of null.",
        )
    if answer.error is not None:
        raise read_host_refusal(answer.error)
    try:
        return values.decode_value(answer.result, exact=exact)
    except ValueError as e:
        raise HostRefused(f"the host's reply to {name} cannot be read: {e}", type="ProtocolError") from None


def _host_gone(name: str) -> HostRefused:
    return HostRefused(f"the host left before it answered {name}", type="ConnectionError")


def _drop_reply(frame: Frame) -> None:
    """A notification is not answered."""


def _print_on_stderr(text: str) -> None:
    """For people; a script must not write control sequences to their terminal."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    sys.stderr.write(shown.encode(sys.stderr.encoding or "utf-8", "backslashreplace").decode(errors="replace"))

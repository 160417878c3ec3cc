"""``cleared rpc``: this workspace's reading primitives and its commands, for any client of the same user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import cleared
from cleared.api.rpc.methods import COMMANDS, call_command, describe_command
from cleared.api.rpc.unix_socket import SocketServer
from cleared.base.clock import run_deadline
from cleared.base.errors import ClearedError, Interrupted, PolicyError, PrimitiveError
from cleared.base.json_values import from_wire, to_wire
from cleared.changes.host import Host
from cleared.changes.session import make_context
from cleared.git import Snapshot
from cleared.primitives.dispatch import Dispatcher, UnknownPrimitive
from cleared.primitives.registry.primitive import Effect, Primitive
from cleared.primitives.registry.projections import params_schema
from cleared.sandbox.bridge import jsonrpc, stdio
from cleared.sandbox.bridge.error_codec import refusal_error
from cleared.sandbox.bridge.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Request, RpcError
from cleared.sandbox.trigger_kinds import ON_DEMAND
from cleared.service.operations.current_host import CurrentHost, HostFactory

ONLY_IN_A_RUN: Final = frozenset(
    {"ctx_log", "ctx_dry_run", "ctx_event", "script_run", "importer_deduplicate"},
)
"""Primitives that change nothing, but are about a run."""


class RequestHandler:
    """Answers requests over one opened workspace. Thread-safe: a request shares nothing with another."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def handle_request(self, request: Request) -> Any:
        """The result of one request. Raises ``RpcError``."""
        method, params = request.method, request.params
        try:
            if method == "rpc.discover":
                return self.describe_methods()
            command = COMMANDS.get(method)
            if command is not None:
                return call_command(command, self.host, params)
            return self._call_primitive(method, params)
        except Interrupted:  # Ctrl-C ended a run; it is to end this process too
            raise KeyboardInterrupt from None
        except ClearedError as e:
            raise refusal_error(e) from None

    def _call_primitive(self, name: str, params: list[Any] | dict[str, Any]) -> Any:
        primitive = self.host.registry.get(name)
        if primitive is None:
            raise RpcError(METHOD_NOT_FOUND, data=self._describe_unknown(name))
        try:
            args, kwargs = _read_arguments(primitive, params)
        except ValueError as e:
            raise refusal_error(PrimitiveError(str(e)), INVALID_PARAMS) from None
        if name in ONLY_IN_A_RUN:
            raise PolicyError(
                f"{name} is about a run, and there is none",
                remedy="Call it from an agent script (cleared agent run NAME).",
            )
        try:
            with self.open_dispatcher() as dispatcher:
                return to_wire(dispatcher.call_primitive(name, args, kwargs))
        except PrimitiveError as e:
            if (e.place and e.place.field) or len(args) > len(primitive.takes.params):
                raise refusal_error(e, INVALID_PARAMS) from None
            raise

    @contextmanager
    def open_dispatcher(self) -> Iterator[Dispatcher]:
        """A dispatcher of the reading primitives for one request, over the newest commit."""
        host = self.host
        with host.open_for_reading() as repo:
            context = make_context(
                host,
                repo,
                Snapshot(repo, repo.read_head()),
                agent="rpc",
                now=host.clock.now().replace(microsecond=0),
                run_id="rpc",
                event={"id": "rpc", "kind": ON_DEMAND.name, "name": "", "payload": None},
                dry_run=True,
                on_log=host.show_message,
                run_script=_refuse_script_run,
            )
            reading, seconds = frozenset({Effect.READ}), host.config.sandbox.timeout
            with run_deadline(host.clock.monotonic() + seconds, host.clock.monotonic, seconds):
                yield Dispatcher(host.registry, context, host.env, effects=reading, monotonic=host.clock.monotonic)

    def describe_methods(self) -> dict[str, Any]:
        """All methods, as an OpenRPC document (https://spec.open-rpc.org)."""
        offered = self._list_offered()
        defs: dict[str, Any] = next((params_schema(p)["$defs"] for p in offered), {})
        return {
            "openrpc": "1.3.2",
            "info": {"title": "cleared", "version": cleared.__version__},
            "methods": [*map(describe_command, COMMANDS.values()), *(_describe_primitive(p) for p in offered)],
            "$defs": defs,
        }

    def _describe_unknown(self, name: str) -> dict[str, Any]:
        from difflib import get_close_matches

        near = get_close_matches(name[:80], [*COMMANDS, *(each.name for each in self._list_offered())], n=1)
        error = UnknownPrimitive(f"there is no method {name[:80]!r}")
        hint = f"Did you mean {near[0]}?" if near else "rpc.discover lists them."
        return {"type": type(error).__name__, "message": error.message, "place": None, "remedy": hint, "exit_code": 2}

    def _list_offered(self) -> list[Primitive]:
        return [p for p in self.host.registry.values() if p.effect is Effect.READ and p.name not in ONLY_IN_A_RUN]


def _describe_primitive(p: Primitive) -> dict[str, Any]:
    schema = params_schema(p)
    return {
        "name": p.name,
        "summary": p.doc.split("\n")[0],
        "description": p.doc,
        "paramStructure": "either",
        "params": [
            {"name": name, "required": name in schema["required"], "schema": shape}
            for name, shape in schema["properties"].items()
        ],
        "result": {"name": "result", "schema": p.takes.returns.schema},
    }


def _read_arguments(primitive: Primitive, params: list[Any] | dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments. Null stands for a missing argument, where that is optional and null is no value
    of its own. Raises ``ValueError``."""
    if isinstance(params, list):
        if len(params) > len(primitive.takes.params):
            return tuple(map(from_wire, params)), {}
        params = dict(zip(primitive.takes.by_name, params, strict=False))
    optional = {
        p.name
        for p in primitive.takes.params
        if not p.required and p.shape.schema and {"type": "null"} not in p.shape.schema.get("anyOf", ())
    }
    return (), {name: from_wire(value) for name, value in params.items() if value is not None or name not in optional}


def _refuse_script_run(name: str, args: Mapping[str, Any]) -> NoReturn:
    raise PolicyError("script_run is about a run, and there is none")


class CurrentHandler:
    """Answers requests under the settings in force; opens the workspace again when they have changed."""

    def __init__(self, open_host: HostFactory) -> None:
        self._current = CurrentHost(open_host)

    def handle_request(self, request: Request) -> Any:
        """As ``RequestHandler.handle_request``."""
        try:
            host = self._current.open_host()
        except ClearedError as e:
            raise refusal_error(e) from None
        return RequestHandler(host).handle_request(request)


def serve_stdio(host_factory: HostFactory, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
    """Answer on the standard streams until their end or SIGTERM. Raises ``ClearedError`` where the workspace cannot be
    opened."""
    import sys

    current = CurrentHandler(host_factory)
    with (
        stdio.protected_streams(stdin or sys.stdin.buffer, stdout or sys.stdout.buffer) as (source, sink),
        stdio.raise_on_sigterm(),
    ):
        try:
            jsonrpc.serve_lines(source, sink, current.handle_request)
        except stdio.Terminated:
            pass


def serve_socket(host_factory: HostFactory, path: Path) -> None:
    """Answer on a Unix socket of this user's until SIGTERM or Ctrl-C (see ``api.rpc.unix_socket``)."""
    current = CurrentHandler(host_factory)
    with stdio.raise_on_sigterm(), SocketServer(path, current.handle_request) as server:
        try:
            server.accept_connections()
        except stdio.Terminated:
            pass

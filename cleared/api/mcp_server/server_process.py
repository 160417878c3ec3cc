"""The process of ``cleared mcp``: what it says on stderr, how it starts, how it ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

from cleared.api.mcp_server.client_calls import ExplainFault, WorkspaceTools
from cleared.base.errors import ExitCode, UsageError
from cleared.base.terminal import escape_text, print_message
from cleared.service.operations.current_host import CurrentHost, HostFactory
from cleared.trust.keys import warning_of_open_key
from cleared.workspace.loopback_listener import ADDRESS, open_listener

INSTALL: Final = "pip install '.[mcp]'"
_LOGGERS: Final = ("mcp", "uvicorn", "sse_starlette", "asyncio")


def require_sdk() -> None:
    """Raises ``UsageError`` where the official SDK is not installed."""
    if find_spec("mcp") is None:
        raise UsageError("cleared mcp needs one more package, the MCP SDK", remedy=f"In the checkout: {INSTALL}")


def serve_on_stdio(open_workspace: HostFactory, explain_fault: ExplainFault) -> None:
    """Serve one client on the standard streams, until it closes them. Raises ``ClearedError`` before it begins."""
    current = CurrentHost(open_workspace)
    _end_on_signals()
    _log_to_stderr()
    from cleared.api.mcp_server.protocol_server import make_server
    from cleared.api.mcp_server.stdio_transport import serve_stdio

    _warn_of_open_key()
    if sys.stdin.isatty():
        show_message("cleared mcp is for programs: an MCP client starts it and speaks with it. Ctrl-C ends it.")
    serve_stdio(make_server(WorkspaceTools(current, explain_fault)))


def serve_on_http(
    open_workspace: HostFactory, explain_fault: ExplainFault, port: int, on_ready: Callable[[dict[str, Any]], None]
) -> None:
    """Serve clients on loopback, until SIGTERM or Ctrl-C. ``on_ready`` gets address and token file once it answers.

    Raises ``BusyError`` where the port is taken, ``ClearedError`` where the workspace cannot be opened.
    """
    current = CurrentHost(open_workspace)
    from cleared.api.mcp_server.http_transport import MAX_CONNECTIONS, PATH, load_token, serve_http
    from cleared.api.mcp_server.protocol_server import make_server

    with open_listener(port, MAX_CONNECTIONS) as listener:
        token, file, is_new = load_token(current.open_host())
        _end_on_signals()
        _log_to_stderr()
        url = f"http://{ADDRESS}:{listener.port}{PATH}"

        def report_ready() -> None:
            show_message(f"cleared mcp answers at {url}, to clients that show the token in {file}")
            if is_new:
                show_message(f"The token is new, and shown only now: {token}")
            _warn_of_open_key()
            on_ready({"url": url, "token_file": str(file)})

        serve_http(make_server(WorkspaceTools(current, explain_fault)), listener, token, report_ready)


def _warn_of_open_key() -> None:
    """Say it where whoever runs programs as this user could approve what a client proposes."""
    warning = warning_of_open_key()
    if warning is not None:
        show_message(warning)


def _end_on_signals() -> None:
    """SIGTERM and Ctrl-C end the process at once, whatever a call or a client is doing."""

    def end_process(number: int, _frame: object) -> None:
        # What a call was doing is one commit or nothing, wherever it is cut off.
        if number == signal.SIGINT:
            os.write(2, b"cleared: interrupted\n")
            os._exit(ExitCode.INTERRUPTED)
        os._exit(ExitCode.DONE)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_process)


def show_message(text: str) -> None:
    """A line on stderr. Where its reader is gone, a call goes on without it."""
    with suppress(OSError, ValueError):
        print_message(text)


class _PlainHandler(logging.Handler):
    """Warnings of libraries, one line each: they quote what clients send."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        show_message(f"cleared mcp: {escape_text(text[:500])}")


def _log_to_stderr() -> None:
    handler = _PlainHandler(logging.WARNING)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)

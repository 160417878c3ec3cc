"""``cleared loop serve``: the loop's page and tree alone, on loopback, to be read without signing in."""

from __future__ import annotations

from cleared.base.terminal import print_message
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.web.page_server import ended_by_signals
from cleared.workspace.loopback_listener import ADDRESS, open_listener

_MAX_WAITING = 1_024


def serve_loop(runtime: RuntimeDirectory, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM; ``port`` 0 takes a free one. Raises ``BusyError`` where the port is taken."""
    from cleared.web.http_server import HttpServer
    from cleared.web.loop_pages import make_loop_application

    server = HttpServer()
    with open_listener(port, _MAX_WAITING) as listener, ended_by_signals(server.end):
        bound = listener.port
        app = make_loop_application(runtime, [f"{ADDRESS}:{bound}", f"localhost:{bound}"])
        server.serve(app, listener, lambda: print_message(f"http://{ADDRESS}:{bound}/ (Ctrl-C ends it)"))

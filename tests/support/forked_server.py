"""``cleared server`` in forked processes that kill themselves at a named step of what is asked of them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forked import Forking, attend
from patience import PATIENCE
from web_client import Server

COPIED = "copied"
"""The step after each file that an upload has put into the drop folder."""


class ForkedServers(Forking):
    """A context manager; ``serve`` has one server begun."""

    @contextmanager
    def serve(self, root: Path, place: Path, step: str, nth: int = 1) -> Iterator[Server]:
        """A server, signed in. It gets SIGKILL at the ``nth`` time of a step of ``Host.on_step``, or ``COPIED``; the
        block ends when it is dead, by a signal to itself or of this block."""
        place.unlink(missing_ok=True)
        self.order({"root": str(root), "place": str(place), "step": step, "nth": nth})
        until = time.monotonic() + PATIENCE
        while not place.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        found = json.loads(place.read_text())
        server = Server.at(found["url"], found["code"])
        server.sign_in(server.code)
        try:
            yield server
        finally:
            self.killed = self.ended() == -signal.SIGKILL


def _obey(order: dict[str, Any]) -> int:
    from cleared.base.safe_files import write_atomic
    from cleared.books.importing import handed_files
    from cleared.changes.workspace_opening import open_workspace
    from cleared.cli.machine_errors import as_refusal
    from cleared.web.page_server import PageServer, serve_pages

    left = order["nth"]

    def stop(name: str) -> None:
        nonlocal left
        left -= name == order["step"]
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write_and_stop(path: Path, data: bytes) -> None:
        stop(f"not {COPIED}")
        write_atomic(path, data)
        stop(COPIED)

    handed_files.write_atomic = write_and_stop  # type: ignore[assignment]
    place = Path(order["place"])

    def report(found: dict[str, Any]) -> None:
        write_atomic(place, json.dumps(found).encode())

    serve_pages(
        PageServer([Path(order["root"])], lambda root: open_workspace(root, on_step=stop), as_refusal, 0), report
    )
    return 0


def main() -> None:
    attend(_obey)

"""``cleared up``: the process of the service, with the workspaces that it serves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from cleared.base.clock import Clock, SystemClock
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.service.service_process import serve_workspaces
from cleared.service.spans import SpanExporter
from cleared.service.workspace_actions import WorkspaceActions


def serve(
    roots: Sequence[Path],
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
    on_idle: Sequence[Callable[[], None]] = (),
) -> None:
    """Run the agents of these workspaces by themselves, until SIGTERM or Ctrl-C (see ``serve_workspaces``)."""
    with ExitStack() as stack:
        spans = SpanExporter.from_environment(os.environ)
        if spans is not None:
            stack.callback(spans.close)
        record = spans.record_run if spans is not None else None

        def open_host(root: Path) -> Host:
            return open_workspace(root, clock=clock, say=say)

        served = {root: stack.enter_context(WorkspaceActions(root, open_host, record)) for root in roots}
        serve_workspaces(roots, served.__getitem__, clock or SystemClock(), say or (lambda _: None), on_idle)

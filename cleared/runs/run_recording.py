"""What a run leaves beside its commit: its trace, and a loop that looks at what it was asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cleared.base.errors import ClearedError
from cleared.changes.host import Host


def wake_loop_of(host: Host) -> None:
    """Wake the loop, which finds in the commit what it was asked for; if it sleeps on, it will find it later."""
    from cleared.jobs.inbox import wake_loop
    from cleared.jobs.runtime_directory import own_runtime

    with contextlib.suppress(ClearedError, OSError):
        wake_loop(own_runtime(host.root, host.config))


@contextlib.contextmanager
def tolerate_lost_trace(host: Host) -> Iterator[None]:
    """The trace is operational: what keeps it from being written is said, and stops nothing."""
    import sqlite3

    try:
        yield
    except (OSError, sqlite3.Error, ClearedError) as e:
        host.show_message(f"the trace of this run could not be kept: {e}")

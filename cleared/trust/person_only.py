"""Decisions come from a person: refused inside the process tree of a job, whoever started it and however it hides."""

from __future__ import annotations

import os
from typing import Final

from cleared.base import process_identity
from cleared.base.errors import PolicyError

JOB: Final = "CLEARED_JOB"
"""Set in the environment of every job; a child that clears its own cannot clear its ancestors'."""


def current_job() -> str:
    """The job that this process, or one that it descends from, is; empty where it is none."""
    return os.environ.get(JOB) or _job_of_ancestors()


def refuse_in_job() -> None:
    """Raises ``PolicyError`` where this process, or one that it descends from, is a job."""
    inside = current_job()
    if inside:
        raise PolicyError(
            f"a decision is not for a job to make (this is inside job {inside[:80]})",
            remedy="Decide it yourself, in a terminal of your own.",
        )


def _job_of_ancestors() -> str:
    """The job among the ancestors, as their environments were when they started (Linux; elsewhere none is seen)."""
    pid, seen = os.getppid(), set[int]()
    marker = f"{JOB}=".encode()
    while pid > 1 and pid not in seen:
        seen.add(pid)
        for entry in process_identity.read_environment(pid):
            if entry.startswith(marker):
                return entry[len(marker) :].decode("utf-8", "replace")
        stat_fields = process_identity.read_stat(pid)
        if stat_fields is None:
            return ""
        pid = int(stat_fields[process_identity.PARENT])
    return ""

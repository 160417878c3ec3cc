"""Removes the files of old jobs. Which are old is decided by when they ended, not by their names."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock
from cleared.jobs.records import LoopState
from cleared.jobs.runtime_directory import RuntimeDirectory

_FILE: Final = re.compile(r"(job_[0-9]{8}T[0-9]{6}Z_[a-z0-9_]+)\.[a-z_]+\.[a-z]+(?:\.damaged)?")
_OLD_TEMPORARY: Final = 3600.0
"""Seconds after which nobody uses a temporary file any more."""
_TEMPORARY: Final = {"tmp": _OLD_TEMPORARY, "unread": 30 * 86_400.0}
"""Suffix of a hidden file → seconds after which it is removed."""
_EVERY: Final = 25
"""Jobs between two trims."""


def trim_sometimes(runtime: RuntimeDirectory, keep: int, state: LoopState, clock: Clock) -> None:
    """``trim_files`` after every so many jobs, as listing the folders takes time."""
    if sum(state["counts"].values()) % _EVERY == 0:  # type: ignore[arg-type]
        trim_files(runtime, keep, state, clock)


def trim_files(runtime: RuntimeDirectory, keep: int, state: LoopState, clock: Clock) -> None:
    """Remove the files of all but the ``keep`` jobs that ended last; jobs that wait or run keep theirs."""
    needed = {item["job_id"] for item in state["queue"]}
    if state["running"] is not None:
        needed.add(state["running"]["job_id"])
    files: dict[str, list[str]] = {}
    newest: dict[str, float] = {}
    now = clock.now().timestamp()
    jobs_folder = runtime.jobs_folder
    for folder in (jobs_folder, runtime.inbox_folder):
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    changed = entry.stat(follow_symlinks=False).st_mtime
                except FileNotFoundError:
                    continue
                old = _TEMPORARY.get(entry.name.rpartition(".")[2]) if entry.name.startswith(".") else None
                if old is not None and now - changed > old and not entry.is_dir(follow_symlinks=False):
                    with suppress(OSError):
                        Path(entry.path).unlink()
                    continue
                match = _FILE.fullmatch(entry.name) if folder is jobs_folder else None
                if match is not None:
                    files.setdefault(match[1], []).append(entry.name)
                    newest[match[1]] = max(newest.get(match[1], 0.0), changed)
    for name, paths in files.items():  # a new job may not have been taken in yet
        if now - newest[name] < _OLD_TEMPORARY and runtime.result_path(name).name not in paths:
            needed.add(name)
    ended = sorted(files.keys() - needed, key=newest.__getitem__, reverse=True)
    for name in ended[keep:]:
        for path in (*(jobs_folder / file for file in files[name]), runtime.seal_path(name)):
            with suppress(OSError):
                path.unlink()

"""Bank files of an import that a sync has left out: they wait where files lie with which a run fails."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from cleared.changes.sync.unpushed_work import Step
from cleared.git import Snapshot
from cleared.workspace.location import Layout
from cleared.workspace.watched_names import FAILED_FOLDER


def list_files_aside(layout: Layout, snapshot: Snapshot, step: Step, taken: Collection[str]) -> dict[str, bytes]:
    """Where the files lie from now on that a step has imported; who imports one again that others have imported, too,
    imports nothing twice. ``taken``: names of others."""
    folder = f"{layout.processed_dir}/"
    aside = {}
    for path in step.after.list_changes(step.before):
        is_new = path.startswith(folder) and step.before.find_entry(path) is None
        data = step.after.read_file(path) if is_new else None
        if data is not None:
            wanted = f"{layout.import_dir}/{FAILED_FOLDER}/{path.removeprefix(folder)}"
            aside[find_free_name(snapshot, wanted, str(step.after.find_blob_id(path)), taken)] = data
    return aside


def find_free_name(snapshot: Snapshot, path: str, blob: str, taken: Collection[str] = ()) -> str:
    """For a bank file, where there may be another one of the same name."""
    pure = PurePosixPath(path)
    is_free = path not in taken and snapshot.find_blob_id(path) in (None, blob)
    return path if is_free else str(pure.with_name(f"{pure.stem}-{blob[:8]}{pure.suffix}"))

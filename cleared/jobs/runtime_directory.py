"""The runtime directory: where the files of a loop are."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.git import Repository, Snapshot
from cleared.workspace.location import USED_FOLDERS, Layout
from cleared.workspace.lock import ensure_state_dir
from cleared.workspace.settings.model import Config
from cleared.workspace.stores import find_store

LOCK_NAME: Final = "loop.lock"
_JOB_ID: Final = re.compile(r"job_[0-9]{8}T[0-9]{6}Z_[a-z0-9_]{1,60}", re.ASCII)
_FIELDS: Final = ("runtime_dir", "log_dir")


class RuntimeDirectory(Struct, frozen=True):
    """The paths of one loop's files. Two runtime directories share nothing."""

    root: Path
    """The workspace."""
    folder: Path
    log_folder: Path

    @property
    def state_path(self) -> Path:
        return self.folder / "single_agent_state.json"

    @property
    def backup_path(self) -> Path:
        """The state as it was before the last save."""
        return self.folder / "single_agent_state.json.bak"

    @property
    def wakeup_path(self) -> Path:
        return self.folder / "single_agent_wakeup.flag"

    @property
    def tree_path(self) -> Path:
        return self.folder / "ui_data" / "single_agent_tree.json"

    @property
    def jobs_folder(self) -> Path:
        return self.folder / "jobs"

    @property
    def inbox_folder(self) -> Path:
        return self.folder / "inbox"

    @property
    def taken_requests_path(self) -> Path:
        """Which requests of scripts were taken in."""
        return self.folder / "asked.json"

    @property
    def archive_folder(self) -> Path:
        return self.folder / "archive"

    @property
    def wakeup_pipe(self) -> Path:
        """A named pipe: a byte written to it wakes the loop."""
        return self.folder / "loop.bell"

    @property
    def log_path(self) -> Path:
        return self.log_folder / "control_room.log"

    def manifest_path(self, job: str) -> Path:
        return self.jobs_folder / f"{job}.manifest.json"

    def result_path(self, job: str) -> Path:
        return self.jobs_folder / f"{job}.result.json"

    @property
    def seals_folder(self) -> Path:
        return self.folder / "seals"

    def seal_path(self, job: str) -> Path:
        """The signature of the job's result."""
        return self.seals_folder / job

    def output_path(self, job: str) -> Path:
        return self.jobs_folder / f"{job}.out.txt"

    def scratch_folder(self, job: str) -> Path:
        """The job's own folder for temporary files while it runs."""
        return self.folder / "tmp" / job

    def display_path(self, path: Path) -> str:
        """A path as results have it: relative to the workspace where it lies inside, else absolute."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def make_folders(self) -> None:
        """Make the folders that the loop needs. Raises ``WorkspaceError``."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            if self.folder.parent == self.root / ".cleared":
                ensure_state_dir(self.folder.parent)
            ensure_state_dir(self.folder)
            shown = self.tree_path.parent
            for folder in (self.jobs_folder, self.seals_folder, self.inbox_folder, shown, self.log_folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(
                f"the loop's runtime directory cannot be made: {describe_os_error(error)}",
                place=Place(file=str(error.filename or self.folder)),
                remedy="Name another one with --runtime-dir.",
            ) from None


def locate_runtime(
    root: Path, config: Config, folder: str | Path | None = None, logs: str | Path | None = None
) -> RuntimeDirectory:
    """The runtime directory ``folder``, or the configured one; no folder is made.

    Raises ``PolicyError`` for a folder that the workspace uses for something else, and for a configured one that a link
    leads out of the workspace, or into which a commit can bring files.
    """
    base = root.resolve()
    chosen = _resolve_folder(base, folder or config.loop.runtime_dir)
    named = logs or config.loop.log_dir
    log_folder = _resolve_folder(base, named) if named else chosen / "logs"
    _refuse_folder(base, config, chosen, "runtime_dir", is_configured=not folder)
    _refuse_folder(base, config, log_folder, "log_dir", is_configured=not logs and bool(named))
    return RuntimeDirectory(base, chosen, log_folder)


def refuse_loop_folders(root: Path, config: Config, changed: Collection[str]) -> None:
    """Raises ``PolicyError`` as ``locate_runtime`` does, for the settings among these keys that are about to change, so
    that a wrong one is not taken first and refused when the loop starts."""
    base = root.resolve()
    for field in _FIELDS:
        named = getattr(config.loop, field)
        if named and {f"loop.{field}", "paths.books"} & {*changed}:
            _refuse_folder(base, config, _resolve_folder(base, named), field, is_configured=True)


def _resolve_folder(base: Path, named: str | Path) -> Path:
    return Path(os.path.realpath(base / named))


def _refuse_folder(base: Path, config: Config, place: Path, field: str, *, is_configured: bool) -> None:
    problem = _find_other_use(base, config, place)
    if not problem and field == "runtime_dir" and base.is_relative_to(place):
        problem = "the workspace lies in it"
    if problem:
        problem = f"{place} is no place for the loop's files: {problem}"
    elif is_configured:
        problem = _find_open_to_commits(base, place)
        problem = problem and f"loop.{field} {problem}"
    if problem and is_configured:
        mended = "unset loop.log_dir" if field == "log_dir" else "set loop.runtime_dir .cleared/loop"
        remedy = f"Name a folder of its own: cleared config {mended}."
        raise PolicyError(problem, place=Place("config.yaml", field=f"loop.{field}"), remedy=remedy)
    if problem:
        remedy = "Name a folder of its own, such as .cleared/loop, or one outside of the workspace."
        raise PolicyError(problem, place=Place(field=field), remedy=remedy)


def _find_other_use(base: Path, config: Config, place: Path) -> str:
    """What the workspace uses the folder for; empty where it does not. Capitals make no other folder: on macOS and
    Windows they are the same."""
    if place == base:
        return "it is the workspace itself"
    if not place.is_relative_to(base):
        return ""
    top, *inner = place.relative_to(base).parts
    if top.lower() == Layout.state:
        path = "/".join(inner).lower()
        store = find_store("state", path) or find_store("state", f"{path}/x") if path else None
        is_other = not path or (store is not None and not store.pattern.startswith("loop/"))
        return "cleared keeps its own state there" if is_other else ""
    books = Layout(base, config).books_dir.split("/")[0]
    return f"{top}/ is used for something else" if top.lower() in {*USED_FOLDERS, books.lower()} else ""


def _find_open_to_commits(base: Path, place: Path) -> str:
    """Why a commit can bring files there; empty where none can. What lies there is believed: whoever can push must not
    be able to put something there."""
    if not place.is_relative_to(base):
        return f"leads out of the workspace, to {place}"
    top = place.relative_to(base).parts[0]
    if top != Layout.state:  # of which each command sees that no commit holds it
        with Repository.open(base, for_writing=False) as repo:
            head = repo.find_head()
            if head is not None and Snapshot(repo, head).find_entry(top) is not None:
                return f"lies in {top}/, in which the last commit has files"
    return ""


def own_runtime(root: Path, config: Config) -> RuntimeDirectory:
    """The runtime directory of the workspace's own loop, which runs the jobs that scripts request."""
    return locate_runtime(root, config)


def check_job_id(text: str) -> str:
    """A job's id from outside, as it is. Raises ``UsageError`` where it does not have the form of one."""
    if not _JOB_ID.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not the id of a job", remedy="See: cleared loop jobs.")
    return text

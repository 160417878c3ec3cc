"""Creating a workspace: its files, and one commit of them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cleared.approvals.approval_record import WORKSPACE
from cleared.approvals.workspace_pin import new_workspace_id, pin_clone, unpin_clone
from cleared.changes import commit_messages
from cleared.clock import Clock, format_iso
from cleared.config.loading import load_config
from cleared.errors import WorkspaceError
from cleared.safe_files import describe_os_error as os_reason
from cleared.vcs import Author, Repository, Snapshot, commit_changes, recover_interrupted_commit
from cleared.workspace.lock import writer_lock
from cleared.workspace.template import initial_files

_INTENT: Final = ".cleared/seal.json"
"""This file is there while a commit is under way, and after a kill."""


def create_workspace(
    target: Path, *, name: str | None, entity_type: str, currency: str, clock: Clock,
    extra: dict[str, bytes] | None = None, say: Callable[[str], None] | None = None,
    on_step: Callable[[str], None] | None = None,
) -> tuple[Path, str]:  # fmt: skip
    """Create the workspace. Returns its root and its first commit.

    ``extra`` files replace those of the template or are added to them. A creation that was killed is finished or undone
    first, and ``say`` gets a line about it; where it had the same files, its workspace is the result.

    Raises ``UsageError`` for bad values, ``WorkspaceError`` where the directory is a workspace already, has files in
    the way, or cannot be written; what was made is removed then.
    """
    root = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link the user did not mean
    title = name if name is not None else (root.name or "My business")
    files = {**initial_files(title, entity_type, currency), **(extra or {})}
    config = load_config(files["config.yaml"].decode("utf-8"))
    if not (root / _INTENT).exists():
        _refuse_occupied(root, files)
    existed = root.is_dir()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Look at what is there, and remove it, only under the lock: another process may be creating it.
        with writer_lock(root / ".cleared", 0.0, "init", clock=clock):
            recovered = _recover_creation(root, files, say or (lambda _: None))
            if recovered is not None:
                return root, recovered
            _refuse_occupied(root, files)
            had_git = (root / ".git").exists()
            try:
                with Repository.open(root, for_writing=True, unborn=True) if had_git else Repository.init(root) as repo:
                    pin_clone(
                        root, files.setdefault(WORKSPACE, f"{new_workspace_id()}\n".encode()).decode("ascii").strip()
                    )
                    commit = commit_changes(
                        repo, repo.find_head(), files, commit_messages.workspace_created(title),
                        [("Decision", "init"), ("Clock", format_iso(clock.now()))],
                        Author(config.git.author_name, config.git.author_email), clock.now(),
                        on_step=on_step, state_dir=root / ".cleared",
                    )  # fmt: skip
            except BaseException:
                unpin_clone(root)
                _remove_created(root, existed, had_git)
                raise
    except OSError as e:
        raise WorkspaceError(f"{root} cannot be written: {os_reason(e)}", remedy="Choose another directory.") from None
    return root, commit


def _recover_creation(root: Path, files: dict[str, bytes], say: Callable[[str], None]) -> str | None:
    """Finish or undo a creation that was killed. Returns its commit, if it has just these files."""
    if not (root / _INTENT).exists() or not (root / ".git").exists():
        return None
    with Repository.open(root, for_writing=True, unborn=True) as repo:
        report = recover_interrupted_commit(repo, root / ".cleared")
        if report:
            say(report)
        head = repo.find_head()
        if head is None:
            return None
        snapshot = Snapshot(repo, head)
        same = snapshot.list_entries().keys() == {*files, WORKSPACE} and all(
            snapshot.read_file(path) == files[path] for path in files
        )
        return head if same else None


def _refuse_occupied(root: Path, files: dict[str, bytes]) -> None:
    if (root / "config.yaml").exists():
        raise WorkspaceError(f"{root} is a workspace already", remedy="Choose another directory.")
    if root.exists() and not root.is_dir():
        raise WorkspaceError(f"{root} is not a directory", remedy="Choose another name.")
    if not root.exists():
        return
    try:
        names = sorted(p.name for p in root.iterdir() if p.name not in (".git", ".cleared"))
    except OSError as e:
        raise WorkspaceError(f"{root} cannot be read: {os_reason(e)}") from None
    ours = {f.split("/", 1)[0] for f in files}
    in_the_way = [name for name in names if name in ours]
    if in_the_way or names:
        shown = ", ".join((in_the_way or names)[:5])
        raise WorkspaceError(
            f"{root} is not empty: {shown} {'is' if len(names) == 1 else 'are'} in the way",
            remedy="Choose an empty or new directory.",
        )


def _remove_created(root: Path, existed: bool, had_git: bool) -> None:
    """Remove what a failed creation made."""
    if had_git:
        return
    if not existed:
        shutil.rmtree(root, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        for path in root.iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

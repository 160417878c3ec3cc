"""Bringing the working tree up to a commit: right after it was made, or at recovery.

A file is touched only if it is as the commit found or left it. So this can be repeated, and stopped anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import place_file
from cleared.git import working_files
from cleared.git.commit_intent import CommitIntent, PathChange, PathMove, intent_file, save_intent
from cleared.git.object_writer import sync_files
from cleared.git.repository import Repository
from cleared.git.snapshot import Snapshot

OnStep = Callable[[str], None]


def update_working_tree(
    repo: Repository,
    intent: CommitIntent,
    unseen: Path,
    *,
    staged: Mapping[str, Path] | None = None,
    on_step: OnStep = lambda _: None,
) -> list[str]:
    """Bring the files that the commit changes up to it. Returns the paths that somebody else changed: they stay.

    ``staged``: path → file that was written for it beforehand; others are in ``unseen`` until they are in place. The
    index is locked meanwhile. Raises ``OSError``; the intent stays then.
    """
    staged = dict(staged or {})
    left_alone: list[str] = []
    if is_branch_checked_out(repo):
        snapshot = Snapshot(repo, repo.read_head())
        for change in intent.paths:
            if not _update_file(repo, snapshot, change, unseen, staged):
                left_alone.append(change.path)
            on_step("file")
        for move in intent.moves:
            if not _make_move(repo, move):
                left_alone.append(move.source)
    for temporary in staged.values():
        temporary.unlink(missing_ok=True)
    paths = [*(c.path for c in intent.paths), *(x for m in intent.moves for x in (m.source, m.target) if x)]
    folders = dict.fromkeys((repo.root / path).parent for path in paths)
    sync_files([folder for folder in folders if folder.is_dir()])
    return left_alone


def is_branch_checked_out(repo: Repository) -> bool:
    """Whether the working tree and the index are still the branch's."""
    return (repo.current_branch() or "HEAD") == repo.branch.name


def index_entries(snapshot: Snapshot, paths: Iterable[str]) -> dict[str, tuple[str, str] | None]:
    """What the index is to have for these paths, by the commit."""
    entries = {path: snapshot.find_entry(path) for path in paths}
    return {path: None if e is None or e.is_tree else (e.mode, e.oid) for path, e in entries.items()}


def end_intent(repo: Repository, state_dir: Path, pending: tuple[str, ...]) -> None:
    """Remove the intent; or keep of it the paths whose index entries are ``pending``."""
    head = repo.find_head()
    if pending and head is not None:
        save_intent(state_dir, CommitIntent(base=None, commit=head, branch=repo.branch.name, pending=pending))
    else:
        intent_file(state_dir).unlink(missing_ok=True)


def remove_made_folders(repo: Repository, intent: CommitIntent) -> None:
    """Remove the folders that were made for a commit that never was."""
    for folder in reversed(intent.made):
        with suppress(OSError):
            (repo.root / folder).rmdir()


def _update_file(
    repo: Repository, snapshot: Snapshot, change: PathChange, unseen: Path, staged: dict[str, Path]
) -> bool:
    """Whether the file is now what the commit has; one that somebody else wrote is left alone."""
    path = change.path
    target = repo.root / path
    wanted = snapshot.find_blob_id(path)
    current = working_files.read_content_id(target, repo.hash_name)
    if current == wanted:
        return True
    if current not in (change.old, change.new):
        # Something else is there; a folder where the commit has a folder is as it should be.
        return current == "folder" and wanted is None
    try:
        working_files.check_parents(repo.root, path)
    except WorkspaceError:
        return current is None and wanted is None
    if wanted is None:
        working_files.remove_file(repo.root, path)
        return True
    temporary = staged.pop(path, None) if wanted == change.new else None
    if temporary is None or not temporary.exists():
        content = snapshot.read_file(path) or b""
        is_executable = working_files.is_executable(snapshot.find_entry(path), path)
        temporary = working_files.stage_file(repo.root, unseen, path, content, executable=is_executable)
        sync_files([temporary])
    target.parent.mkdir(parents=True, exist_ok=True)  # a file that the same commit removed may have been its last
    place_file(temporary, target)
    return True


def _make_move(repo: Repository, move: PathMove) -> bool:
    """Whether the file has been moved, now or before; one that somebody else wrote is left alone."""
    source = repo.root / move.source
    try:
        working_files.check_parents(repo.root, move.source)
        if move.target is not None:
            working_files.check_parents(repo.root, move.target)
    except WorkspaceError:
        return False
    content = working_files.read_content_id(source, repo.hash_name)
    if content != move.oid:
        return content is None  # moved already
    if move.target is not None:
        target = repo.root / move.target
        target_content = working_files.read_content_id(target, repo.hash_name)
        if target_content is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
            return True
        if target_content != move.oid:
            return False
    source.unlink(missing_ok=True)
    return True

"""Bringing the working tree up to a commit that a seal made: right after it, or at recovery.

Every file is touched only if it is as the seal left or found it, so this can be repeated, and stopped anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs import working_files
from cleared.vcs.commit_intent import CommitIntent, PathChange, PathMove, intent_file, save_intent
from cleared.vcs.object_writer import sync_files
from cleared.vcs.repository import Repository
from cleared.vcs.snapshot import Snapshot

OnStep = Callable[[str], None]


def update_working_tree(
    repo: Repository, intent: CommitIntent, *, staged: Mapping[str, Path] | None = None, step: OnStep = lambda _: None
) -> list[str]:
    """Bring the working tree up to the branch's commit, as far as it is the seal's to touch; the paths left alone.

    The index is locked meanwhile. Can be repeated, and stopped anywhere. Raises ``OSError``; the intent stays then.
    """
    staged = dict(staged or {})
    left: list[str] = []
    if is_branch_checked_out(repo):
        now = Snapshot(repo, repo.read_head())
        for change in intent.paths:
            if not _update_file(repo, now, change, staged):
                left.append(change.path)
            step("file")
        for move in intent.moves:
            if not _make_move(repo, move):
                left.append(move.source)
    for temporary in staged.values():
        temporary.unlink(missing_ok=True)
    places = [*(c.path for c in intent.paths), *(x for m in intent.moves for x in (m.source, m.target) if x)]
    folders = dict.fromkeys((repo.root / place).parent for place in places)
    sync_files([folder for folder in folders if folder.is_dir()])
    return left


def is_branch_checked_out(repo: Repository) -> bool:
    """Whether the working tree and the index are still the branch's."""
    return (repo.current_branch() or "HEAD") == repo.branch


def index_entries(snapshot: Snapshot, paths: Iterable[str]) -> dict[str, tuple[str, str] | None]:
    """What the index is to have for these paths, by the commit."""
    found = {path: snapshot.find_entry(path) for path in paths}
    return {path: None if e is None or e.is_tree else (e.mode, e.oid) for path, e in found.items()}


def end_intent(repo: Repository, state_dir: Path, owed: tuple[str, ...]) -> None:
    """Ends the intent, or leaves of it what is owed to the index."""
    head = repo.find_head()
    if owed and head is not None:
        save_intent(state_dir, CommitIntent(base=None, commit=head, branch=repo.branch, pending=owed))
    else:
        intent_file(state_dir).unlink(missing_ok=True)


def _update_file(repo: Repository, now: Snapshot, change: PathChange, staged: dict[str, Path]) -> bool:
    """Whether the file is now what the commit has; a file that somebody else wrote is left alone."""
    path = change.path
    target = repo.root / path
    wanted = now.find_blob_id(path)
    found = working_files.read_content_id(target, repo.hash_name)
    if found == wanted:
        return True
    if found not in (change.old, change.new):
        # Something else is there; a folder where the commit has a folder is as it should be.
        return found == "folder" and wanted is None
    try:
        working_files.check_parents(repo.root, path)
    except WorkspaceError:
        return found is None and wanted is None
    if wanted is None:
        working_files.remove_file(repo.root, path)
        return True
    temporary = staged.pop(path, None) if wanted == change.new else None
    if temporary is None:
        content = now.read_file(path) or b""
        temporary = working_files.stage_file(
            repo.root, path, content, executable=working_files.is_executable(now.find_entry(path), path)
        )
        sync_files([temporary])
    working_files.place_file(temporary, target)
    return True


def _make_move(repo: Repository, move: PathMove) -> bool:
    source = repo.root / move.source
    try:
        working_files.check_parents(repo.root, move.source)
        if move.target is not None:
            working_files.check_parents(repo.root, move.target)
    except WorkspaceError:
        return False
    found = working_files.read_content_id(source, repo.hash_name)
    if found != move.oid:
        return found is None  # moved already
    if move.target is not None:
        target = repo.root / move.target
        there = working_files.read_content_id(target, repo.hash_name)
        if there is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
            return True
        if there != move.oid:
            return False
    source.unlink(missing_ok=True)
    return True


def remove_made_folders(repo: Repository, intent: CommitIntent) -> None:
    """Removes the folders that were made for a commit that never was."""
    for folder in reversed(intent.made):
        with suppress(OSError):
            (repo.root / folder).rmdir()

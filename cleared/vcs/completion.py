"""Bringing the working tree and the index up to a commit that a seal made: right after it, or at recovery.

Every file is touched only if it is as the seal left or found it, so this can be repeated, and stopped anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs import files
from cleared.vcs.index import update_index
from cleared.vcs.intent import Intent, PathChange, PathMove, intent_file, save
from cleared.vcs.objects import sync_files
from cleared.vcs.repository import Repository, TreeEntry
from cleared.vcs.snapshot import Snapshot

Step = Callable[[str], None]


def finish(
    repo: Repository,
    state_dir: Path,
    intent: Intent,
    *,
    staged: Mapping[str, Path] | None = None,
    step: Step = lambda _: None,
    rebuild_index: bool = False,
) -> tuple[list[str], str | None]:
    """Brings the working tree and the index up to the branch's commit, as far as they are the seal's to touch.

    The paths left alone, and what is to be said about the index. Can be repeated, and stopped anywhere.
    Raises ``OSError``; the intent stays then.
    """
    staged = dict(staged or {})
    left: list[str] = []
    head = repo.head()
    now = Snapshot(repo, head)
    here = (repo.current_branch() or "HEAD") == repo.branch
    if here:
        for change in intent.paths:
            if not _bring_up(repo, now, change, staged):
                left.append(change.path)
            step("file")
        for move in intent.moves:
            if not _move(repo, move):
                left.append(move.source)
    for temporary in staged.values():
        temporary.unlink(missing_ok=True)
    step("worktree")
    owed = tuple(dict.fromkeys((*(change.path for change in intent.paths), *intent.pending)))
    entries = {path: _index_entry(now.entry(path)) for path in owed}
    done, note = update_index(repo, entries if here else {}, head, rebuild=rebuild_index)
    step("index")
    if done:
        conclude(repo, state_dir, ())
    else:
        with suppress(OSError):  # the whole intent serves as well
            conclude(repo, state_dir, owed)
    step("done")
    return left, note


def conclude(repo: Repository, state_dir: Path, owed: tuple[str, ...]) -> None:
    """Ends the intent, or leaves of it what is owed to the index."""
    head = repo.find_head()
    if owed and head is not None:
        save(state_dir, Intent(base=None, commit=head, branch=repo.branch, pending=owed))
    else:
        intent_file(state_dir).unlink(missing_ok=True)


def _bring_up(repo: Repository, now: Snapshot, change: PathChange, staged: dict[str, Path]) -> bool:
    """Whether the file is now what the commit has; a file that somebody else wrote is left alone."""
    path = change.path
    target = repo.root / path
    wanted = now.oid_of(path)
    found = files.content_id(target, repo.hash_name)
    if found == wanted:
        return True
    if found not in (change.old, change.new):
        # Something else is there; a folder where the commit has a folder is as it should be.
        return found == "folder" and wanted is None
    try:
        files.check_parents(repo.root, path)
    except WorkspaceError:
        return found is None and wanted is None
    if wanted is None:
        files.remove(repo.root, path)
        return True
    temporary = staged.pop(path, None) if wanted == change.new else None
    if temporary is None:
        content = now.read(path) or b""
        temporary = files.stage(repo.root, path, content, executable=files.is_executable(now.entry(path), path))
        sync_files([temporary])
    files.place(temporary, target)
    return True


def _move(repo: Repository, move: PathMove) -> bool:
    source = repo.root / move.source
    try:
        files.check_parents(repo.root, move.source)
        if move.target is not None:
            files.check_parents(repo.root, move.target)
    except WorkspaceError:
        return False
    found = files.content_id(source, repo.hash_name)
    if found != move.oid:
        return found is None  # moved already
    if move.target is not None:
        target = repo.root / move.target
        there = files.content_id(target, repo.hash_name)
        if there is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
            return True
        if there != move.oid:
            return False
    source.unlink(missing_ok=True)
    return True


def _index_entry(entry: TreeEntry | None) -> tuple[str, str] | None:
    return None if entry is None or entry.is_tree else (entry.mode, entry.oid)


def unmake(repo: Repository, intent: Intent) -> None:
    """Removes the folders that were made for a commit that never was."""
    for folder in reversed(intent.made):
        with suppress(OSError):
            (repo.root / folder).rmdir()

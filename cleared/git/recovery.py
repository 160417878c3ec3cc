"""Bringing the working tree up to a commit, right after it was made, and finishing or undoing one that was stopped
half-way.

A file is touched only if it is as the commit found or left it. So this can be repeated, and stopped anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import place_file, sweep_temporaries, sync_files
from cleared.git import working_files
from cleared.git.commit_intent import (
    CommitIntent,
    PathChange,
    PathMove,
    decode_intent,
    encode_intent,
    intent_file,
    load_intent,
    save_intent,
)
from cleared.git.index import IndexLock, read_stale_lock, remove_stale_copies
from cleared.git.ref_move import wait_for_ref_locks
from cleared.git.repository import Repository, Snapshot


def recover_interrupted_commit(repo: Repository, state_dir: Path | None = None) -> str | None:
    """Bring a workspace whose last commit was stopped to one of two states: as if it had ended, or never begun.

    The caller holds the writer lock. Returns what was done or could not be, in one line; ``None`` where there was
    nothing to do, which starts no process. Can be repeated, and stopped anywhere. Raises ``WorkspaceError``
    where the disk refuses, ``GitBusy`` where another git command is at work.
    """
    state_dir = repo.root / ".cleared" if state_dir is None else state_dir
    if state_dir.is_dir():
        sweep_temporaries(state_dir)
    note = read_stale_lock(repo)
    if note is None and not os.path.lexists(intent_file(state_dir)):
        return None
    messages: list[str] = []
    try:
        intent = _load_intent(state_dir, note, messages)
        _finish_commit(repo, state_dir, intent, messages)
    except OSError as error:
        raise WorkspaceError(
            f"an interrupted commit cannot be finished: {error.strerror or error}",
            remedy="Put that right and run the command again; the commit itself is safe.",
        ) from error
    text = "; ".join(messages)
    return text[:1].upper() + text[1:] + "." if text else None


def _load_intent(state_dir: Path, note: bytes | None, messages: list[str]) -> CommitIntent | None:
    """The intent of the stopped commit: from its file, or where that is gone, from the note in its index lock."""
    try:
        intent = load_intent(state_dir)
    except ValueError:
        aside = state_dir / f"seal.damaged-{os.urandom(4).hex()}.json"
        intent_file(state_dir).replace(aside)
        messages.append(f"a damaged note about an unfinished commit was set aside as {aside}; see git status")
        intent = None
    if intent is None and note is not None:
        try:
            intent = decode_intent(note)
        except ValueError:
            messages.append("removed a lock of git's index that a killed command had left")
    return intent


def _finish_commit(repo: Repository, state_dir: Path, intent: CommitIntent | None, messages: list[str]) -> None:
    remove_stale_copies(repo)
    lock = IndexLock(repo)
    if intent is None:
        lock.acquire()
        lock.release()
        return
    if wait_for_ref_locks(repo, intent.branch, intent.commit):
        messages.append("removed the lock of a git that was killed")
    lock.acquire(encode_intent(intent))
    for change in intent.paths:
        if not working_files.is_blocked(repo.root, change.path):
            sweep_temporaries((repo.root / change.path).parent)
    pending = tuple(dict.fromkeys((*(change.path for change in intent.paths), *intent.pending)))
    head = repo.find_head()
    snapshot = Snapshot(repo, head)
    short_id = intent.commit[:10]
    if intent.paths and not (repo.has_in_history(intent.commit) or _has_all_changes(snapshot, intent)):
        remove_made_folders(repo, intent)
        if repo.branch.name != intent.branch:
            messages.append(f"left alone the interrupted commit {short_id}, which was for {intent.branch}")
        else:
            messages.append("an interrupted commit was never made; nothing was changed by it")
        intent = replace(intent, paths=(), moves=(), made=())
    elif intent.paths:
        messages.append(f"finished the interrupted commit {short_id}")
    index_message = lock.prepare_index(index_entries(snapshot, pending), head, rebuild=True)
    sync_files(lock.list_unsynced())
    lock.install_index()
    left_alone = update_working_tree(repo, intent, lock.folder) if head is not None else []
    end_intent(repo, state_dir, ())
    lock.release()
    if left_alone:
        messages.append("left alone what somebody else changed: " + ", ".join(repr(path) for path in left_alone))
    if index_message:
        messages.append(index_message)


def _has_all_changes(snapshot: Snapshot, intent: CommitIntent) -> bool:
    """Whether another git committed all that was staged, in the instant before the commit was killed."""
    return all(snapshot.find_blob_id(change.path) == change.new for change in intent.paths)


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

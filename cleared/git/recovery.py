"""Finishing, or undoing, a commit that was stopped half-way."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import sweep_temporaries
from cleared.git import working_files
from cleared.git.commit_intent import CommitIntent, decode_intent, encode_intent, intent_file, load_intent
from cleared.git.index import IndexLock, read_stale_lock, remove_stale_copies
from cleared.git.refs import wait_for_ref_locks
from cleared.git.repository import Repository
from cleared.git.snapshot import Snapshot
from cleared.git.working_tree_update import end_intent, index_entries, remove_made_folders, update_working_tree


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
        aside = state_dir / f"seal.damaged-{secrets.token_hex(4)}.json"
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

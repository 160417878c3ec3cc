"""Finishing, or forgetting, a seal that was stopped half-way."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs import working_files
from cleared.vcs.commit_intent import Intent, decode, encode, intent_file, load
from cleared.vcs.index import IndexLock, left_behind, sweep_index
from cleared.vcs.refs import settle
from cleared.vcs.repository import Repository
from cleared.vcs.snapshot import Snapshot
from cleared.vcs.working_tree_update import bring_up, conclude, index_entries, unmake


def recover(repo: Repository, state_dir: Path | None = None) -> str | None:
    """Brings a workspace whose last seal was stopped to one of the two: as if it had ended, or never begun.

    The caller holds the writer lock. What was done or could not be, in one line; ``None`` where there was
    nothing to do, which costs no process. Can be repeated, and stopped anywhere. Raises ``WorkspaceError``
    where the disk refuses, ``GitBusy`` where another git command is at work.
    """
    state_dir = repo.root / ".cleared" if state_dir is None else state_dir
    if state_dir.is_dir():
        working_files.sweep(state_dir)
    note = left_behind(repo)
    if note is None and not os.path.lexists(intent_file(state_dir)):
        return None
    told: list[str] = []
    try:
        intent = _find(state_dir, note, told)
        _finish(repo, state_dir, intent, told)
    except OSError as error:
        raise WorkspaceError(
            f"an interrupted commit cannot be finished: {error.strerror or error}",
            remedy="Put that right and run the command again; the commit itself is safe.",
        ) from error
    text = "; ".join(told)
    return text[:1].upper() + text[1:] + "." if text else None


def _find(state_dir: Path, note: bytes | None, told: list[str]) -> Intent | None:
    """What the stopped seal was about: by its intent, or where that is gone, by what it wrote into its lock."""
    try:
        intent = load(state_dir)
    except ValueError:
        aside = state_dir / f"seal.damaged-{secrets.token_hex(4)}.json"
        intent_file(state_dir).replace(aside)
        told.append(f"a damaged note about an unfinished commit was set aside as {aside}; see git status")
        intent = None
    if intent is None and note is not None:
        try:
            intent = decode(note)
        except ValueError:
            told.append("removed a lock of git's index that a killed command had left")
    return intent


def _finish(repo: Repository, state_dir: Path, intent: Intent | None, told: list[str]) -> None:
    sweep_index(repo)
    lock = IndexLock(repo)
    if intent is None:
        lock.take()
        lock.release()
        return
    if settle(repo, intent.branch, intent.commit):
        told.append("removed the lock of a git that was killed")
    lock.take(encode(intent))
    for change in intent.paths:
        if not working_files.is_blocked(repo.root, change.path):
            working_files.sweep((repo.root / change.path).parent)
    owed = tuple(dict.fromkeys((*(change.path for change in intent.paths), *intent.pending)))
    head = repo.find_head()
    now = Snapshot(repo, head)
    short = intent.commit[:10]
    if intent.paths and not (repo.contains(intent.commit) or _holds(now, intent)):
        unmake(repo, intent)
        if repo.branch != intent.branch:
            told.append(f"left alone the interrupted commit {short}, which was for {intent.branch}")
        else:
            told.append("an interrupted commit was never made; nothing was changed by it")
        intent = replace(intent, paths=(), moves=(), made=())
    elif intent.paths:
        told.append(f"finished the interrupted commit {short}")
    note = lock.prepare(index_entries(now, owed), head, rebuild=True)
    lock.place()
    left = bring_up(repo, intent) if head is not None else []
    conclude(repo, state_dir, ())
    lock.release()
    if left:
        told.append("left alone what somebody else changed: " + ", ".join(repr(path) for path in left))
    if note:
        told.append(note)


def _holds(now: Snapshot, intent: Intent) -> bool:
    """Whether another git has committed all that the seal had staged, in the instant before it was killed itself."""
    return all(now.oid_of(change.path) == change.new for change in intent.paths)

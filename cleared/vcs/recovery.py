"""Finishing, or forgetting, a seal that was stopped half-way."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs import files
from cleared.vcs.completion import conclude, finish, unmake
from cleared.vcs.index import sweep_index
from cleared.vcs.intent import Intent, intent_file, load
from cleared.vcs.refs import settle
from cleared.vcs.repository import Repository


def recover(repo: Repository, state_dir: Path | None = None) -> str | None:
    """Brings a workspace whose last seal was stopped to one of the two: as if it had ended, or never begun.

    The caller holds the writer lock. What was done or could not be, in one line; ``None`` where there was
    nothing to do, which costs no process. Can be repeated, and stopped anywhere. Raises ``WorkspaceError``
    where the disk refuses, or another git command is at work.
    """
    state_dir = repo.root / ".cleared" if state_dir is None else state_dir
    if not state_dir.is_dir():
        return None
    files.sweep(state_dir)
    if not os.path.lexists(intent_file(state_dir)):
        return None
    try:
        intent = load(state_dir)
        if intent is None:
            return None
        return _recover(repo, state_dir, intent)
    except ValueError:
        aside = state_dir / f"seal.damaged-{secrets.token_hex(4)}.json"
        intent_file(state_dir).replace(aside)
        return f"A damaged note about an unfinished commit was set aside as {aside}; see git status."
    except OSError as error:
        raise WorkspaceError(
            f"an interrupted commit cannot be finished: {error.strerror or error}",
            remedy="Put that right and run the command again; the commit itself is safe.",
        ) from error


def _recover(repo: Repository, state_dir: Path, intent: Intent) -> str | None:
    told = []
    if settle(repo, intent.branch, intent.commit):
        told.append("removed the lock of a git that was killed")
    sweep_index(repo)
    for change in intent.paths:
        if not files.is_blocked(repo.root, change.path):
            files.sweep((repo.root / change.path).parent)
    short = intent.commit[:10]
    if intent.paths and not repo.contains(intent.commit):
        unmake(repo, intent)
        if repo.branch != intent.branch:
            told.append(f"left alone the interrupted commit {short}, which was for {intent.branch}")
        else:
            told.append("an interrupted commit was never made; nothing was changed by it")
        intent = replace(intent, paths=(), moves=(), made=())
    elif intent.paths:
        told.append(f"finished the interrupted commit {short}")
    left: list[str] = []
    note = None
    if repo.find_head() is None:
        conclude(repo, state_dir, ())
    else:
        left, note = finish(repo, state_dir, intent, rebuild_index=True)
    if left:
        told.append("left alone what somebody else changed: " + ", ".join(repr(path) for path in left))
    if note:
        told.append(note)
    text = "; ".join(told)
    return text[:1].upper() + text[1:] + "." if text else None

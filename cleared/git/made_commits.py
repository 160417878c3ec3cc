"""The commits that this process has made: whoever started a command is told of them, whatever ends it.

A command that is killed after its commit tells nobody. So where saying it again would do it once more, a note names the
command's key and its commit; it is on the disk before the branch moves, and goes once the command has told.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.safe_files import write_durably
from cleared.git.history import RecentCommit, find_ancestor, read_recent_commits
from cleared.git.repository import Repository

_NOTES: Final = "unreported"
"""Folder of the notes, in the folder of this machine's state: one file for each command's key."""
_VALID_FOR: Final = timedelta(hours=12)
"""So long a command counts as said again because it was killed; later it is meant anew."""
_MOST: Final = 100

_made: deque[tuple[Path, str]] = deque(maxlen=_MOST)


def note_commit(state_dir: Path, commit: str) -> None:
    """Remember that this process has made the commit."""
    _made.append((state_dir, commit))


def list_made_commits() -> tuple[str, ...]:
    """The commits that this process has made for the command that it runs, oldest first; of very many the newest."""
    return tuple(commit for _, commit in _made)


def forget_commits(*, told: bool) -> None:
    """Forget the commits made so far. ``told``: whoever started the command was told of them, so that the notes about
    them go, too."""
    while _made:
        state_dir, commit = _made.pop()
        for path in _list_notes(state_dir) if told else ():
            note = _read_note(path)
            if note is not None and note.commit == commit:
                path.unlink(missing_ok=True)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back for the length of a block; it comes right after it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(held[0], None)


class _CommandNote(Struct, frozen=True):
    commit: str
    at: datetime

    def is_valid(self, now: datetime) -> bool:
        return timedelta() <= now - self.at < _VALID_FOR


def write_command_note(state_dir: Path, key: str, commit: str, now: datetime) -> None:
    """Write down which commit the command with this key is about to make. Raises ``OSError``."""
    for path in _list_notes(state_dir):
        note = _read_note(path)
        if note is None or not note.is_valid(now):
            path.unlink(missing_ok=True)
    (state_dir / _NOTES).mkdir(exist_ok=True)
    text = json.dumps({"commit": commit, "at": format_iso(now)})
    write_durably(_note_path(state_dir, key), text.encode("ascii"))


def find_unreported_commit(repo: Repository, state_dir: Path, key: str, now: datetime) -> RecentCommit | None:
    """The commit of a command with this key that was killed before it could tell of it; ``None`` where there is none,
    or anything but runs of agents came after it, or it is long ago."""
    note = _read_note(_note_path(state_dir, key))
    if note is None or not note.is_valid(now) or not repo.has_in_history(note.commit):
        return None
    line = read_recent_commits(repo, repo.read_head(), find_ancestor(repo, note.commit, 1))
    if line is None or any("Run" not in later.trailers for later in line[:-1]):
        return None
    return line[-1]


def has_command_note(state_dir: Path, key: str) -> bool:
    """Whether it is worth looking for such a commit."""
    return _note_path(state_dir, key).exists()


def _note_path(state_dir: Path, key: str) -> Path:
    return state_dir / _NOTES / f"{key}.json"


def _list_notes(state_dir: Path) -> list[Path]:
    return list((state_dir / _NOTES).glob("*.json"))


def _read_note(path: Path) -> _CommandNote | None:
    try:
        data = json.loads(path.read_bytes())
        return _CommandNote(str(data["commit"]), datetime.fromisoformat(data["at"]).astimezone(UTC))
    except (OSError, ValueError, KeyError, TypeError):
        return None

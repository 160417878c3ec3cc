"""What a commit is about to do, written down beforehand, so that the next command can finish it after a kill."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_durably
from cleared.git.object_reader import is_oid
from cleared.git.working_files import check_path

_NAME = "seal.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class PathChange:
    """One committed path: its blob before and after (``None``: no file)."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class PathMove:
    """A file outside the commit: moved to ``target`` once the commit is there, or removed (``None``)."""

    source: str
    target: str | None
    oid: str


@dataclass(frozen=True, slots=True)
class CommitIntent:
    """A commit under way. ``made``: folders made for it; ``pending``: paths whose index entries are not set yet."""

    base: str | None
    commit: str
    branch: str
    paths: tuple[PathChange, ...] = ()
    moves: tuple[PathMove, ...] = ()
    made: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


def intent_file(state_dir: Path) -> Path:
    """Where the intent lies."""
    return state_dir / _NAME


def encode_intent(intent: CommitIntent) -> bytes:
    """The intent as text, for ``decode_intent``."""
    return json.dumps({"version": _VERSION, **asdict(intent)}, indent=1).encode("ascii")


def save_intent(state_dir: Path, intent: CommitIntent) -> None:
    """Replace the intent, durably. Raises ``OSError``."""
    write_durably(intent_file(state_dir), encode_intent(intent))


def load_intent(state_dir: Path) -> CommitIntent | None:
    """The intent of a commit that did not end, or ``None``. Raises ``ValueError`` where it cannot be read."""
    try:
        return decode_intent(intent_file(state_dir).read_bytes())
    except FileNotFoundError:
        return None


def decode_intent(text: bytes) -> CommitIntent:
    """The inverse of ``encode_intent``. Raises ``ValueError`` for anything else."""
    try:
        data = json.loads(text)
        if data.pop("version") != _VERSION:
            raise ValueError("another version")
        intent = CommitIntent(
            base=data["base"],
            commit=data["commit"],
            branch=data["branch"],
            paths=tuple(PathChange(**change) for change in data["paths"]),
            moves=tuple(PathMove(**move) for move in data["moves"]),
            made=tuple(data["made"]),
            pending=tuple(data["pending"]),
        )
        _check_intent(intent)
    except (KeyError, TypeError, AttributeError, WorkspaceError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return intent


def _check_intent(intent: CommitIntent) -> None:
    ids = [intent.commit, *(oid for c in intent.paths for oid in (c.old, c.new)), *(m.oid for m in intent.moves)]
    if not all(oid is None or is_oid(oid) for oid in (*ids, intent.base)) or not intent.commit:
        raise ValueError("not an object id")
    names = [change.path for change in intent.paths]
    names += [name for move in intent.moves for name in (move.source, move.target) if name is not None]
    for name in (*names, *intent.made, *intent.pending):
        check_path(name)

"""Making blobs, trees and commits: written as loose objects by ourselves, which costs a fraction of a process.

Nothing here can be seen by anybody before a ref is moved.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from cleared.errors import UsageError, WorkspaceError
from cleared.vcs.repository import HashName, Repository, TreeEntry
from cleared.workspace.safe_files import sync_folder

_TRAILER_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_TRAILER_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*): (.*)")
#: All that could end a line or steer a terminal; a tab and a newline are text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029]")
#: What git itself takes off the ends of a name, and never stores within one.
_TRIMMED = " .,:;<>\"\\'\t"

#: Files made durable at the same time.
_AT_ONCE = 8

#: So often something of ours is made anew that a ``git gc`` took away.
_TRIES = 9


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit is by. Whatever is in the two, it cannot break the commit's header."""

    name: str
    email: str

    def header_line(self, when: datetime) -> str:
        """``Name <email> epoch +0000``."""
        name = _clean_identity(self.name) or "unknown"
        return f"{name} <{_clean_identity(self.email).replace(' ', '')}> {_epoch_seconds(when)} +0000"

    def reflog_environment(self, when: datetime) -> dict[str, str]:
        """The variables by which git takes the same for its reflog."""
        return {
            "GIT_COMMITTER_NAME": _clean_identity(self.name) or "unknown",
            "GIT_COMMITTER_EMAIL": _clean_identity(self.email).replace(" ", "") or "unknown",
            "GIT_COMMITTER_DATE": f"{_epoch_seconds(when)} +0000",
        }


def encode_name(name: str) -> bytes:
    """A file name as git stores it: UTF-8, or the bytes that were not."""
    return name.encode("utf-8", "surrogateescape")


def blob_id(content: bytes, hash_name: HashName) -> str:
    """The id git gives a file of this content."""
    return _hash_object(b"blob", content, hash_name)


def _hash_object(kind: bytes, content: bytes, hash_name: HashName) -> str:
    digest = hashlib.new(hash_name, b"%s %d\0" % (kind, len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


class LooseObjects:
    """Writes objects into ``objects/``; they are there, durably, after ``flush``. Raises ``OSError``.

    A ``git gc`` beside us takes away what nothing refers to yet, folders too: ``flush`` may be called again, and makes
    anew what is gone. Use as a context manager, which leaves nothing behind of what was not flushed.
    """

    def __init__(self, repo: Repository) -> None:
        self._hash_name = repo.hash_name
        self._objects = repo.common_dir / "objects"
        self._wanted: dict[Path, bytes] = {}
        self._waiting: dict[Path, Path] = {}
        self._found: list[Path] = []

    def add_object(self, kind: str, content: bytes) -> str:
        """Takes one object and returns its id; one that is there already is only kept from being pruned."""
        oid = _hash_object(kind.encode(), content, self._hash_name)
        path = self._objects / oid[:2] / oid[2:]
        if path not in self._wanted:
            self._wanted[path] = b"%s %d\0" % (kind.encode(), len(content)) + content
            with suppress(OSError):
                if path.stat().st_size > 0:  # an empty one is what a power cut leaves
                    os.utime(path)
                    self._found.append(path)  # somebody else's git may have left its content to the system
                    return oid
            self._write_temporary(path)
        return oid

    def flush(self) -> None:
        """Gives all that was taken its place, contents and names on the disk; what is there already costs a look."""
        for last in (*[False] * _TRIES, True):
            for path in self._wanted:
                if path not in self._waiting and not _is_there(path):
                    self._write_temporary(path)
            folders = {path.parent for path in self._waiting}
            try:
                sync_files([*self._waiting.values(), *(path for path in self._found if path.exists())])
                self._found.clear()
                for path, temporary in list(self._waiting.items()):
                    temporary.chmod(0o444)
                    temporary.replace(path)
                    del self._waiting[path]
                sync_files([*folders, self._objects] if folders else [])
                return
            except FileNotFoundError:
                if last:
                    raise
                self._waiting = {path: temporary for path, temporary in self._waiting.items() if temporary.exists()}

    def _write_temporary(self, path: Path) -> None:
        """Write it under a name that git prunes, should we be stopped here."""
        temporary = path.parent / f"tmp_obj_{secrets.token_hex(8)}"
        self._waiting[path] = temporary
        for last in (*[False] * _TRIES, True):
            try:
                path.parent.mkdir(exist_ok=True)
                with temporary.open("xb") as file:
                    file.write(zlib.compress(self._wanted[path], 1))
                return
            except FileNotFoundError:
                if last:
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary in self._waiting.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def sync_files(paths: Sequence[Path]) -> None:
    """Makes the contents of files, and the names in folders, durable, several at a time: the file system does it for
    them together.

    Raises the first ``OSError``.
    """
    waiting = iter(paths)  # shared: each takes the next one
    failed: list[OSError] = []

    def work() -> None:
        try:
            for path in waiting:
                _sync_file(path)
        except OSError as error:
            failed.append(error)

    helpers = [threading.Thread(target=work) for _ in range(min(len(paths), _AT_ONCE) - 1)]
    for helper in helpers:
        helper.start()
    try:
        work()
    finally:
        for helper in helpers:
            helper.join()
    if failed:
        raise failed[0]


def _sync_file(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    # To read is enough where a file is read-only, as git's objects are; Windows wants to write.
    with path.open("rb+" if os.name == "nt" else "rb") as file:
        os.fsync(file.fileno())


# --- trees -----------------------------------------------------------------------------------------


def build_tree(
    repo: Repository, base: str | None, changes: Mapping[str, TreeEntry | None], objects: LooseObjects
) -> str:
    """The id of the tree ``base`` with ``changes`` (``None`` removes); only the trees on the way are written.

    Raises ``WorkspaceError`` where a path is to be a file and a folder at once.
    """
    split = {tuple(path.split("/")): entry for path, entry in changes.items()}
    return _build_subtree(repo, base, split, (), objects) or objects.add_object("tree", b"")


def _build_subtree(
    repo: Repository,
    base: str | None,
    changes: Mapping[tuple[str, ...], TreeEntry | None],
    at: tuple[str, ...],
    objects: LooseObjects,
) -> str | None:
    entries = {} if base is None else dict(repo.read_tree(base))
    here: dict[str, TreeEntry | None] = {}
    below: dict[str, dict[tuple[str, ...], TreeEntry | None]] = {}
    for path, entry in changes.items():
        if len(path) == 1:
            here[path[0]] = entry
        else:
            below.setdefault(path[0], {})[path[1:]] = entry

    for name, inner in below.items():
        old = entries.get(name)
        is_folder = old is not None and old.is_tree
        wanted = any(entry is not None for entry in inner.values())
        if not is_folder and not wanted:
            continue
        if not is_folder and old is not None and here.get(name, old) is not None:
            raise _file_and_folder_error("/".join((*at, name)))
        tree = _build_subtree(repo, old.oid if old is not None and is_folder else None, inner, (*at, name), objects)
        if tree is None:
            entries.pop(name, None)
        else:
            entries[name] = TreeEntry("40000", tree)

    for name, entry in here.items():
        old = entries.get(name)
        if old is not None and old.is_tree:
            if entry is not None:
                raise _file_and_folder_error("/".join((*at, name)))
        elif entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry

    if not entries:
        return None
    # git sorts a folder as if its name ended in a slash.
    ordered = sorted((encode_name(name) + b"/" * entry.is_tree, name) for name, entry in entries.items())
    content = b"".join(
        entries[name].mode.encode() + b" " + key.removesuffix(b"/") + b"\0" + bytes.fromhex(entries[name].oid)
        for key, name in ordered
    )
    return objects.add_object("tree", content)


def _file_and_folder_error(path: str) -> WorkspaceError:
    return WorkspaceError(f"{path!r} would have to be a file and a folder at once")


# --- commits ---------------------------------------------------------------------------------------


def commit_text(
    tree: str,
    parents: Sequence[str],
    author: Author,
    when: datetime,
    message: str,
    trailers: Sequence[tuple[str, str]],
) -> bytes:
    """The content of a commit object. Raises ``UsageError`` for a message or trailer that cannot be stored."""
    lines = [f"tree {tree}"]
    lines += [f"parent {parent}" for parent in parents]
    who = author.header_line(when)
    lines += [f"author {who}", f"committer {who}"]
    # A lone surrogate (half a character, or a byte of an odd file name) becomes "?": the message is UTF-8.
    return ("\n".join(lines) + "\n\n" + message_text(message, trailers)).encode("utf-8", "replace")


def message_text(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """``message`` with its trailers as the last paragraph, so that nothing in it can pass for one."""
    if "\0" in message:
        raise UsageError("a commit message cannot hold a NUL character")
    body = message.replace("\r\n", "\n").replace("\r", "\n")
    body = "\n".join(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", line).rstrip() for line in body.split("\n"))
    body = body.strip("\n")
    if not body.strip():
        raise UsageError("a commit needs a message")
    if not trailers:
        if parse_trailers(body):
            raise UsageError("the last lines of the commit message read like trailers")
        return body + "\n"
    lines = []
    for key, value in trailers:
        if not _TRAILER_KEY.fullmatch(key):
            raise UsageError(f"{key!r} is not a trailer's key")
        if not value.strip() or value != value.strip() or _CONTROL.search(value) or "\n" in value:
            raise UsageError(f"the trailer {key} must be one line of text")
        lines.append(f"{key}: {value}")
    return body + "\n\n" + "\n".join(lines) + "\n"


def parse_trailers(message: str) -> dict[str, str]:
    """The trailers of a message: its last paragraph, if it is not the first and every line is ``Key: value``.

    The values of a key that is there more than once are joined by newlines.
    """
    head, separator, last = message.strip("\n").rpartition("\n\n")
    if not separator or not head.strip():
        return {}
    found: dict[str, str] = {}
    for line in last.split("\n"):
        match = _TRAILER_LINE.fullmatch(line)
        if match is None:
            return {}
        key, value = match.groups()
        found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


def _clean_identity(text: str) -> str:
    text = _CONTROL.sub(" ", text).replace("\n", " ").replace("<", "").replace(">", "")
    return " ".join(text.encode("utf-8", "replace").decode().split()).strip(_TRIMMED)


def _epoch_seconds(when: datetime) -> int:
    if when.tzinfo is None:
        raise UsageError("a commit's time needs an offset from UTC")
    seconds = int(when.timestamp())
    if seconds < 0:
        raise UsageError(f"git cannot store a commit of {when:%Y}")
    return seconds

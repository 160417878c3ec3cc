"""Writing git's objects: as loose files, by ourselves, which costs a fraction of a process.

Of trees only those on the way to a changed path are written. Nobody can see an object before a ref is moved.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import sync_files
from cleared.git.object_reader import FOLDER_MODES, ObjectReader, TreeEntry, hash_object
from cleared.git.repository import Repository

#: How often an object that a ``git gc`` took away is written again.
_RETRIES = 9


class LooseObjects:
    """Writes objects into ``objects/``; they are there after ``flush``, and durably after ``sync_names``. Raises
    ``OSError``.

    A ``git gc`` that runs meanwhile removes what nothing refers to yet, and empty folders: ``flush`` may be called
    again, and writes again what is gone. As a context manager it removes the temporary files of what was not flushed.
    """

    def __init__(self, repo: Repository) -> None:
        self._hash_name, self._reader = repo.hash_name, repo.objects
        self._objects = repo.common_dir / "objects"
        self._contents: dict[Path, tuple[bytes, bytes]] = {}
        """Path → kind and content, which is the caller's own: files can be large."""
        self._temporaries: dict[Path, Path] = {}
        self._present: list[Path] = []
        self._unsynced: set[Path] = set()
        """Folders with names that are not durable yet."""

    def add_object(self, kind: str, content: bytes) -> str:
        """Add one object and return its id. One that is there already gets a new time, so that it is not pruned."""
        oid = hash_object(kind.encode(), content, self._hash_name)
        path = self._objects / oid[:2] / oid[2:]
        if path not in self._contents:
            self._contents[path] = kind.encode(), content
            self._reader.remember(oid, (kind, content))
            with suppress(OSError):
                if path.stat().st_size > 0:  # an empty one is what a power cut leaves
                    os.utime(path)
                    self._present.append(path)  # somebody else's git may have left its content to the system
                    return oid
            self._write_temporary(path)
        return oid

    def flush(self, also: Sequence[Path] = ()) -> None:
        """Put all added objects in their places, with durable contents; those of the files ``also`` are made durable
        together with them. An object that is in its place already is only looked at."""
        for last in (*[False] * _RETRIES, True):
            for path in self._contents:
                if path not in self._temporaries and not _is_there(path):
                    self._write_temporary(path)
            folders = {path.parent for path in self._temporaries}
            try:
                present = [path for path in self._present if path.exists()]
                sync_files([*self._temporaries.values(), *present, *also])
                self._present.clear()
                for path, temporary in list(self._temporaries.items()):
                    temporary.chmod(0o444)
                    temporary.replace(path)
                    del self._temporaries[path]
                self._unsynced.update(folders)
                return
            except FileNotFoundError:
                if last:
                    raise
                self._temporaries = {
                    path: temporary for path, temporary in self._temporaries.items() if temporary.exists()
                }

    def sync_names(self, also: Sequence[Path] = ()) -> None:
        """Make the names of the objects durable, and files and folders ``also``."""
        folders = [*self._unsynced, self._objects] if self._unsynced else []
        sync_files([*folders, *also])
        self._unsynced.clear()

    def _write_temporary(self, path: Path) -> None:
        """Write the object under a name that git prunes, in case this process is killed now."""
        temporary = path.parent / f"tmp_obj_{secrets.token_hex(8)}"
        self._temporaries[path] = temporary
        for last in (*[False] * _RETRIES, True):
            try:
                path.parent.mkdir(exist_ok=True)
                with temporary.open("xb") as file:
                    kind, content = self._contents[path]
                    packer = zlib.compressobj(1)
                    file.write(packer.compress(b"%s %d\0" % (kind, len(content))))
                    file.write(packer.compress(content))
                    file.write(packer.flush())
                return
            except FileNotFoundError:
                if last:
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary in self._temporaries.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


Changes = Mapping[tuple[str, ...], TreeEntry | None]
"""Path, split at its slashes → what is to be there, or ``None``: nothing."""


def build_tree(
    reader: ObjectReader, base: str | None, changes: Mapping[str, TreeEntry | None], objects: LooseObjects
) -> str:
    """The id of the tree ``base`` with ``changes`` (``None`` removes); only the trees on the way are written.

    Raises ``WorkspaceError`` where a path is to be a file and a folder at once.
    """
    split = {tuple(path.split("/")): entry for path, entry in changes.items()}
    return _build_subtree(reader, base, split, (), objects) or objects.add_object("tree", b"")


def _build_subtree(
    reader: ObjectReader, base: str | None, changes: Changes, folder: tuple[str, ...], objects: LooseObjects
) -> str | None:
    """The id of the tree of ``folder``; ``None`` where it is empty now."""
    entries = {} if base is None else dict(reader.read_tree(base))
    in_folder: dict[str, TreeEntry | None] = {}
    below: dict[str, dict[tuple[str, ...], TreeEntry | None]] = {}
    for path, entry in changes.items():
        if len(path) == 1:
            in_folder[path[0]] = entry
        else:
            below.setdefault(path[0], {})[path[1:]] = entry

    for name, inner in below.items():
        old = entries.get(name)
        is_folder = old is not None and old.is_tree
        if not is_folder and all(entry is None for entry in inner.values()):
            continue
        if not is_folder and old is not None and in_folder.get(name, old) is not None:
            raise _file_and_folder_error(*folder, name)
        tree = _build_subtree(
            reader, old.oid if old is not None and is_folder else None, inner, (*folder, name), objects
        )
        _set_entry(entries, name, None if tree is None else TreeEntry("40000", tree))

    for name, entry in in_folder.items():
        old = entries.get(name)
        if old is None or not old.is_tree:
            _set_entry(entries, name, entry)
        elif entry is not None:
            raise _file_and_folder_error(*folder, name)
    return objects.add_object("tree", _encode_tree(entries)) if entries else None


def _set_entry(entries: dict[str, TreeEntry], name: str, entry: TreeEntry | None) -> None:
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry


def _encode_tree(entries: Mapping[str, TreeEntry]) -> bytes:
    # git sorts a folder as if its name ended in a slash.
    keys = sorted(
        (name.encode("utf-8", "surrogateescape") + b"/" * (entry.mode in FOLDER_MODES), name)
        for name, entry in entries.items()
    )
    return b"".join(
        entries[name].mode.encode() + b" " + key.removesuffix(b"/") + b"\0" + bytes.fromhex(entries[name].oid)
        for key, name in keys
    )


def _file_and_folder_error(*names: str) -> WorkspaceError:
    return WorkspaceError(f"{'/'.join(names)!r} would have to be a file and a folder at once")

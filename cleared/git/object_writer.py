"""Writing git's objects: those of a commit as one pack, by ourselves, which costs a fraction of a process.

Of trees only those on the way to a changed path are written. Nobody can see an object before a ref is moved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import sync_files
from cleared.git.object_reader import FOLDER_MODES, ObjectReader, TreeEntry, hash_object
from cleared.git.pack_writer import write_pack
from cleared.git.repository import Repository

#: How often an object that a ``git gc`` took away is written again.
_RETRIES = 9
KEEP_SUFFIX: Final = ".keep"
KEEP_TEXT: Final = b"cleared\n"
"""Tells what was kept here from what a person keeps: ``housekeeping`` removes it once it is old."""


class NewObjects:
    """Writes objects as one pack; they are there after ``flush``, and durably after ``sync_names``. Raises ``OSError``.

    A file of git's own kind says that the pack is to stay, as a ``git repack`` that had begun before would remove what
    nothing refers to: until this, as a context manager, is left, or for an hour where ``is_named_later``, by a ref that
    is moved after that. ``flush`` may be called again, and writes again what is gone all the same. Temporary files of
    what was not flushed are removed.
    """

    def __init__(self, repo: Repository, *, is_named_later: bool = False) -> None:
        self._is_named_later = is_named_later
        self._hash_name, self._reader = repo.hash_name, repo.objects
        self._folder = repo.common_dir / "objects" / "pack"
        self._contents: dict[str, tuple[bytes, bytes]] = {}
        """Id → kind and content, which is the caller's own: files can be large."""
        self._temporaries: dict[Path, Path] = {}
        self._placed: list[Path] = []
        self._kept: list[Path] = []
        self._is_synced = True

    def add_object(self, kind: str, content: bytes, oid: str | None = None) -> str:
        """Add one object and return its id (``oid``, where it is worked out already). One that is in another pack is
        written all the same: nobody else's copy is known to be durable, or to stay."""
        oid = oid or hash_object(kind.encode(), content, self._hash_name)
        self._contents[oid] = kind.encode(), content
        self._reader.remember(oid, (kind, content))
        return oid

    def flush(self, also: Sequence[Path] = ()) -> None:
        """Put all added objects in their place, with durable contents; those of the files ``also`` are made durable
        together with them. What is in its place already is only looked at."""
        for last in (*[False] * _RETRIES, True):
            try:
                if self._contents and not (self._placed and all(map(_is_there, self._placed))):
                    self._write_temporaries()
                sync_files([*self._temporaries, *also])
                for temporary, path in self._temporaries.items():
                    temporary.chmod(0o444)
                    temporary.replace(path)
                    self._placed.append(path)
                    self._is_synced = False
                self._temporaries.clear()
                return
            except FileNotFoundError:
                self._remove_temporaries()
                self._placed.clear()
                if last:
                    raise

    def sync_names(self, also: Sequence[Path] = ()) -> None:
        """Make the names of the objects durable, and files and folders ``also``."""
        sync_files([*([] if self._is_synced else [self._folder]), *also])
        self._is_synced = True

    def _write_temporaries(self) -> None:
        """Write the pack and its index under names that git prunes, in case this process is killed now. The index comes
        last into its place: git looks for packs by their indexes."""
        self._placed.clear()
        mark = os.urandom(8).hex()
        packed, index = self._folder / f"tmp_pack_{mark}", self._folder / f"tmp_idx_{mark}"
        self._temporaries = {packed: packed, index: index}  # to be removed, where this breaks off
        self._folder.mkdir(exist_ok=True)
        with packed.open("xb") as file:
            checksum, data = write_pack(file, self._contents, self._hash_name)
        index.write_bytes(data)
        place = self._folder / f"pack-{checksum}"
        self._kept.append(place)
        place.with_suffix(KEEP_SUFFIX).write_bytes(KEEP_TEXT)
        self._temporaries = {packed: place.with_suffix(".pack"), index: place.with_suffix(".idx")}

    def _remove_temporaries(self) -> None:
        for temporary in self._temporaries:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._temporaries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove_temporaries()
        for place in [] if self._is_named_later else self._kept:
            with suppress(OSError):
                place.with_suffix(KEEP_SUFFIX).unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


Changes = Mapping[tuple[str, ...], TreeEntry | None]
"""Path, split at its slashes → what is to be there, or ``None``: nothing."""


def build_tree(
    reader: ObjectReader, base: str | None, changes: Mapping[str, TreeEntry | None], objects: NewObjects
) -> str:
    """The id of the tree ``base`` with ``changes`` (``None`` removes); only the trees on the way are written.

    Raises ``WorkspaceError`` where a path is to be a file and a folder at once.
    """
    split = {tuple(path.split("/")): entry for path, entry in changes.items()}
    return _build_subtree(reader, base, split, (), objects) or objects.add_object("tree", b"")


def _build_subtree(
    reader: ObjectReader, base: str | None, changes: Changes, folder: tuple[str, ...], objects: NewObjects
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

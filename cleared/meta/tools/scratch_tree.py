"""The tree in which a session's commands work: a copy of what the session sees, without ``.git``.

Commands may do with it whatever they like, also while it is read: every folder on the way to a file is opened by itself
and never through a link, so what is read or written lies in the tree.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cleared.base.errors import UsageError
from cleared.base.tree_removal import remove_tree
from cleared.gate.file_kinds import file_kind
from cleared.meta.tools.overlay import SCRATCH, is_scratch, max_bytes
from cleared.meta.tools.session_files import SessionFiles
from cleared.meta.tools.tool import ToolFailed

_MAX_TREE: Final = 512 << 20
_MAX_NAMES: Final = 2_000
_MAX_DEPTH: Final = 8
_MAX_NOTES: Final = 20
_FOLDERS: Final = ("agents", "scripts", "tests/cases", "rules", "templates", SCRATCH)
"""Where files are that can come back into the draft; beside them ``config.yaml``."""
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ScratchTree:
    """The tree at ``folder``. ``notes``: what commands wrote that was not taken into the draft, and why."""

    def __init__(self, files: SessionFiles, folder: Path) -> None:
        self._files, self.folder = files, folder
        self._pushed: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self.notes: list[str] = []

    def fill(self) -> None:
        """Make the tree anew, from all that the session sees. Raises ``ToolFailed`` where that is too much."""
        with suppress(OSError):
            remove_tree(self.folder)
        self.folder.mkdir(mode=0o700, parents=True)
        (self.folder / SCRATCH).mkdir()
        left = _MAX_TREE
        with self._files.open_commit(), self._open_root() as root:
            for path in self._files.list_files():
                data = self._files.read_file(path) or b""
                left -= len(data)
                if left < 0:
                    raise ToolFailed(
                        f"the workspace has more than {_MAX_TREE >> 20} MB of files", "Do without a shell."
                    )
                self._write_copy(root, path, data)

    def push_draft(self) -> None:
        """Bring the tree up to date with what was written to the draft since."""
        with self._open_root() as root:
            for path, data in self._files.overlay.files.items():
                if data is None and path in self._pushed:
                    _remove_below(root, path)
                    del self._pushed[path]
                elif data is not None and self._pushed.get(path) != _digest(data):
                    self._write_copy(root, path, data)

    def collect_changes(self) -> list[str]:
        """Take what commands have changed into the draft; the paths. ``notes`` has what was not taken."""
        self.notes = []
        changed: dict[str, bytes | None] = {}
        with self._open_root() as root:
            for path, data in self._read_changed(root):
                changed[path] = data
        taken = []
        for path, data in sorted(changed.items()):
            try:
                with self._files.open_commit():
                    self._files.write_files({path: data})
            except ToolFailed as error:
                self._note(path, error.message, data)
                continue
            taken.append(path)
            if data is None:
                self._pushed.pop(path, None)
            else:
                self._pushed[path] = _digest(data)
        return taken

    def size_of(self, path: str) -> int | None:
        """The size of a plain file in the tree; None where there is none."""
        with self._open_root() as root, suppress(OSError), _open_parent(root, path) as (parent, name):
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def _read_changed(self, root: int) -> Iterator[tuple[str, bytes | None]]:
        present, whole = {"config.yaml"}, {""}
        for folder in _FOLDERS:
            with suppress(OSError):
                present.update(self._list_names(root, folder, 0))
                whole.add(folder)
        for path in sorted(present):
            if not _can_come_back(path):
                continue
            try:
                data = _read_below(root, path, max_bytes(path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                self._note(path, getattr(error, "strerror", None) or str(error), None)
                whole.discard(path)
                continue
            if self._pushed.get(path) != _digest(data) and self._refused.get(path) != _digest(data):
                yield path, data
        for path in sorted(set(self._pushed) - present | {"config.yaml"} & set(self._pushed)):
            if not _can_come_back(path):
                continue
            top = next((f for f in _FOLDERS if path.startswith(f"{f}/")), "")
            if top not in whole:
                self._note(path, f"{top} is no folder any more; nothing was taken from there", None)
            elif not _exists_below(root, path):
                yield path, None

    def _list_names(self, root: int, folder: str, depth: int) -> list[str]:
        found: list[str] = []
        descriptor = _open_folder(root, folder.split("/"))
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}"
                    if len(found) >= _MAX_NAMES:
                        self._note(folder, f"it has more than {_MAX_NAMES} names", None)
                        break
                    if folder.split("/")[0] == SCRATCH and depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                        found += self._list_names(root, path, depth + 1)
                    else:
                        found.append(path)
        finally:
            os.close(descriptor)
        return found

    def _write_copy(self, root: int, path: str, data: bytes) -> None:
        try:
            text = self._files.host.redactor.redact_text(data.decode("utf-8")).encode("utf-8")
        except UnicodeDecodeError:
            text = data
        try:
            _write_below(root, path, text)
        except OSError as error:
            raise ToolFailed(
                f"{path} cannot be written into the tree of the commands: {error.strerror}",
                "Do without commands, or start another session.",
            ) from None
        self._pushed[path] = _digest(text)

    def _note(self, path: str, why: str, data: bytes | None) -> None:
        if data is not None:
            self._refused[path] = _digest(data)
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(f"{path[:200]!r} was not taken: {why}")

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        descriptor = os.open(self.folder, _FOLDER_FLAGS)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _can_come_back(path: str) -> bool:
    try:
        path.encode("utf-8")
        return is_scratch(path) or file_kind(path) is not None
    except (UsageError, UnicodeEncodeError):
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _open_folder(root: int, parts: list[str], *, create: bool = False) -> int:
    """A descriptor of a folder below ``root``; no part of the way is a link. Raises ``OSError``.

    ``create``: what is missing is made, and what is in the way goes.
    """
    current = os.dup(root)
    for part in parts:
        try:
            try:
                following = os.open(part, _FOLDER_FLAGS, dir_fd=current)
            except OSError:
                if not create:
                    raise
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=current)
                os.mkdir(part, 0o700, dir_fd=current)
                following = os.open(part, _FOLDER_FLAGS, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


@contextmanager
def _open_parent(root: int, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    *folders, name = path.split("/")
    parent = _open_folder(root, folders, create=create)
    try:
        yield parent, name
    finally:
        os.close(parent)


def _read_below(root: int, path: str, most: int) -> bytes:
    """Raises ``OSError``, and ``ValueError`` for what is no plain file of its own, or too large."""
    with _open_parent(root, path) as (parent, name), os.fdopen(os.open(name, _READ_FLAGS, dir_fd=parent), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no plain file")
        if status.st_nlink > 1:
            raise ValueError("it has another name, too (a hard link)")
        data = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it has more than {most:,} bytes")
        return data


def _write_below(root: int, path: str, data: bytes) -> None:
    with _open_parent(root, path, create=True) as (parent, name):
        try:
            os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            pass
        except OSError:  # a folder
            shutil.rmtree(name, dir_fd=parent)
        descriptor = os.open(name, _WRITE_FLAGS, 0o600, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def _remove_below(root: int, path: str) -> None:
    with suppress(OSError), _open_parent(root, path) as (parent, name):
        os.unlink(name, dir_fd=parent)


def _exists_below(root: int, path: str) -> bool:
    try:
        with _open_parent(root, path) as (parent, name):
            os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:  # something else is in its way
        return True
    return True

"""Imported bank files are held for some days, since the program that writes them may not be done.

Whether a file is complete can only be guessed: its writer may pause for longer than ``import.settle_seconds``. A writer
that still has the file open goes on writing, whatever the file's name is then. So the file itself, not a copy, is held
under ``.cleared/taken/``, with the size and digest of what was imported. ``changes.decisions.grown_files`` imports what
came later. Where there are no hard links, the file is renamed to a hidden name beside its old one instead of removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.safe_files import sweep_temporaries, write_atomic
from cleared.changes.host import Host
from cleared.git import LocalMove

FOLDER: Final = "taken"
"""In the state directory."""
HELD_FOR: Final = timedelta(days=7)
"""How long a file is held after it was imported, or last changed."""
MAX_HELD_FILES: Final = 1_000
"""More files are not held at once; the oldest are released."""
_SUFFIX: Final = ".json"


class HeldFile(Struct, frozen=True):
    """A file as it was imported. ``name``: its path then, ``held``: where it lies now, both relative to the workspace.

    ``modified`` is in nanoseconds, 0 where it is not known. The fields are the keys of the record on disk.
    """

    id: str
    name: str
    held: str
    size: int
    sha256: str
    modified: int
    at: str

    def current_state(self, root: Path) -> tuple[int, int] | None:
        """Size and time of the last change of the file; None where it is gone, or still has its old name: then it was
        never imported."""
        try:
            now = (root / self.held).lstat()
        except OSError:
            return None
        with contextlib.suppress(OSError):
            there = (root / self.name).lstat()
            if (there.st_dev, there.st_ino) == (now.st_dev, now.st_ino):
                return None
        return now.st_size, now.st_mtime_ns

    def is_changed(self, root: Path) -> bool:
        """Whether the file was written to since it was imported."""
        state = self.current_state(root)
        return state is not None and state != (self.size, self.modified)


def hold_files(
    host: Host, moves: Sequence[LocalMove], now: datetime, run_id: str
) -> tuple[tuple[LocalMove, ...], list[HeldFile]]:
    """Hold the files of the drop folder that a commit is about to move away. The caller holds the writer lock.

    Returns the moves as they are to be made, and the held files: to be released where the commit is not made.
    """
    sweep_temporaries(host.layout.state_dir / FOLDER)
    _release_old_files(host, now)
    folder = f"{host.layout.import_dir}/"
    held_moves: list[LocalMove] = []
    records: list[HeldFile] = []
    for move in moves:
        if move.source.startswith(folder):
            held_file = _link_file(host, move.source, move.content, now, f"{run_id}-{len(records)}")
            if held_file is None:  # it can have no second name: its only one is moved to where it is held
                beside = _hidden_name(move.source, f"{run_id}-{len(records)}")
                held_file = _describe_file(
                    host, move.source, move.target or beside, move.content, now, f"{run_id}-{len(records)}"
                )
                move = replace(move, target=held_file.held)
            records.append(held_file)
        held_moves.append(move)
    for held_file in records:
        try:
            save_record(host, held_file)
        except OSError as error:
            host.show_message(f"{held_file.name} will not be looked at again: {error.strerror or error}")
    return tuple(held_moves), records


def _link_file(host: Host, path: str, data: bytes, now: datetime, identity: str) -> HeldFile | None:
    """Give the file a second name; ``None`` where the file system has no hard links."""
    held_path = f"{_held_folder(host)}/{identity}"
    try:
        (host.root / held_path).parent.mkdir(parents=True, exist_ok=True)
        os.link(host.root / path, host.root / held_path, follow_symlinks=False)
    except FileExistsError:  # the same run, killed before its commit: it is held so already
        if not (host.root / path).samefile(host.root / held_path):
            return None
    except (OSError, NotImplementedError):
        return None
    return _describe_file(host, path, held_path, data, now, identity)


def _describe_file(host: Host, path: str, held_path: str, data: bytes, now: datetime, identity: str) -> HeldFile:
    modified = 0
    with contextlib.suppress(OSError):
        status = (host.root / path).lstat()
        # Whether it is still the same file is checked later, at the last moment of the commit.
        modified = status.st_mtime_ns if status.st_size == len(data) else 0
    return HeldFile(identity, path, held_path, len(data), hashlib.sha256(data).hexdigest(), modified, format_iso(now))


def _hidden_name(path: str, identity: str) -> str:
    name = PurePosixPath(path)
    return str(name.with_name(f".{identity}.{FOLDER}{name.suffix[:20]}"))


def release_files(host: Host, records: Sequence[HeldFile]) -> None:
    """Release files that were not imported after all."""
    for held_file in records:
        with contextlib.suppress(OSError):
            if held_file.held.startswith(f"{_held_folder(host)}/"):
                (host.root / held_file.held).unlink(missing_ok=True)
            (host.root / _held_folder(host) / f"{held_file.id}{_SUFFIX}").unlink(missing_ok=True)


def held_files(host: Host) -> Iterator[HeldFile]:
    """The held files, oldest first; a record that cannot be read is passed over."""
    for name in _record_names(host):
        held_file = _load_record(host, name)
        if held_file is not None:
            yield held_file


def save_record(host: Host, held_file: HeldFile) -> None:
    """Keep the record of a file that is held. Raises ``OSError``."""
    try:
        data = json.dumps(asdict(held_file)).encode()
        write_atomic(host.root / _held_folder(host) / f"{held_file.id}{_SUFFIX}", data, fsync=False, mode=0o600)
    except ClearedError as error:
        raise OSError(errno.EIO, error.message) from error


def _record_names(host: Host) -> list[str]:
    try:
        return sorted(p.name for p in (host.root / _held_folder(host)).iterdir() if p.name.endswith(_SUFFIX))
    except OSError:
        return []


_TYPES: Final = {"id": str, "name": str, "held": str, "size": int, "sha256": str, "modified": int, "at": str}


def _load_record(host: Host, name: str) -> HeldFile | None:
    try:
        data = json.loads((host.root / _held_folder(host) / name).read_bytes())
        held_file = HeldFile(**{key: kind(data[key]) for key, kind in _TYPES.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # Only what ``hold_files`` could have written: a file of the drop folder, held where those are.
    drop = f"{host.layout.import_dir}/"
    ours = held_file.name.startswith(drop) and held_file.held.startswith((f"{_held_folder(host)}/", drop))
    return held_file if ours and ".." not in {*held_file.name.split("/"), *held_file.held.split("/")} else None


def _held_folder(host: Host) -> str:
    return f"{host.layout.state_dir.relative_to(host.root).as_posix()}/{FOLDER}"


def _release_old_files(host: Host, now: datetime) -> None:
    """Release files that nobody has written to for long, and those that were never imported."""
    names = _record_names(host)
    old = f"{now - HELD_FOR:%Y%m%dT%H%M%SZ}"  # they are named after their runs
    for number, name in enumerate(names):
        if name >= old and number >= len(names) - MAX_HELD_FILES:
            break
        held_file = _load_record(host, name)
        if held_file is not None and (
            held_file.is_changed(host.root) or (name < old and held_file.at >= format_iso(now - HELD_FOR))
        ):
            continue
        if held_file is not None:
            if PurePosixPath(held_file.held).name.startswith(f".{held_file.id}."):
                with contextlib.suppress(OSError):
                    (host.root / held_file.held).unlink(missing_ok=True)
            release_files(host, [held_file])

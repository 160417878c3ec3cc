"""Bank files that were taken: held on to for some days, since whoever wrote them may still be writing.

Whether a file is complete can only be guessed: a program may pause for longer than ``import.settle_seconds``. One that
still has it open writes on wherever the file's name goes, and after it has none. So the file itself, not a copy, is
held under ``.cleared/taken/``, with the size and digest of what was taken of it; ``growing`` brings back what came
later.

Where the file system has no hard links, the file is renamed to a hidden name beside its old one instead of removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.errors import ClearedError
from cleared.vcs import LocalMove
from cleared.workspace.safe_files import write_atomic

FOLDER: Final = "taken"
"""In the state directory."""
HELD_FOR: Final = timedelta(days=7)
"""How long a file is held after it was taken, or last changed."""
MAX_HELD_FILES: Final = 1_000
"""More are not held at once; the oldest are let go of."""
_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file as it was taken. ``name`` is what it was called, ``held`` where it lies now, both relative to the
    workspace; ``modified`` in nanoseconds, 0 where it is not known."""

    id: str
    name: str
    held: str
    size: int
    sha256: str
    modified: int
    at: str

    def current_state(self, root: Path) -> tuple[int, int] | None:
        """Size and time of the last change of what is held; None where it is gone, or was never taken: it still has
        its name."""
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
        """Whether it was written to since it was taken."""
        state = self.current_state(root)
        return state is not None and state != (self.size, self.modified)


def hold_files(
    host: Host, moves: Sequence[LocalMove], tracked: Mapping[str, bytes], now: datetime, run_id: str
) -> tuple[tuple[LocalMove, ...], list[HeldFile]]:
    """Keep hold of files of the drop folder that a seal is about to move away, or of those that git has (``tracked``:
    path → content) to remove. Under the writer lock.

    Gives the moves as they are to be made, and what is held: to be released again where the seal comes to nothing.
    """
    _release_old_files(host, now)
    folder = f"{host.layout.import_dir}/"
    out: list[LocalMove] = []
    found: list[HeldFile] = []
    for move in moves:
        if move.source.startswith(folder):
            taken = _link_file(host, move.source, move.content, now, f"{run_id}-{len(found)}")
            if taken is None:  # there can be no second name: it keeps its only one, and that is where it goes
                beside = _hidden_name(move.source, f"{run_id}-{len(found)}")
                taken = _describe_file(
                    host, move.source, move.target or beside, move.content, now, f"{run_id}-{len(found)}"
                )
                move = replace(move, target=taken.held)
            found.append(taken)
        out.append(move)
    for path, data in tracked.items():
        taken = _link_file(host, path, data, now, f"{run_id}-{len(found)}")
        found += [taken] if taken is not None else []
    for taken in found:
        try:
            save_record(host, taken)
        except OSError as error:
            host.show_message(f"{taken.name} will not be looked at again: {error.strerror or error}")
    return tuple(out), found


def _link_file(host: Host, path: str, data: bytes, now: datetime, identity: str) -> HeldFile | None:
    """None where the file can have no second name."""
    held = f"{_held_folder(host)}/{identity}"
    try:
        (host.root / held).parent.mkdir(parents=True, exist_ok=True)
        os.link(host.root / path, host.root / held, follow_symlinks=False)
    except (OSError, NotImplementedError):
        return None
    return _describe_file(host, path, held, data, now, identity)


def _describe_file(host: Host, path: str, held: str, data: bytes, now: datetime, identity: str) -> HeldFile:
    modified = 0
    with contextlib.suppress(OSError):
        status = (host.root / path).lstat()
        # That it is no other by now is looked at after this, at the last moment of the seal.
        modified = status.st_mtime_ns if status.st_size == len(data) else 0
    return HeldFile(identity, path, held, len(data), hashlib.sha256(data).hexdigest(), modified, format_iso(now))


def _hidden_name(path: str, identity: str) -> str:
    name = PurePosixPath(path)
    return str(name.with_name(f".{identity}.{FOLDER}{name.suffix[:20]}"))


def release_files(host: Host, held: Sequence[HeldFile]) -> None:
    """Let go of files that were not taken after all."""
    for taken in held:
        with contextlib.suppress(OSError):
            if taken.held.startswith(f"{_held_folder(host)}/"):
                (host.root / taken.held).unlink(missing_ok=True)
            (host.root / _held_folder(host) / f"{taken.id}{_SUFFIX}").unlink(missing_ok=True)


def held_files(host: Host) -> Iterator[HeldFile]:
    """What is held, oldest first; a record that cannot be read is passed over."""
    for name in _record_names(host):
        taken = _load_record(host, name)
        if taken is not None:
            yield taken


def save_record(host: Host, taken: HeldFile) -> None:
    """Keep the record of a file that is held. Raises ``OSError``."""
    try:
        data = json.dumps(asdict(taken)).encode()
        write_atomic(host.root / _held_folder(host) / f"{taken.id}{_SUFFIX}", data, fsync=False, mode=0o600)
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
        taken = HeldFile(**{key: kind(data[key]) for key, kind in _TYPES.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # Only what ``hold_files`` could have written: a file of the drop folder, held where those are.
    drop = f"{host.layout.import_dir}/"
    ours = taken.name.startswith(drop) and taken.held.startswith((f"{_held_folder(host)}/", drop))
    return taken if ours and ".." not in {*taken.name.split("/"), *taken.held.split("/")} else None


def _held_folder(host: Host) -> str:
    return f"{host.layout.state_dir.relative_to(host.root).as_posix()}/{FOLDER}"


def _release_old_files(host: Host, now: datetime) -> None:
    """Forget files that nobody has written to for long, and those that were never taken."""
    names = _record_names(host)
    old = f"{now - HELD_FOR:%Y%m%dT%H%M%SZ}"  # they are named after their runs
    for number, name in enumerate(names):
        if name >= old and number >= len(names) - MAX_HELD_FILES:
            break
        taken = _load_record(host, name)
        if taken is not None and (
            taken.is_changed(host.root) or (name < old and taken.at >= format_iso(now - HELD_FOR))
        ):
            continue
        if taken is not None:
            if PurePosixPath(taken.held).name.startswith(f".{taken.id}."):
                with contextlib.suppress(OSError):
                    (host.root / taken.held).unlink(missing_ok=True)
            release_files(host, [taken])

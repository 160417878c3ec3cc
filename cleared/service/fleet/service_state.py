"""What the service of a workspace remembers between jobs, beside git: it goes with the workspace from worker to worker.

It is what one machine keeps in ``.cleared/``: deliveries that wait, marks of schedules, messages to send. Traces and
indexes stay with the worker that made them.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path

from cleared.base.safe_files import write_atomic
from cleared.workspace.database import DATABASE_SUFFIXES
from cleared.workspace.stores import STORES

_NAMES = tuple(store.pattern.removesuffix("*") for store in STORES if store.is_moved)
_MAX_BYTES = 64 << 20


def pack_state(state_dir: Path) -> bytes:
    """The files that move, in one. No database of them may be open."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name in _NAMES:
            path = state_dir / name
            if path.is_file() and not path.is_symlink():
                info = tarfile.TarInfo(name)
                data = path.read_bytes()
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def unpack_state(data: bytes | None, state_dir: Path) -> None:
    """Put the files in the place of those that are there; what is not among them goes."""
    for name in _NAMES:
        for suffix in DATABASE_SUFFIXES:
            (state_dir / f"{name}{suffix}").unlink(missing_ok=True)
    if data is None:
        return
    with suppress(tarfile.TarError, EOFError, zlib.error, OSError):  # what is lost is read off the history again
        _unpack_files(data, state_dir)


def _unpack_files(data: bytes, state_dir: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name in _NAMES and member.size <= _MAX_BYTES else None
            if file is not None:
                write_atomic(state_dir / member.name, file.read(), fsync=False, mode=0o600)

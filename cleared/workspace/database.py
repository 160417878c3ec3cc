"""SQLite files of ``.cleared/``: what lies there can be made again, so a damaged one is set aside and begun anew."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import BusyError, ClearedError, Place, WorkspaceError
from cleared.base.safe_files import sync_folder
from cleared.workspace.lock import ensure_state_dir

DATABASE_SUFFIXES: Final = ("", "-wal", "-shm")
_PATIENCE: Final = 10.0
"""Seconds to wait for another process that is writing."""
_PAUSES: Final = (0.02, 0.1)
"""Seconds between the attempts to open a database that cannot be opened."""
_MOST_PATH: Final = 500
"""Bytes; SQLite takes 512, with what it appends."""


def connect_to_write(
    path: Path, schema: str, version: int, *, durable: bool = False, **options: Any
) -> sqlite3.Connection:
    """The database at ``path``, made if need be; ``options`` are those of ``sqlite3.connect``.

    ``durable``: what is committed survives a power cut, as nothing else has it.

    One that is damaged, or of another ``version``, is set aside as ``….damaged``. Raises ``BusyError`` where it is
    another's turn, ``WorkspaceError`` where the disk refuses.
    """
    for pause in _PAUSES:
        # Somebody may be emptying ``.cleared/`` at this moment: it is made again, and nothing of it is missed.
        with suppress(WorkspaceError):
            return _connect_once(path, schema, version, durable, options)
        time.sleep(pause)
    return _connect_once(path, schema, version, durable, options)


def _connect_once(path: Path, schema: str, version: int, durable: bool, options: dict[str, Any]) -> sqlite3.Connection:
    ensure_state_dir(path.parent)
    try:
        return _open_database(path, schema, version, durable, options)
    except sqlite3.OperationalError as error:
        raise _database_error(path, error) from None
    except sqlite3.DatabaseError:
        set_database_aside(path, Path(f"{path}.damaged"))
        return _open_database(path, schema, version, durable, options)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """The database at ``path``, which exists and is not written to; on a disk that takes nothing, too.

    Raises ``WorkspaceError`` where it cannot be opened.
    """
    # SQLite writes beside a file that it reads; only where nobody can it need not.
    if not can_write(path):
        return _connect_unchanging(path, "&immutable=1")
    try:
        return _connect_unchanging(path, "")
    except WorkspaceError:
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:  # the newest rows are there, and cannot be read so
            raise
        return _connect_unchanging(path, "&immutable=1")  # the disk is full


def _connect_unchanging(path: Path, option: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{option}", uri=True, timeout=_PATIENCE)
        db.execute("PRAGMA user_version")
    except sqlite3.OperationalError as error:
        raise _database_error(path, error) from None
    return db


def copy_database(path: Path, target: Path) -> None:
    """Copy a database as it is at one moment, whoever writes to it meanwhile. One that is damaged is copied as a file.

    Raises ``WorkspaceError`` where it cannot be read, ``OSError`` where the copy cannot be written.
    """
    try:
        with closing(connect_to_read(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file; who opens it next decides again
    except sqlite3.DatabaseError:
        target.unlink(missing_ok=True)
        shutil.copyfile(path, target, follow_symlinks=False)


def connect_in_memory(schema: str) -> sqlite3.Connection:
    """An empty database in memory: for an index that has to be built where the disk cannot be written."""
    db = sqlite3.connect(":memory:")
    db.executescript(schema)
    return db


def can_write(path: Path) -> bool:
    """Whether a database at ``path`` can be written, or made with its folder."""
    folder = path.parent if path.parent.exists() else path.parent.parent
    return os.access(folder, os.W_OK)


def _database_error(path: Path, error: sqlite3.OperationalError) -> ClearedError:
    """In words what SQLite does not say."""
    place = Place(f"{path.parent.name}/{path.name}")
    if "locked" in str(error) or "busy" in str(error):
        return BusyError("another process is writing to this database", place=place, remedy="Try again in a moment.")
    if len(os.fsencode(path.absolute())) > _MOST_PATH:
        return WorkspaceError(
            f"its path is longer than the {_MOST_PATH} bytes that a database's may have",
            place=place,
            remedy="Move the workspace to a folder with a shorter path.",
        )
    return WorkspaceError(
        f"the database cannot be opened: {error}",
        place=place,
        remedy="See that the disk is writable and not full: cleared doctor.",
    )


def set_database_aside(path: Path, target: Path) -> None:
    """Move a database with what belongs to it."""
    for suffix in DATABASE_SUFFIXES:
        with suppress(OSError):
            Path(f"{path}{suffix}").replace(f"{target}{suffix}")


def _open_database(path: Path, schema: str, version: int, durable: bool, options: dict[str, Any]) -> sqlite3.Connection:
    db: sqlite3.Connection = sqlite3.connect(path, timeout=_PATIENCE, **options)
    try:
        known = db.execute("PRAGMA user_version").fetchone()[0]
        if known not in (0, version):
            raise sqlite3.DatabaseError(f"version {known}")
        if known == 0:
            # Nothing is lost with an empty database, so its making need not wait for the disk.
            db.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(schema)
            db.execute(f"PRAGMA user_version={version}")
            if durable:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                sync_folder(path.parent)
                sync_folder(path.parent.parent)
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
    except BaseException:
        db.close()
        raise
    return db

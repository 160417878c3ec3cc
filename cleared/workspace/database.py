"""SQLite files of ``.cleared/``: what lies there can be made again, so a damaged one is set aside and begun anew."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cleared.workspace.lock import ensure_state_dir

SUFFIXES: Final = ("", "-wal", "-shm")
_PATIENCE: Final = 10.0
"""Seconds to wait for another process that is writing."""


def connect(path: Path, schema: str, version: int, **options: Any) -> sqlite3.Connection:
    """The database at ``path``, made if need be; ``options`` are those of ``sqlite3.connect``.

    One that is damaged, or of another ``version``, is set aside as ``….damaged``. Raises ``sqlite3.OperationalError``
    where it is another's turn, or the disk refuses.
    """
    ensure_state_dir(path.parent)
    try:
        return _connect(path, schema, version, options)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        set_aside(path, Path(f"{path}.damaged"))
        return _connect(path, schema, version, options)


def set_aside(path: Path, target: Path) -> None:
    """Move a database with what belongs to it."""
    for suffix in SUFFIXES:
        with suppress(OSError):
            Path(f"{path}{suffix}").replace(f"{target}{suffix}")


def _connect(path: Path, schema: str, version: int, options: dict[str, Any]) -> sqlite3.Connection:
    db: sqlite3.Connection = sqlite3.connect(path, timeout=_PATIENCE, **options)
    try:
        known = db.execute("PRAGMA user_version").fetchone()[0]
        if known not in (0, version):
            raise sqlite3.DatabaseError(f"version {known}")
        if known == 0:
            # Nothing is lost with an empty database, so its making need not wait for the disk.
            db.execute("PRAGMA synchronous=OFF")
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(schema)
            db.execute(f"PRAGMA user_version={version}")
        db.execute("PRAGMA synchronous=NORMAL")
    except BaseException:
        db.close()
        raise
    return db

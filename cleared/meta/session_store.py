"""Where a session lies: ``.cleared/sessions/S…/``, written step by step, so that a killed session can go on.

``session.json`` says what was asked, by whom and when. ``messages.jsonl`` only ever grows: one record a step, on the
disk before the next step begins. ``events.jsonl`` has what was shown. ``overlay/`` has the files of its draft.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import BusyError, Place, UsageError, WorkspaceError
from cleared.base.json_values import parse_json_object
from cleared.base.safe_files import describe_os_error, read_stable, sync_folder, write_atomic
from cleared.workspace.lock import ensure_state_dir, writer_lock

FOLDER: Final = "sessions"
_ID: Final = re.compile(r"S[0-9]{8}T[0-9]{6}-[0-9a-f]{4}")
_RECORDS: Final = "messages.jsonl"
_EVENTS: Final = "events.jsonl"
_INFO: Final = "session.json"
_MAX_INFO_BYTES: Final = 8 << 20
_MAX_RECORD_BYTES: Final = 1 << 30
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What ``session.json`` says. ``created``: ISO 8601, UTC. ``system_prompt``: what the model is told throughout."""

    id: str
    request: str
    author: str
    created: str
    system_prompt: str = field(default="", repr=False)


@dataclass(slots=True)
class SessionStore:
    """One session's folder. Write only while ``hold_lock`` is held."""

    path: Path
    info: SessionInfo
    _descriptor: int | None = field(default=None, init=False, repr=False)

    @property
    def overlay(self) -> Path:
        """The folder of the draft's files."""
        return self.path / "overlay"

    @contextmanager
    def hold_lock(self, clock: Clock | None = None) -> Iterator[None]:
        """A session runs once at a time. Raises ``BusyError`` where another process or thread runs it."""
        try:
            lock = writer_lock(self.path, 0, f"session {self.info.id}", clock=clock)
            lock.__enter__()
        except (BusyError, RuntimeError):
            raise BusyError(
                f"the session {self.info.id} is running already",
                remedy="Wait until it is done, or end it there with Ctrl-C.",
            ) from None
        try:
            yield
        finally:
            self.close()
            lock.__exit__(None, None, None)

    def read_records(self) -> list[dict[str, Any]]:
        """All records, oldest first. A last line that is not whole, as after a power cut, is left out.

        Raises ``WorkspaceError`` where another line is damaged.
        """
        path = self.path / _RECORDS
        if not path.exists():
            return []
        data, _ = read_stable(path, _MAX_RECORD_BYTES, shown=self._show(_RECORDS))
        records = []
        for number, line in enumerate(data.split(b"\n")[:-1], 1):  # what follows the last line break is torn
            record = parse_json_object(line)
            if not isinstance(record.get("kind"), str):
                raise self._damage(number)
            records.append(record)
        return records

    def append_record(
        self, kind: str, values: Mapping[str, Any], message: bytes | None = None, *, synced: bool = True
    ) -> None:
        """Add a record; it is on the disk when this returns. ``message``: JSON that is put in as it is.

        ``synced=False``: it is on the disk with the next record that is; for what a power cut may undo, since it is
        just done again. Raises ``WorkspaceError`` where it cannot be written.
        """
        head = json.dumps({"kind": kind, **values}, separators=(",", ":")).encode()
        line = head if message is None else head[:-1] + b',"content":' + message + b"}"
        size = None
        try:
            if self._descriptor is None:
                self._descriptor = self._open_records()
            size = os.fstat(self._descriptor).st_size
            _write_whole(self._descriptor, line + b"\n")
            if synced:
                os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # what nobody acted upon is not read again
                if self._descriptor is not None and size is not None:
                    os.ftruncate(self._descriptor, size)
            self.close()
            raise WorkspaceError(
                f"the session's step could not be written: {describe_os_error(error)}",
                place=Place(file=self._show(_RECORDS)),
                remedy="Make room, then resume the session.",
            ) from error

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Add what was shown. It is a trace: where it cannot be written, the session goes on."""
        with suppress(OSError):
            descriptor = os.open(self.path / _EVENTS, _APPEND, 0o600)
            try:
                _write_whole(descriptor, json.dumps(event, separators=(",", ":")).encode() + b"\n")
            finally:
                os.close(descriptor)

    def read_last_event(self) -> tuple[int, str]:
        """The number and the type of the newest event; 0 and nothing where there is none."""
        with suppress(OSError, WorkspaceError):
            data, _ = read_stable(self.path / _EVENTS, _MAX_RECORD_BYTES)
            for line in reversed(data.splitlines()):
                with suppress(ValueError, TypeError, KeyError, RecursionError):
                    event = json.loads(line)
                    return int(event["seq"]), str(event["type"])
        return 0, ""

    def report_damage(self, number: int) -> WorkspaceError:
        """The error for a record (1-based) that is JSON and yet none of a session."""
        return self._damage(number)

    def _open_records(self) -> int:
        path = self.path / _RECORDS
        fresh = not path.exists()
        if not fresh:  # a torn last line is cut off, else the next record would be part of it
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole != len(data):
                os.truncate(path, whole)
        descriptor = os.open(path, _APPEND, 0o600)
        if fresh:
            sync_folder(self.path)
        return descriptor

    def close(self) -> None:
        """Close the file of records; the next record opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _damage(self, number: int) -> WorkspaceError:
        return WorkspaceError(
            "this line is not a record of a session",
            place=Place(file=self._show(_RECORDS), line=number),
            remedy="The session cannot go on; start a new one.",
        )

    def _show(self, name: str) -> str:
        return f".cleared/{FOLDER}/{self.info.id}/{name}"


def create_session(
    state_dir: Path, *, request: str, author: str, clock: Clock, system_prompt: str = ""
) -> SessionStore:
    """A new session below ``state_dir`` (``.cleared``). Raises ``WorkspaceError`` where it cannot be made."""
    ensure_state_dir(state_dir)
    now = clock.now()
    folder = _find_folder(state_dir)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            session_id = f"S{now.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
            path = folder / session_id
            try:
                path.mkdir(mode=0o700)
                break
            except FileExistsError:
                continue
        (path / "overlay").mkdir(mode=0o700)
    except OSError as error:
        raise WorkspaceError(
            f"the session's folder cannot be made: {describe_os_error(error)}", place=Place(file=f".cleared/{FOLDER}")
        ) from error
    info = SessionInfo(session_id, request, author, format_iso(now), system_prompt)
    values = {
        "id": info.id,
        "request": request,
        "author": author,
        "created": info.created,
        "system_prompt": system_prompt,
    }
    write_atomic(path / _INFO, json.dumps(values, indent=1).encode(), mode=0o600)
    return SessionStore(path, info)


def open_session(state_dir: Path, session_id: str) -> SessionStore:
    """The session of this id. Raises ``UsageError`` where there is none, ``WorkspaceError`` where it is damaged."""
    path = _find_folder(state_dir) / session_id
    if not _ID.fullmatch(session_id) or not path.is_dir() or path.is_symlink():
        raise UsageError(f"there is no session {session_id[:60]!r}", remedy="cleared meta sessions lists them.")
    shown = f".cleared/{FOLDER}/{session_id}/{_INFO}"
    data, _ = read_stable(path / _INFO, _MAX_INFO_BYTES, shown=shown)
    try:
        values = json.loads(data)
        texts = [values[key] for key in ("id", "request", "author", "created", "system_prompt")]
    except (ValueError, KeyError, TypeError, RecursionError):
        texts = [None]
    if not all(isinstance(text, str) for text in texts) or texts[0] != session_id:
        raise WorkspaceError("this is not the description of a session", place=Place(file=shown))
    return SessionStore(path, SessionInfo(*texts))


def list_sessions(state_dir: Path) -> list[SessionStore]:
    """All sessions that can be read, oldest first."""
    stores = []
    with suppress(FileNotFoundError):
        for path in sorted(_find_folder(state_dir).iterdir()):
            with suppress(UsageError, WorkspaceError):
                stores.append(open_session(state_dir, path.name))
    return stores


def _find_folder(state_dir: Path) -> Path:
    """The folder of all sessions. Raises ``WorkspaceError`` where it is a link, which would lead out of here."""
    folder = state_dir / FOLDER
    if folder.is_symlink():
        raise WorkspaceError(
            "the folder of sessions is a symbolic link",
            place=Place(file=f".cleared/{FOLDER}"),
            remedy="Remove the link.",
        )
    return folder


def _write_whole(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

"""The servers of this user that run on this machine, and links that sign in to them, made by a command beside them.

Both lie in the folder of the user's keys, where no agent, job or other user can write.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cleared.base.clock import SystemClock
from cleared.base.errors import UsageError, WorkspaceError
from cleared.base.safe_files import describe_os_error, write_atomic, write_new
from cleared.trust.keys import cleared_home
from cleared.web.access import CODE_SECONDS

FOLDER: Final = "passkey-invitations"
_LINKS: Final = "sign-in-links"
_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_MAX_BYTES: Final = 20_000


@contextmanager
def noted_server(port: int, start: str, url: str) -> Iterator[None]:
    """For the length of the block: note that this start of a server has both addresses of ``localhost`` at the port.
    Where the note cannot be written nobody is invited there."""
    path = _note_of(port)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, json.dumps({"server": start, "url": url}).encode(), fsync=False, mode=0o600)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def find_server(url: str) -> str:
    """The start of this user's server at an address of this machine; empty for an ``https`` address of another name,
    where a certificate says who answers. After a kill it may be a start that has ended: nobody takes what is made for
    it.

    Raises ``UsageError`` where no server of this user has the port: another program could take a link there.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise UsageError(f"{url[:60]!r} is no address", remedy="Such as http://localhost:8765.") from None
    if parts.scheme == "https" and host not in _LOCAL_HOSTS:
        return ""
    note = read_json(_note_of(port)) or {}
    if not note.get("server"):
        raise UsageError(
            f"no cleared server of yours has port {port}; another program could take the link there",
            remedy="Start it: cleared server. Or say where it answers: --url URL.",
        )
    return str(note["server"])


def make_link(port: int) -> str:
    """A link that signs in once, within ``CODE_SECONDS``, to the server of this user that has the port.

    Raises ``UsageError`` where there is none, ``WorkspaceError`` where it cannot be written.
    """
    note = read_json(_note_of(port)) or {}
    if not note.get("server"):
        raise UsageError(
            f"no cleared server of yours runs on this machine at port {port}",
            remedy="Start it: cleared server, or cleared up --server. Or say its port: --port N.",
        )
    code, now = secrets.token_urlsafe(32), SystemClock().now().timestamp()
    path = _link_of(code)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in path.parent.glob("*.json"):
            if float((read_json(each) or {}).get("until", 0)) < now:
                each.unlink(missing_ok=True)
        write_new(path, json.dumps({"server": note["server"], "until": now + CODE_SECONDS}).encode(), mode=0o600)
    except OSError as error:
        raise WorkspaceError(f"the link {path} cannot be written: {describe_os_error(error)}") from None
    return f"{note.get('url')}/login#{code}"


def take_link(code: str, start: str) -> bool:
    """Whether a code is that of a link to this start of a server that still counts. It counts no more then."""
    path = _link_of(code)
    data = read_json(path) if start else None
    if data is None or data.get("server") != start:
        return False
    try:
        path.unlink()
    except OSError:  # somebody else took it, or it would stay
        return False
    return SystemClock().now().timestamp() < float(data.get("until", 0))


def read_json(path: Path) -> dict[str, Any] | None:
    """A small object; None where there is none, or something else."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _note_of(port: int) -> Path:
    return cleared_home() / FOLDER / f"{port}.server"


def _link_of(code: str) -> Path:
    return cleared_home() / _LINKS / f"{hashlib.sha256(code.encode()).hexdigest()[:32]}.json"

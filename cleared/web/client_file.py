"""The programs that may call this workspace: digests of their tokens, secrets of their webhooks.

One file a clone, beside the user's keys and outside of every repository, readable by its owner alone. It is read again
at each request that needs it and has changed, so what is removed counts no more at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import is_open_to_others, read_stable, write_atomic
from cleared.trust.keys import cleared_home, refuse_inside
from cleared.trust.workspace_pin import find_clone_mark

FOLDER: Final = "clients"
_FLEET: Final = "fleet"
"""In the place of a clone's mark, which is hexadecimal."""
_MAX_BYTES: Final = 4 << 20

Scope = Literal["read", "run"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "run")


class ClientToken(Struct, frozen=True):
    """A program's token: what is known of it is its SHA-256. ``made``: when, ISO 8601."""

    name: str
    scope: Scope
    digest: str
    made: str


class WebhookSecret(Struct, frozen=True):
    """A secret with which calls of an agent's webhook are signed; ``id`` names it in lists."""

    id: str
    agent: str
    secret: str
    made: str


class Clients(Struct, frozen=True):
    """All programs of one clone."""

    tokens: tuple[ClientToken, ...] = ()
    webhooks: tuple[WebhookSecret, ...] = ()


class ClientFile:
    """The file of one clone, or of the fleet that this machine belongs to. Reading it again costs a look at its
    times."""

    def __init__(self, root: Path | None) -> None:
        """``root``: of the clone; None: the fleet's."""
        self._root = root
        self._cached: tuple[tuple[int, ...], Clients] | None = None

    def read_clients(self) -> Clients:
        """Who may call. Raises ``WorkspaceError`` where the file cannot be read, or is open to others."""
        mark = self._find_mark()
        path = _path_of(mark)
        if not mark or not path.exists():
            return Clients()
        status = path.stat()
        stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        if self._cached is None or self._cached[0] != stamp:
            self._cached = (stamp, _read_file(path))
        return self._cached[1]

    def _find_mark(self, *, make: bool = False) -> str:
        return find_clone_mark(self._root, make=make) if self._root is not None else _FLEET

    def write_clients(self, clients: Clients) -> None:
        """Replace the file; the caller holds the workspace's lock. Raises ``WorkspaceError``."""
        if self._root is not None:
            refuse_inside(self._root)
        path = _path_of(self._find_mark(make=True))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = {
            "tokens": [asdict(each) for each in clients.tokens],
            "webhooks": [asdict(each) for each in clients.webhooks],
        }
        write_atomic(path, (json.dumps(data, indent=1) + "\n").encode("ascii"), mode=0o600)
        with suppress(OSError):
            path.chmod(0o600)
        self._cached = None


def _path_of(mark: str) -> Path:
    return cleared_home() / FOLDER / f"{mark}.json"


def _read_file(path: Path) -> Clients:
    data, status = read_stable(path, _MAX_BYTES)
    if is_open_to_others(status):
        raise WorkspaceError(
            "others can read the tokens and secrets of the programs that may call",
            place=Place(str(path)),
            remedy="Take the right away (chmod 600), remove them, and add new ones.",
        )
    try:
        found: Mapping[str, Any] = json.loads(data)
        return Clients(
            tuple(ClientToken(**each) for each in found["tokens"]),
            tuple(WebhookSecret(**each) for each in found["webhooks"]),
        )
    except (ValueError, KeyError, TypeError):
        raise WorkspaceError(
            "the file of the programs that may call is damaged",
            place=Place(str(path)),
            remedy="Delete it, and add them again: cleared token add, cleared webhook add.",
        ) from None

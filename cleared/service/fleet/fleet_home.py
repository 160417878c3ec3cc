"""What this machine knows of the fleet that it belongs to: which database, whose word counts, where files lie."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import ClearedError, Place, UsageError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.workspace.fleet_clones import WORKSPACE_NAME, fleet_folder
from cleared.workspace.location import cleared_home

_FILE: Final = "fleet.json"
DATABASE: Final = "CLEARED_FLEET_DATABASE"
"""The variable that names the database, where a file should not."""
_PACKAGES: Final = ("procrastinate", "psycopg", "obstore")
_KEY: Final = re.compile(r"ed25519:[A-Za-z0-9+/]{43}=")


class Fleet(Struct, frozen=True):
    """``database``: a URL of PostgreSQL. ``owner``: the public key whose word counts for which books and which workers.
    ``store``: the URL of the object store with the dropped files."""

    database: str
    owner: str
    store: str


def require_packages() -> None:
    """Raises ``UsageError`` where the packages of the fleet are not installed."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise UsageError(
            f"cleared fleet needs more packages: {', '.join(missing)}",
            remedy="Install them: pip install 'cleared[fleet]'. In the checkout: pip install -e '.[fleet]'.",
        )


def check_name(name: str) -> str:
    """The name of a workspace, as it is. Raises ``UsageError`` where it is not one: it becomes the name of folders."""
    if WORKSPACE_NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is no name for a workspace", remedy="Take small letters, digits, - and _; at most 63 of them."
        )
    return name


def check_owner(owner: str) -> str:
    """The public key of a fleet's owner, as it is. Raises ``UsageError`` where it is none."""
    if _KEY.fullmatch(owner) is None:
        raise UsageError(
            f"{owner[:80]!r} is no public key", remedy="Take the one that cleared fleet init has printed: ed25519:…"
        )
    return owner


def check_address(url: str) -> str:
    """Where a history is pushed to, as it is. Raises ``UsageError`` where it holds a password: everybody who asks how
    the fleet is would see it."""
    parts = urlsplit(url) if "://" in url else None
    if parts is not None and parts.password is not None:
        raise UsageError(
            "the address holds a password, which everybody would see",
            remedy="Leave it out: git has credential helpers, and ssh keys.",
        )
    return url


def choose_store(store: str | None) -> str:
    """The URL of the object store: what is named, else the one that this machine has, else a folder of its own."""
    if store is None:
        with suppress(ClearedError):
            return read_fleet().store
        return f"file://{fleet_folder() / 'files'}"
    return store if "://" in store else f"file://{Path(store).absolute()}"


def read_fleet() -> Fleet:
    """Raises ``UsageError`` where this machine belongs to no fleet, ``WorkspaceError`` where its file is damaged."""
    path = cleared_home() / _FILE
    try:
        data = json.loads(path.read_bytes())
        fleet = Fleet(str(data["database"]), str(data["owner"]), str(data["store"]))
    except FileNotFoundError:
        raise UsageError(
            "this machine belongs to no fleet",
            remedy="Begin one: cleared fleet init --database URL. On a worker: cleared fleet join.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise WorkspaceError(
            "the file is damaged", place=Place(str(path)), remedy="Write it anew: cleared fleet join."
        ) from None
    return Fleet(os.environ.get(DATABASE) or fleet.database, fleet.owner, fleet.store)


def write_fleet(fleet: Fleet) -> Path:
    """Remember the fleet. Only this user can read the file: the URL may hold a password."""
    folder = cleared_home()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _FILE
    write_atomic(path, (json.dumps(asdict(fleet), indent=1) + "\n").encode("utf-8"), mode=0o600)
    return path

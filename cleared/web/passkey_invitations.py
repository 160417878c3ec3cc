"""Invitations to register a passkey: made in the terminal, taken once by the page, completed in the terminal.

The page only checks what the browser made and lays it here. The record is signed by whoever waits in the terminal.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error, write_new
from cleared.gate.proposals.passkey_registration import NewPasskey
from cleared.trust.keys import cleared_home, refuse_inside
from cleared.trust.workspace_pin import find_clone_mark
from cleared.web.access import MAX_TRIES, is_typed_code, new_typed_code, read_code
from cleared.web.running_servers import FOLDER, read_json

INVITED_SECONDS: Final = 600.0
"""How long an invitation can be used."""


class Invitation(Struct, frozen=True):
    """``code``: what the link carries. ``server``: the start of a server that alone takes it; empty: any does."""

    code: str
    name: str
    clone: str
    until: float
    server: str = ""

    def read_result(self) -> NewPasskey | None:
        """What a browser has registered with it; None as long as none has."""
        data = read_json(_path_of(self.code).with_suffix(".done"))
        with suppress(TypeError):
            return NewPasskey(**data) if data is not None else None
        return None


@contextmanager
def invited(root: Path, name: str, *, is_typed: bool = False, server: str = "") -> Iterator[Invitation]:
    """An invitation for the length of the block. ``is_typed``: with a code that a person types. ``server``: as
    ``find_server`` gives it.

    Raises ``WorkspaceError`` where it cannot be written.
    """
    refuse_inside(root)
    until = SystemClock().now().timestamp() + INVITED_SECONDS
    code = new_typed_code() if is_typed else secrets.token_urlsafe(32)
    invitation = Invitation(code, name, find_clone_mark(root, make=True), until, server)
    path = _path_of(invitation.code)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = {"name": name, "clone": invitation.clone, "until": until, "server": server}
        write_new(path, json.dumps(data).encode(), mode=0o600)
    except OSError as error:
        raise WorkspaceError(f"the invitation {path} cannot be written: {describe_os_error(error)}") from None
    try:
        yield invitation
    finally:
        for each in (path, path.with_suffix(".done")):
            with suppress(OSError):
                each.unlink(missing_ok=True)


@dataclass
class InvitationCodes:
    """The codes that browsers show: ``MAX_TRIES`` wrong ones in ``INVITED_SECONDS``, and those that can be guessed
    count no more. Thread-safe. ``now``: monotonic seconds. ``server``: the start of the server that takes them."""

    server: str = ""
    now: Callable[[], float] = time.monotonic
    _wrong: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find_invitation(self, shown: str) -> Invitation | None:
        """The invitation with this code, if it still counts."""
        code = read_code(shown)
        is_typed = is_typed_code(code)
        with self._lock:
            self._wrong = [at for at in self._wrong if self.now() - at < INVITED_SECONDS]
            if is_typed and len(self._wrong) >= MAX_TRIES:
                return None
            invitation = find_invitation(code)
            if invitation is not None and invitation.server not in ("", self.server):
                invitation = None
            if invitation is None and is_typed:
                self._wrong.append(self.now())
        return invitation


def find_invitation(code: str) -> Invitation | None:
    """The invitation with exactly this code, if it still counts."""
    path = _path_of(code)
    return _parse(code, path) if not path.with_suffix(".done").exists() else None


def has_invitation(root: Path) -> bool:
    """Whether somebody is invited to register a passkey for this clone now."""
    mark = find_clone_mark(root)
    paths = sorted((cleared_home() / FOLDER).glob("*.json")) if mark else []
    return any(each is not None and each.clone == mark for each in (_parse("", path) for path in paths))


def complete_invitation(invitation: Invitation, new: NewPasskey) -> bool:
    """Lay down what a browser has made; False where another was faster, or nobody waits for it any more."""
    if find_invitation(invitation.code) is None:
        return False
    return write_new(_path_of(invitation.code).with_suffix(".done"), json.dumps(asdict(new)).encode(), mode=0o600)


def _parse(code: str, path: Path) -> Invitation | None:
    data = read_json(path)
    with suppress(TypeError, ValueError):
        if data is not None and SystemClock().now().timestamp() < float(data.get("until", 0)):
            until, server = float(data["until"]), str(data.get("server", ""))
            return Invitation(code, str(data.get("name")), str(data.get("clone")), until, server)
    return None


def _path_of(code: str) -> Path:
    return cleared_home() / FOLDER / f"{hashlib.sha256(code.encode()).hexdigest()[:32]}.json"

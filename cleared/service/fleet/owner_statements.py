"""What the fleet's owner says, signed with their approval key: which books a name means, whose approvals count in them,
and which workers may run them.

The database only carries these statements. Whoever can write to it can neither have other books run under a name, nor
approve anything, nor let a worker in.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.base.safe_files import write_atomic
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_records import SignedStatement
from cleared.trust.keys import Key, verify_signature

_PREFIX: Final = b"cleared fleet\n"
_WORKERS: Final = "workers"
_REMEMBERED: Final = "workers-said"
_T = TypeVar("_T", "WorkspaceStatement", "WorkersStatement")


class WorkspaceStatement(Struct, frozen=True, kw_only=True, tag="workspace"):
    """One workspace of the fleet. ``url`` and ``branch``: where its history is pushed to; ``books``: their id.

    ``keys``: whose approvals count, by public key; ``runs``: the machines whose runs and decisions count, beside the
    workers'. ``withdrawn``, ``barred``, ``newest``: as ``trust.trust_store.Trust`` has them. ``at``: when it was said,
    ISO 8601: of two, the later counts.
    """

    name: str
    url: str
    branch: str
    books: str
    keys: Mapping[str, str]
    runs: Mapping[str, str] = {}
    withdrawn: tuple[str, ...] = ()
    barred: Mapping[str, str] = {}
    newest: Mapping[str, str] = {}
    spread_seconds: int = 0
    """Within how many seconds the times of its schedules are spread, so that not all workspaces begin at once."""
    budget_seconds: int = 0
    """Processor seconds that its jobs may take on one day (UTC); 0: as many as they need."""
    rewritten: str = ""
    """The commit from which on the owner has taken over a history that was rewritten."""
    at: str


class WorkersStatement(Struct, frozen=True, kw_only=True, tag="workers"):
    """The workers of the fleet. ``keys``: public key of a worker's runs → its name. ``revoked``: those that may do
    nothing any more: what they pushed before goes on counting. ``removed``: name of a workspace that was taken out →
    when that was said: what was said of it before counts no more."""

    keys: Mapping[str, str] = {}
    revoked: Mapping[str, str] = {}
    removed: Mapping[str, str] = {}
    at: str = ""


def sign_statement(key: Key, statement: WorkspaceStatement | WorkersStatement) -> SignedStatement:
    """Raises ``KeyLocked`` where a passphrase must be typed first."""
    text = msgspec.json.encode(statement, order="deterministic")
    return SignedStatement(text, key.sign(_PREFIX + text))


def read_statement(owner: str, signed: SignedStatement, kind: type[_T]) -> _T:
    """What the owner said. Raises ``PolicyError`` where it was somebody else, or it was changed since."""
    if verify_signature(owner, signed.signature, _PREFIX + signed.text):
        try:
            return msgspec.json.decode(signed.text, type=kind)
        except msgspec.DecodeError:
            pass
    raise PolicyError(
        "what the database says of this workspace or of the workers was not signed by the fleet's owner, so nothing is "
        "run",
        remedy="The owner says it again: cleared fleet add NAME GIT-URL, or cleared fleet trust WORKER. "
        "Look at who can write to the database.",
    )


def require_said_of(said: WorkspaceStatement, name: str) -> None:
    """Raises ``PolicyError`` where the database has under a name what the owner said of another."""
    if said.name != name:
        raise PolicyError(
            f"what the database has under {name} is what the owner said of {said.name}; nothing is run",
            remedy="Look who has changed the database. The owner says it again: cleared fleet add.",
        )


def require_trusted_worker(workers: WorkersStatement, key: str) -> None:
    """Raises ``PolicyError`` where the owner has not let the worker with this key in, or has revoked it."""
    if key not in workers.keys:
        what = "was revoked" if key in workers.revoked else "is not trusted by the fleet's owner yet"
        raise PolicyError(
            f"this worker {what}, so it does nothing",
            remedy=f"The owner lets it in: cleared fleet trust {key.removeprefix('ed25519:')[:16]}.",
        )


def refuse_older(owner: str, signed: SignedStatement, kind: type[_T], memory: Path, about: str) -> _T:
    """What the owner said, which is kept in the file ``memory`` where it is newer than what that has.

    Raises ``PolicyError`` as ``read_statement`` does, and where the owner has said something later. ``about``: of what.
    """
    said, last = read_statement(owner, signed, kind), read_remembered(owner, kind, memory)
    if last is not None and said.at < last.at:
        raise PolicyError(
            f"the owner has said something else of {about} on {last.at}, and the database has what was said on "
            f"{said.at or 'no day'}",
            remedy="Look who has changed the database. The owner says it again: cleared fleet add NAME GIT-URL, or "
            "cleared fleet trust WORKER.",
        )
    if last is None or said.at != last.at:
        _remember(signed, memory)
    return said


def read_remembered(owner: str, kind: type[_T], memory: Path) -> _T | None:
    """What this machine has heard last of the owner; None where it has heard nothing."""
    with suppress(FileNotFoundError, PolicyError):  # of another owner: this machine has changed fleets
        return read_statement(owner, _parse_signed(memory.read_text("utf-8")), kind)
    return None


def _remember(signed: SignedStatement, memory: Path) -> None:
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(memory, _render_signed(signed).encode(), fsync=False)


def _render_signed(signed: SignedStatement) -> str:
    return f"{signed.text.decode()}\n{signed.signature}"


def _parse_signed(text: str) -> SignedStatement:
    said, _, signature = text.partition("\n")
    return SignedStatement(said.encode(), signature)


# --- the workers -----------------------------------------------------------------------------------------------


def sign_workers(key: Key, database: FleetDatabase, said: WorkersStatement, folder: Path) -> None:
    """Say in the database which workers the fleet has, and remember it in ``folder``."""
    signed = sign_statement(key, said)
    database.write_fact(_WORKERS, _render_signed(signed))
    _remember(signed, folder / _REMEMBERED)


def read_workers(owner: str, database: FleetDatabase, folder: Path) -> WorkersStatement:
    """The workers of the fleet, as the owner has said last; none where nothing was said yet. This machine remembers it
    in ``folder``. Raises ``PolicyError`` as ``refuse_older`` does."""
    text, memory = database.read_fact(_WORKERS), folder / _REMEMBERED
    if text is None and read_remembered(owner, WorkersStatement, memory) is None:
        return WorkersStatement()
    return refuse_older(owner, _parse_signed(text or ""), WorkersStatement, memory, "the workers")


def restore_workers(database: FleetDatabase, folder: Path) -> None:
    """Where the database has lost it, say again what this machine has said or heard last."""
    path = folder / _REMEMBERED
    if database.read_fact(_WORKERS) is None and path.exists():
        database.write_fact(_WORKERS, path.read_text("utf-8"))


def read_remembered_workers(owner: str, folder: Path) -> WorkersStatement:
    """What this machine has heard last of the owner about the workers."""
    return read_remembered(owner, WorkersStatement, folder / _REMEMBERED) or WorkersStatement()

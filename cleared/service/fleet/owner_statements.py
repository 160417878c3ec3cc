"""What the fleet's owner says, signed with their approval key: which books a name means, whose approvals count in them,
and which workers may run them.

The database only carries these statements. Whoever can write to it can neither have other books run under a name, nor
approve anything, nor let a worker in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_records import SignedStatement
from cleared.trust.keys import Key, verify_signature

_PREFIX: Final = b"cleared fleet\n"
_WORKERS: Final = "workers"
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
    at: str


class WorkersStatement(Struct, frozen=True, kw_only=True, tag="workers"):
    """The workers of the fleet. ``keys``: public key of a worker's runs → its name. ``revoked``: those that may do
    nothing any more: what they pushed before goes on counting."""

    keys: Mapping[str, str] = {}
    revoked: Mapping[str, str] = {}
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


def require_trusted_worker(workers: WorkersStatement, key: str) -> None:
    """Raises ``PolicyError`` where the owner has not let the worker with this key in, or has revoked it."""
    if key not in workers.keys:
        what = "was revoked" if key in workers.revoked else "is not trusted by the fleet's owner yet"
        raise PolicyError(
            f"this worker {what}, so it does nothing",
            remedy=f"The owner lets it in: cleared fleet trust {key.removeprefix('ed25519:')[:16]}.",
        )


def sign_workers(key: Key, database: FleetDatabase, said: WorkersStatement) -> None:
    """Say in the database which workers the fleet has."""
    signed = sign_statement(key, said)
    database.write_fact(_WORKERS, f"{signed.text.decode()}\n{signed.signature}")


def read_workers(owner: str, database: FleetDatabase) -> WorkersStatement:
    """The workers of the fleet; none where nothing was said yet. Raises ``PolicyError`` as ``read_statement`` does."""
    text, _, signature = (database.read_fact(_WORKERS) or "").partition("\n")
    return (
        read_statement(owner, SignedStatement(text.encode(), signature), WorkersStatement)
        if text
        else WorkersStatement()
    )

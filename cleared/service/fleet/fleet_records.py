"""What the fleet's database has of a workspace, a dropped file, a request, a worker."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, get_args

from msgspec import Struct

JobOutcome = Literal["done", "failed", "put_off", "killed", "lost"]
OUTCOMES: Final[tuple[JobOutcome, ...]] = get_args(JobOutcome)
"""How a job ended: its work is done; it could not be done, and is tried again; the budget of the day is used up; its
process died; its worker died."""


class SignedStatement(Struct, frozen=True):
    """Something that the fleet's owner says (``owner_statements``): ``text`` is JSON, ``signature`` theirs over it."""

    text: bytes
    signature: str


class WorkspaceRecord(Struct, frozen=True):
    """A workspace as the database has it. ``state``: what the service remembers between jobs (``service_state``).

    ``head``: the last commit that a worker has pushed or seen. ``due``: when to look at it next; None: when something
    happens to it. ``cards``: how many wait. ``written_by``: the version (``fleet_tables``) that has written ``state``.
    """

    name: str
    signed: SignedStatement
    state: bytes | None
    head: str
    due: datetime | None
    looked_at: datetime | None
    problem: str
    failures: int
    spent_day: Any
    spent_seconds: float
    cards: int
    written_by: int


class DroppedFile(Struct, frozen=True):
    """A file that was handed in. ``name``: where it is put in the drop folder, no two of a workspace in the same
    place."""

    digest: str
    name: str
    at: datetime


class Request(Struct, frozen=True):
    """A run that a person asked for. ``id``: the key of its event, which is this agent's alone. ``status``: waiting,
    succeeded, failed, asks (a person) or refused."""

    id: str
    workspace: str
    agent: str
    payload: Any
    status: str
    said: str
    commit: str


class Worker(Struct, frozen=True):
    """A worker that has been seen. ``key``: of its runs. ``fleet_version``: see ``fleet_tables``."""

    key: str
    name: str
    version: str
    at: datetime
    fleet_version: int

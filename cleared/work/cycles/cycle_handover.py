"""What one cycle left and is being taken over: noted beside its clone, so that a kill in the middle loses nothing."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.changes.host import Host
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES

FOLDER: Final = "cycles"
"""Below the state folder: the clone and the temporary folder of the cycle that runs, and the note."""
_NOTE: Final = "handover.json"
_MAX_BYTES: Final = 32 << 20
PROGRAM: Final = "cycle:"
"""How the authors of what cycles propose begin."""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class MadeBranch(Struct, frozen=True):
    """What is on the branch once it is moved to ``commit``. ``old``: what it named before; None: it was not there.
    ``label``: who made it, in words; ``cycles``: of which cycles it is."""

    branch: str
    commit: str
    old: str | None
    paths: list[str]
    notes: list[str]
    cycles: list[str]
    proposal: str | None
    refused: list[str]


class Handover(Struct, frozen=True):
    """What one cycle left. ``base``: the commit of its clone; ``before``, ``after``: the consensus; ``cost``: US
    dollars, None where the engine named none; ``seconds``: of its work; ``made``: what was made of its files, once
    that is known."""

    engine: str
    number: int
    began: datetime
    base: str
    outcome: Literal["ok", "soft_ok"]
    exit_code: int
    cost: Decimal | None
    log: str
    tokens: int
    before: bytes
    after: bytes
    made: MadeBranch | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Of the cycle, for its cards."""
        return f"{self.engine}-{self.number:04d}"

    @property
    def author(self) -> str:
        """Of what it proposes and commits."""
        return f"{PROGRAM}{self.engine}"


def note_handover(host: Host, handover: Handover) -> None:
    """Note what is to be taken over of the clone that lies there."""
    write_atomic(_note_path(host), msgspec.json.encode(handover))
    host.report_step("cycle-noted" if handover.made is None else "cycle-branch-noted")


def read_handover(host: Host) -> Handover | None:
    """What a killed loop left half taken over; None where it left nothing that can be read."""
    path = _note_path(host)
    if not path.exists() and not path.is_symlink():
        return None
    try:
        data = read_stable(path, _MAX_BYTES, shown=_NOTE)[0]
        handover = msgspec.json.decode(data, type=Handover)
    except (ClearedError, OSError, msgspec.MsgspecError, RecursionError):
        return None
    is_whole = handover.engine in ENGINE_NAMES and _COMMIT.fullmatch(handover.base) is not None
    return handover if is_whole and (host.layout.state_dir / FOLDER / "clone").is_dir() else None


def forget_handover(host: Host) -> None:
    """All of it is taken over, or nothing more can be."""
    _note_path(host).unlink(missing_ok=True)


def _note_path(host: Host) -> Path:
    return host.layout.state_dir / FOLDER / _NOTE

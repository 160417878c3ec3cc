"""Taking over what a cycle left, so that a kill in between loses nothing and does nothing twice.

What is to be taken over is noted beside the clone first. Each step finds out whether it was done already; the next
start does those that are left, and only then is the note removed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.changes.host import Host
from cleared.work.cycles.consensus import CONSENSUS, ConsensusFile
from cleared.work.cycles.engine_changes import TakenChanges, leave_note, take_changes
from cleared.work.cycles.engines import ENGINE_MODULES
from cleared.work.cycles.guiding_texts import take_text
from cleared.work.loop.private_clone import PrivateClone

FOLDER: Final = "cycles"
"""Below the state folder: the clone and the temporary folder of the cycle that runs, and the note."""
_NOTE: Final = "handover.json"
_MAX_BYTES: Final = 32 << 20
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Handover:
    """What one cycle left. ``base``: the commit of its clone; ``before``, ``after``: the consensus as text, bytes of
    which surrogates stand for; ``cost``: US dollars, empty where the engine named none."""

    engine: str
    number: int
    began: str
    base: str
    outcome: str
    exit_code: int
    cost: str
    log: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """Of the cycle, for its branch and cards."""
        return f"{self.engine}-{self.number:04d}"


def note_handover(host: Host, handover: Handover) -> None:
    """Note what is to be taken over of the clone that lies there."""
    data = {name: getattr(handover, name) for name in Handover.__slots__}
    write_atomic(_note_path(host), json.dumps(data).encode("ascii"))
    host.report_step("cycle-noted")


def read_handover(host: Host) -> Handover | None:
    """What a killed loop left half taken over; None where it left nothing that can be read."""
    path = _note_path(host)
    if not path.exists() and not path.is_symlink():
        return None
    try:
        data: dict[str, Any] = json.loads(read_stable(path, _MAX_BYTES, shown=_NOTE)[0])
        handover = Handover(**data)
        texts = (handover.began, handover.log, handover.before, handover.after, handover.outcome, handover.cost)
        numbers = (handover.number, handover.exit_code)
        is_whole = (
            handover.engine in ENGINE_MODULES
            and bool(_COMMIT.fullmatch(handover.base))
            and all(isinstance(text, str) for text in texts)
            and all(type(number) is int for number in numbers)
            and (not handover.cost or Decimal(handover.cost) >= 0)
        )
    except (ClearedError, OSError, ValueError, TypeError, ArithmeticError, RecursionError):
        return None
    return handover if is_whole and (host.layout.state_dir / FOLDER / "clone").is_dir() else None


def forget_handover(host: Host) -> None:
    """All of it is taken over, or nothing more can be."""
    _note_path(host).unlink(missing_ok=True)


def take_over(host: Host, clone: PrivateClone, handover: Handover) -> tuple[TakenChanges, list[str]]:
    """Take over what is not yet: the consensus, then the changes. What became of it, and what is to be said of it."""
    author, notes = f"cycle:{handover.engine}", []
    if handover.after == handover.before:
        notes.append("warning: the consensus is as it was")
    else:
        before, after = (text.encode("utf-8", "surrogateescape") for text in (handover.before, handover.after))
        consensus = ConsensusFile(host.root)
        current = consensus.read()
        if current == before:
            consensus.keep_backup()
            take_text(host, CONSENSUS, after)
            consensus.replace(after)
        if current in (before, after):
            consensus.keep_backup()
        else:
            path = consensus.put_beside(after, handover.number)
            notes.append(f"somebody edited the consensus meanwhile; the cycle's is {path}")
            text = f"You edited {CONSENSUS} while the cycle ran. Yours stays; its is {path}."
            notes += _try_note(host, handover.name, author, text)
        host.report_step("cycle-consensus-taken")
    taken = TakenChanges()
    try:
        taken = take_changes(host, clone, handover.name, author)
    except ClearedError as error:
        notes.append(f"its other changes were not taken over: {error.message}")
    notes += [f"proposed as {taken.proposal}"] if taken.proposal else []
    notes += [f"files on the branch {taken.branch}"] if taken.branch else []
    return taken, notes + taken.notes


def _try_note(host: Host, name: str, author: str, text: str) -> list[str]:
    try:
        leave_note(host, name, author, text)
    except ClearedError as error:
        return [f"the card could not be made: {error.message}"]
    return []


def _note_path(host: Host) -> Path:
    return host.layout.state_dir / FOLDER / _NOTE

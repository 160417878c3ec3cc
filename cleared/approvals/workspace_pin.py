"""Which books a clone holds, as this machine knows it, whatever the tracked file ``agents/approvals/workspace`` says.

A pin lies beside the key, outside the repository: a mark in the clone's git directory → the id of its books. No commit
brings or changes a pin; ``cleared init`` and ``cleared trust`` make it. Linked working trees share the git directory,
and so the pin. A directory that was copied has the mark of another one, and is asked about; one that was moved is
followed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from cleared.approvals.approval_record import WORKSPACE
from cleared.approvals.keys import cleared_home, is_inside, refuse_inside
from cleared.approvals.trust_store import is_workspace_id
from cleared.errors import Place, PolicyError, WorkspaceError
from cleared.light_dataclass import dataclass
from cleared.safe_files import write_atomic
from cleared.workspace.git_directory import find_git_folders

UNATTENDED: Final = "CLEARED_TRUST"
"""Where nobody can be asked: ids, with commas between; clones that say they are of these books count as pinned."""
MARK: Final = "cleared-clone"
_TOKEN: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ClonePin:
    """``git_dir``: of the clone; ``commits``: some that it had, to tell later whether others are of the same books."""

    mark: str
    workspace: str
    git_dir: str
    commits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceIdentity:
    """``id``: what records here must be bound to, empty where there is none yet; what the tracked file says where
    nothing is pinned. ``problem``: why nothing may run here at all."""

    id: str
    pinned: bool
    claimed: str
    copy_of: str = ""
    """The git directory that this one was copied from, where it was."""
    problem: PolicyError | None = None

    def must_be_pinned(self) -> None:
        """Raises ``PolicyError`` where it is not known which books these are: then nothing is signed for them."""
        if self.problem is not None:
            raise self.problem
        if self.id and not self.pinned:
            what = f"this is a copy of {Path(self.copy_of).parent}" if self.copy_of else "this is a clone"
            raise PolicyError(
                f"{what} that is not trusted on this machine yet, so nothing is signed for it",
                remedy="Look at who approved what here, and say whether it counts: cleared trust.",
            )


def identify_workspace(root: Path, claim: bytes | None) -> WorkspaceIdentity:
    """Which books ``root`` holds; nothing else decides it. ``claim``: the tracked file, in whichever commit.

    Raises ``WorkspaceError`` where the pin cannot be read. One that lies inside the workspace is none.
    """
    claimed = (claim or b"").decode("ascii", "replace").strip()
    folders = find_git_folders(root)
    pin = _pin_of_clone(root, folders[1]) if folders is not None else None
    if pin is not None and not _is_at(pin, folders[1] if folders else root):
        return WorkspaceIdentity(
            claimed if is_workspace_id(claimed) else "", _is_trusted_unattended(claimed), claimed, copy_of=pin.git_dir
        )
    if pin is None:
        return WorkspaceIdentity(claimed if is_workspace_id(claimed) else "", _is_trusted_unattended(claimed), claimed)
    if claim is not None and claimed != pin.workspace:
        return WorkspaceIdentity(pin.workspace, True, claimed, problem=_other_books(claimed, pin.workspace))
    return WorkspaceIdentity(pin.workspace, True, claimed)


def pin_clone(root: Path, workspace: str, commits: Sequence[str] = ()) -> None:
    """From now on, ``root`` holds these books on this machine. A copy of another clone becomes a clone of its own.

    Raises ``WorkspaceError`` where it cannot be written down.
    """
    folders = find_git_folders(root)
    if folders is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    refuse_inside(root)
    before = _pin_of_clone(root, folders[1])
    mark = _read_mark(folders[1])
    if not mark or (before is not None and not _is_at(before, folders[1])):
        mark = _write_mark(folders[1])
    _write_pin(ClonePin(mark, workspace, str(folders[1]), tuple(commits)))


def find_clone_mark(root: Path, *, make: bool = False) -> str:
    """The mark of the clone, by which its files beside the key are named; empty where it has none. ``make``: give it
    one. A copy has the mark of what it was copied from, until it is pinned."""
    folders = find_git_folders(root)
    if folders is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    return _read_mark(folders[1]) or (_write_mark(folders[1]) if make else "")


def follow_moved_clone(root: Path) -> str:
    """Where a pinned clone was moved to ``root``, write that down; where it was before, else empty.

    Moved: what has its mark now lies nowhere else. Where that cannot be written down, the clone counts as not pinned.
    """
    folders = find_git_folders(root)
    pin = _pin_of_clone(root, folders[1]) if folders is not None else None
    if folders is None or pin is None or _is_at(pin, folders[1]) or _has_mark(pin):
        return ""
    try:
        _write_pin(ClonePin(pin.mark, pin.workspace, str(folders[1]), pin.commits))
    except WorkspaceError:
        return ""
    return pin.git_dir


def new_workspace_id() -> str:
    """An id for new books."""
    return secrets.token_hex(16)


def pins_of_workspace(workspace: str) -> list[ClonePin]:
    """Every clone on this machine that was pinned to these books."""
    pins = (_read_pin(path) for path in sorted(pins_folder().glob("*.json")))
    return [each for each in pins if each.workspace == workspace]


def unpin_clone(root: Path) -> None:
    """Forget the pin of a clone that is about to be removed."""
    folders = find_git_folders(root)
    if folders is not None and (mark := _read_mark(folders[1])):
        _pin_path(mark).unlink(missing_ok=True)


def pins_folder() -> Path:
    """Where the pins of all clones lie; it is written to whenever one of them changes."""
    return cleared_home() / "clones"


def _pin_of_clone(root: Path, common: Path) -> ClonePin | None:
    mark = _read_mark(common)
    if not mark or is_inside(root):
        return None
    path = _pin_path(mark)
    return _read_pin(path) if path.exists() else None


def _read_mark(common: Path) -> str:
    try:
        text = (common / MARK).read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if _TOKEN.fullmatch(text) else ""


def _write_mark(common: Path) -> str:
    mark = secrets.token_hex(16)
    write_atomic(common / MARK, f"{mark}\n".encode("ascii"))
    return mark


def _is_at(pin: ClonePin, common: Path) -> bool:
    """Whether this is the clone that was pinned, by whatever path."""
    try:
        return str(common) == pin.git_dir or common.samefile(pin.git_dir)
    except OSError:
        return False


def _has_mark(pin: ClonePin) -> bool:
    """Whether the clone that was pinned is still where it was; also where that cannot be seen."""
    try:
        return (Path(pin.git_dir) / MARK).read_bytes().decode("ascii", "replace").strip() == pin.mark
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _is_trusted_unattended(claimed: str) -> bool:
    listed = os.environ.get(UNATTENDED, "")
    return is_workspace_id(claimed) and claimed in {each.strip() for each in listed.split(",")}


def _other_books(claimed: str, pinned: str) -> PolicyError:
    """The error for a tracked file that names other books than the pin."""
    remedy, named = f"Bring the file back as it was: git log -p -- {WORKSPACE}.", "no books"
    if is_workspace_id(claimed):
        named = f"the books {claimed[:12]}"
        remedy += " Only if these are the same books under another id: cleared trust --same-books."
    return PolicyError(
        f"the file says that these are {named}, but this clone holds the books {pinned[:12]} on this machine, "
        "so nothing is run",
        place=Place(WORKSPACE),
        remedy=remedy,
    )


def _read_pin(path: Path) -> ClonePin:
    try:
        data = json.loads(path.read_bytes())
        pin = ClonePin(path.stem, str(data["workspace"]), str(data["git_dir"]), tuple(str(c) for c in data["commits"]))
        if not is_workspace_id(pin.workspace):
            raise ValueError("no id")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorkspaceError(
            f"{path} is damaged", remedy="Delete it, then say again which books these are: cleared trust."
        ) from None
    return pin


def _write_pin(pin: ClonePin) -> None:
    with suppress(OSError):  # what cannot be made is told of where the file is written
        cleared_home().mkdir(mode=0o700, parents=True, exist_ok=True)
    data = asdict(pin)
    del data["mark"]
    write_atomic(_pin_path(pin.mark), (json.dumps(data, indent=1) + "\n").encode("ascii"))


def _pin_path(mark: str) -> Path:
    return pins_folder() / f"{mark}.json"

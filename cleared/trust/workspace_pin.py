"""Which books a clone holds, as this machine knows it, whatever the tracked file ``agents/approvals/workspace`` says.

A pin lies beside the key, outside the repository: a mark in the clone's git directory → the id of its books. No commit
brings or changes a pin; ``cleared init`` and ``cleared trust`` make it. Linked working trees share the git directory,
and so the pin. A directory that was copied has the mark of another one, and is asked about; one that was moved is
followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.git.repository import forget_clone_id
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.clone_marks import (
    MARK,
    UNATTENDED,
    find_other_home,
    is_inside,
    is_mark,
    pin_path,
    pins_folder,
    read_mark,
)
from cleared.trust.keys import cleared_home, refuse_inside
from cleared.trust.trust_store import is_workspace_id
from cleared.workspace.location import exclude_temporaries, find_git_folders


class ClonePin(Struct, frozen=True):
    """``git_dir``: of the clone; ``commits``: some that it had, to tell later whether others are of the same books.
    ``next_workspace``: the id that this machine is about to give these books, and has told nobody yet."""

    mark: str
    workspace: str
    git_dir: str
    commits: tuple[str, ...] = ()
    next_workspace: str = ""


class WorkspaceIdentity(Struct, frozen=True):
    """``id``: what records here must be bound to, empty where there is none yet; what the tracked file says where
    nothing is pinned. ``problem``: why nothing may run here at all."""

    id: str
    pinned: bool
    claimed: str
    copy_of: str = ""
    """The git directory that this one was copied from, where it was."""
    problem: PolicyError | None = None
    used_elsewhere: bool = False
    """Whether the problem is only that the pin and the keys lie in another home than this one."""

    @property
    def counts_alone(self) -> bool:
        """Whether what is attested here counts in no other clone of the books: they have an id, and this clone no
        pin."""
        return bool(self.id) and not self.pinned

    def must_be_pinned(self) -> None:
        """Raises ``PolicyError`` where it is not known which books these are: then nothing is signed for them."""
        if self.problem is not None:
            raise self.problem
        if self.counts_alone:
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
        known, trusted = claimed if is_workspace_id(claimed) else "", _is_trusted_unattended(claimed)
        elsewhere = find_other_home(root)
        return WorkspaceIdentity(known, trusted, claimed, problem=elsewhere, used_elsewhere=elsewhere is not None)
    if claimed and claimed == pin.next_workspace:  # killed between that commit and the pin
        return WorkspaceIdentity(claimed, True, claimed)
    if claim is not None and claimed != pin.workspace:
        return WorkspaceIdentity(pin.workspace, True, claimed, problem=_other_books(claimed, pin.workspace))
    return WorkspaceIdentity(pin.workspace, True, claimed)


def pin_clone(root: Path, workspace: str, commits: Sequence[str] = (), *, next_workspace: str = "") -> None:
    """From now on, ``root`` holds these books on this machine. A copy of another clone becomes a clone of its own.
    Its git is told what to pass over. ``next_workspace``: the id that the next commit gives them.

    Raises ``WorkspaceError`` where it cannot be written down.
    """
    folders = find_git_folders(root)
    if folders is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    refuse_inside(root)
    before = _pin_of_clone(root, folders[1])
    mark = read_mark(folders[1])
    is_copy = before is not None and not _is_at(before, folders[1])
    if is_copy:  # what commits name as their origin, too: the events of one are not the other's
        forget_clone_id(folders[0])
    if not mark or is_copy:
        mark = _write_mark(folders[1])
    _write_pin(ClonePin(mark, workspace, str(folders[1]), tuple(commits), next_workspace))
    exclude_temporaries(root)


def remember_pin(root: Path) -> Callable[[], None]:
    """What puts the mark and the pin of a clone back as they are now, whatever they have become."""
    folders = find_git_folders(root)
    if folders is None:
        return lambda: None
    common, mark = folders[1], read_mark(folders[1])
    pin = _pin_of_clone(root, common)

    def put_back() -> None:
        if read_mark(common) != mark:
            unpin_clone(root)
            if mark:
                write_atomic(common / MARK, f"{mark}\n".encode("ascii"))
            else:
                (common / MARK).unlink(missing_ok=True)
        if pin is not None:
            _write_pin(pin)
        else:
            unpin_clone(root)

    return put_back


def pin_place(git_dir: Path, mark: str, workspace: str, commits: Sequence[str] = ()) -> None:
    """From now on, the clone with this mark, which is about to be put there, holds these books on this machine.

    Raises ``WorkspaceError`` where it cannot be written down.
    """
    _write_pin(ClonePin(mark, workspace, str(git_dir), tuple(commits)))


def find_marked_clone(mark: str) -> str:
    """The git directory of the clone with this mark, where it is pinned here and still there; else empty. Raises
    ``WorkspaceError`` if the pin is damaged."""
    path = pin_path(mark)
    pin = _read_pin(path) if is_mark(mark) and path.exists() else None
    return pin.git_dir if pin is not None and _has_mark(pin) else ""


def find_clone_mark(root: Path, *, make: bool = False) -> str:
    """The mark of the clone, by which its files beside the key are named; empty where it has none. ``make``: give it
    one. A copy has the mark of what it was copied from, until it is pinned."""
    folders = find_git_folders(root)
    if folders is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    return read_mark(folders[1]) or (_write_mark(folders[1]) if make else "")


def find_pinned_mark(root: Path) -> str:
    """The mark of the clone where it is pinned here, else empty. Raises ``WorkspaceError`` if damaged."""
    folders = find_git_folders(root)
    pin = _pin_of_clone(root, folders[1]) if folders is not None else None
    return pin.mark if folders is not None and pin is not None and _is_at(pin, folders[1]) else ""


def follow_moved_clone(root: Path, sign_again: Callable[[Path, Path], object]) -> str:
    """Where a pinned clone was moved to ``root``, write that down; where it was before, else empty.

    Moved: what has its mark now lies nowhere else. ``sign_again``: is told both places first, so that a kill leaves no
    clone that is followed with signatures for where it was. Where that cannot be written down, the clone counts as not
    pinned.
    """
    folders = find_git_folders(root)
    pin = _pin_of_clone(root, folders[1]) if folders is not None else None
    if folders is None or pin is None or _is_at(pin, folders[1]) or _has_mark(pin):
        return ""
    sign_again(root, Path(pin.git_dir).parent)
    try:
        _write_pin(replace(pin, git_dir=str(folders[1])))
    except WorkspaceError:
        return ""
    return pin.git_dir


def find_next_workspace(root: Path) -> str:
    """The id that this machine is about to give the books of a clone; empty where it is not. Raises ``WorkspaceError``
    if the pin is damaged."""
    folders = find_git_folders(root)
    pin = _pin_of_clone(root, folders[1]) if folders is not None else None
    return pin.next_workspace if pin is not None else ""


def new_workspace_id() -> str:
    """An id for new books."""
    return os.urandom(16).hex()


def pins_of_workspace(workspace: str) -> list[ClonePin]:
    """Every clone on this machine that was pinned to these books."""
    pins = (_read_pin(path) for path in sorted(pins_folder().glob("*.json")))
    return [each for each in pins if workspace in (each.workspace, each.next_workspace)]


def unpin_clone(root: Path) -> None:
    """Forget the pin of a clone that is about to be removed."""
    folders = find_git_folders(root)
    if folders is not None and (mark := read_mark(folders[1])):
        pin_path(mark).unlink(missing_ok=True)


def _pin_of_clone(root: Path, common: Path) -> ClonePin | None:
    mark = read_mark(common)
    if not mark or is_inside(root):
        return None
    path = pin_path(mark)
    return _read_pin(path) if path.exists() else None


def _write_mark(common: Path) -> str:
    mark = os.urandom(16).hex()
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
    commit = f"echo {pinned} > {WORKSPACE} && git commit -m 'These books again' -- {WORKSPACE}"
    remedy, named = f"Bring the file back as it was: {commit}.", "no books"
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
        commits, next_workspace = tuple(str(c) for c in data["commits"]), str(data.get("next_workspace", ""))
        pin = ClonePin(path.stem, str(data["workspace"]), str(data["git_dir"]), commits, next_workspace)
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
    write_atomic(pin_path(pin.mark), (json.dumps(data, indent=1) + "\n").encode("ascii"))

"""What this machine saw last of the books of a clone. It lies beside the key, where no commit reaches it.

Whoever can push rewrites the repository, settings and all; they do not rewrite this. ``changes.lost_rows`` compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.trust.keys import cleared_home
from cleared.trust.workspace_pin import find_pinned_mark

_MAX_BRANCHES: Final = 50
_FILE: Final = "seen.json"


class SeenBranch(Struct, frozen=True):
    """The last commit of a branch that was found to lack nothing: its id, where its books lay, and how many rows of
    each kind it had (``changes.change_digests``)."""

    commit: str
    books: str
    counts: Mapping[str, int] = {}


class Checkpoint(Struct, frozen=True):
    """``folder``: where it lies. ``beginnings``: the commits without a parent that were accepted with the clone.
    ``branches``: by full name, the one seen last at the end. ``forgotten``: the ids of runs and decisions of which a
    person said that they are meant to be gone."""

    folder: Path
    beginnings: tuple[str, ...] = ()
    branches: Mapping[str, SeenBranch] = {}
    forgotten: tuple[str, ...] = ()

    @property
    def last_branch(self) -> str:
        """The full name of the branch that was seen last; empty where none was."""
        return next(reversed(list(self.branches)), "")

    def with_branch(self, name: str, seen: SeenBranch, beginnings: tuple[str, ...]) -> Checkpoint:
        """The same, after a branch was looked at."""
        branches = {other: each for other, each in self.branches.items() if other != name}
        newest = dict([*branches.items(), (name, seen)][-_MAX_BRANCHES:])
        return replace(self, beginnings=tuple(sorted({*self.beginnings, *beginnings})), branches=newest)


def read_checkpoint(root: Path) -> Checkpoint | None:
    """What was seen last in this clone; an empty one where nothing was yet, ``None`` where none is kept: it is not
    pinned, or what lies beside the key cannot be read here (in a confined program). Raises ``WorkspaceError`` where it
    is damaged."""
    folder = checkpoint_folder(root)
    if folder is None:
        return None
    path = folder / _FILE
    try:
        data = json.loads(path.read_bytes())
        branches = {str(name): _parse_branch(dict(each)) for name, each in data["branches"].items()}
        beginnings, forgotten = (tuple(map(str, data.get(name, ()))) for name in ("beginnings", "forgotten"))
        return Checkpoint(folder, beginnings, branches, forgotten)
    except FileNotFoundError:
        return Checkpoint(folder)
    except PermissionError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorkspaceError(f"{path} is damaged: what this machine saw last of the books is not known") from None


def read_forgotten(root: Path) -> frozenset[str]:
    """The ids of runs and decisions that are meant to be gone; none where the checkpoint cannot be read."""
    with suppress(WorkspaceError):
        checkpoint = read_checkpoint(root)
        return frozenset(checkpoint.forgotten if checkpoint is not None else ())
    return frozenset()


def write_checkpoint(checkpoint: Checkpoint) -> None:
    """Keep it. Raises ``WorkspaceError`` where it cannot be written."""
    branches = {
        name: {"commit": seen.commit, "books": seen.books, **seen.counts} for name, seen in checkpoint.branches.items()
    }
    data = {"beginnings": checkpoint.beginnings, "branches": branches, "forgotten": checkpoint.forgotten}
    write_atomic(checkpoint.folder / _FILE, (json.dumps(data, indent=1) + "\n").encode("ascii"))


def begin_checkpoint(root: Path, forgotten: Iterable[str] = ()) -> None:
    """Forget what was seen: in a clone that a person has just said something else of, it begins anew. What is to stay
    gone is kept, with ``forgotten``. Raises ``WorkspaceError`` where it cannot be written."""
    folder = checkpoint_folder(root)
    if folder is not None:
        write_checkpoint(Checkpoint(folder, forgotten=tuple(sorted({*read_forgotten(root), *forgotten}))))


def checkpoint_folder(root: Path) -> Path | None:
    """Where the checkpoint of this clone lies, and nothing else: a job that runs agents writes there. ``None`` where
    the clone is not pinned."""
    mark = find_pinned_mark(root)
    return cleared_home() / "checkpoints" / mark if mark else None


def _parse_branch(data: dict[str, Any]) -> SeenBranch:
    commit, books = data.pop("commit"), data.pop("books")
    return SeenBranch(commit, books, {str(key): int(count) for key, count in data.items()})

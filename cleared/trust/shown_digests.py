"""What this machine has shown a person, by its digest. It lies beside the pin, where no commit reaches it.

Whoever can push changes what waits for approval, between one look and the next. So what is approved is what was shown:
the digest of it is kept here when it is shown, and compared when it is approved.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Final, Literal, get_args

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.trust.clone_marks import is_inside
from cleared.trust.keys import cleared_home, refuse_inside
from cleared.workspace.location import find_git_folders

Way = Literal["printed", "made", "terminal", "taken"]
"""How it is known here, each more than the one before: it was printed, perhaps into a file; it was made here, by the
person who proposed their own edit; a terminal or page showed it; a person said yes to it."""
_WAYS: Final = get_args(Way)
_MAX_DIGESTS: Final = 2_000


def find_way(root: Path, digest: str) -> Way | None:
    """How what has this digest is known in this clone; None where it is not."""
    return _read_ways(root).get(digest)


def is_known(root: Path, digest: str, way: Way) -> bool:
    """Whether it is known in this clone at least in this way."""
    known = find_way(root, digest)
    return known is not None and _WAYS.index(known) >= _WAYS.index(way)


def note_shown(root: Path, digest: str, way: Way) -> None:
    """Keep that it is known in this way; how else it is known already stays.

    Raises ``WorkspaceError`` where that cannot be written.
    """
    if is_known(root, digest, way):
        return
    refuse_inside(root)
    ways = [*((each, how) for each, how in _read_ways(root).items() if each != digest), (digest, way)]
    kept = sorted(ways, key=lambda each: each[1] == "taken")[-_MAX_DIGESTS:]  # what was taken is forgotten last
    path = _find_path(root)
    if path is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    cleared_home().mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(path, (json.dumps(dict(kept), indent=0) + "\n").encode("ascii"))


def _read_ways(root: Path) -> dict[str, Way]:
    """Empty where nothing is known, or what is known cannot be read: then it is shown again."""
    path = _find_path(root)
    try:
        data = json.loads(path.read_bytes()) if path is not None else {}
        return {str(digest): way for digest, way in data.items() if way in _WAYS}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _find_path(root: Path) -> Path | None:
    """Named by where the clone lies, not by its mark: looking at a clone that nobody trusts yet must not mark it."""
    folders = find_git_folders(root)
    if folders is None or is_inside(root):  # whoever can write there must not be able to say what was shown
        return None
    return cleared_home() / "shown" / f"{hashlib.sha256(os.fsencode(folders[1])).hexdigest()[:32]}.json"

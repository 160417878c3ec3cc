"""A clone's mark, and whether this home is the one that knows it.

Keys and pins lie in the home of whoever uses a clone. With another ``HOME`` they would be made anew there, and what was
done with them would be believed by nobody, the same person included.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from cleared.base.errors import PolicyError
from cleared.workspace.location import cleared_home, find_git_folders

MARK: Final = "cleared-clone"
"""The file with a clone's mark, in the git directory that all its working trees share."""
KEY: Final = "approval-key"
RUN_KEY: Final = "run-key"
"""What this machine signs with what its runs and decisions say of themselves. It approves nothing."""
UNATTENDED: Final = "CLEARED_TRUST"
"""Where nobody can be asked: ids, with commas between; clones that say they are of these books count as pinned."""
_TOKEN: Final = re.compile(r"[0-9a-f]{32}")


def is_inside(root: Path, name: str = KEY) -> bool:
    """Whether what must lie outside the workspace would lie in it, links followed."""
    folder, inside = os.path.realpath(cleared_home()), f"{os.path.realpath(root).rstrip(os.sep)}{os.sep}"
    place = os.path.join(folder, name)  # noqa: PTH118 - asked so often that a Path of each costs more than the rest
    places = (folder, os.path.realpath(place) if os.path.islink(place) else place)  # noqa: PTH114
    return any(f"{each}{os.sep}".startswith(inside) for each in places)


def is_mark(text: str) -> bool:
    """Whether a text is a mark."""
    return _TOKEN.fullmatch(text) is not None


def read_mark(common: Path) -> str:
    """The mark in a git directory; empty where there is none."""
    try:
        text = (common / MARK).read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if is_mark(text) else ""


def pins_folder() -> Path:
    """Where the pins of all clones lie; it is written to whenever one of them changes."""
    return cleared_home() / "clones"


def pin_path(mark: str) -> Path:
    """Where the pin of the clone with this mark lies."""
    return pins_folder() / f"{mark}.json"


def find_other_home(root: Path) -> PolicyError | None:
    """The refusal for a clone that has been used, and not from this home; ``None`` for any other, and where somebody
    has said in the environment which books count as pinned."""
    folders = find_git_folders(root)
    mark = read_mark(folders[1]) if folders is not None else ""
    if not mark or UNATTENDED in os.environ or is_inside(root):
        return None
    if any((cleared_home() / name).exists() for name in (pin_path(mark), RUN_KEY, KEY)):
        return None
    home = os.environ.get("HOME")
    return PolicyError(
        f"these books have been used with another home: neither their pin nor their keys are in {cleared_home()}, so "
        "nothing is run, decided or signed with others",
        remedy=f"{f'HOME is {home}' if home else 'HOME is not set'}: set it (or CLEARED_HOME) as it was. Where another "
        "user or machine is meant to use them, look at who approved what here, and say that it counts: cleared trust.",
    )


def refuse_other_home(root: Path) -> None:
    """Raises ``PolicyError`` for a clone that has been used, and not from this home."""
    if (problem := find_other_home(root)) is not None:
        raise problem

"""Files that git brought into a folder that is watched: whoever can push has put them there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from shlex import quote

from cleared.base.errors import Place, PolicyError


def refuse_brought(path: str, name: str, has_file: Callable[[str], bool]) -> None:
    """Raises ``PolicyError`` for a file that git brought, as nobody on this machine has handed it in.

    ``path``: where it lies, relative to the workspace; ``name``: what it is called in the message. ``has_file``:
    whether the last commit has a file, a symbolic link or a submodule at a path.
    """
    # A link or a submodule on the way brings files that the commit itself does not name.
    tracked = next((way for way in accumulate(path.split("/"), "{}/{}".format) if has_file(way)), None)
    if tracked is not None:
        shown = quote(tracked)
        raise PolicyError(
            f"{name!r} is in a commit: git brought it, and nobody on this machine handed it in",
            place=Place(tracked),
            remedy=f"Look who did (git log -- {shown}). If it is right: git rm --cached {shown}, and commit that; then "
            "it is taken. Else git rm it.",
        )

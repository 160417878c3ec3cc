"""Starting git's own housekeeping, which packs loose objects."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress

from cleared.base.errors import WorkspaceError
from cleared.git.repository import Repository

#: git's own estimate: a 256th of the 6,700 loose objects (its default ``gc.auto``) from which it packs.
_MANY_OBJECTS = 27


def start_gc_if_due(repo: Repository) -> bool:
    """Start ``git gc --auto`` in the background where there are many loose objects. Returns whether it was started.

    Never waits and never fails; the user's own ``gc.*`` settings decide what is done.
    """
    try:
        if sum(1 for _ in (repo.common_dir / "objects" / "17").iterdir()) <= _MANY_OBJECTS:
            return False
    except OSError:
        return False
    with suppress(WorkspaceError):
        process = repo.git.start(
            ["gc", "--auto", "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, gc=True
        )
        threading.Thread(target=process.wait, daemon=True).start()
        return True
    return False

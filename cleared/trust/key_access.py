"""This user's right to read his own keys and lists of trust, given back where something has taken it.

A confined program changes none of them; one that runs with the user's rights can take their permissions away, and so
lock the person out.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from cleared.trust.clone_marks import pins_folder
from cleared.trust.keys import cleared_home
from cleared.workspace.user_folder import trust_folder


def restore_access() -> list[Path]:
    """Give the owner's rights back to what ``cleared`` keeps of this user; what it was given back to.

    Rights of others are left as they are: a key that others can read is refused, with what to do about it.
    """
    given = []
    for folder in (cleared_home(), trust_folder(), pins_folder()):
        given += _restore_mode(folder, stat.S_IRWXU)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if folder != cleared_home() or "-key" in entry.name:
                    given += _restore_mode(Path(entry.path), stat.S_IRUSR | stat.S_IWUSR)
    return given


def _restore_mode(path: Path, wanted: int) -> list[Path]:
    with suppress(OSError):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        ours = os.name == "posix" and status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
        if ours and mode & wanted != wanted:
            path.chmod(mode | wanted)
            return [path]
    return []

"""The consensus: the text that one cycle hands to the next, ``memories/consensus.md``."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic, write_new

CONSENSUS: Final = "memories/consensus.md"
BACKUP: Final = "memories/consensus.md.bak"
HEADERS: Final = ("# Auto Company Consensus", "## Next Action", "## Company State")
MAX_BYTES: Final = 1 << 20
INITIAL: Final = b"""# Auto Company Consensus

## Company State

Nothing has been done yet.

## Next Action

Read PROMPT.md, then say here what to do first.
"""


def find_problems(data: bytes) -> list[str]:
    """What keeps a text from being a consensus; nothing where it is one."""
    if not data.strip():
        return ["it is empty"]
    if len(data) > MAX_BYTES:
        return [f"it is larger than {MAX_BYTES} bytes"]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ["it is not UTF-8"]
    return [
        f"it has no line that begins with {header!r}"
        for header in HEADERS
        if not re.search(f"^{re.escape(header)}", text, re.MULTILINE)
    ]


def read_next_action(data: bytes) -> str:
    """The section *Next Action* as one line, to compare it with that of another cycle."""
    section = re.search(r"^## Next Action[^\n]*\n(.*?)(?=^#|\Z)", data.decode("utf-8", "replace"), re.M | re.S)
    return " ".join(section[1].split()).casefold() if section else ""


class ConsensusFile:
    """The consensus of a workspace, and its last good version."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self) -> bytes:
        """The text as it is; empty where there is none. Raises ``WorkspaceError`` for a link or a folder."""
        return self._read(CONSENSUS)

    def read_backup(self) -> bytes:
        """The last good version; empty where there is none."""
        return self._read(BACKUP)

    def keep_backup(self) -> None:
        """Make the text as it is the last good version, if it is a consensus. An invalid one replaces nothing."""
        data = self.read()
        if not find_problems(data) and data != self.read_backup():
            write_atomic(self._root / BACKUP, data)

    def restore(self, now: datetime) -> str | None:
        """Put the last good version back where the text is none: a person may have begun one, so it is kept beside.

        Where it is kept; empty where there was no text, None where nothing was put back.
        """
        good = self.read_backup()
        if find_problems(good) or not find_problems(self.read()):
            return None
        kept = self.keep_aside(now)
        self.replace(good)
        return kept

    def keep_aside(self, now: datetime) -> str:
        """Keep the text as it is in a file of its own, named by the time; its path, empty where there is no text."""
        data = self.read()
        if not data.strip():
            return ""
        stem = f"{CONSENSUS}.{now:%Y%m%d-%H%M%S}"
        for suffix in ("", *(f"-{number}" for number in range(1, 1_000))):
            path = f"{stem}{suffix}.bak"
            if write_new(self._root / path, data) or self._read(path) == data:
                return path
        raise WorkspaceError("there is no name left to keep it by", place=Place(f"{stem}-999.bak"))

    def replace(self, data: bytes) -> None:
        """Put a new text in place, in one step. Raises ``WorkspaceError`` where the folder is a link."""
        self._refuse_links()
        (self._root / CONSENSUS).parent.mkdir(exist_ok=True)
        write_atomic(self._root / CONSENSUS, data)

    def put_beside(self, data: bytes, cycle: int) -> str:
        """Keep a cycle's text beside a person's; its path."""
        self._refuse_links()
        path = f"{CONSENSUS}.cycle-{cycle:04d}"
        write_atomic(self._root / path, data)
        return path

    def _read(self, path: str) -> bytes:
        self._refuse_links()
        full = self._root / path
        if not full.is_symlink() and not full.exists():
            return b""
        return read_stable(full, MAX_BYTES * 2, shown=path)[0]

    def _refuse_links(self) -> None:
        if (self._root / CONSENSUS).parent.is_symlink():
            raise WorkspaceError(
                "the folder is a link", place=Place("memories"), remedy="Put a folder of its own in its place."
            )

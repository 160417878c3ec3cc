"""Which files of a drop folder count, for whoever looks at one; names that only a program could have given."""

from __future__ import annotations

import re
from typing import Final

TEMPORARY_ENDINGS: Final = (".part", ".crdownload", ".tmp", ".download", ".partial", "~")
"""How names end that programs give to files they have not finished; in any case of letters."""
FAILED_FOLDER: Final = "failed"
"""In ``import/``: files that no run got through with."""
FINISHED_FOLDERS: Final = ("processed", FAILED_FOLDER)
"""Folders at the top of ``import/`` that hold what is done with."""
MAX_FILES: Final = 20_000
"""More are not looked at at once; the first by name are."""
_UNSPEAKABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_ready_name(name: str) -> bool:
    """Whether a file of that name is one to look at: not hidden, and finished as far as its name tells."""
    return not name.startswith(".") and not name.lower().endswith(TEMPORARY_ENDINGS)


def has_control_characters(name: str) -> bool:
    """Whether the name holds control characters, line separators, or bytes that are no text."""
    return _UNSPEAKABLE.search(name) is not None


def escape_name(name: str) -> str:
    """The name as text for people, on one line: what is no character, or controls a terminal, is escaped."""
    return _UNSPEAKABLE.sub(lambda match: ascii(match[0])[1:-1], name)

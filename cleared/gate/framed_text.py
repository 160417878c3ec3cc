"""Words of somebody else on a card: each line stands behind a bar, so that nobody takes it for the program's own."""

from __future__ import annotations

import re
from typing import Final

from cleared.base.terminal import escape_text, fold_text

_WIDTH: Final = 72
"""With the bar and the deepest indent it fits a terminal of 80 columns, which then breaks none of the lines."""
_MANY_BLANKS: Final = re.compile(r"[^\S\n]{9,}")


def frame_text(data: bytes | str | None) -> list[str]:
    """Somebody else's text, each line behind a bar and none wider than a terminal: nothing in it ends the frame."""
    text = data if isinstance(data, str) else (data or b"").decode("utf-8", "replace")
    return [part for line in text.splitlines() for part in frame_line(write_plain(line))]


def frame_line(line: str) -> list[str]:
    """One line that is plain already (``write_plain``), behind the bar, in as many parts as it takes."""
    return [f"  | {part}" for part in fold_text(line, _WIDTH)]


def write_plain(text: str) -> str:
    """The text on one line, as it can be seen: with the number of its blanks where there are many of them."""
    return escape_text(_MANY_BLANKS.sub(lambda blanks: f"·×{len(blanks[0])}", text))

"""Printing logs: their last lines in the order of time, then what is added."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cleared.base.growing_file import GrowingFile
from cleared.base.terminal import escape_text, print_line

_TIME: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\dT[\d:.]+)")
_POLL_SECONDS: Final = 0.2


def follow_logs(paths: Iterable[Path], lines: int, *, follow: bool) -> None:
    """Print the last ``lines`` of these logs together, each of which begins its lines with the time; with ``follow``
    also what is added, without end."""
    files = [GrowingFile(path) for path in paths]
    _print_lines([line for file in files for line in file.read_last(lines)], lines)
    while follow:
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)
        _print_lines([line for file in files for line in file.read_new()], None)


def _print_lines(lines: list[bytes], most: int | None) -> None:
    ordered = sorted(lines, key=_read_time)
    for line in ordered if most is None else ordered[-most:] if most else []:
        print_line(escape_text(line.decode("utf-8", "replace").rstrip("\r")))


def _read_time(line: bytes) -> bytes:
    """When a line was written; one that does not say it stands first."""
    match = _TIME.match(line)
    return match[1] if match else b""

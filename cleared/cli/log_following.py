"""Printing logs: their last lines in the order of time, then what is added."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from cleared.base.growing_file import GrowingFile, decode_line
from cleared.base.terminal import escape_text, print_line

_TIME: Final = re.compile(r"\[?(\d{4}-\d\d-\d\dT[\d:.]+)")
_POLL_SECONDS: Final = 0.2
ReadLine = Callable[[bytes], str | None]


def follow_logs(logs: Iterable[Path] | Mapping[Path, ReadLine], lines: int, *, follow: bool) -> None:
    """Print the last ``lines`` of these logs together, in the order of the times that they begin with; with ``follow``
    also what is added, without end. A log's function makes of a line what is printed; nothing where it is None."""
    readers = logs if isinstance(logs, Mapping) else dict.fromkeys(logs, decode_line)
    files = {GrowingFile(path): read_line for path, read_line in readers.items()}
    _print_lines(read_line(line) for file, read_line in files.items() for line in file.read_last(lines))
    while follow:
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)
        _print_lines(read_line(line) for file, read_line in files.items() for line in file.read_new())


def _print_lines(lines: Iterable[str | None]) -> None:
    for line in sorted((line for line in lines if line is not None), key=_read_time):
        print_line(escape_text(line))


def _read_time(line: str) -> str:
    """When a line was written; one that does not say it stands first."""
    match = _TIME.match(line)
    return match[1] if match else ""

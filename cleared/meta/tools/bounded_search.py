"""Searching with a regular expression of a model's, which may take for ever: in a process of its own, with a limit of
processor time."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.meta.tools.tool import ToolFailed
from cleared.processes.program import Program, end_at, run_program

CPU_SECONDS: Final = 2
_WALL_SECONDS: Final = 60.0
_MAX_SEARCHED: Final = 128 << 20
_MAX_TEXT: Final = 300
_PROGRAM: Final = """
import json, re, resource, sys
head = json.loads(sys.stdin.readline())
resource.setrlimit(resource.RLIMIT_CPU, (head["seconds"], head["seconds"]))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    pattern = re.compile(head["pattern"])
except (re.error, RecursionError, OverflowError) as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
left = head["limit"]
for row in sys.stdin:
    path, text = json.loads(row)
    for number, line in enumerate(text.split("\\n"), 1):
        match = pattern.search(line)
        if match:
            if not left:
                print(json.dumps({"more": True}))
                sys.exit()
            left -= 1
            start = max(0, min(match.start() - 100, len(line) - head["clip"]))
            print(json.dumps([path, number, line[start:start + head["clip"]]]), flush=True)
"""


class Match(Struct, frozen=True):
    """A line that matches; of a long one, the part around the match."""

    path: str
    line: int
    text: str


class SearchResult(Struct, frozen=True):
    """``note``: what was left out, and why; begins with a space where there is something."""

    matches: tuple[Match, ...]
    note: str = ""


def search_files(pattern: str, files: Iterable[tuple[str, bytes]], limit: int) -> SearchResult:
    """The first ``limit`` lines of these texts that match. Raises ``ToolFailed`` for a pattern that is none, and where
    it takes longer than ``CPU_SECONDS`` seconds of processor time."""
    head = {"pattern": pattern, "limit": limit, "seconds": CPU_SECONDS, "clip": _MAX_TEXT}
    left, note = _MAX_SEARCHED, ""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(json.dumps(head).encode() + b"\n")
        for path, data in files:
            if b"\0" in data[:8192]:
                continue
            if left < len(data):
                note = f" Only the first {_MAX_SEARCHED >> 20} MB were searched; give a path."
                break
            left -= len(data)
            stdin.write(json.dumps([path, data.decode("utf-8", "replace")]).encode() + b"\n")
        stdin.seek(0)
        program = Program([sys.executable, "-I", "-S", "-c", _PROGRAM], Path("/"), {"PYTHONUTF8": "1"}, input=stdin)
        output = bytearray()
        ended = run_program(program, output.extend, end_at(_WALL_SECONDS), bool)
    if ended.reason:
        raise _slow_error(pattern)
    rows = [json.loads(row) for row in output.decode("utf-8", "replace").splitlines()]
    if rows and isinstance(rows[0], dict) and "error" in rows[0]:
        raise ToolFailed(f"the pattern is no regular expression: {rows[0]['error']}", r"Escape ( ) [ ] . * + ? with \.")
    if ended.code < 0:
        raise _slow_error(pattern)
    if ended.code:
        raise ToolFailed("the search ran out of memory", "Give a path, and a simpler pattern.")
    matches = tuple(Match(*row) for row in rows if isinstance(row, list))
    return SearchResult(
        matches, (" There are more; raise limit or narrow it." if len(rows) > len(matches) else "") + note
    )


def _slow_error(pattern: str) -> ToolFailed:
    return ToolFailed(
        f"the search took longer than {CPU_SECONDS} seconds of processor time; the pattern is {pattern[:200]!r}",
        "Write it without nested repetition such as (a+)+, and give a path.",
    )

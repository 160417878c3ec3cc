"""Unified diffs, strictly: every line of a hunk must stand exactly where its header says, or nothing is changed.

``git apply`` looks for a hunk elsewhere in the file when it does not fit; here that is a refusal, because a model that
is wrong about a file should read it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

MAX_PATCH_BYTES: Final = 4 << 20
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_ABSENT: Final = "/dev/null"
_IGNORED: Final = ("diff --git ", "index ", "new file mode 100644", "deleted file mode 100644", "--- ", "+++ ", "@@ ")
_UNSUPPORTED: Final = {
    "rename ": "renaming",
    "copy ": "copying",
    "similarity ": "renaming",
    "old mode": "a change of modes",
    "new mode": "a change of modes",
    "GIT binary": "a binary patch",
    "Binary files": "a binary patch",
    "new file mode": "a file that is not plain",
    "deleted file mode": "a file that is not plain",
}


class PatchRefused(Exception):
    """The patch does not apply; nothing was changed. The text names the place in the patch, or in the file."""


class Hunk(Struct):
    """Lines with their marks. ``old_start`` is 1-based, and the line before where ``old_count`` is 0, as in diffs."""

    at_line: int
    """Where its header stands in the patch."""
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[tuple[str, str]] = []
    """Mark (`` ``, ``-``, ``+``) and text, with its newline where it has one."""


class FilePatch(Struct):
    """The hunks of one file. ``creates``, ``deletes``: the file is new, or goes."""

    path: str
    at_line: int
    creates: bool
    deletes: bool
    hunks: list[Hunk] = []


def parse_patch(text: str) -> list[FilePatch]:
    """The files of a patch. Raises ``PatchRefused`` where it is no unified diff."""
    if len(text.encode("utf-8", "replace")) > MAX_PATCH_BYTES:
        raise PatchRefused(f"the patch has more than {MAX_PATCH_BYTES >> 20} MB")
    return _Parser(text).parse_files()


def apply_patch(text: str, read_file: Callable[[str], str | None]) -> dict[str, str | None]:
    """The new texts of all files that a patch changes, None where one goes. ``read_file`` gives the old ones.

    Raises ``PatchRefused`` where any hunk of any file does not fit exactly.
    """
    results: dict[str, str | None] = {}
    for file in parse_patch(text):
        if file.path in results:
            raise PatchRefused(f"line {file.at_line} of the patch: {file.path} is in it twice")
        old = read_file(file.path)
        if file.creates and old is not None:
            raise PatchRefused(f"{file.path}: the patch creates it, but it is there")
        if not file.creates and old is None:
            raise PatchRefused(f"{file.path}: there is no such file; to create it, write --- /dev/null")
        new = _apply_hunks(file, old or "")
        if file.deletes and new:
            raise PatchRefused(f"{file.path}: the patch deletes it, but lines of it would be left")
        results[file.path] = None if file.deletes else new
    return results


def _apply_hunks(file: FilePatch, old: str) -> str:
    lines = old.split("\n")
    source = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    result: list[str] = []
    done = 0
    for hunk in file.hunks:
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        if start < done or start > len(source):
            raise PatchRefused(
                f"{file.path}: hunk at line {hunk.at_line} of the patch begins at line {hunk.old_start}; "
                + ("it overlaps the hunk before" if start < done else f"the file has {len(source)} lines")
            )
        result += source[done:start]
        done = start
        if hunk.new_start != len(result) + (1 if hunk.new_count else 0):
            raise PatchRefused(
                f"{file.path}: hunk at line {hunk.at_line} of the patch says +{hunk.new_start}, but its new lines "
                f"begin at {len(result) + (1 if hunk.new_count else 0)}"
            )
        for mark, line in hunk.lines:
            if mark != "+":
                actual = source[done] if done < len(source) else None
                if actual != line:
                    why = _explain_mismatch(file.path, hunk, done + 1, line, actual)
                    raise PatchRefused(why + _find_elsewhere(hunk, source))
                done += 1
            if mark != "-":
                if result and not result[-1].endswith("\n"):
                    raise PatchRefused(f"{file.path}: a line would follow the last one, which has no newline")
                result.append(line)
    rest = source[done:]
    if rest and result and not result[-1].endswith("\n"):
        raise PatchRefused(f"{file.path}: a line would follow the last one, which has no newline")
    return "".join([*result, *rest])


def _explain_mismatch(path: str, hunk: Hunk, number: int, wanted: str, actual: str | None) -> str:
    is_newline = actual is not None and actual.rstrip("\n") == wanted.rstrip("\n")
    there = "the file ends before it" if actual is None else f"there is {actual[:160]!r}"
    note = " (they differ in the newline at the end of the file)" if is_newline else ""
    return f"{path}:{number}: the hunk at line {hunk.at_line} of the patch wants {wanted[:160]!r}, but {there}{note}"


def _find_elsewhere(hunk: Hunk, source: list[str]) -> str:
    """Where the hunk's old lines stand, for whoever corrects the patch; it is never applied there."""
    old = [line for mark, line in hunk.lines if mark != "+"]
    places = [at + 1 for at in range(len(source) - len(old) + 1) if source[at : at + len(old)] == old][:3]
    return f". Its old lines stand at line {' and '.join(map(str, places))}" if places else ""


class _Parser:
    """Reads a patch line by line."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        if self._lines and not self._lines[-1]:
            self._lines.pop()
        self._at = 0

    def parse_files(self) -> list[FilePatch]:
        files = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("--- "):
                files.append(self._parse_file())
                continue
            for start, what in _UNSUPPORTED.items():
                if line.startswith(start) and not line.startswith(_IGNORED):
                    raise self._refuse(f"{what} is not possible; only lines of text files can be changed")
            if line.strip() and not line.startswith(_IGNORED[:4]):
                raise self._refuse(f"this is no part of a unified diff: {line[:120]!r}")
            self._at += 1
        if not files:
            raise PatchRefused("there is no file in the patch; it must begin with --- a/PATH and +++ b/PATH")
        return files

    def _parse_file(self) -> FilePatch:
        first = self._at
        old = self._parse_name("--- ", "a/")
        if self._at >= len(self._lines) or not self._lines[self._at].startswith("+++ "):
            raise self._refuse("a line +++ b/PATH must follow")
        new = self._parse_name("+++ ", "b/")
        if old == new == _ABSENT:
            raise self._refuse("both names are /dev/null", first)
        if _ABSENT not in (old, new) and old != new:
            raise self._refuse(f"{old} and {new} are two files; renaming is not possible", first)
        file = FilePatch(old if new == _ABSENT else new, first + 1, old == _ABSENT, new == _ABSENT)
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            file.hunks.append(self._parse_hunk())
        if not file.hunks and not file.creates:
            raise self._refuse(f"{file.path} has no hunk (@@ -1,2 +1,3 @@)", first)
        return file

    def _parse_name(self, mark: str, prefix: str) -> str:
        name = self._lines[self._at][len(mark) :].split("\t", 1)[0]
        self._at += 1
        if name == _ABSENT:
            return name
        if name.startswith('"') or not name.strip():
            raise self._refuse("a name in quotes, or none, is not possible", self._at - 1)
        return name.removeprefix(prefix)

    def _parse_hunk(self) -> Hunk:
        header = _HUNK.fullmatch(self._lines[self._at])
        if header is None:
            raise self._refuse("this is no header of a hunk, such as @@ -3,2 +3,4 @@")
        old_start, old_count, new_start, new_count = (
            int(group) if group is not None else 1 for group in header.groups()
        )
        hunk = Hunk(self._at + 1, old_start, old_count, new_start, new_count)
        if (old_count and not old_start) or (new_count and not new_start):
            raise self._refuse("lines are counted from 1")
        self._at += 1
        old_left, new_left = old_count, new_count
        while old_left or new_left:
            line = self._lines[self._at] if self._at < len(self._lines) else None
            mark = (line[:1] or " ") if line is not None else ""
            if line is None or mark not in " -+":
                raise self._refuse(
                    f"the hunk at line {hunk.at_line} announces {old_left} old and {new_left} new lines more"
                )
            old_left -= mark != "+"
            new_left -= mark != "-"
            if old_left < 0 or new_left < 0:
                raise self._refuse(f"the hunk at line {hunk.at_line} has more lines than its header says")
            self._at += 1
            hunk.lines.append((mark, line[1:] + self._read_newline()))
        if self._at < len(self._lines) and self._lines[self._at][:1] in (" ", "+", "-"):
            following = self._lines[self._at]
            if not following.startswith("--- "):
                raise self._refuse(f"the hunk at line {hunk.at_line} has more lines than its header says")
        return hunk

    def _read_newline(self) -> str:
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            self._at += 1
            return ""
        return "\n"

    def _refuse(self, why: str, at: int | None = None) -> PatchRefused:
        return PatchRefused(f"line {(self._at if at is None else at) + 1} of the patch: {why}")

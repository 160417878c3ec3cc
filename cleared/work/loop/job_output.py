"""Writes a job's output to its file: bounded, as text, without secrets."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Final

from cleared.jobs import file_schemas
from cleared.workspace.settings.secrets import REDACTED, Redactor

_LONGEST_LINE: Final = 64 * 1024
_OVERLAP: Final = 4 * 1024
"""Characters of an unfinished line that are held back, as a secret may be cut in two there."""
_TAIL_LENGTH: Final = 8 * 1024
_DROPPED_LENGTH: Final = 64 * 1024
"""Characters behind what is kept that wait for the end of the output, which shows the last of them without secrets."""

_MOST_KEY_LINES: Final = 200
"""What says that a key begins hides no more of an output than this: a key of 16,384 bits."""
_KEY_NAME: Final = "PRIVATE KEY"
"""What the lines have in them that begin and end a key."""
_KEY_BEGINS, _KEY_ENDS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), re.compile(r"-----END [A-Z ]*PRIVATE KEY")
_KEY_LINE = re.compile(r"(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info):.*|(?:.*\s)?[A-Za-z0-9+/=]{32,}+\W{0,8})", re.ASCII)
"""A line within a key, also behind what a program puts before each of its lines."""


class JobOutput:
    """Takes bytes and writes lines. ``tail``, once it is closed: the end of the text, also of what is not kept.

    What is not kept costs next to nothing, as a program may print without end.
    """

    def __init__(self, path: Path, most: int, redactor: Redactor) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file_schemas.PRIVATE_MODE)  # a job runs once
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="")
        self._left_to_write, self._redactor = most, redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        """The beginning of a line that has not ended yet."""
        self._key_lines_left = 0
        self._cut = 0
        self._dropped, self._is_gap_before_dropped = "", False
        self.tail = ""

    def feed_bytes(self, data: bytes) -> None:
        """Add output of the job."""
        self._feed_text(self._decoder.decode(data))

    def close(self) -> None:
        """Write the rest, and how much is not kept."""
        if self._file.closed:
            return
        self._feed_text(self._decoder.decode(b"", final=True))
        line, self._pending = self._pending, ""
        if line:
            self._write_redacted(self._redact_line(line))
        self._add_dropped_to_tail()
        if self._cut:
            self._file.write(f"\n[{self._cut} more characters are not kept]\n")
        self._file.close()

    def _feed_text(self, text: str) -> None:
        if self._left_to_write:
            whole, newline, self._pending = (self._pending + text).rpartition("\n")
            if self._key_lines_left or _KEY_NAME in whole:
                lines = whole.split("\n") if newline else []
                for number, line in enumerate(lines, start=1):
                    self._write_redacted(self._redact_line(line + "\n"))
                    if not self._left_to_write:
                        self._pending = "\n".join([*lines[number:], self._pending])
                        break
            elif newline:  # all other secrets end with their line, and a call for each line takes long
                self._write_redacted(self._redactor.redact_output(whole + newline))
            while self._left_to_write and len(self._pending) > _LONGEST_LINE:
                ready, self._pending = self._pending[:-_OVERLAP], self._pending[-_OVERLAP:]
                self._write_redacted(self._redact_line(ready))
            self._file.flush()
            text = ""
        if not self._left_to_write:
            self._drop(self._pending + text)
            self._pending = ""

    def _drop(self, text: str) -> None:
        self._cut += len(text)
        self._dropped += text
        if len(self._dropped) > _DROPPED_LENGTH:
            self._dropped, self._is_gap_before_dropped = self._dropped[-_DROPPED_LENGTH:], True

    def _add_dropped_to_tail(self) -> None:
        if self._is_gap_before_dropped:
            self._key_lines_left = _MOST_KEY_LINES  # perhaps a key began in the gap
        text = "".join(self._redact_line(line) for line in re.findall(r"[^\n]*\n|[^\n]+", self._dropped))
        if self._is_gap_before_dropped:  # and perhaps a secret did
            self.tail, text = "", text[_OVERLAP:]
        self.tail = (self.tail + text)[-_TAIL_LENGTH:]

    def _redact_line(self, line: str) -> str:
        begins, ends = (max((m.end() for m in p.finditer(line)), default=-1) for p in (_KEY_BEGINS, _KEY_ENDS))
        if begins >= 0:
            self._key_lines_left = _MOST_KEY_LINES if ends < begins else 0
            return REDACTED + "\n"
        if self._key_lines_left and (ends >= 0 or _KEY_LINE.fullmatch(line.strip())):
            self._key_lines_left = self._key_lines_left - 1 if ends < 0 else 0
            return REDACTED + "\n"
        self._key_lines_left = 0
        return self._redactor.redact_output(line)

    def _write_redacted(self, text: str) -> None:
        self.tail = (self.tail + text)[-_TAIL_LENGTH:]
        written = text.encode("utf-8", "replace")[: self._left_to_write].decode("utf-8", "ignore")
        cut = len(text) - len(written)
        self._left_to_write -= self._left_to_write if cut else len(written.encode("utf-8"))
        self._cut += cut
        if written:
            self._file.write(written)


def last_line(text: str) -> str:
    """The last line that is not empty; an empty text where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""

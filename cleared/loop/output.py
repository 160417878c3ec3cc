"""A job's output on its way to its file: bounded, as text, with secrets taken out."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Final

from cleared.config.load import SECRET_NAMES
from cleared.config.secrets import REDACTED, Redactor
from cleared.jobs import schema

_LONGEST_LINE: Final = 64 * 1024
_OVERLAP: Final = 4 * 1024
"""Of a line without an end, so much is held back: a secret may be cut in two."""
_TAIL: Final = 8 * 1024

_SHAPES: Final = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"
    r"|(?<=://)[^\s/@:]{1,100}:[^\s/@]{3,200}(?=@)"
)
_ASSIGNED: Final = re.compile(
    rf"(?i)\b([a-z0-9_]*(?:{SECRET_NAMES})[a-z0-9_]*[\"']?\s*[=:]\s*[\"']?)([^\s\"',;]{{6,}})"
)
_KEY_BEGINS, _KEY_ENDS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), re.compile(r"-----END [A-Z ]*PRIVATE KEY")


def clean(text: str, redactor: Redactor) -> str:
    """The text without the secrets that are known, and without what looks like one."""
    text = _SHAPES.sub(REDACTED, redactor.text(text))
    return _ASSIGNED.sub(lambda found: found[1] + REDACTED, text)


class Output:
    """Takes bytes as they come; writes lines. ``tail`` is the end of the text, also of what was too much."""

    def __init__(self, path: Path, most: int, redactor: Redactor) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, schema.PRIVATE)  # a job is done once
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="")
        self._left_to_write, self._redactor = most, redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = ""
        """What has come of a line that has not ended yet."""
        self._in_key = False
        self._cut = 0
        self.tail = ""

    def feed(self, data: bytes) -> None:
        self.pending += self._decoder.decode(data)
        *lines, self.pending = self.pending.split("\n")
        for line in lines:
            self._line(line + "\n")
        while len(self.pending) > _LONGEST_LINE:
            ready, self.pending = self.pending[:-_OVERLAP], self.pending[-_OVERLAP:]
            self._line(ready)

    def close(self) -> None:
        if self._file.closed:
            return
        self.pending += self._decoder.decode(b"", final=True)
        if self.pending:
            self._line(self.pending)
            self.pending = ""
        if self._cut:
            self._file.write(f"\n[{self._cut} more characters are not kept]\n")
        self._file.close()

    def _line(self, line: str) -> None:
        if self._in_key or _KEY_BEGINS.search(line):
            self._in_key = not _KEY_ENDS.search(line)
            line = REDACTED + "\n"
        else:
            line = clean(line, self._redactor)
        self.tail = (self.tail + line)[-_TAIL:]
        kept = line.encode("utf-8", "replace")[: self._left_to_write].decode("utf-8", "ignore")
        self._left_to_write -= len(kept.encode("utf-8"))
        self._cut += len(line) - len(kept)
        if kept:
            self._file.write(kept)
            self._file.flush()


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""

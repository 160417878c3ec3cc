"""The text of a commit: its header, its message, and the trailers at its end."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.base.short_text import replace_surrogates

_TRAILER_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_TRAILER_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*): (.*)")
#: All that could end a line or steer a terminal; a tab and a newline are text.
_CONTROL = "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029]"
#: What git itself strips from the ends of a name.
_TRIMMED = " .,:;<>\"\\'\t"


class Author(Struct, frozen=True):
    """Whom a commit is by. No text in the two fields can break the commit's header."""

    name: str
    email: str

    def header_line(self, when: datetime) -> str:
        """``Name <email> epoch +0000``."""
        name = _clean_identity(self.name) or "unknown"
        return f"{name} <{_clean_identity(self.email).replace(' ', '')}> {_epoch_seconds(when)} +0000"

    def reflog_environment(self, when: datetime) -> dict[str, str]:
        """The environment variables from which git takes the same author for its reflog."""
        return {
            "GIT_COMMITTER_NAME": _clean_identity(self.name) or "unknown",
            "GIT_COMMITTER_EMAIL": _clean_identity(self.email).replace(" ", "") or "unknown",
            "GIT_COMMITTER_DATE": f"{_epoch_seconds(when)} +0000",
        }


def format_commit(
    tree: str,
    parents: Sequence[str],
    author: Author,
    when: datetime,
    message: str,
    trailers: Sequence[tuple[str, str]],
) -> bytes:
    """The content of a commit object. Raises ``UsageError`` for a message or trailer that cannot be stored."""
    author_line = author.header_line(when)
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {author_line}", f"committer {author_line}"]
    # A lone surrogate (half a character, or a byte of an odd file name) becomes "?": the message is UTF-8.
    return ("\n".join(lines) + "\n\n" + format_message(message, trailers)).encode("utf-8", "replace")


def format_message(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """``message`` with its trailers as the last paragraph, so that nothing in it can pass for one."""
    if "\0" in message:
        raise UsageError("a commit message cannot hold a NUL character")
    body = message.replace("\r\n", "\n").replace("\r", "\n")
    body = "\n".join(_replace_unseen(line).rstrip() for line in body.split("\n"))
    body = body.strip("\n")
    if not body.strip():
        raise UsageError("a commit needs a message")
    if not trailers:
        if parse_trailers(body):
            raise UsageError("the last lines of the commit message read like trailers")
        return body + "\n"
    lines = []
    for key, value in trailers:
        if not _TRAILER_KEY.fullmatch(key):
            raise UsageError(f"{key!r} is not a trailer's key")
        if (
            not value.strip()
            or value != value.strip()
            or (not value.isprintable() and re.search(rf"{_CONTROL}|\n", value))
        ):
            raise UsageError(f"the trailer {key} must be one line of text")
        lines.append(f"{key}: {value}")
    return body + "\n\n" + "\n".join(lines) + "\n"


def parse_trailers(message: str) -> dict[str, str]:
    """The trailers of a message: its last paragraph, if it is not the first and every line is ``Key: value``.

    The values of a key that is there more than once are joined by newlines.
    """
    head, separator, last = message.strip("\n").rpartition("\n\n")
    if not separator or not head.strip():
        return {}
    trailers: dict[str, str] = {}
    for line in last.split("\n"):
        match = _TRAILER_LINE.fullmatch(line)
        if match is None:
            return {}
        key, value = match.groups()
        trailers[key] = f"{trailers[key]}\n{value}" if key in trailers else value
    return trailers


def split_message(message: str) -> tuple[str, list[tuple[str, str]]]:
    """A message without its trailers, and these: what ``format_message`` joins."""
    trailers = [(key, line) for key, value in parse_trailers(message).items() for line in value.split("\n")]
    return message.strip("\n").rpartition("\n\n")[0] if trailers else message.strip("\n"), trailers


def _replace_unseen(line: str) -> str:
    """Without what could steer a terminal, turn the direction of the text, or hide in it."""
    if line.isascii() and line.isprintable():
        return line
    line = re.sub(_CONTROL, "\N{REPLACEMENT CHARACTER}", line)
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cf" else c for c in line)


def _clean_identity(text: str) -> str:
    text = text if text.isprintable() else re.sub(_CONTROL, " ", text)
    text = text.replace("\n", " ").replace("<", "").replace(">", "")
    return " ".join(replace_surrogates(text).split()).strip(_TRIMMED)


def _epoch_seconds(when: datetime) -> int:
    if when.tzinfo is None:
        raise UsageError("a commit's time needs an offset from UTC")
    seconds = int(when.timestamp())
    if seconds < 0:
        raise UsageError(f"git cannot store a commit of {when:%Y}")
    return seconds


def parse_parents(data: bytes) -> list[str]:
    """The ids of the parents that a commit object names: as git reads it, right after its tree and nowhere else."""
    lines = data.partition(b"\n\n")[0].split(b"\n")[1:]
    return [line[7:].decode("ascii") for line in takewhile(lambda line: line.startswith(b"parent "), lines)]

"""Cards of a past run about files that it could not take: no commit holds these, so a replay cannot come to them."""

from __future__ import annotations

from cleared.base.json_values import parse_json_object
from cleared.cards.kinds import BAD_FILE


def strip_unseen(data: bytes | None, run: str) -> bytes | None:
    """A file of the queue without such cards of this run; any other file as it is, None where nothing is left."""
    return b"".join(line for line in (data or b"").splitlines(keepends=True) if not _is_unseen(line, run)) or None


def count_unseen(data: bytes | None, run: str) -> int:
    """How many of them a file has."""
    return sum(_is_unseen(line, run) for line in (data or b"").splitlines())


def _is_unseen(line: bytes, run: str) -> bool:
    if BAD_FILE.name.encode() not in line or run.encode() not in line:
        return False
    said = parse_json_object(line)
    return (said.get("event"), said.get("kind"), said.get("run_id")) == ("open", BAD_FILE.name, run)

"""Lines of the task ledger as bytes: parsed with any order of keys and spacing, searched from the end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from typing import BinaryIO, Final

from cleared.base.json_values import parse_json_object
from cleared.jobs.tasks.task_definition import TASK_ID
from cleared.jobs.tasks.task_states import ALIASES, AWAITING, BLOCKED, WRITTEN_STATES, StatusLine

MAX_LINE: Final = 256 << 10
"""Bytes; a longer line is no record."""
_CHUNK: Final = 4 << 20
_PIECE: Final = 2 << 20
"""Bytes that are looked for one task in at a time; each piece and the one before it share the longest line."""
_IDS: Final = re.compile(rb'"id"\s*:\s*"(T-[0-9]{3,6})"')
_ESCAPED: Final = re.compile(rb"\\u00[2356][0-9dD]")
"""Letters of an id, or of its key, written as no program writes them that this one knows."""


def parse_line(line: bytes) -> StatusLine | None:
    """The record that a line is; None where it is none."""
    if len(line) > MAX_LINE or not line.lstrip().startswith(b"{"):
        return None
    value = parse_json_object(line)
    name, status = value.get("id"), value.get("status")
    if not isinstance(name, str) or not TASK_ID.fullmatch(name) or not isinstance(status, str):
        return None
    status = ALIASES.get(status, status)
    if status not in WRITTEN_STATES:
        return None
    delta, found = value.get("delta"), value.get("awaits")
    awaits = {key: str(text) for key, text in found.items()} if isinstance(found, dict) and status == BLOCKED else None
    return StatusLine(
        name,
        AWAITING if awaits else status,
        str(value.get("updated_at", "")),
        str(value.get("summary", "")),
        delta if isinstance(delta, dict) else None,
        awaits or None,
        value,
    )


def render_line(line: StatusLine) -> bytes:
    """A line as the host writes it: ASCII, so that every reader of JSON Lines takes it."""
    return (json.dumps(line.to_json_object(), ensure_ascii=True) + "\n").encode("ascii")


def find_newest(file: BinaryIO, start: int, end: int, known: Collection[str] = ()) -> dict[str, tuple[int, int]]:
    """Id → where the newest line of it is (offset, bytes), among the whole lines of ``file[start:end]``, but for those
    of ``known``.

    ``start`` and ``end`` lie right behind a newline. Read from the end; what holds only ids that came already is not
    looked into.
    """
    newest: dict[str, tuple[int, int]] = {}
    seen = {name.encode("ascii") for name in known}
    for offset, block in _read_blocks(file, start, end):
        ids, is_escaped = _IDS.findall(block), _ESCAPED.search(block) is not None
        if not is_escaped and seen.issuperset(ids) and len(ids) >= block.count(b"\n"):
            continue
        at = offset + len(block)
        for line in reversed(block.split(b"\n")[:-1]):
            at -= len(line) + 1
            named = _IDS.findall(line)
            if named and not (is_escaped and _ESCAPED.search(line)) and seen.issuperset(named):
                continue
            record = parse_line(line)
            if record is not None and record.id.encode("ascii") not in seen:
                newest[record.id] = (at, len(line))
                seen.add(record.id.encode("ascii"))
    return newest


def find_line(file: BinaryIO, end: int, task_id: str) -> tuple[int, int] | None:
    """Where the newest line of one task is, before ``end``: where its id is not found, nothing is looked into."""
    name = b'"%b"' % task_id.encode("ascii")
    piece = bytearray(_PIECE)
    at = end
    while at > 0:
        begin = max(0, at - _PIECE + MAX_LINE)
        file.seek(begin)
        held = file.readinto(piece)  # type: ignore[attr-defined]
        is_named = piece.rfind(name, 0, held) >= 0  # which takes a third of the time of ``in``
        if is_named or (b"\\" in piece and _ESCAPED.search(piece, 0, held)):
            start = begin if begin == 0 else piece.find(b"\n", 0, held) + 1 + begin
            found = _find_in_lines(file, start, min(end, begin + held), task_id)
            if found is not None:
                return found
        at = begin
    return None


def _find_in_lines(file: BinaryIO, start: int, end: int, task_id: str) -> tuple[int, int] | None:
    """The newest of the whole lines of ``file[start:end]`` that are of the task. ``start`` begins a line."""
    file.seek(start)
    lines = file.read(end - start).split(b"\n")
    at = end - len(lines.pop())
    for line in reversed(lines):
        at -= len(line) + 1
        record = parse_line(line) if task_id.encode("ascii") in line or _ESCAPED.search(line) else None
        if record is not None and record.id == task_id:
            return at, len(line)
    return None


def _read_blocks(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Pieces of whole lines, the last one first, each with its offset."""
    rest = b""  # the beginning of the lines that were read last belongs to a line that starts before
    at = end
    while at > start:
        begin = max(start, at - _CHUNK)
        file.seek(begin)
        block = file.read(at - begin) + rest
        at, rest = begin, b""
        if begin > start:
            cut = block.find(b"\n") + 1
            if cut == 0 or cut == len(block):
                if len(block) > 64 * MAX_LINE and cut == 0:
                    continue  # no line is that long: what it belongs to is passed over
                rest = block
                continue
            rest, block = block[:cut], block[cut:]
            yield begin + cut, block
        else:
            yield begin, block


def end_of_lines(file: BinaryIO) -> int:
    """Where the last whole line ends: behind its newline."""
    at = file.seek(0, os.SEEK_END)
    while at > 0:
        begin = max(0, at - 65_536)
        file.seek(begin)
        newline = file.read(at - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        at = begin
    return 0

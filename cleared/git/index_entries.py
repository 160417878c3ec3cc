"""The entries of git's index as bytes: some of them replaced, without starting a git.

Versions 2 and 3 of the format are read, which git writes unless it is told otherwise. Whatever else there is (names
packed by their beginnings, an index in two files, a sparse or watched one, a damaged one) is left to git.
"""

from __future__ import annotations

import hashlib
import operator
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cleared.git.object_reader import HashName

Entries = Mapping[str, tuple[str, str] | None]
"""Path → ``(mode, id)`` that the index is to have for it, or ``None``: no entry."""

_HEADER: Final = struct.Struct(">4sII")
_EMPTY: Final = _HEADER.pack(b"DIRC", 2, 0)
_STAT_SIZE: Final = 40
_EXTENDED: Final = 0x40
_STAGE: Final = 0x30
"""Bits of an entry that are set where it is one side of what could not be joined."""
_MAX_LENGTH: Final = 0xFFF
_KEPT: Final = b"REUC"
"""How conflicts were resolved: what the user may still ask for."""
_DERIVED: Final = (b"TREE", b"EOIE", b"IEOT")
"""What git makes again from the entries."""


def replace_entries(index: bytes | None, entries: Entries, hash_name: HashName) -> bytes | None:
    """The index (``None``: none yet) with these entries, as ``git update-index --replace --index-info`` makes it; None
    where git has to do it."""
    size = hashlib.new(hash_name).digest_size
    data = _EMPTY if index is None else index[:-size]
    if index is not None and index[-size:] != hashlib.new(hash_name, data).digest():
        return None
    made = {encode_name(path): _make_entry(encode_name(path), *e) for path, e in entries.items() if e is not None}
    known = _read_index(data, size)
    if known is None or not all(map(operator.le, known.names, known.names[1:])):
        return None
    names, starts = known.names, known.starts
    # Those that are ordered anew go; and as an entry makes place for a folder of its name, and a folder for an entry,
    # those with the name of a folder of what is made, or in one of its name.
    named = {*map(encode_name, entries)}
    named |= {name[:at] for name in made for at, character in enumerate(name) if character == ord("/")}
    dropped = {at for name in named for at in range(bisect_left(names, name), bisect_right(names, name))}
    for name in made:
        dropped.update(range(bisect_left(names, name + b"/"), bisect_left(names, name + b"0")))
    edits = [*((at, 1, b"", b"") for at in dropped), *((bisect_left(names, n), 0, n, e) for n, e in made.items())]
    parts, begin = [_HEADER.pack(b"DIRC", known.version, len(names) - len(dropped) + len(made))], _HEADER.size
    for at, is_dropped, _, entry in sorted(edits):
        parts += [data[begin : starts[at]], entry]
        begin = starts[at + is_dropped]
    kept = (extension for name, extension in known.extensions if name == _KEPT)
    text = b"".join([*parts, data[begin : starts[-1]], *kept])
    return text + hashlib.new(hash_name, text).digest()


def find_unmerged(index: bytes, hash_name: HashName) -> list[str] | None:
    """The names of what git could not join, as the index has them; None where git has to be asked."""
    size = hashlib.new(hash_name).digest_size
    known = _read_index(index[:-size], size)
    return None if known is None else sorted(name.decode("utf-8", "surrogateescape") for name in set(known.unmerged))


class _Index(Struct):
    """What an index has, without its checksum. ``starts``: where each entry begins, and where the last one ends;
    ``unmerged``: the names of those that could not be joined; ``extensions``: the name and the bytes of each."""

    version: int
    names: list[bytes]
    starts: list[int]
    unmerged: list[bytes]
    extensions: list[tuple[bytes, bytes]]


def _read_index(data: bytes, size: int) -> _Index | None:
    """What an index has; None where it is damaged, or has what is not known here, such as being in two files, of which
    the other one has the rest. ``size``: the bytes of an id."""
    try:
        magic, version, count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3):
            return None
        names, starts, unmerged = _find_entries(data, count, version, size)
        return _Index(version, names, starts, unmerged, _read_extensions(data, starts[-1]))
    except (struct.error, ValueError, IndexError):
        return None


def _find_entries(data: bytes, count: int, version: int, size: int) -> tuple[list[bytes], list[int], list[bytes]]:
    """The name of each entry, where it begins, with where the last one ends, and the names of those that could not be
    joined. Raises ``ValueError`` or ``IndexError`` where it is not one."""
    at, names, starts, unmerged = _HEADER.size, list[bytes](), list[int](), list[bytes]()
    for _ in range(count):
        flags = at + _STAT_SIZE + size
        bits = data[flags]
        is_extended = bits & _EXTENDED
        begin = flags + (4 if is_extended else 2)
        end = data.index(b"\0", begin)
        if end == begin or (is_extended and version == 2):
            raise ValueError("not an entry")
        names.append(data[begin:end])
        starts.append(at)
        if bits & _STAGE:
            unmerged.append(names[-1])
        at += ((end - at) // 8 + 1) * 8  # as ``_pad``: of many entries the calls take half the time
    if at > len(data):
        raise ValueError("not an entry")
    return names, [*starts, at], unmerged


def _read_extensions(data: bytes, at: int) -> list[tuple[bytes, bytes]]:
    """Raises ``ValueError`` or ``struct.error`` where one of them is not known, as it may say more of the entries."""
    extensions = list[tuple[bytes, bytes]]()
    while at < len(data):
        name, length = struct.unpack_from(">4sI", data, at)
        if at + 8 + length > len(data) or name not in (_KEPT, *_DERIVED):
            raise ValueError("not an extension that is known")
        extensions.append((name, data[at : at + 8 + length]))
        at += 8 + length
    return extensions


def _make_entry(name: bytes, mode: str, oid: str) -> bytes:
    """With no time and size of a file: git looks at the file itself."""
    stat = bytes(24) + int(mode, 8).to_bytes(4, "big") + bytes(12)
    entry = stat + bytes.fromhex(oid) + min(len(name), _MAX_LENGTH).to_bytes(2, "big") + name
    return entry.ljust(_pad(len(entry)), b"\0")


def _pad(length: int) -> int:
    """The bytes that an entry takes: a multiple of 8, with at least one NUL behind its name."""
    return (length // 8 + 1) * 8


def encode_name(name: str) -> bytes:
    """A file name as git stores it: UTF-8, or the bytes that were not."""
    return name.encode("utf-8", "surrogateescape")

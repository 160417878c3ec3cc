"""The entries of git's index as bytes: some of them replaced, without starting a git.

Versions 2 and 3 of the format are read, which git writes unless it is told otherwise. Whatever else there is (names
packed by their beginnings, an index in two files, a sparse or watched one, a damaged one) is left to git.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from cleared.git.object_reader import HashName

Entries = Mapping[str, tuple[str, str] | None]
"""Path → ``(mode, id)`` that the index is to have for it, or ``None``: no entry."""

_HEADER: Final = struct.Struct(">4sII")
_EMPTY: Final = _HEADER.pack(b"DIRC", 2, 0)
_STAT_SIZE: Final = 40
_EXTENDED: Final = 0x40
_STAGE: Final = 0x30
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
    replaced = {encode_name(path) for path in entries}
    made = [_make_entry(encode_name(path), *entry) for path, entry in entries.items() if entry is not None]
    names = [name for name, _, _ in made]
    parents = {name[:at] for name in names for at, character in enumerate(name) if character == ord("/")}
    below = tuple(name + b"/" for name in names)
    try:
        magic, version, count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3):
            return None
        found = list(_read_entries(data, count, version, size))
        end = _HEADER.size + sum(len(entry) for _, _, entry in found)
        extensions = list(_read_extensions(data, end))
    except (struct.error, ValueError, IndexError):
        return None
    if any(name not in (_KEPT, *_DERIVED) for name, _ in extensions):
        return None
    # An entry makes place for a folder of its name, and a folder for an entry.
    kept = [each for each in found if not (each[0] in replaced or each[0] in parents or each[0].startswith(below))]
    kept = sorted([*kept, *made])
    parts = [_HEADER.pack(b"DIRC", version, len(kept)), *(entry for _, _, entry in kept)]
    text = b"".join([*parts, *(extension for name, extension in extensions if name == _KEPT)])
    return text + hashlib.new(hash_name, text).digest()


def _read_entries(data: bytes, count: int, version: int, size: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, stage and bytes of each entry. Raises ``ValueError`` or ``IndexError`` where it is not one."""
    at = _HEADER.size
    for _ in range(count):
        flags = at + _STAT_SIZE + size
        is_extended = data[flags] & _EXTENDED
        begin = flags + (4 if is_extended else 2)
        end = data.index(b"\0", begin)
        after = at + _pad(end - at)
        if after > len(data) or end == begin or (is_extended and version == 2):
            raise ValueError("not an entry")
        yield data[begin:end], data[flags] & _STAGE, data[at:after]
        at = after


def _read_extensions(data: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    while at < len(data):
        name, length = struct.unpack_from(">4sI", data, at)
        if at + 8 + length > len(data):
            raise ValueError("not an extension")
        yield name, data[at : at + 8 + length]
        at += 8 + length


def _make_entry(name: bytes, mode: str, oid: str) -> tuple[bytes, int, bytes]:
    """With no time and size of a file: git looks at the file itself."""
    stat = bytes(24) + int(mode, 8).to_bytes(4, "big") + bytes(12)
    entry = stat + bytes.fromhex(oid) + min(len(name), _MAX_LENGTH).to_bytes(2, "big") + name
    return name, 0, entry.ljust(_pad(len(entry)), b"\0")


def _pad(length: int) -> int:
    """The bytes that an entry takes: a multiple of 8, with at least one NUL behind its name."""
    return (length // 8 + 1) * 8


def encode_name(name: str) -> bytes:
    """A file name as git stores it: UTF-8, or the bytes that were not."""
    return name.encode("utf-8", "surrogateescape")

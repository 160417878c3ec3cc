"""Reading objects out of git's packs, without a process for it.

What is read is believed only where its hash is its id; anything that cannot be read so is left to git itself: packs of
another version, large objects, damage.
"""

from __future__ import annotations

import bisect
import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct

INDEX_START: Final = b"\377tOc\0\0\0\2"
_FANOUT: Final = len(INDEX_START)
_NAMES: Final = _FANOUT + 256 * 4
KINDS: Final = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_BY_OFFSET, _BY_NAME = 6, 7
"""Entries that hold what differs from another one of the pack."""
LARGE_OFFSET: Final = 1 << 31
_FEW: Final = 512
"""Objects of a small pack at most."""
_MOST_PACKS: Final = 40
"""That are open here, with two files each: the largest; git reads the others. There are a few dozen, unless nobody
joins them."""
_MAX_DEPTH: Final = 200
"""Git makes chains of fifty."""
_MOST_OVERHEAD: Final = 256
"""Bytes that a packed object is longer than its content at most, beside one of 256: what cannot be packed is stored in
blocks, of a few thousand bytes at least."""
_DAMAGE: Final = (ValueError, IndexError, struct.error, zlib.error, OSError)


class _Pack(Struct, frozen=True):
    """One pack, mapped into memory with its index."""

    name: str
    index: mmap.mmap
    data: mmap.mmap
    count: int
    width: int
    """Bytes of an id."""

    def list_offsets(self) -> Iterator[tuple[bytes, int]]:
        """Each object's id, and where its entry begins; of a pack with few objects."""
        offsets = struct.unpack_from(f">{self.count}I", self.index, _NAMES + self.count * (self.width + 4))
        for at, offset in enumerate(offsets):
            yield self._read_name(at), self._read_large_offset(offset) if offset & LARGE_OFFSET else offset

    def find_offset(self, name: bytes) -> int | None:
        """Where the entry of an object begins; None where the pack has none."""
        first = struct.unpack_from(">I", self.index, _FANOUT + 4 * (name[0] - 1))[0] if name[0] else 0
        end = struct.unpack_from(">I", self.index, _FANOUT + 4 * name[0])[0]
        at = bisect.bisect_left(range(self.count), name, first, end, key=self._read_name)
        if at >= end or self._read_name(at) != name:
            return None
        offsets = _NAMES + self.count * (self.width + 4)
        offset: int = struct.unpack_from(">I", self.index, offsets + 4 * at)[0]
        return self._read_large_offset(offset) if offset & LARGE_OFFSET else offset

    def read_entry(self, offset: int, most: int) -> tuple[str, bytes]:
        """Kind and content. Raises one of ``_DAMAGE`` for one that is larger than ``most`` or cannot be read."""
        deltas: list[bytes] = []
        while True:
            kind, size, at = self._read_header(offset)
            base: int | None = None
            if kind == _BY_OFFSET:
                distance, at = self._read_distance(at)
                base = offset - distance
            elif kind == _BY_NAME:
                base, at = self.find_offset(self.data[at : at + self.width]), at + self.width
            if size > most or len(deltas) > _MAX_DEPTH:
                raise ValueError("too large")
            # Of what is not used a copy is made each time: the rest of the pack for each object of it.
            packed = memoryview(self.data)[at : at + size + (size >> 8) + _MOST_OVERHEAD]
            content = zlib.decompressobj().decompress(packed, size or 1)
            if len(content) != size:
                raise ValueError("cut")
            if kind in KINDS:
                break
            if base is None or not 0 < base < len(self.data) or kind not in (_BY_OFFSET, _BY_NAME):
                raise ValueError("no such base")
            deltas.append(content)
            offset = base
        for delta in reversed(deltas):
            content = _apply_delta(content, delta, most)
        return KINDS[kind], content

    def close(self) -> None:
        """Unmap it."""
        for each in (self.index, self.data):
            with suppress(BufferError):  # something is being read from it: it goes with the last who does
                each.close()

    def _read_large_offset(self, offset: int) -> int:
        place = _NAMES + self.count * (self.width + 8) + 8 * (offset ^ LARGE_OFFSET)
        return int(struct.unpack_from(">Q", self.index, place)[0])

    def _read_name(self, at: int) -> bytes:
        start = _NAMES + at * self.width
        return self.index[start : start + self.width]

    def _read_header(self, at: int) -> tuple[int, int, int]:
        byte = self.data[at]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 128:
            at += 1
            byte = self.data[at]
            size |= (byte & 127) << shift
            shift += 7
        return kind, size, at + 1

    def _read_distance(self, at: int) -> tuple[int, int]:
        byte = self.data[at]
        distance = byte & 127
        while byte & 128:
            at += 1
            byte = self.data[at]
            distance = (distance + 1 << 7) | (byte & 127)
        return distance, at + 1


class PackReader:
    """The packs of one repository. ``folder``: git's ``objects``. Not for two threads at once."""

    def __init__(self, folder: str) -> None:
        self._folder = f"{folder}/pack"
        self._packs: dict[str, _Pack | None] = {}
        self._near: dict[bytes, tuple[_Pack, int]] = {}
        """Where the objects of small packs are: each commit has one, until they are joined."""
        self._large: list[_Pack] = []
        self._listed: object = None

    def read(self, oid: str, most: int) -> tuple[str, bytes] | None:
        """Kind and content of an object, where a pack has it and it is not larger than ``most`` bytes; else None."""
        with suppress(*_DAMAGE):
            for pack, offset in self._find_places(oid):
                with suppress(*_DAMAGE):
                    kind, content = pack.read_entry(offset, most)
                    digest = hashlib.new("sha1" if len(oid) == 40 else "sha256", usedforsecurity=False)
                    digest.update(b"%s %d\0" % (kind.encode("ascii"), len(content)))
                    digest.update(content)
                    if digest.hexdigest() == oid:
                        return kind, content
        return None

    def find_pack(self, oid: str) -> str | None:
        """The name of the pack from which an object would be read first."""
        with suppress(*_DAMAGE):
            return next((pack.name for pack, _ in self._find_places(oid)), None)
        return None

    def _find_places(self, oid: str) -> Iterator[tuple[_Pack, int]]:
        self._list_packs(len(oid) // 2)
        name = bytes.fromhex(oid)
        if (place := self._near.get(name)) is not None:
            yield place
        for pack in self._large:
            if (offset := pack.find_offset(name)) is not None:
                yield pack, offset

    def close(self) -> None:
        """Let go of all packs; the next read opens them again."""
        for pack in self._packs.values():
            if pack is not None:
                pack.close()
        self._packs, self._near, self._large, self._listed = {}, {}, [], None

    def _list_packs(self, width: int) -> None:
        """Open the packs that came, and close those that went, since this was called last."""
        try:
            status = os.stat(self._folder)  # noqa: PTH116
            listed = (status.st_ino, status.st_mtime_ns)
            if listed == self._listed or os.name == "nt":  # an open file cannot be removed there, not even by git
                return
            names = {name.removesuffix(".idx") for name in os.listdir(self._folder) if name.endswith(".idx")}  # noqa: PTH208
        except OSError:
            return
        if len(names) > _MOST_PACKS:
            names = set(sorted(names, key=self._measure_index)[-_MOST_PACKS:])
        for name in [each for each in self._packs if each not in names]:
            pack = self._packs.pop(name)
            if pack is not None:
                pack.close()
        for name in sorted(names - self._packs.keys()):
            self._packs[name] = _open_pack(self._folder, name, width)
        found = [pack for pack in self._packs.values() if pack is not None]
        self._large = [pack for pack in found if pack.count > _FEW]
        self._near = {}
        for pack in found:
            if pack.count <= _FEW:
                with suppress(*_DAMAGE):
                    self._near.update((each, (pack, offset)) for each, offset in pack.list_offsets())
        self._listed = listed

    def _measure_index(self, name: str) -> int:
        with suppress(OSError):
            return os.stat(f"{self._folder}/{name}.idx").st_size  # noqa: PTH116
        return 0


def _open_pack(folder: str, name: str, width: int) -> _Pack | None:
    maps: list[mmap.mmap] = []
    try:
        for suffix in (".idx", ".pack"):
            with open(f"{folder}/{name}{suffix}", "rb") as file:  # noqa: PTH123
                maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        index, data = maps
        count = int(struct.unpack_from(">I", index, _FANOUT + 255 * 4)[0])
        if index[:_FANOUT] == INDEX_START and data[:4] == b"PACK":
            return _Pack(name, index, data, count, width)
    except _DAMAGE:
        pass
    for each in maps:
        each.close()
    return None


def _apply_delta(base: bytes, delta: bytes, most: int) -> bytes:
    _, at = _read_size(delta, 0)
    size, at = _read_size(delta, at)
    if size > most:
        raise ValueError("too large")
    parts: list[bytes] = []
    end = len(delta)
    while at < end:
        order = delta[at]
        at += 1
        if order & 128:
            # One step for each byte, no loop: a month that grew row by row has thousands of these.
            offset = length = 0
            if order & 1:
                offset, at = delta[at], at + 1
            if order & 2:
                offset, at = offset | delta[at] << 8, at + 1
            if order & 4:
                offset, at = offset | delta[at] << 16, at + 1
            if order & 8:
                offset, at = offset | delta[at] << 24, at + 1
            if order & 16:
                length, at = delta[at], at + 1
            if order & 32:
                length, at = length | delta[at] << 8, at + 1
            if order & 64:
                length, at = length | delta[at] << 16, at + 1
            parts.append(base[offset : offset + (length or 0x10000)])
        else:
            parts.append(delta[at : at + order])
            at += order
    return b"".join(parts)


def _read_size(data: bytes, at: int) -> tuple[int, int]:
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return size, at

"""Writing objects as one of git's packs, with its index: two files to make durable, however many objects there are.

Both are of version 2 (``gitformat-pack``), and each object is whole. Git joins packs later, and then keeps of similar
objects only the difference.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import IO, Final

from cleared.git.object_reader import HashName
from cleared.git.pack_reader import INDEX_START, KINDS, LARGE_OFFSET

_KIND_NUMBERS: Final = {kind.encode("ascii"): number for number, kind in KINDS.items()}

_MOST_OFFSET: Final = LARGE_OFFSET - 1
"""What four bytes hold beside the bit which says that the offset stands among those of eight."""

_SMALL: Final = 1 << 12
_SMALL_PACKER: Final = (12, 5)
"""Window and memory for content of at most so many bytes, such as trees: the usual ones take a quarter of a megabyte
for each object."""

_Place = tuple[bytes, int, int]
"""An object's id, the CRC-32 of its entry, and where that begins."""


def write_pack(file: IO[bytes], objects: Mapping[str, tuple[bytes, bytes]], hash_name: HashName) -> tuple[str, bytes]:
    """Write a pack of these objects (kind and content by id): its checksum, which names it, and its index."""
    checksum, at = hashlib.new(hash_name, usedforsecurity=False), 0

    def put(data: bytes) -> None:
        nonlocal at
        checksum.update(data)
        file.write(data)
        at += len(data)

    put(b"PACK" + struct.pack(">II", 2, len(objects)))
    places: list[_Place] = []
    for oid, (kind, content) in objects.items():
        begin, crc = at, 0
        packer = zlib.compressobj(1, zlib.DEFLATED, *(_SMALL_PACKER if len(content) <= _SMALL else ()))
        for part in (_encode_header(_KIND_NUMBERS[kind], len(content)), packer.compress(content), packer.flush()):
            crc = zlib.crc32(part, crc)
            put(part)
        places.append((bytes.fromhex(oid), crc, begin))
    file.write(checksum.digest())
    return checksum.hexdigest(), _encode_index(sorted(places), checksum.digest(), hash_name)


def _encode_header(kind: int, size: int) -> bytes:
    """The kind, and the size in groups of seven bits, after one of four."""
    encoded, byte, size = bytearray(), kind << 4 | size & 15, size >> 4
    while size:
        encoded.append(byte | 128)
        byte, size = size & 127, size >> 7
    encoded.append(byte)
    return bytes(encoded)


def _encode_index(places: Sequence[_Place], checksum: bytes, hash_name: HashName) -> bytes:
    counts = [0] * 256
    for name, *_ in places:
        counts[name[0]] += 1
    large = [begin for *_, begin in places if begin > _MOST_OFFSET]
    numbers = iter(range(len(large)))
    offsets = [begin if begin <= _MOST_OFFSET else LARGE_OFFSET | next(numbers) for *_, begin in places]
    data = b"".join(
        (
            INDEX_START,
            struct.pack(">256I", *accumulate(counts)),
            *(name for name, *_ in places),
            struct.pack(f">{len(places)}I", *(crc for _, crc, _ in places)),
            struct.pack(f">{len(places)}I", *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return data + hashlib.new(hash_name, data, usedforsecurity=False).digest()

"""Landlock rules: which files a process may touch, and for a worker those that it needs to start.

Source: the kernel's ``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Literal

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
# Rights of the file system known to each ABI: 13 at first, then REFER, TRUNCATE, IOCTL_DEV.
_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
TRUNCATES = 3
"""The first ABI that also confines what truncates files."""
PORTS = 4
"""The first ABI that also confines TCP ports."""
SCOPES = 6
"""The first ABI that also confines signals and abstract sockets."""
ZONE_FOLDER = Path("/usr/share/zoneinfo")
_LIBRARIES = ("/lib64", "/lib", "/usr/lib64", "/usr/lib")
_LIBRARY_DIRS = (
    *_LIBRARIES,
    *(f"{root}/{triplet}" for root in ("/lib", "/usr/lib") for triplet in ("x86_64-linux-gnu", "aarch64-linux-gnu")),
)
_PT_DYNAMIC, _PT_INTERP, _PT_LOAD = 2, 3, 1
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 1, 5, 10


def ruleset_attributes(abi: int, *, tcp: Literal["none", "connect", "all"] = "none") -> bytes:
    """``struct landlock_ruleset_attr``: denies all that this kernel can deny, unless a rule allows it, and of TCP all
    but ``tcp``."""
    attr = struct.pack("<Q", _known_rights(abi))
    if abi >= PORTS:
        attr += struct.pack("<Q", {"none": 0b11, "connect": 0b01, "all": 0}[tcp])  # bind, connect
    if abi >= SCOPES:
        attr += struct.pack("<Q", 0b11)  # abstract Unix sockets and signals to the outside
    return attr


def worker_rules(binary: Path, *, wide: bool) -> list[tuple[Path, int]]:
    """Path and rights of each file that a dynamic ELF ``binary`` needs to run; ``wide`` allows whole library folders.

    Raises ``ValueError`` or ``OSError`` where it is not such a binary.
    """
    interpreter, needed = _read_linkage(binary)
    allowed = [(binary, _EXECUTE | _READ_FILE)]
    if interpreter is not None:
        allowed.append((interpreter, _EXECUTE | _READ_FILE))
        allowed.append((Path("/etc/ld.so.cache"), _READ_FILE))
    if wide:
        allowed += [(Path(root), _READ_FILE | _READ_DIR) for root in _LIBRARIES]
    else:
        dirs = [*([interpreter.resolve().parent] if interpreter else []), *map(Path, _LIBRARY_DIRS)]
        for name in needed:
            paths = [path for path in (folder / name for folder in dirs) if path.is_file()]
            if not paths:
                raise ValueError(f"{name} is in none of the usual places")
            allowed += [(path, _READ_FILE) for path in paths]
    allowed.append((ZONE_FOLDER, _READ_FILE | _READ_DIR))
    return [(path, rights) for path, rights in allowed if path.exists()]


def list_rule(path: Path) -> tuple[Path, int]:
    """A rule that allows listing a folder and those below it, but reading no file."""
    return path, _READ_DIR


def open_folder_rule(path: Path) -> tuple[Path, int]:
    """A rule that allows reading all below a folder, and executing nothing of it."""
    return path, _READ_FILE | _READ_DIR


def read_rule(path: Path) -> tuple[Path, int]:
    """A rule that allows reading and executing a file, or all below a folder."""
    return path, (_EXECUTE | _READ_FILE) if path.is_file() else (_EXECUTE | _READ_FILE | _READ_DIR)


def allows_reading(rule: tuple[Path, int]) -> bool:
    """Whether it opens files, and does not only list folders."""
    return bool(rule[1] & _READ_FILE)


def narrow_rule(rule: tuple[Path, int], path: Path) -> tuple[Path, int]:
    """The same rule for one file, or all below one folder, of its own."""
    return path, rule[1] if path.is_dir() else rule[1] & _FILE_RIGHTS


def write_rule(path: Path, abi: int) -> tuple[Path, int]:
    """A rule that allows everything with a file, or below a folder, but making or controlling devices."""
    rights = _known_rights(abi) & ~(1 << 6 | 1 << 11 | _IOCTL_DEV)
    return path, rights if path.is_dir() else rights & _FILE_RIGHTS


def terminal_rule(path: Path, abi: int) -> tuple[Path, int]:
    """A rule that allows using a device, or those in a folder, as terminals are used."""
    rights = _READ_FILE | _WRITE_FILE | _IOCTL_DEV | (_READ_DIR if path.is_dir() else 0)
    return path, rights & _known_rights(abi)


def open_rule(path: Path, rights: int) -> tuple[int, bytes]:
    """An ``O_PATH`` descriptor and the ``struct landlock_path_beneath_attr`` that names it."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return fd, struct.pack("<Qi", rights, fd)


def _known_rights(abi: int) -> int:
    return (1 << _FS_RIGHTS.get(abi, 16)) - 1


def _read_linkage(binary: Path) -> tuple[Path | None, list[str]]:
    """The dynamic loader and the names of the libraries of a 64-bit little-endian ELF file."""
    with binary.open("rb") as file:

        def read_at(offset: int, size: int) -> bytes:
            file.seek(offset)
            data = file.read(size)
            if len(data) != size or size > 1 << 20:
                raise ValueError(f"{binary} is not a complete ELF file")
            return data

        head = read_at(0, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{binary} is not a 64-bit ELF program")
        (table,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        segments = [struct.unpack_from("<IIQQQQQ", read_at(table + size * i, size)) for i in range(count)]
        interpreter: Path | None = None
        dynamic: list[tuple[int, int]] = []
        for kind, _, offset, _, _, length, _ in segments:
            if kind == _PT_INTERP:
                interpreter = Path(os.fsdecode(read_at(offset, length).rstrip(b"\0")))
            elif kind == _PT_DYNAMIC:
                dynamic = list(struct.iter_unpack("<qQ", read_at(offset, length // 16 * 16)))
        tags = dict(dynamic)
        if _DT_STRTAB not in tags:
            return interpreter, []
        address = tags[_DT_STRTAB]
        names = b""
        for kind, _, offset, start, _, length, _ in segments:
            if kind == _PT_LOAD and start <= address < start + length:
                names = read_at(offset + address - start, tags.get(_DT_STRSZ, 0))
        needed = [os.fsdecode(names[at : names.index(b"\0", at)]) for tag, at in dynamic if tag == _DT_NEEDED]
        return interpreter, needed

"""What a commit of ours makes durable, in plain steps and in the same order: it decides and looks at nothing."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

from cleared.base.safe_files import sync_files

TREES = 7
"""Folders on the way to the files of a decision, of which a commit writes the trees anew."""


def write_durably(folder: Path, files: dict[Path, bytes], number: bytes) -> None:
    """Put the files into place as a commit does. ``folder``: git's; ``number`` tells commits apart."""
    objects = [*files.values(), *(b"%d tree " % n + number for n in range(TREES)), b"commit " + number]
    names = [hashlib.sha1(data, usedforsecurity=False).digest() for data in objects]
    pack = b"".join(zlib.compress(data, 1) for data in objects)
    place = folder / "objects/pack" / f"pack-{names[-1].hex()}"
    _put({place.with_suffix(".pack"): pack, place.with_suffix(".idx"): bytes(1_024) + b"".join(sorted(names))})
    index = (folder / "index").read_bytes()
    _put({folder / "intent": number, folder / "index": index})
    _put({folder / "refs/heads/main": number})
    for log in (folder / "logs/HEAD", folder / "logs/refs/heads/main"):
        with log.open("ab") as file:
            file.write(number)
            os.fsync(file.fileno())
    _put(files)
    (folder / "intent").unlink()


def _put(files: dict[Path, bytes]) -> None:
    """Put files into place, whole and durable."""
    staged = {}
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        staged[path] = path.with_name(f"{path.name}.new")
        staged[path].write_bytes(data)
    sync_files(list(staged.values()))
    for path, temporary in staged.items():
        temporary.replace(path)
    sync_files(sorted({path.parent for path in files}))

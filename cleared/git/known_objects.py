"""Blobs of git's store that were read right before: a check reads those anew that came since, or whose files changed.

A loose object is known by the state of its file, a packed one by those of all packs: git puts packs together now and
then. An eighth is read again each time, as of files (``known_files``). ``cleared doctor`` reads the whole store.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from cleared.git.known_files import FileState, describe_state, is_settled, skip_turn
from cleared.git.repository import Repository
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "objects"
_PACKED: Final[FileState] = ()
_SUFFIXES: Final = (".pack", ".idx")


class _Record(Struct, frozen=True):
    """``packs``: their states by file name. ``blobs``: states of loose files by id, none of those in packs."""

    packs: dict[str, FileState] = {}
    blobs: dict[str, FileState] = {}


class KnownObjects:
    """The blobs that are known of one repository. ``sealed``: where that is kept."""

    def __init__(self, repo: Repository, sealed: SealedFiles) -> None:
        self._sealed = sealed
        self._folder = f"{repo.common_dir}/objects"
        data = sealed.read(_NAME)
        known = msgspec.msgpack.decode(data, type=_Record) if data is not None else _Record()
        self._packs = self._list_packs()
        stand = self._packs is not None and known.packs.items() <= self._packs.items()
        blobs = known.blobs if stand else {oid: state for oid, state in known.blobs.items() if state != _PACKED}
        self._blobs = skip_turn(blobs)

    def find_unknown(self, oids: Sequence[str]) -> list[str]:
        """Those that are to be read."""
        return [oid for oid in oids if not self._is_known(oid)]

    def note_right(self, oids: Sequence[str]) -> None:
        """Keep that these were read, and are what their ids say."""
        for oid in oids:
            self._blobs.pop(oid, None)  # what was read last stands at the end
            status = self._find_loose(oid)
            if status is not None and is_settled(status):
                self._blobs[oid] = describe_state(status)
            elif status is None and self._packs is not None:
                self._blobs[oid] = _PACKED
        if oids:
            self._sealed.write(_NAME, msgspec.msgpack.encode(_Record(self._packs or {}, self._blobs)))

    def _is_known(self, oid: str) -> bool:
        state = self._blobs.get(oid)
        if state:
            status = self._find_loose(oid)
            return status is not None and describe_state(status) == state
        return state == _PACKED

    def _find_loose(self, oid: str) -> os.stat_result | None:
        with suppress(OSError):
            return os.lstat(f"{self._folder}/{oid[:2]}/{oid[2:]}")
        return None

    def _list_packs(self) -> dict[str, FileState] | None:
        """The packs and their indexes; None where what they hold may lie elsewhere, or they are just being made."""
        packs = {}
        try:
            if os.path.lexists(f"{self._folder}/info/alternates"):
                return None
            with os.scandir(f"{self._folder}/pack") as files:
                for file in files:
                    if file.name.endswith(_SUFFIXES):
                        status = file.stat(follow_symlinks=False)
                        if not is_settled(status):
                            return None
                        packs[file.name] = describe_state(status)
        except OSError:
            return None
        return packs

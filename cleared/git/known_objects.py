"""Blobs of git's store that were read right before: a check reads those anew that came since, or whose files changed.

A loose object is known by the state of its file, a packed one by those of its pack. Some are read again each time, as
of files (``known_files``). ``cleared doctor`` reads the whole store.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from cleared.git.known_files import FileState, describe_state, settle_time, skip_turn
from cleared.git.repository import Repository
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "objects"
_SUFFIXES: Final = (".pack", ".idx")


class _Record(Struct, frozen=True):
    """``packs``: the states of each pack and its index. ``blobs``: by id, the pack, or of a loose one its state."""

    packs: dict[str, list[FileState]] = {}
    blobs: dict[str, str | FileState] = {}


class KnownObjects:
    """The blobs that are known of one repository. ``sealed``: where that is kept."""

    def __init__(self, repo: Repository, sealed: SealedFiles) -> None:
        self._sealed, self._objects = sealed, repo.objects
        self._folder = f"{repo.common_dir}/objects"
        data = sealed.read(_NAME)
        known = msgspec.msgpack.decode(data, type=_Record) if data is not None else _Record()
        self._packs = {name: states for name, states in known.packs.items() if self._describe_pack(name) == states}
        stands = {
            oid: holder for oid, holder in known.blobs.items() if not isinstance(holder, str) or holder in self._packs
        }
        self._blobs = skip_turn(stands)
        self._settled = settle_time()

    def find_unknown(self, oids: Sequence[str]) -> list[str]:
        """Those that are to be read."""
        return [oid for oid in oids if not self._is_known(oid)]

    def note_right(self, oids: Sequence[str]) -> None:
        """Keep that these were read, and are what their ids say."""
        for oid in oids:
            self._blobs.pop(oid, None)  # what was read last stands at the end
            status = self._find_loose(oid)
            pack = self._objects.find_pack(oid) if status is None else None
            if status is not None and max(status.st_ctime_ns, status.st_mtime_ns) < self._settled:
                self._blobs[oid] = describe_state(status)
            elif pack is not None and (states := self._describe_pack(pack)):
                self._blobs[oid] = pack
                self._packs[pack] = states
        if oids:
            self._sealed.write(_NAME, msgspec.msgpack.encode(_Record(self._packs, self._blobs)))

    def _is_known(self, oid: str) -> bool:
        holder = self._blobs.get(oid)
        if isinstance(holder, str):
            return True
        status = self._find_loose(oid) if holder is not None else None
        return status is not None and describe_state(status) == holder

    def _find_loose(self, oid: str) -> os.stat_result | None:
        with suppress(OSError):
            return os.lstat(f"{self._folder}/{oid[:2]}/{oid[2:]}")
        return None

    def _describe_pack(self, name: str) -> list[FileState]:
        """What there is of it now. Git never writes into a pack: one that was made just now needs no time to settle."""
        with suppress(OSError):
            return [describe_state(os.lstat(f"{self._folder}/pack/{name}{suffix}")) for suffix in _SUFFIXES]
        return []

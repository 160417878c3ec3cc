"""Reading git's objects: loose files and packs by ourselves, all others through one ``git cat-file --batch`` process
that stays open, so that a read costs microseconds. ``Snapshot`` has the files of one commit, read when asked for.
"""

from __future__ import annotations

import hashlib
import operator
import re
import subprocess
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

from msgspec import Struct, field

from cleared.base.errors import WorkspaceError
from cleared.base.last_values import LastValues
from cleared.git.git_process import Git
from cleared.git.pack_reader import PackReader

HashName = Literal["sha1", "sha256"]

OID_PATTERN = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")

#: Ids that are asked for together: few enough that they fit into a pipe while nobody reads it.
_BATCH = 64

#: What git writes, and two modes that broken tools did.
FOLDER_MODES = ("40000", "040000")
_FOLDER_BYTES: Final = tuple(mode.encode() for mode in FOLDER_MODES)
_MAX_NAME: Final = 8_192
_MAX_SHOWN: Final = 100
"""Bytes of an entry of a tree that are looked at, and of its name that are shown, to say what is wrong with it."""
_MODES: Final = (*_FOLDER_BYTES, b"100644", b"100664", b"100755", b"120000", b"160000")
_MODE_TEXTS: Final = {mode: mode.decode() for mode in _MODES}
_ENTRY: Final = rb"(%s) ([^/\0]++)\0(.{%%d})" % b"|".join(_MODES)
_TREE_ENTRY: Final = {size: b"(?s)%s" % (_ENTRY % size) for size in (20, 32)}
"""By the bytes of an id: the mode, the name and the id of an entry in a tree."""
_WHOLE_TREE: Final = {size: b"(?s)(?:%s)*" % (_ENTRY % size) for size in (20, 32)}
"""Matched first, from one entry to the next: to look for entries in what somebody else wrote may take hours."""

#: Bytes of the objects that are remembered, and of the largest of them: one command reads the same few again and again,
#: a full month's journal among them.
_MAX_REMEMBERED = 16 << 20
_MAX_OBJECT = 4 << 20

#: Bytes of an object that is unpacked here; git reads larger ones, and loose ones that are packed to be large.
_MAX_LOOSE = 4 << 20

#: Entries of the trees that are remembered, some 40 MB at most: those of one commit with ten thousand agents, and of
#: those that it is compared with.
_MAX_TREE_ENTRIES = 200_000


def is_oid(text: object) -> bool:
    """Whether ``text`` is a full object id, SHA-1 or SHA-256."""
    return isinstance(text, str) and OID_PATTERN.fullmatch(text) is not None


class TreeEntry(Struct, frozen=True):
    """One name in a tree: git's octal mode exactly as stored, and the id of what it names."""

    mode: str
    oid: str

    @property
    def is_tree(self) -> bool:
        return self.mode in FOLDER_MODES

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")


class _ObjectMemory(Struct):
    """Objects by id, those that were asked for last behind the others, and their bytes."""

    objects: dict[str, tuple[str, bytes]] = {}
    size: int = 0
    lock: Any = field(default_factory=threading.Lock)


_MAX_SHARED: Final = 4
_shared: Final = LastValues[_ObjectMemory](_MAX_SHARED)
"""By repository, in a process that reads these again and again."""


class ObjectReader:
    """Reads objects by their ids, and remembers trees and small objects it has read. Safe to share between threads.

    ``folder`` is git's ``objects``. The process is started by the first read of what is not soundly there. Call
    ``close`` at the end; a later read starts another process.
    """

    def __init__(self, git: Git, folder: Path) -> None:
        self._git = git
        self._folder = str(folder)
        self._packs = PackReader(self._folder)
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._tree_entries = 0
        self._memory = _ObjectMemory()

    def share_memory(self) -> None:
        """Remember objects together with all other readers of this repository in this process that do."""
        self._memory = _shared.find(self._folder) or self._memory
        _shared.keep(self._folder, self._memory)

    def read_object(self, oid: str) -> tuple[str, bytes]:
        """The type (``blob``, ``tree``, ``commit``, ``tag``) and content of an object.

        Raises ``WorkspaceError`` where the repository does not have it, or it is damaged.
        """
        with self._lock, self._memory.lock:
            if (known := self._memory.objects.pop(oid, None)) is not None:
                self._memory.objects[oid] = known  # the last that is let go
                return known
        with self._lock:
            if (found := self._read_here(oid)) is not None:
                self.remember(oid, found)
                return found
            for attempt in (1, 2):
                try:
                    self._send_ids([oid])
                    answer = self._read_answer(oid)
                    self.remember(oid, answer)
                    return answer
                except (BrokenPipeError, EOFError):
                    self._stop_process()
                    if attempt == 2:
                        break
        raise WorkspaceError(f"git could not read the object {oid}", remedy="See what is damaged: git fsck --full.")

    def _read_here(self, oid: str) -> tuple[str, bytes] | None:
        return read_loose_object(self._folder, oid) or self._packs.read(oid, _MAX_LOOSE)

    def remember(self, oid: str, answer: tuple[str, bytes]) -> None:
        """Keep the type and content of an object that was read, or is written: the next command reads it."""
        size, memory = len(answer[1]), self._memory
        with memory.lock:
            if size > _MAX_OBJECT or oid in memory.objects:
                return
            while memory.size + size > _MAX_REMEMBERED:
                memory.size -= len(memory.objects.pop(next(iter(memory.objects)))[1])
            memory.objects[oid] = answer
            memory.size += size

    def find_pack(self, oid: str) -> str | None:
        """The name of the pack that has an object, of those of this repository itself."""
        with self._lock:
            return self._packs.find_pack(oid)

    def read_objects(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """As ``read_object``, for many: many ids are sent at once, so that neither side waits for the other."""
        for at in range(0, len(oids), _BATCH):
            batch = oids[at : at + _BATCH]
            with self._lock:
                here = {oid: self._read_here(oid) for oid in batch}
            others = [oid for oid in batch if here[oid] is None]
            answers: list[tuple[str, bytes]] = []
            with self._lock, suppress(BrokenPipeError, EOFError):
                if others:
                    self._send_ids(others)
                try:
                    for oid in others:
                        answers.append(self._read_answer(oid))
                except BaseException:
                    self._stop_process()  # the answers that are left would be taken for the next ones'
                    raise
            answered = iter(answers)
            for oid in batch:
                yield here[oid] or next(answered, None) or self.read_object(oid)

    def read_tree(self, oid: str, answer: tuple[str, bytes] | None = None) -> dict[str, TreeEntry]:
        """The entries of a tree by name (names that are not UTF-8 with surrogate escapes). Do not alter it.
        ``answer``: the object, where it was read."""
        with self._lock:
            if (known := self._trees.pop(oid, None)) is not None:
                self._trees[oid] = known  # the last that is let go
                return known
        entries = _parse_tree(oid, *(answer or self.read_object(oid)))
        with self._lock:
            if oid not in self._trees:
                self._trees[oid] = entries
                self._tree_entries += len(entries)
            while self._tree_entries > _MAX_TREE_ENTRIES and len(self._trees) > 1:
                self._tree_entries -= len(self._trees.pop(next(iter(self._trees))))
        return entries

    def find_entry(self, tree: str, path: str) -> TreeEntry | None:
        """What lies at ``path`` below a tree, or ``None``; at ``""`` the tree itself."""
        entry: TreeEntry | None = TreeEntry("40000", tree)
        for name in path.split("/") if path else ():
            if entry is None or entry.mode not in FOLDER_MODES:
                return None
            entry = self.read_tree(entry.oid).get(name)
        return entry

    def list_below(self, path: str, entry: TreeEntry) -> Iterator[tuple[str, TreeEntry]]:
        """Path and entry of all that is no folder, in the entry that lies at ``path``, or is it."""
        if entry.mode not in FOLDER_MODES:
            yield path, entry
            return
        for name, child in self.read_tree(entry.oid).items():
            below = f"{path}/{name}" if path else name
            if child.mode in FOLDER_MODES:
                yield from self.list_below(below, child)
            else:
                yield below, child

    def preload_trees(self, oid: str) -> None:
        """Read this tree and all trees beneath it together, so that ``read_tree`` has them at hand."""
        level = [oid]
        while level:
            unread = [one for one in dict.fromkeys(level) if one not in self._trees]
            for one, answer in zip(unread, self.read_objects(unread), strict=True):
                self.read_tree(one, answer)
            below = (entry for one in dict.fromkeys(level) for entry in self.read_tree(one).values())
            level = [entry.oid for entry in below if entry.mode in FOLDER_MODES]

    def find_tree_id(self, commit: str) -> str:
        """The id of a commit's tree. Raises ``WorkspaceError`` where ``commit`` is no commit that can be read."""
        kind, content = self.read_object(commit)
        if kind != "commit" or not content.startswith(b"tree "):
            raise WorkspaceError(f"{commit} is a {kind}, not a commit")
        return content[5 : content.index(b"\n")].decode("ascii")

    def has_commit_tree(self, commit: str) -> bool:
        """Whether the commit and its tree can be read."""
        try:
            self.read_tree(self.find_tree_id(commit))
        except WorkspaceError:
            return False
        return True

    def forget_objects(self) -> None:
        """Drop what is remembered, for a process that has many repositories open."""
        with self._lock:
            self._trees, self._tree_entries = {}, 0
            self._memory = _ObjectMemory()

    def close(self) -> None:
        """End the reading process, and let go of the packs, and of the trees: who holds a snapshot holds this."""
        with self._lock:
            self._stop_process()
            self._packs.close()
            self._trees, self._tree_entries = {}, 0

    def _send_ids(self, oids: Sequence[str]) -> None:
        if self._process is None:
            self._process = self._git.start(["cat-file", "--batch"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        stdin = cast("IO[bytes]", self._process.stdin)
        try:
            stdin.write("".join(f"{oid}\n" for oid in oids).encode())
            stdin.flush()
        except BaseException:
            self._stop_process()
            raise

    def _read_answer(self, oid: str) -> tuple[str, bytes]:
        assert self._process is not None
        stdout = cast("IO[bytes]", self._process.stdout)
        try:
            header = stdout.readline().split()
            if len(header) == 3:
                size = int(header[2])
                content = stdout.read(size + 1)
                if len(content) == size + 1:
                    return header[1].decode(), content[:-1]
        except BaseException:
            # Half an answer left in the pipe would be taken for the next one's.
            self._stop_process()
            raise
        if len(header) == 2:
            raise WorkspaceError(
                f"the object {oid} is missing from the repository",
                remedy="See what is damaged: git fsck --full. Fetching from a clone may bring it back.",
            )
        raise EOFError

    def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):  # a confined thread that collects garbage may not: at its closed input it ends too
            process.kill()
        for stream in (process.stdin, process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:
                pass  # unflushed bytes to a process that is gone
        process.wait()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self._stop_process()


def read_loose_object(folder: str, oid: str) -> tuple[str, bytes] | None:
    """What ``read_object`` gives, where the object is a loose file that holds what its id says; else None: git knows
    whether it is packed, elsewhere, missing or damaged."""
    try:
        with open(f"{folder}/{oid[:2]}/{oid[2:]}", "rb") as file:  # noqa: PTH123 - a Path for each read takes longer
            packed = file.read(_MAX_LOOSE + 1)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MAX_LOOSE)
    except (OSError, zlib.error):
        return None
    header, _, content = data.partition(b"\0")
    kind, _, size = header.partition(b" ")
    hashed = hashlib.new("sha1" if len(oid) == 40 else "sha256", data, usedforsecurity=False)
    if not unpacker.eof or hashed.hexdigest() != oid or size != b"%d" % len(content):
        return None
    return kind.decode("ascii", "replace"), content


def _parse_tree(oid: str, kind: str, content: bytes) -> dict[str, TreeEntry]:
    if kind != "tree":
        raise WorkspaceError(f"the object {oid} is a {kind}, not a tree")
    size = len(oid) // 2
    found = re.findall(_TREE_ENTRY[size], content) if re.fullmatch(_WHOLE_TREE[size], content) else []
    entries = {
        raw.decode("utf-8", "surrogateescape"): TreeEntry(_MODE_TEXTS[mode], child.hex()) for mode, raw, child in found
    }
    # Git sorts a folder as if its name ended in a slash.
    places = [raw + b"/" if mode in _FOLDER_BYTES else raw for mode, raw, _ in found]
    is_right = len(entries) == len(found) and all(map(operator.lt, places, places[1:]))
    if not is_right or (content and not found):
        raise WorkspaceError(
            f"the folder {oid} of a commit is not as git writes it: {_find_odd_name(content, size)!r} stands there "
            "twice, or where it should not, so programs read different files there; somebody made it by hand",
            remedy="Find the commit that brought it (git fsck --full), and go back to the one before.",
        )
    return entries


def _find_odd_name(content: bytes, size: int) -> str:
    """The name of the first entry of a tree that is not as git writes it. ``size``: the bytes of an id."""
    at, before, seen, raw = 0, b"", set[bytes](), b""
    while at < len(content):
        mode, _, rest = content[at : at + _MAX_NAME].partition(b" ")
        raw, ended, _ = rest.partition(b"\0")
        place = raw + b"/" if mode in _FOLDER_BYTES else raw
        if not ended or mode not in _MODES or b"/" in raw or place <= before or raw in seen:
            break
        seen.add(raw)
        at, before = at + len(mode) + len(raw) + size + 2, place
    return raw[:_MAX_SHOWN].decode("utf-8", "surrogateescape")


def blob_id(content: bytes, hash_name: HashName) -> str:
    """The id git gives a file of this content."""
    return hash_object(b"blob", content, hash_name)


def hash_object(kind: bytes, content: bytes, hash_name: HashName) -> str:
    """The id git gives an object of this kind and content."""
    digest = hashlib.new(hash_name, b"%s %d\0" % (kind, len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()

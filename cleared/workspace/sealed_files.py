"""Files of ``.cleared/books/``: read only where this user's program wrote them, whole, in this very version.

Each begins with a code (HMAC-SHA256) over its name, its content and the program's version, under a key that lies with
the user's other keys. So a torn or rotten file, one of another version, and one that came with somebody's push is no
file at all. What is in one follows from its name, which has the ids of git that it was made from.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import os
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import READ_FLAGS, write_atomic
from cleared.workspace.location import cleared_home

FOLDER: Final = "books"
KEY: Final = "index-key"
"""What this machine seals its indexes with. It approves nothing."""
_MAX_BYTES: Final = 1 << 30
_KEY_BYTES: Final = 32
_CODE_BYTES: Final = 32
_PAST: Final = ".past"
"""What the names of files of past months end in."""
_PACKAGE: Final = Path(__file__).parent.parent
_T = TypeVar("_T")


class SealedFiles:
    """The sealed files of one workspace. ``state_dir``: its ``.cleared/``; ``version``: of the program, or what finds
    it once there is a file to judge by it."""

    def __init__(self, state_dir: Path, version: bytes | Callable[[], bytes]) -> None:
        self.state_dir = state_dir
        self._folder = state_dir / FOLDER
        self._version = version
        self._key: bytes | None = None

    def read(self, name: str, most: int = _MAX_BYTES) -> bytes | None:
        """The content that was written under this name; None where there is none that counts, or it is of more than
        ``most`` bytes."""
        self._key = self._key or self._read_key(create=False)
        if self._key is None:
            return None
        try:
            descriptor = os.open(self._folder / name, READ_FLAGS)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_size > most + _CODE_BYTES:
                    return None
                data = file.read()
        except OSError:
            return None
        content = data[_CODE_BYTES:]
        code = self._make_code(self._key, name, content)
        return content if self._find_version() and hmac.compare_digest(code, data[:_CODE_BYTES]) else None

    def write(self, name: str, content: bytes) -> None:
        """Keep this content, where the disk lets us: nothing is lost without it."""
        if not self._find_version():
            return
        self._key = self._key or self._read_key(create=True)
        if self._key is None or not os.access(
            self.state_dir if self.state_dir.exists() else self.state_dir.parent, os.W_OK
        ):
            return
        from cleared.workspace.lock import ensure_state_dir

        try:
            ensure_state_dir(self.state_dir)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if not self._folder.is_symlink():
                code = self._make_code(self._key, name, content)
                write_atomic(self._folder / name, code + content, fsync=False, mode=0o600)
        except (WorkspaceError, OSError):
            return

    def remove_others(self, kept: Collection[str], kinds: tuple[str, ...], spare: int) -> None:
        """Remove files of these kinds (the ends of their names) that are not among ``kept``, but for the ``spare``
        newest of them; none where a link would have them removed elsewhere."""
        if self.state_dir.is_symlink() or self._folder.is_symlink():
            return
        try:
            with os.scandir(self._folder) as files:
                others = [file for file in files if file.name.endswith(kinds) and file.name not in kept]
            if len(others) > spare:
                others.sort(key=lambda file: file.stat(follow_symlinks=False).st_mtime_ns)
                for file in others[: len(others) - spare]:
                    Path(file.path).unlink(missing_ok=True)
        except OSError:
            return

    def _make_code(self, key: bytes, name: str, content: bytes) -> bytes:
        inner = hmac.digest(key, content, "sha256")
        return hmac.digest(key, b"%s\0%s\0%s" % (self._find_version(), name.encode(), inner), "sha256")

    def _find_version(self) -> bytes:
        """Empty where the program cannot be read: then nothing is kept."""
        return self._version if isinstance(self._version, bytes) else self._version()

    def _read_key(self, *, create: bool) -> bytes | None:
        """The key; None where there is none, or it cannot be read or made, or is no secret of this user's."""
        path = cleared_home() / KEY
        try:
            if path.resolve().is_relative_to(self.state_dir.parent.resolve()):
                return None
            if create and not path.exists():
                from cleared.base.safe_files import write_new

                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_new(path, os.urandom(_KEY_BYTES), mode=0o600)  # where two make it, the first wins
            with path.open("rb") as file:
                is_open = os.name != "nt" and os.fstat(file.fileno()).st_mode & 0o077
                key = file.read(_KEY_BYTES + 1)
        except (OSError, RuntimeError):  # a link to itself
            return None
        return key if len(key) == _KEY_BYTES and not is_open else None


def make_months_once(
    sealed: SealedFiles, name: str, kind: type[_T], versions: Mapping[str, Sequence[str]], make: Callable[[str], _T]
) -> dict[str, _T]:
    """What ``make`` makes of each month, the oldest first; of all but the newest it is kept under this name.
    ``versions``: month → all that this follows from, such as the ids of its files in git; of a month that has none, it
    is not kept."""
    data = sealed.read(f"{name}{_PAST}") if len(versions) > 1 else None
    kept = msgspec.msgpack.decode(data, type=dict[str, tuple[list[str], kind]]) if data is not None else {}  # type: ignore[valid-type]
    found: dict[str, tuple[list[str], _T]] = {}
    for month in sorted(versions):
        known = kept.get(month)
        is_known = known is not None and versions[month] and known[0] == versions[month]
        found[month] = known if known is not None and is_known else ([*versions[month]], make(month))
    past = {month: each for month, each in found.items() if each[0] and month != max(found)}
    if any(each is not kept.get(month) for month, each in past.items()):
        # Of an older commit, which a rehearsal reads, others are not among them.
        with suppress(ValueError):  # a text that was read need not be one that can be written
            sealed.write(f"{name}{_PAST}", msgspec.msgpack.encode(kept | past))
    return {month: each for month, (_, each) in found.items()}


@functools.cache
def digest_sources(*folders: str) -> bytes:
    """A digest of the program's modules in these folders of its package, and below; empty where they are not there to
    be read."""
    digest, count = hashlib.sha256(), 0
    try:
        for folder in folders:
            before = count
            for inner, below, names in os.walk(os.path.join(_PACKAGE, folder)):  # noqa: PTH118  (a third of the time)
                below.sort()
                for name in sorted(name for name in names if name.endswith(".py")):
                    with open(f"{inner}/{name}", "rb") as file:  # noqa: PTH123
                        digest.update(b"%s\0%s" % (name.encode(), hashlib.sha256(file.read()).digest()))
                    count += 1
            if count == before:  # it was moved, or is not there to be read: what was made from it cannot be told
                return b""
    except OSError:
        return b""
    return digest.hexdigest().encode() if count else b""


@functools.lru_cache(maxsize=1)
def program_version() -> bytes:
    """A digest of the whole program; empty where it cannot be read, and then nothing is kept."""
    digest = digest_sources("")
    return digest + sys.version.encode() if digest else b""

"""Which files of a watched folder count, by their names: no hidden ones, none through a link, none outside.

Some names only a program could have given; some files git has brought: whoever can push has put them there.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from shlex import quote
from typing import Final

from cleared.base.errors import Place, PolicyError
from cleared.base.safe_files import describe_os_error
from cleared.workspace.location import Layout

TEMPORARY_ENDINGS: Final = (".part", ".crdownload", ".tmp", ".download", ".partial", "~")
"""How names end that programs give to files they have not finished; in any case of letters."""
FAILED_FOLDER: Final = "failed"
"""In ``import/``: files that no run got through with."""
FINISHED_FOLDERS: Final = ("processed", FAILED_FOLDER)
"""Folders at the top of ``import/`` that hold what is done with."""
MAX_FILES: Final = 20_000
"""More are not looked at at once; the first by name are."""
_UNSPEAKABLE: Final = "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"


def is_ready_name(name: str) -> bool:
    """Whether a file of that name is one to look at: not hidden, and finished as far as its name tells."""
    return not name.startswith(".") and not name.lower().endswith(TEMPORARY_ENDINGS)


def has_control_characters(name: str) -> bool:
    """Whether the name holds control characters, line separators, or bytes that are no text."""
    return not name.isprintable() and re.search(_UNSPEAKABLE, name) is not None


def escape_name(name: str) -> str:
    """The name as text for people, on one line: what is no character, or controls a terminal, is escaped."""
    return re.sub(_UNSPEAKABLE, lambda match: ascii(match[0])[1:-1], name)


_EXCLUDED_FOLDERS: Final = tuple(f"{Layout.import_dir}/{name}" for name in FINISHED_FOLDERS)

_GlobRest = tuple[re.Pattern[str] | None, ...]
"""The parts of a glob that are still to be matched, name by name; None is ``**``: any number of folders."""


class WatchedNames:
    """The files of one ``watch:``, as they lie there now. ``root``: the real path of the workspace."""

    def __init__(self, root: str, watch: Sequence[str]) -> None:
        self._root = root
        self._globs: dict[str, set[_GlobRest]] = {}
        self.excluded: list[str] = []
        """What is asked for and never looked at, a line each."""
        for value in watch:
            base, rest = _parse_glob(value)
            if any(part.startswith(".") for part in base.split("/")) or f"{base}/".startswith(
                _with_slash(_EXCLUDED_FOLDERS)
            ):
                self.excluded.append(f"watch: {escape_name(value)}: this folder is never looked at")
            else:
                self._globs.setdefault(base, set()).add(rest)

    def find_directories(self) -> tuple[Path, ...]:
        """The directories to watch, with all beneath them: absolute, and without links. They need not exist yet."""
        folders = set()
        for base in self._globs:
            kind = self._mode_of(base)
            if kind is None or not stat.S_ISLNK(kind):
                folders.add(base.rpartition("/")[0] if kind is not None and stat.S_ISREG(kind) else base)
        inner = {
            one for one in folders for other in folders if one != other and f"{one}/".startswith(_with_slash([other]))
        }
        return tuple(Path(self._root, base) for base in sorted(folders - inner))

    def list_files(self, problems: list[str]) -> list[str]:
        """Their paths, sorted. ``problems`` gets a line for each that cannot be looked at."""
        names: set[str] = set()
        for base, rests in self._globs.items():
            kind = self._mode_of(base)
            if kind is not None and stat.S_ISLNK(kind):
                problems.append(f"{escape_name(base)} is reached through a symbolic link; it is not looked at")
            elif kind is not None and stat.S_ISREG(kind):
                if (None,) in rests and is_ready_name(base.rpartition("/")[2]):
                    names.add(base)
            elif kind is not None:
                self._walk_folder(base, frozenset(rests), names, problems)
        if len(names) <= MAX_FILES:
            return sorted(names)
        problems.append(
            f"there are more than {MAX_FILES:,} files in "
            f"{', '.join(escape_name(base or '.') for base in self._globs)}; "
            "only the first by name are looked at. Move some of them elsewhere"
        )
        return sorted(names)[:MAX_FILES]

    def _walk_folder(self, base: str, rests: frozenset[_GlobRest], names: set[str], problems: list[str]) -> None:
        to_visit = [(base, rests)]
        while to_visit and len(names) <= MAX_FILES:
            folder, rests = to_visit.pop()
            prefix = f"{folder}/" if folder else ""
            try:
                with os.scandir(f"{self._root}/{folder}") as entries:
                    children = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append(f"{escape_name(folder or '.')}/ cannot be looked at: {describe_os_error(error)}")
                continue
            below: list[tuple[str, frozenset[_GlobRest]]] = []
            for name, is_folder in children:
                path = prefix + name
                if name.startswith(".") or path in _EXCLUDED_FOLDERS:
                    continue
                rest = _globs_below(rests, name) if is_folder else None
                if not rest and (is_folder or not is_ready_name(name) or not _matches_file(rests, name)):
                    continue
                if not _is_utf8(name):
                    problems.append(f"{escape_name(path)} is not looked at: its name is not UTF-8. Rename it")
                elif rest:
                    below.append((path, rest))
                else:
                    names.add(path)
            to_visit += reversed(below)

    def _mode_of(self, base: str) -> int | None:
        """The mode of the file or folder there; of the link, where one is on the way; None where nothing is there."""
        mode, path = stat.S_IFDIR, self._root
        for part in base.split("/") if base else ():
            path = f"{path}/{part}"
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                return None
            except OSError:
                return stat.S_IFDIR  # the walk will say what is wrong
            if stat.S_ISLNK(mode):
                return mode
        return mode


def _parse_glob(value: str) -> tuple[str, _GlobRest]:
    """The folder to start from, and the parts of the glob beneath it."""
    parts = [part for part in value.split("/") if part not in ("", ".")]
    plain = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    rest = [None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts[plain:]]
    if not rest or value.endswith("/"):
        rest.append(None)
    return "/".join(parts[:plain]), tuple(rest)


def _matches_file(rests: Iterable[_GlobRest], name: str) -> bool:
    """Whether a file of that name matches one of the globs to its end."""
    for head, *tail in rests:
        if head is None:
            if not tail or _matches_file([tuple(tail)], name):
                return True
        elif not tail and head.match(name):
            return True
    return False


def _globs_below(rests: Iterable[_GlobRest], name: str) -> frozenset[_GlobRest]:
    """The parts of the globs that are left to match in a folder of that name; empty where no file there can match."""
    left: set[_GlobRest] = set()
    for rest in rests:
        head, tail = rest[0], rest[1:]
        if head is None:
            left.add(rest)
            if tail:
                left |= _globs_below([tail], name)
        elif tail and head.match(name):
            left.add(tail)
    return frozenset(left)


def _with_slash(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/" if folder else "" for folder in folders)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_brought(path: str, name: str, has_file: Callable[[str], bool]) -> None:
    """Raises ``PolicyError`` for a file that git brought, as nobody on this machine has handed it in.

    ``path``: where it lies, relative to the workspace; ``name``: what it is called in the message. ``has_file``:
    whether the last commit has a file, a symbolic link or a submodule at a path.
    """
    # A link or a submodule on the way brings files that the commit itself does not name.
    tracked = next((way for way in accumulate(path.split("/"), "{}/{}".format) if has_file(way)), None)
    if tracked is not None:
        shown = quote(tracked)
        raise PolicyError(
            f"{name!r} is in a commit: git brought it, and nobody on this machine handed it in",
            place=Place(tracked),
            remedy=f"Look who did (git log -- {shown}). If it is right: git rm --cached {shown}, and commit that; then "
            "it is taken. Else git rm it.",
        )

"""Files that no job may read. What counts is the file that a path leads to, not how the path is written."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.base.safe_names import resolve_inside
from cleared.trust.keys import cleared_home

NAME_PATTERNS: Final = (
    ".env",
    ".env.*",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials",
    "credentials.*",
    "secrets",
    "secrets.*",
    "*.secret",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
)
"""Names that are forbidden, in upper and lower case; a folder of such a name forbids all that is in it."""
_FORBIDDEN_NAME: Final = "|".join(map(translate, NAME_PATTERNS))
_DEEPEST: Final = 200
"""Folders in folders, from the first on. What lies deeper is forbidden unseen: looking for it has no end."""


class ForbiddenFiles(Struct, frozen=True, eq=False):
    """Which files below ``root`` no job may read: ``NAME_PATTERNS``, ``patterns``, and the folder of the keys.

    ``patterns`` are those of the configuration. One with a slash is of the path below ``root``, else of the name.
    """

    root: Path
    patterns: tuple[str, ...] = ()
    _hard_links: set[tuple[int, int]] = set()
    """Device and inode of forbidden files that have more than one name, once they were looked for."""

    def explain_refusal(self, path: Path) -> str | None:
        """Why no job may read a file, links followed; None where a job may."""
        real = Path(os.path.realpath(path))
        for place in (path, real):
            part = self._forbidden_part(place)
            if part:
                return f"{part} is forbidden to jobs"
        if real.is_relative_to(os.path.realpath(cleared_home())):
            return "it lies where the keys are"
        if self._is_linked_to_forbidden(real):
            return "it is another name of a file that is forbidden to jobs"
        return None

    def resolve_path(self, relative: str) -> Path:
        """The real path of a text from outside, below the workspace. Raises ``PolicyError``, naming the path."""
        try:
            real = resolve_inside(self.root, relative)
        except ClearedError as error:
            raise PolicyError(f"no job may read this: {error.message}", place=Place(file=relative[:200])) from None
        why = self.explain_refusal(self.root / relative)
        if why:
            raise PolicyError(f"no job may read this: {why}", place=Place(file=relative[:200]))
        return real

    def refuse_name(self, relative: str) -> None:
        """Raises ``PolicyError`` where the names in a path below the workspace are forbidden; no file is looked at."""
        part = self._forbidden_part(self.root / relative)
        if part:
            raise PolicyError(f"no job may read this: {part} is forbidden to jobs", place=Place(file=relative[:200]))

    def readable_files(self, top: Path, most: int = 100_000) -> Iterator[Path]:
        """The regular files below ``top`` that a job may read; links are not followed. Sorted within each folder."""
        if top.is_file():
            if not self.explain_refusal(top):
                yield top
            return
        for folder, folders, names in os.walk(top):
            kept = sorted(f for f in folders if f != ".git" and not self.explain_refusal(Path(folder, f)))
            folders[:] = [] if _is_last(folder) else kept
            for name in sorted(names):
                path = Path(folder, name)
                most -= 1
                if most < 0:
                    return
                try:
                    is_regular = stat.S_ISREG(path.lstat().st_mode)
                except OSError:
                    continue
                if is_regular and not self.explain_refusal(path):
                    yield path

    def grantable_paths(self, top: Path, known: list[Path] | None = None) -> Iterator[tuple[Path, bool]]:
        """What the kernel may grant for ``top``: paths, each with True for the whole of it and False for names only.

        A folder with something forbidden in it is granted by names only, and then each of its entries that is not. A
        link is never granted, as what it leads to would be. ``known``: what is forbidden below ``top``, where that was
        looked for.
        """
        if self.explain_refusal(top):
            return
        refused = known if known is not None else list(self._find_forbidden_below(top)) if top.is_dir() else []
        if not refused:
            yield top, True
            return
        yield top, False
        for entry in sorted(top.iterdir()):
            if entry.is_symlink() or entry in refused:
                continue
            if below := [path for path in refused if path.is_relative_to(entry)]:
                yield from self.grantable_paths(entry, below)
            else:
                yield entry, True

    def _find_forbidden_below(self, top: Path) -> Iterator[Path]:
        """Forbidden files and folders below ``top``, and hard links to such files."""
        for folder, folders, names in os.walk(top):
            is_last = _is_last(folder)
            # Libraries have thousands of files: no ``Path`` for those that are not told of.
            refused = {name for name in folders if is_last or self._is_forbidden(name, f"{folder}/{name}")}
            files = ((name, f"{folder}/{name}") for name in names)
            for name in (n for n, path in files if self._is_forbidden(n, path) or self._is_linked_to_forbidden(path)):
                yield Path(folder, name)
            yield from (Path(folder, name) for name in folders if name in refused)
            folders[:] = [name for name in folders if name != ".git" and name not in refused]

    def _is_linked_to_forbidden(self, path: Path | str) -> bool:
        """Whether a hard link to the file is forbidden, in the workspace or in the folder of the keys."""
        try:
            status = os.lstat(path)
        except OSError:
            return False
        if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
            return False
        if not self._hard_links:
            self._hard_links.add((0, 0))  # marks the search as done: in a copy made of hard links every file would ask
            self._hard_links.update(self._find_hard_links())
        return (status.st_dev, status.st_ino) in self._hard_links

    def _find_hard_links(self) -> Iterator[tuple[int, int]]:
        """Device and inode of each forbidden file that has more than one name."""
        for top in (self.root, cleared_home()):
            refused = {str(top)} if top != self.root else set[str]()
            for folder, folders, names in os.walk(top):
                folders[:] = [] if _is_last(folder) else [f for f in folders if f != ".git"]
                for name in [*folders, *names]:
                    path = Path(folder, name)
                    if folder not in refused and not self._is_forbidden(name, path):
                        continue
                    refused.add(str(path))
                    try:
                        status = path.lstat()
                    except OSError:
                        continue
                    if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                        yield status.st_dev, status.st_ino

    def _forbidden_part(self, path: Path) -> str | None:
        """The first forbidden name in a path, below ``root`` where it lies there; None where there is none."""
        place = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        current = self.root if place is not path else Path("/")
        for part in place.parts:
            current = current / part
            if self._is_forbidden(part, current):
                return part
        return None

    def _is_forbidden(self, name: str, path: Path | str) -> bool:
        if re.match(_FORBIDDEN_NAME, name.casefold()):
            return True
        if not self.patterns:
            return False
        path = Path(path)
        below = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None
        return any(
            fnmatchcase(below, p.rstrip("/")) if "/" in p.rstrip("/") and below is not None else fnmatchcase(name, p)
            for p in self.patterns
        )


def _is_last(folder: str) -> bool:
    return folder.count(os.sep) >= _DEEPEST

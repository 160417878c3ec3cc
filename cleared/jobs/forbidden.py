"""Files that no job reads, by what a path leads to, not by how it is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from cleared.approvals.keys import home
from cleared.errors import ClearedError, Place, PolicyError
from cleared.workspace.names import inside

NAMES: Final = (
    ".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa*", "id_dsa*",
    "id_ecdsa*", "id_ed25519*", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", "credentials",
    "credentials.*", "secrets", "secrets.*", "*.secret", ".ssh", ".aws", ".gnupg", ".kube",
)  # fmt: skip
"""Patterns of names, upper and lower case alike; a folder of such a name forbids all that is in it."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """``patterns``: those of the configuration; with a slash they are of the path below ``root``."""

    root: Path
    patterns: tuple[str, ...] = ()

    def why(self, path: Path) -> str | None:
        """Why a file, links followed, is not for jobs; None where it is."""
        real = Path(os.path.realpath(path))
        for place in (path, real):
            found = self._named(place)
            if found:
                return f"{found} is forbidden to jobs"
        if real.is_relative_to(os.path.realpath(home())):
            return "it lies where the keys are"
        return None

    def resolve(self, relative: str) -> Path:
        """The real path of a text from outside, below the workspace. Raises ``PolicyError``, naming the path."""
        try:
            real = inside(self.root, relative)
        except ClearedError as error:
            raise PolicyError(f"no job may read this: {error.message}", place=Place(file=relative[:200])) from None
        why = self.why(self.root / relative)
        if why:
            raise PolicyError(f"no job may read this: {why}", place=Place(file=relative[:200]))
        return real

    def files(self, top: Path, most: int = 100_000) -> Iterator[Path]:
        """The regular files below ``top`` that a job may read, links not followed; sorted within each folder."""
        if top.is_file():
            if not self.why(top):
                yield top
            return
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(f for f in folders if f != ".git" and not self.why(Path(folder, f)))
            for name in sorted(names):
                path = Path(folder, name)
                most -= 1
                if most < 0:
                    return
                try:
                    regular = stat.S_ISREG(path.lstat().st_mode)
                except OSError:
                    continue
                if regular and not self.why(path):
                    yield path

    def allowed(self, top: Path) -> Iterator[Path]:
        """``top``, or where something in it is forbidden, what is in it beside that: for granting whole folders."""
        if self.why(top):
            return
        bad = list(self._inside(top)) if top.is_dir() else []
        if not bad:
            yield top
            return
        for entry in sorted(top.iterdir()):
            if any(b == entry or b.is_relative_to(entry) for b in bad):
                if entry.is_dir() and not entry.is_symlink() and entry not in bad:
                    yield from self.allowed(entry)
            else:
                yield entry

    def _inside(self, top: Path) -> Iterator[Path]:
        """Forbidden files and folders below ``top``, hard links to them too."""
        found: set[tuple[int, int]] = set()
        linked: list[tuple[Path, tuple[int, int]]] = []
        for folder, folders, names in os.walk(top):
            for name in [*folders, *names]:
                path = Path(folder, name)
                try:
                    status = path.lstat()
                except OSError:
                    continue
                identity = (status.st_dev, status.st_ino)
                if self._is(name, path):
                    found.add(identity)
                    yield path
                elif status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                    linked.append((path, identity))
            folders[:] = [f for f in folders if f != ".git" and not self._is(f, Path(folder, f))]
        for path, identity in linked:
            if identity in found:
                yield path

    def _named(self, path: Path) -> str | None:
        place = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        current = self.root if place is not path else Path("/")
        for part in place.parts:
            current = current / part
            if self._is(part, current):
                return part
        return None

    def _is(self, name: str, path: Path) -> bool:
        folded = name.casefold()
        if any(fnmatchcase(folded, pattern) for pattern in NAMES):
            return True
        if not self.patterns:
            return False
        below = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None
        return any(
            fnmatchcase(below, p.rstrip("/")) if "/" in p.rstrip("/") and below is not None else fnmatchcase(name, p)
            for p in self.patterns
        )

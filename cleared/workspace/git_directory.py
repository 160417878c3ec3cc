"""Where git keeps a working tree's history, read from its files (gitrepository-layout): no program is started."""

from __future__ import annotations

from pathlib import Path

_LINK = "gitdir:"


def find_git_folders(root: Path) -> tuple[Path, Path] | None:
    """The git directory of ``root``, and the one it shares with linked working trees (``commondir``), links followed.

    The same where it shares none; None where ``root`` is no top of a working tree.
    """
    found = root / ".git"
    if found.is_file():
        text = _read_line(found)
        if not text.startswith(_LINK):
            return None
        found = root / text.removeprefix(_LINK).strip()
    if not found.is_dir():
        return None
    common = _read_line(found / "commondir")
    return found.resolve(), (found / common).resolve() if common else found.resolve()


def _read_line(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape").rstrip("\r\n")
    except OSError:
        return ""

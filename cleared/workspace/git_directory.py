"""Where git keeps a working tree's history, read from its files (gitrepository-layout): no program is started."""

from __future__ import annotations

from pathlib import Path

_LINK = "gitdir:"


def find_git_folders(root: Path) -> tuple[Path, Path] | None:
    """The git directory of ``root``, and the one it shares with linked working trees (``commondir``), links followed.

    The same where it shares none; None where ``root`` is no top of a working tree.
    """
    folder = root / ".git"
    if folder.is_file():
        text = _read_line(folder)
        if not text.startswith(_LINK):
            return None
        folder = root / text.removeprefix(_LINK).strip()
    if not folder.is_dir():
        return None
    common = _read_line(folder / "commondir")
    return folder.resolve(), (folder / common).resolve() if common else folder.resolve()


def _read_line(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape").rstrip("\r\n")
    except OSError:
        return ""

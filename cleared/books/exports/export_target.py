"""Where an export goes: a new file, whole or not at all, and never among the files of the books."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.safe_files import write_parts

EXPORTS_DIR: Final = "exports"
"""The folder of a workspace for exports; git leaves it out."""
_AT_ONCE: Final = 1 << 16
"""Characters that are encoded and written at once."""


@contextmanager
def open_target(root: Path, path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """The file to write to; it is at ``path`` when the block ends without an error. ``root``: the workspace.

    Raises ``PolicyError`` where there is a file already (unless ``force``), and for a place among the workspace's own
    files; ``WorkspaceError`` where it cannot be written.
    """
    refuse_target(root, path, force=force)
    with write_parts(path, fsync=False, replace=force) as file:
        yield file


def refuse_target(root: Path, path: Path, *, force: bool) -> None:
    """Raises ``PolicyError`` as ``open_target`` does."""
    workspace = root.resolve()
    # A link in the workspace may be one that somebody pushed, so it leads nowhere else.
    written, place = Path(os.path.abspath(path)), path.parent.resolve() / path.name  # noqa: PTH100
    roots = Path(os.path.abspath(root)), workspace  # noqa: PTH100
    is_inside = any(p.is_relative_to(r) for p in (written, place) for r in roots)
    if is_inside and not place.is_relative_to(workspace / EXPORTS_DIR):
        raise PolicyError(
            "an export among the files of the workspace would be taken for a part of the books",
            place=Place(str(path)),
            remedy=f"Take a folder below {EXPORTS_DIR}/, or one elsewhere.",
        )
    if path.is_dir() and not path.is_symlink():
        raise PolicyError("there is a directory of that name", place=Place(str(path)), remedy="Take another name.")
    if not force and (path.exists() or path.is_symlink()):
        raise PolicyError(
            "there is a file already", place=Place(str(path)), remedy="Take another place, or replace it with --force."
        )


def write_texts(file: BinaryIO, texts: Iterable[str]) -> None:
    """Write texts in UTF-8, some at a time. Raises ``WorkspaceError`` for what UTF-8 cannot hold."""
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= _AT_ONCE:
            file.write(_encode("".join(waiting)))
            waiting, size = [], 0
    file.write(_encode("".join(waiting)))


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"the books hold text that UTF-8 cannot: {text[error.start : error.end]!a}",
            remedy="Run cleared check.",
        ) from None

"""Whether a receipt is a whole file of its kind: what is empty, cut off or something else proves nothing later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cleared.base.errors import Place, WorkspaceError

_TAIL: Final = 64 << 10
"""Where the end of a file is looked for: scanners and cameras append things of their own."""


def _is_whole_pdf(data: bytes) -> bool:
    return b"%PDF-" in data[:1024] and b"startxref" in data[-_TAIL:]


def _is_whole_jpeg(data: bytes) -> bool:
    """Whether the picture itself has its end: its thumbnail has one, too, and phones append films to pictures."""
    at = 2 if data.startswith(b"\xff\xd8\xff") else len(data)
    while data[at : at + 1] == b"\xff":
        if data[at + 1 : at + 2] == b"\xda":
            return b"\xff\xd9" in data[at:]
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False


def _is_whole_png(data: bytes) -> bool:
    return data.startswith(b"\x89PNG\r\n\x1a\n") and b"IEND" in data[-_TAIL:]


def _is_whole_gif(data: bytes) -> bool:
    return data.startswith((b"GIF87a", b"GIF89a")) and data.rstrip(b"\0").endswith(b";")


def _is_whole_webp(data: bytes) -> bool:
    size = int.from_bytes(data[4:8], "little") + 8
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= size


def _is_heic(data: bytes) -> bool:
    return data[4:8] == b"ftyp"


_KINDS: Final[dict[str, tuple[str, Callable[[bytes], bool]]]] = {
    "pdf": ("PDF", _is_whole_pdf),
    "jpg": ("JPEG picture", _is_whole_jpeg),
    "jpeg": ("JPEG picture", _is_whole_jpeg),
    "png": ("PNG picture", _is_whole_png),
    "gif": ("GIF picture", _is_whole_gif),
    "webp": ("WebP picture", _is_whole_webp),
    "heic": ("HEIC picture", _is_heic),
}
"""Ending of the name → what such a file is called, and whether it is whole. Other files are texts, or unknown."""
_PICTURES: Final = {
    "image/jpeg": _is_whole_jpeg,
    "image/png": _is_whole_png,
    "image/gif": _is_whole_gif,
    "image/webp": _is_whole_webp,
}


def refuse_damaged(name: str, data: bytes, shown: str) -> None:
    """Raises ``WorkspaceError`` for a file that is empty, or not what its name says. ``shown``: where it lies."""
    if not data:
        raise WorkspaceError("the file is empty", place=Place(shown), remedy="Save it again.")
    kind, is_whole = _KINDS.get(name.rpartition(".")[2].lower(), ("", None))
    if is_whole is not None and not is_whole(data):
        raise WorkspaceError(
            f"the file is no whole {kind}",
            place=Place(shown),
            remedy="It is cut off, or something else under that name. Save it, or take the picture, again.",
        )


def find_picture_type(data: bytes) -> str:
    """The media type of a picture that browsers show; empty for anything else."""
    return next((kind for kind, is_whole in _PICTURES.items() if is_whole(data)), "")

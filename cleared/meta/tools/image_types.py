"""Which kind of picture a content is. The name of a file says nothing about that."""

from __future__ import annotations

from typing import Final

MAX_IMAGE_BYTES: Final = 5 << 20
"""As much as providers take."""
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def find_media_type(data: bytes) -> str | None:
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``; None where it is none of them."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None

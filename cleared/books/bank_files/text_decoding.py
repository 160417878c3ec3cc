"""Bytes to text, strictly: what cannot be decoded is refused by byte and line, never replaced."""

from __future__ import annotations

import codecs
import re

from cleared.base.errors import Place
from cleared.books.bank_files.base import BOMS, Faults, ImportFileError, is_windows_text

_MAGIC = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"SQLite format 3\0", "a database"),
    (b"\x7fELF", "a program"),
)
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_WIDE = ("utf-16", "utf-32")
_NEWLINE = r"\r\n?|\n"
_LINE_BYTES = rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+"
_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!DOCTYPE\s+html|html[\s>])", re.IGNORECASE)
_AGAIN = "Sign in there, and download it again"
_DOWNLOAD = "Download the account's activity as CSV and import that"
_RESAVE = "Save the file as UTF-8"


def refuse_binary(data: bytes) -> None:
    """Refuse what is not text at all, by its first bytes (B10)."""
    if _WEB_PAGE.match(data):
        raise ImportFileError("this is a web page, not a bank file: the bank may have signed you out", remedy=_AGAIN)
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            raise ImportFileError(f"this is {kind}, not a text file", remedy=_DOWNLOAD)
    if data.startswith(_UTF32):
        raise ImportFileError("the file is encoded as UTF-32", remedy=_RESAVE)


def refuse_nul(data: bytes) -> None:
    """Refuse bytes with NULs that no declared encoding explains: binary, or UTF-16 without its mark."""
    if b"\0" not in data or data.startswith(BOMS[1][0]) or data.startswith(BOMS[2][0]):
        return
    head = data[:4096]
    for nuls, order in ((head[1::2], "utf-16-le"), (head[0::2], "utf-16-be")):
        if len(nuls) >= 4 and nuls.count(0) * 10 >= len(nuls) * 9:
            raise ImportFileError(
                f"the file looks like {order.upper()} without a byte order mark",
                remedy=f"{_RESAVE}, or describe it under import.profiles with `encoding: {order}`",
            )
    at = data.index(b"\0")
    raise ImportFileError(
        f"there is a NUL byte at offset {at}: this is a binary file, or a damaged one",
        place=Place(line=_line_number(data[:at].decode("latin-1"))),
        remedy=_DOWNLOAD,
    )


def decode_text(data: bytes, encoding: str = "utf-8", profile: str | None = None) -> str:
    """The text of ``data``: by its byte order mark (which is dropped), else strictly as ``encoding``.

    For ``utf-8`` it may be Windows' text, too. Raises ``ImportFileError`` with the line and the 0-based offset of the
    first undecodable byte of each line, or with every line that holds a NUL. ``profile`` is the one to name in the
    remedy.
    """
    refuse_binary(data)
    declare = f"in import.profiles.{profile}" if profile else "in a profile for this bank under import.profiles"
    other = "cp850" if encoding == "cp1252" else "cp1252"
    remedy = f"{_RESAVE}, or declare the bank's encoding {declare}, e.g. `encoding: {other}`"
    mark, encoding = next(((m, e) for m, e in BOMS if data.startswith(m)), (b"", encoding))
    if not mark and not _is_wide_encoding(encoding, profile):
        refuse_nul(data)
    body = data[len(mark) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        if not mark and is_windows_text(data, encoding):
            return decode_text(data, "cp1252", profile)
        raise _list_undecodable(body, encoding, error, len(mark)).error(remedy=remedy) from None
    except (UnicodeError, ValueError) as error:
        raise ImportFileError(f"the file is not {encoding} text ({error})", remedy=remedy) from None
    if "\0" in text:
        faults = Faults()
        for number, line_text in enumerate(re.split(_NEWLINE, text), 1):
            if "\0" in line_text:
                faults.add(number, "the line holds a NUL character")
        raise faults.error(remedy="Remove it, or download the file again")
    if encoding != "utf-8":
        _refuse_surrogates(text, encoding, remedy)
    return text


def _list_undecodable(body: bytes, encoding: str, error: UnicodeDecodeError, start: int) -> Faults:
    """The first byte of each line that is no text of ``encoding``. ``error``: the first of all, ``start``: how many
    bytes lie before ``body``."""
    faults = Faults()
    if codecs.lookup(encoding).name.startswith(_WIDE):
        line = _line_number(body[: error.start].decode(encoding, "replace"))
        faults.add(line, _describe_undecodable(body, encoding, error, 0, start))
        return faults
    at = 0
    for number, line_bytes in enumerate(re.findall(_LINE_BYTES, body), 1):
        try:
            line_bytes.decode(encoding)
        except UnicodeDecodeError as own:
            faults.add(number, _describe_undecodable(body, encoding, own, at, start))
        at += len(line_bytes)
    return faults


def _describe_undecodable(body: bytes, encoding: str, error: UnicodeDecodeError, before: int, start: int) -> str:
    at = before + error.start
    byte = f"the byte 0x{body[at]:02x}" if at < len(body) else "the end"
    return f"{byte} at offset {start + at} is not {encoding} text ({error.reason})"


def _is_wide_encoding(encoding: str, profile: str | None) -> bool:
    """Whether NUL bytes are normal in ``encoding``."""
    try:
        info = codecs.lookup(encoding)
        "".encode(encoding)  # refuses codecs that do not make text, such as base64
    except (LookupError, ValueError) as error:  # a name with a NUL is a ValueError
        raise ImportFileError(
            f"the encoding {encoding!r} declared for this format is not known ({error})",
            remedy=f"Correct `encoding:` of import.profiles.{profile}, e.g. utf-8 or cp1252" if profile else None,
        ) from None
    return info.name.startswith(_WIDE)


def _refuse_surrogates(text: str, encoding: str, remedy: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ImportFileError(
            f"there is half a character (a lone surrogate) in the {encoding} text",
            place=Place(line=_line_number(text[: error.start])),
            remedy=remedy,
        ) from None


def _line_number(before: str) -> int:
    """The 1-based line of what follows ``before``."""
    return len(re.findall(_NEWLINE, before)) + 1

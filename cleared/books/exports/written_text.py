"""Texts of banks and people as an hledger or beancount file can hold them: no text becomes a tag, a date or a line.

In hledger files a character that means something there, or that nobody sees, is written as ``\\x3b`` or ``\\u2028``,
and a backslash is doubled; ``unescape_text`` is the inverse. Beancount has strings, with escapes of its own.
"""

from __future__ import annotations

import re
from typing import Final

DESCRIPTION_MARKS: Final = ";"
"""What ends a description in hledger."""
VALUE_MARKS: Final = ",["
"""What ends the value of a tag in hledger, and begins a date."""
_ESCAPE: Final = re.compile(r"\\(?:(\\)|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))", re.ASCII)
_STRING_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_STRING_CHARACTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}


def escape_line(text: str, marks: str) -> str:
    """The text on one line of an hledger file, without the characters in ``marks``."""
    if text.isprintable() and "\\" not in text and not any(m in text for m in marks) and text.strip(" ") == text:
        return text
    inner = text.strip(" ")
    start = text.index(inner) if inner else len(text)
    blanks = range(start), range(start + len(inner), len(text))
    return "".join(
        "\\\\"
        if c == "\\"
        else c
        if c.isprintable() and c not in marks and not any(n in b for b in blanks)
        else _escape(c)
        for n, c in enumerate(text)
    )


def unescape_text(text: str) -> str:
    """The inverse of ``escape_line``."""

    def read_escape(match: re.Match[str]) -> str:
        code = match[2] or match[3] or match[4]
        return match[1] or (chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0])

    return _ESCAPE.sub(read_escape, text) if "\\" in text else text


def quote_string(text: str) -> str:
    """The text as a beancount string. What nobody sees is written out, but for line ends and tabs."""
    if not (text.isprintable() and "\\" not in text and '"' not in text):
        text = "".join(_STRING_ESCAPES.get(c) or (c if c.isprintable() else "\\" + _escape(c)) for c in text)
    return f'"{text}"'


def unquote_string(text: str) -> str:
    """What stands between the quotes of a beancount string."""
    return (
        re.sub(r"\\(.)", lambda m: _STRING_CHARACTERS.get(m[1], m[1]), text, flags=re.DOTALL) if "\\" in text else text
    )


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

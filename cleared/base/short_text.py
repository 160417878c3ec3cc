"""Long texts and lists, cut to what a line or a card can show; eight bytes for a text; and numbers read from texts of
others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

_PLAIN_NAME: Final = r"(?a)[\w./*?@:+-]{1,80}"
_MOST_NAME: Final = 200
MARK_BYTES: Final = 8


def replace_surrogates(text: str) -> str:
    """The text with "?" for each half of a surrogate pair: a byte that was no text, or half a character. It can be
    written nowhere."""
    return text.encode("utf-8", "replace").decode()


def shorten_text(text: str, most: int) -> str:
    """The text, or its beginning and "…": at most ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten_line(text: str, most: int) -> str:
    """The text on one line, every run of white space one blank: at most ``most`` characters."""
    return shorten_text(" ".join(text.split()), most)


def quote_text(text: str, most: int) -> str:
    """The text on one line in “quotation marks”, which nothing in it can end."""
    inner = shorten_line(text, most).replace("“", "'").replace("”", "'")
    return f"“{inner}”"


def quote_name(name: str) -> str:
    """A name as it is where it is one plain word, else in “quotation marks”: nothing in it reads as words of ours."""
    return name if re.fullmatch(_PLAIN_NAME, name) else quote_text(name, _MOST_NAME)


def join_words(words: Sequence[str], word: str = "and") -> str:
    """The words as one reads them: ``a, b and c``; with another word than "and" that."""
    return f" {word} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def list_first(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first ``most`` names, and how many more there are: ``a, b and 3 more``."""
    left = len(names) - most
    return separator.join(names[:most]) + (f" and {left} more" if left > 0 else "")


def list_lines(lines: Sequence[str], most: int, end: str = "… and {} more") -> list[str]:
    """The first ``most`` lines, and where there are more, one that says how many."""
    left = len(lines) - most
    return [*lines[:most], *([end.format(left)] if left > 0 else [])]


def clip_middle(text: str, most: int) -> str:
    """The text; of a longer one the first and the last characters, ``most`` of them, and how many are left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def parse_count(text: object, digits: int = 9) -> int | None:
    """The whole number that a text of others is, of at most so many plain digits; None for anything else."""
    is_number = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if isinstance(text, str) and is_number else None


def mark_text(text: str) -> bytes:
    """``MARK_BYTES`` for a text, the same for the same text; rarely for another one. For who looks among very many."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MARK_BYTES).digest()

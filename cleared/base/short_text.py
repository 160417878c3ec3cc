"""Long texts and lists, cut to what a line or a card can show; and numbers read from texts of others."""

from __future__ import annotations

from collections.abc import Sequence


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


def join_words(words: Sequence[str], word: str = "and") -> str:
    """The words as one reads them: ``a, b and c``; with another word than "and" that."""
    return f" {word} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def list_first(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first ``most`` names, with " …" where there are more."""
    return separator.join(names[:most]) + (" …" if len(names) > most else "")


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

"""What a person or a program reads: tables, JSON, and text from outside made harmless to a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def escape_text(text: object) -> str:
    """The text on one line: control, direction and other unseen characters as escapes (``\\n``, ``\\u202e``)."""
    string = str(text)
    if string.isascii() and string.isprintable():
        return string
    return "".join(
        c if c == " " or unicodedata.category(c) not in _UNSEEN_CATEGORIES else _escape_char(c) for c in string
    )


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def escape_lines(text: str) -> str:
    """As ``safe``, but newlines stay: for messages of several lines that are our own."""
    return "\n".join(escape_text(line) for line in text.split("\n"))


def print_message(text: str) -> None:
    """A line for whoever watches, on stderr."""
    sys.stderr.write(escape_lines(text) + "\n")
    sys.stderr.flush()


def print_line(text: str) -> None:
    """A result, on stdout."""
    sys.stdout.write(escape_lines(text) + "\n")


def print_json(value: Any) -> None:
    """One JSON value on stdout; exact amounts and dates as texts. ASCII only, so that no terminal is steered by a
    bank's text."""
    json.dump(value, sys.stdout, indent=2 if sys.stdout.isatty() else None, ensure_ascii=True, default=str)
    sys.stdout.write("\n")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), empty: str
) -> None:
    """A table on stdout; ``empty`` is said instead of one without rows. Columns in ``right`` are aligned right."""
    cells = [[escape_text(c) if c is not None else "" for c in row] for row in rows]
    if not cells:
        print_line(empty)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    shown = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, header_style="bold" if terminal else "")
    for name in columns:
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=not terminal)
    for row in cells:
        shown.add_row(*(Text(c) for c in row))
    console = Console(file=sys.stdout, highlight=False, width=None if terminal else 400)
    if terminal:
        console.print(shown)
        return
    with console.capture() as captured:
        console.print(shown)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line, on stdout."""
    shown = [(name, "" if value is None else str(value)) for name, value in pairs]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        first, *rest = escape_lines(value).split("\n")
        print_line(f"{name:<{width}}  {first}".rstrip())
        for line in rest:
            print_line(" " * (width + 2) + line)

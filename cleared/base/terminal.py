"""What a person or a program reads: lines, tables, JSON, and text from outside made harmless to a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from cleared.base.short_text import parse_count
from cleared.base.unseen_characters import INVISIBLE, is_unseen

_NO_WIDTH: Final = {"Mn", "Me"}
MIN_WRAP_WIDTH: Final = 24
"""A column that wraps is at least so wide; where there is less room, its cells stand below their row."""


def escape_text(text: object) -> str:
    """The text on one line: control, direction and other unseen characters as escapes (``\\n``, ``\\u202e``). Odd
    spaces stay: they show the blank that they are, and banks write them."""
    string = str(text)
    if string.isprintable() and (string.isascii() or re.search(INVISIBLE, string) is None):
        return string
    return "".join(_escape_char(c) if is_unseen(c) and unicodedata.category(c) != "Zs" else c for c in string)


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def escape_lines(text: str) -> str:
    """As ``escape_text``, but newlines stay: for messages of several lines that are our own."""
    return "\n".join(escape_text(line) for line in text.split("\n"))


def print_message(text: str) -> None:
    """A line for whoever watches, on stderr. Where nobody can, what is being done goes on all the same."""
    write_if_open(sys.stderr, escape_lines(text) + "\n")


def write_if_open(stream: TextIO, text: str) -> bool:
    """Write the text at once; whether that was possible. What comes for this stream later is thrown away, if not."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        discard_stream(stream)
        return False
    return True


def discard_stream(stream: TextIO) -> None:
    """Throw away what is written to the stream from now on, and what of it waits: the exit says nothing of it."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def print_line(text: str) -> None:
    """A result, on stdout."""
    sys.stdout.write(escape_lines(text) + "\n")


def print_json(value: Any) -> None:
    """One JSON value on stdout; exact amounts and dates as texts.

    ASCII only, so that no bank's text can steer a terminal.
    """
    json.dump(value, sys.stdout, indent=2 if sys.stdout.isatty() else None, ensure_ascii=True, default=str)
    sys.stdout.write("\n")


def print_json_list(values: Iterable[Any]) -> None:
    """As ``print_json`` of a list, but each value is written before the next is taken."""
    indented = sys.stdout.isatty()
    between, is_first = ("\n  " if indented else ""), True
    sys.stdout.write("[")
    for value in values:
        text = json.dumps(value, indent=2 if indented else None, ensure_ascii=True, default=str)
        sys.stdout.write(("" if is_first else "," if indented else ", ") + between + text.replace("\n", "\n  "))
        is_first = False
    sys.stdout.write("\n]\n" if indented and not is_first else "]\n")


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line, on stdout."""
    shown = [(name, field_text(value)) for name, value in pairs]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        first, *rest = escape_lines(value).split("\n")
        print_line(f"{name:<{width}}  {first}".rstrip())
        for line in rest:
            print_line(" " * (width + 2) + line)


def field_text(value: object) -> str:
    """Plain data as a person reads it: lists with commas, mappings as ``name: value``, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_inner_text(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_inner_text(inner) for inner in value)
    return str(value)


def _inner_text(value: object) -> str:
    """As ``field_text``, but on one line."""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, Mapping) else field_text(value)


def count_noun(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 file``, ``2 files``. ``many``: the plural where it is not ``one`` and an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


# --- tables -------------------------------------------------------------------------------------------------


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    right: Sequence[str] = (),
    wrap: Sequence[str] = (),
    heading: bool = True,
    file: TextIO | None = None,
) -> None:
    """A table on stdout (or ``file``). Nothing is ever cut, and a pipe or a file has no width.

    ``wrap`` names the columns that give way on a narrow terminal, the first of them first: they take several lines,
    and where there is no room for that they stand below their row. Ids, statuses and counts are not among them: if
    even those do not fit, the last of them go below. Columns in ``right`` are aligned right; ``empty`` is printed
    instead of a table without rows.
    """
    out = file or sys.stdout
    names = list(columns)
    texts = [["" if cell is None else str(cell) for cell in column] for column in zip(*rows, strict=True)]
    if not texts:
        out.write(escape_lines(empty) + "\n")
        return
    shown = [[name, *column] for name, column in zip(names, texts, strict=True)] if heading else texts
    widths = [_measure_column(column) for column in shown]
    if not out.isatty():
        out.writelines(_format_rows(shown, widths, {n for n, name in enumerate(names) if name in right}))
        return
    cells = [[escape_text(text) for text in row] for row in zip(*texts, strict=True)]
    layout = _fit_layout(names, widths, right, wrap, _terminal_width(out), airy=heading)
    if heading:
        bold = os.environ.get("TERM", "") not in ("", "dumb") and "NO_COLOR" not in os.environ
        out.write("\n")
        for line in layout.lines(names, below=False):
            out.write(f"\x1b[1m{line}\x1b[0m\n" if bold else f"{line}\n")
        out.write(" " * layout.margin + "─" * layout.row_width + "\n")
    out.writelines(line + "\n" for row in cells for line in layout.lines(row))
    if heading:
        out.write("\n")


def print_batches(
    columns: Sequence[str],
    read_batches: Callable[[], Iterable[Sequence[Sequence[str]]]],
    *,
    empty: str,
    right: Sequence[str] = (),
    wrap: Sequence[str] = (),
    file: TextIO | None = None,
) -> None:
    """As ``print_table`` without a heading, of rows that are too many to be held at once.

    ``read_batches`` gives some rows at a time, each time column by column. It is called twice: to measure and to print.
    """
    out = file or sys.stdout
    widths: list[int] = []
    measured: list[Sequence[Sequence[str]]] = []
    for batch in read_batches():
        widths = [max(pair) for pair in zip(widths or [0] * len(columns), map(_measure_column, batch), strict=True)]
        measured = [*measured, batch][:2]
    if not measured:
        out.write(escape_lines(empty) + "\n")
        return
    aligned = {n for n, name in enumerate(columns) if name in right}
    layout = _fit_layout(columns, widths, right, wrap, _terminal_width(out), airy=False) if out.isatty() else None
    for batch in measured if len(measured) == 1 else read_batches():
        if layout is not None:
            for row in zip(*batch, strict=True):
                out.writelines(line + "\n" for line in layout.lines([escape_text(text) for text in row]))
            continue
        out.writelines(_format_rows(batch, widths, aligned))


def _is_plain(texts: Sequence[str]) -> bool:
    """Whether nothing of these is escaped, and each character takes one cell."""
    joined = "".join(texts)
    return joined.isascii() and joined.isprintable()


def _measure_column(texts: Sequence[str]) -> int:
    if _is_plain(texts):
        return max(map(len, texts), default=0)
    return max(text_width(escape_text(text)) for text in set(texts))


def _format_rows(columns: Sequence[Sequence[str]], widths: Sequence[int], to_right: set[int]) -> list[str]:
    """The rows as lines, in columns so wide. ``to_right``: the columns that are aligned right."""
    if all(map(_is_plain, columns)):
        pattern = "  ".join(f"%{'' if n in to_right else '-'}{width}s" for n, width in enumerate(widths))
        return [f"{(pattern % row).rstrip()}\n" for row in zip(*columns, strict=True)]
    padded = [_pad_column(column, widths[n], n in to_right) for n, column in enumerate(columns)]
    return [f"{'  '.join(row).rstrip()}\n" for row in zip(*padded, strict=True)]


def _pad_column(texts: Sequence[str], width: int, to_right: bool) -> list[str]:
    if _is_plain(texts):
        return [text.rjust(width) for text in texts] if to_right else [text.ljust(width) for text in texts]
    padded = {}
    for text in set(texts):
        shown = escape_text(text)
        space = " " * (width - text_width(shown))
        padded[text] = space + shown if to_right else shown + space
    return [padded[text] for text in texts]


def text_width(text: str) -> int:
    """Cells that a text takes on a terminal: two for wide letters, none for marks on the letter before."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in _NO_WIDTH else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _terminal_width(out: TextIO) -> int:
    if columns := parse_count(os.environ.get("COLUMNS")):
        return columns
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except OSError:
        return 80


class _Layout:
    """Which columns stand in the row, how wide, and which below it."""

    def __init__(
        self,
        names: Sequence[str],
        widths: Sequence[int],
        right: set[int],
        below: Sequence[int] = (),
        *,
        margin: int = 0,
        gap: int = 2,
        total: int = 0,
    ) -> None:
        self.names, self.widths, self.right, self.below = names, widths, right, below
        self.margin, self.gap, self.total = margin, gap, total
        self.beside = [n for n in range(len(names)) if n not in below]
        self.row_width = sum(widths[n] for n in self.beside) + gap * (len(self.beside) - 1)

    def lines(self, row: Sequence[str], *, below: bool = True) -> Iterator[str]:
        """The lines of one row."""
        folded = [fold_text(row[n], self.widths[n]) for n in self.beside]
        for i in range(max(map(len, folded), default=0)):
            cells = []
            for n, parts in zip(self.beside, folded, strict=True):
                part = parts[i] if i < len(parts) else ""
                space = " " * (self.widths[n] - text_width(part))
                cells.append(space + part if n in self.right else part + space)
            yield (" " * self.margin + (" " * self.gap).join(cells)).rstrip()
        for n in self.below if below else ():
            if row[n]:
                label = f"{self.names[n]}: " if self.names[n] else ""
                for i, part in enumerate(fold_text(label + row[n], max(self.total - 6, 10))):
                    yield " " * (6 if i else 4) + part


def _fit_layout(
    names: Sequence[str], widths: Sequence[int], right: Sequence[str], wrap: Sequence[str], total: int, *, airy: bool
) -> _Layout:
    """The layout for a terminal that is ``total`` wide; ``airy``: with more space between columns, where there is."""
    aligned = {n for n, name in enumerate(names) if name in right}
    roomy = _Layout(names, widths, aligned, margin=1, gap=3, total=total)
    if airy and roomy.margin + roomy.row_width <= total:
        return roomy
    wrapping = [n for name in wrap for n, column in enumerate(names) if column == name]
    below: list[int] = []
    for leaving in [*wrapping, *(n for n in reversed(range(1, len(names))) if n not in wrapping), None]:
        beside = [n for n in range(len(names)) if n not in below]
        room = total - 2 * (len(beside) - 1) - sum(widths[n] for n in beside if n not in wrapping)
        shares = _share_room([n for n in beside if n in wrapping], widths, room)
        if shares is not None or leaving is None:
            fitted = [(shares or {}).get(n, width) for n, width in enumerate(widths)]
            return _Layout(names, fitted, aligned, sorted(below), total=total)
        below.append(leaving)
    raise AssertionError("the last layout is always taken")


def _share_room(columns: Sequence[int], widths: Sequence[int], room: int) -> dict[int, int] | None:
    """The width of each of these columns, together ``room`` at most; None where there is not enough for one."""
    shares: dict[int, int] = {}
    left = sorted(columns, key=lambda n: widths[n])
    while left:
        n = left.pop(0)
        shares[n] = min(widths[n], room // (len(left) + 1))
        if shares[n] < min(widths[n], MIN_WRAP_WIDTH):
            return None
        room -= shares[n]
    return shares if room >= 0 else None


def fold_text(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` cells, broken at blanks where there are any; never an empty list."""
    if text_width(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        while text_width(candidate) > width:
            if line:
                lines.append(line)
                line, candidate = "", word
                continue
            head = _longest_start(candidate, width)
            lines.append(head)
            candidate = candidate[len(head) :]
        line = candidate
    return [*lines, line] if line or not lines else lines


def _longest_start(text: str, width: int) -> str:
    """The longest beginning that is at most ``width`` cells wide, and at least one character."""
    used = 0
    for i, char in enumerate(text):
        used += text_width(char)
        if used > width and i:
            return text[:i]
    return text

"""Byte-stable CSV: one way to write a record, and a reader that tells where each record stood.

RFC 4180 with ``\\n`` line ends, minimal quoting, UTF-8. Python's writer leaves a lone carriage return unquoted
(and so loses it on reading), hence our own few lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence


def format_field(value: str) -> str:
    """One field as it is written: quoted only where it must be."""
    if '"' in value or "," in value or "\n" in value or "\r" in value:
        return '"' + value.replace('"', '""') + '"'
    return value


def format_record(values: Iterable[str]) -> str:
    """One record with its line end."""
    fields = tuple(values)
    text = ",".join(fields)
    # Most records need no quotes at all, and to see that of the whole is far quicker than of each field.
    if '"' in text or "\n" in text or "\r" in text or text.count(",") >= len(fields):
        text = ",".join([format_field(v) for v in fields])
    return text + "\n"


def encode(text: str) -> bytes:
    return text.encode("utf-8")


class CsvDamage(ValueError):
    """The text is not the CSV we write. ``line`` is 1-based."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_records(
    data: bytes, header: Sequence[str], *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """The records after the header, each with the 1-based line it starts on.

    The header must be ``header``, possibly followed by columns of ``optional`` in their order; rows are padded
    to ``header + optional``. Raises ``CsvDamage`` for a wrong header, a torn last line, bad quoting, a wrong
    number of fields, or bytes that are not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise CsvDamage(f"byte {e.start} is not UTF-8", data.count(b"\n", 0, e.start) + 1) from None
    if not text:
        raise CsvDamage("the file is empty; it should begin with its header", 1)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        actual = next(reader)
        full = [*header, *optional]
        if actual != full[: len(actual)] or len(actual) < len(header):
            raise CsvDamage(f"the header is {','.join(actual)[:200]!r}, not {','.join(header)!r}", 1)
        width, padding = len(actual), [""] * (len(full) - len(actual))
        line = reader.line_num + 1
        for row in reader:
            if len(row) != width:
                raise CsvDamage(f"the row has {len(row)} fields, the header {width}", line)
            yield line, row + padding if padding else row
            line = reader.line_num + 1
    except csv.Error as e:
        raise CsvDamage(f"not readable as CSV: {e}", line) from None
    if not text.endswith("\n"):
        raise CsvDamage("the last line is torn: it has no line end", text.count("\n") + 1)


def split_rows(data: bytes) -> list[bytes]:
    """The rows of a CSV or JSON-lines file, each with its line end; a quoted field may go over several lines."""
    lines = data.splitlines(keepends=True)
    if b'"' not in data:
        return lines
    rows: list[bytes] = []
    row: list[bytes] = []
    quotes = 0
    for line in lines:
        row.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0 or row[0].startswith(b"{"):
            rows.append(b"".join(row))
            row, quotes = [], 0
    return [*rows, b"".join(row)] if row else rows

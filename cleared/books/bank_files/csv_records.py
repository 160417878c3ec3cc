"""CSV text to records, each with the physical line it starts on. Nothing is repaired."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from cleared.books.bank_files.base import Fault, Faults, ImportFileError

# \r\n, \n and a lone \r end a line, as for the csv module; no other character does.
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")


def split_lines(text: str, skip: int = 0) -> Iterator[str]:
    """The physical lines, each with its own line end, without the first ``skip``."""
    for number, match in enumerate(_LINE.finditer(text)):
        if number >= skip:
            yield match.group()


def read_records(text: str, delimiter: str = ",", skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """``(line, fields)`` of every record after ``skip`` physical lines; blank lines are passed over.

    Quoting is RFC 4180's: a quoted field may hold delimiters, line ends and doubled quotes, all kept as they
    are. Raises ``ImportFileError`` for text after a closing quote, a quote left open at the end of the file
    (a truncated file) and a field over the csv module's limit.
    """
    reader = csv.reader(split_lines(text, skip), delimiter=delimiter, strict=True)
    start = skip + 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield start, fields
            start = reader.line_num + skip + 1
    except csv.Error as error:
        faults = Faults([_describe_csv_error(str(error), text, start, reader.line_num + skip, delimiter)])
        raise faults.error() from None


def read_header(text: str, delimiter: str = ",", skip: int = 0) -> tuple[int, list[str]] | None:
    """The first record as ``(line, names)``, stripped, without one trailing empty name; None: there is none."""
    try:
        line, fields = next(read_records(text, delimiter, skip))
    except (StopIteration, ImportFileError):
        return None
    names = [name.strip() for name in fields]
    if len(names) > 1 and not names[-1]:
        names.pop()
    return line, names


def fold_names(names: Iterable[str]) -> tuple[str, ...]:
    """Column heads as they are compared."""
    return tuple(name.strip().casefold() for name in names)


def _describe_csv_error(error: str, text: str, start: int, last: int, delimiter: str) -> Fault:
    opened = _find_open_quote(text, start, last, delimiter)
    if "field limit" in error:
        return Fault(opened, f"a field is longer than {csv.field_size_limit()} characters; is a quote missing?")
    if "unexpected end" in error:
        return Fault(opened, "the file is truncated: a quote opens on this line and is never closed")
    at = "" if opened == last else f" on line {last}"
    return Fault(opened, f"text follows the closing quote{at} of a field that opens here; double quotes inside quotes")


def _find_open_quote(text: str, start: int, last: int, delimiter: str) -> int:
    """The line on which the quoted field that spoils the record of lines ``start`` to ``last`` opens."""
    opened = start
    state = "start"  # of a field; then "plain", "quoted" or "closing" (a quote inside a quoted field)
    for number, line in enumerate(split_lines(text, start - 1), start):
        if number > last:
            break
        for char in line:
            if state == "quoted":
                state = "closing" if char == '"' else state
            elif state == "start" and char == '"':
                state, opened = "quoted", number
            elif state == "closing" and char == '"':
                state = "quoted"
            elif char == delimiter:
                state = "start"
            elif state == "closing" and char not in "\r\n":
                return opened
            else:
                state = "plain"
    return opened

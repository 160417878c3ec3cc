"""Files of which, of all rows about the same, the last counts: a period, the outcome of a line. In these the order of
rows says something, also from one commit to the next."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from cleared.base.csv_text import split_rows
from cleared.base.multiset_sum import find_moved, mark_more
from cleared.domains.installed_domains import load_domains

Subject = tuple[str, ...]
"""What a row is about."""


def list_rows_before(path: str, old: bytes | None, new: bytes | None) -> list[str]:
    """Of each row that a file gains, the one about the same that stood last before it; empty where there is none.
    Nothing for files of which the last row does not count, and for those that come or go."""
    columns = _find_columns(path)
    if columns is None or old is None or new is None:
        return []
    rows = split_rows(new)
    before = [earlier for _, earlier in pair_with_rows_before(path, new) or ()]
    is_new = mark_more(rows, split_rows(old))
    return [earlier.decode("latin-1") for earlier, new_row in zip(before, is_new, strict=True) if new_row]


def pair_with_rows_before(path: str, data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Each row of a file, with the one about the same that stood last before it (empty: none). ``None`` for files of
    which the last row does not count."""
    columns = _find_columns(path)
    if columns is None:
        return None
    last: dict[Subject, bytes] = {}
    pairs = []
    for row in split_rows(data):
        subject = _read_subject(row, columns)
        pairs.append((row, last.get(subject, b"")))
        last[subject] = row
    return pairs


def find_moved_rows(path: str, old: bytes, new: bytes) -> list[bytes]:
    """The first row of each subject that does not come after those that it came after before."""
    columns = _find_columns(path)
    if columns is None or new.startswith(old):
        return []
    then, now = (_group_rows(data, columns) for data in (old, new))
    return [row for subject, rows in then.items() for row in find_moved(rows, now.get(subject, []))]


def _group_rows(data: bytes, columns: Sequence[int]) -> dict[Subject, list[bytes]]:
    groups: dict[Subject, list[bytes]] = {}
    for row in split_rows(data):
        groups.setdefault(_read_subject(row, columns), []).append(row)
    return groups


def _find_columns(path: str) -> Sequence[int] | None:
    name = PurePosixPath(path).name
    return next((domain.latest_rows[name] for domain in load_domains() if name in domain.latest_rows), None)


def _read_subject(row: bytes, columns: Sequence[int]) -> Subject:
    text = row.decode("utf-8", "surrogateescape").rstrip("\r\n")
    fields = text.split(",")
    if '"' in text:
        with suppress(csv.Error):  # damaged as it is, it is about something else
            fields = next(csv.reader(io.StringIO(text, newline="")), [])
    return tuple(fields[at] for at in columns if at < len(fields))

"""Files to look at beside a card: one that was taken in, at its row; the script at the line that made the record."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from typing import Any, Final, Self

from msgspec import Struct

from cleared.base.errors import ClearedError, UsageError
from cleared.base.safe_names import resolve_inside
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import read_imported_files
from cleared.git import Snapshot
from cleared.review.queue_snapshot import QueueSnapshot

SHOWN_BYTES: Final = 8 * 1024 * 1024


class FileView(Struct, frozen=True):
    """A file to look at; ``line`` is the one that matters, from 1."""

    name: str
    lines: tuple[str, ...]
    line: int | None = None
    note: str = ""

    def cut_around(self, most: int) -> tuple[int, tuple[str, ...]]:
        """At most so many of its lines, around the one that matters; and the number of the first."""
        begin = max(0, min((self.line or 1) - most // 2, len(self.lines) - most))
        return begin + 1, self.lines[begin : begin + most]

    @classmethod
    def from_diff(cls, path: str, text: str) -> Self:
        """A unified diff, whose lines end with a line feed alone: no other character begins one."""
        return cls(path, tuple(text.removesuffix("\n").split("\n")))


def has_bank_file(queue: QueueSnapshot, card: Card) -> bool:
    """Whether a card is about a file that was handed in for an import; a receipt is none."""
    return queue.source_of(card) is not None or ("file" in card.details and "receipt" not in card.details)


def bank_file(host: Host, queue: QueueSnapshot, card_id: str) -> FileView:
    """The bank file of a card, at its row. Raises ``UsageError`` where there is none, or it is not here."""
    card = queue.cards.get(card_id)
    if card is None or not has_bank_file(queue, card):
        raise UsageError("this card is not about a bank file", remedy="Entries and files have one.")
    source, rows = queue.source_of(card), card.details.get("rows")
    first = rows[0].get("row") if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
    line = source.row if source is not None else card.details.get("row", first)
    if source is not None:
        name, data = source.name, _read_by_digest(host, source.sha256, source.name)
    else:
        name = str(card.details["file"])
        digest = _find_digest(host, name, card.run_id)
        data = _read_by_digest(host, digest, name) if digest else _read_import_file(host, name)
        data = data or _read_import_file(host, f"{host.layout.processed_dir}/{name}")
    if data is None:
        raise UsageError(f"{name or 'the file'} is not on this machine", remedy="Look where it was imported.")
    return FileView(name, _decode_lines(data), line if isinstance(line, int) else None)


def _find_digest(host: Host, name: str, run: str | None) -> str:
    """The digest of the file of this name that a run imported; empty where it imported none."""
    with host.open_last_commit() as snapshot:
        imported = read_imported_files(CommittedSource(snapshot), host.layout)
    return next((file.sha256 for file in imported if (file.name, file.imported_by) == (name, run)), "")


def _read_by_digest(host: Host, digest: str, name: str) -> bytes | None:
    """A processed file by its content: its name may have been taken, then it lies under another."""
    folder = host.layout.processed_dir
    with host.open_last_commit() as snapshot:
        paths = list(snapshot.list_entries(folder))
    on_disk = host.root / folder
    if on_disk.is_dir():
        paths += [p.relative_to(host.root).as_posix() for p in on_disk.rglob("*") if p.is_file()]
    stem = name.rsplit("/", 1)[-1]
    for path in sorted(dict.fromkeys(paths), key=lambda p: not p.endswith(stem)):
        data = _read_import_file(host, path)
        if data is not None and hashlib.sha256(data).hexdigest() == digest:
            return data
    return None


def _read_import_file(host: Host, path: str) -> bytes | None:
    """A file below ``import/``, as committed or as it lies there; a card may name anything."""
    if not path.startswith(f"{host.layout.import_dir}/"):
        return None
    with host.open_last_commit() as snapshot:
        data = snapshot.read_file(path)
    if data is not None:
        return data
    try:
        full = resolve_inside(host.root / host.layout.import_dir, path[len(host.layout.import_dir) + 1 :])
        return full.read_bytes() if full.is_file() and full.stat().st_size <= SHOWN_BYTES else None
    except (ClearedError, OSError, ValueError):
        return None


def _decode_lines(data: bytes) -> tuple[str, ...]:
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "latin-1"):
        try:
            text = data[:SHOWN_BYTES].decode(encoding)
        except UnicodeDecodeError:
            continue
        return tuple(line.removesuffix("\n") for line in io.StringIO(text, newline=None))  # as importers count them
    return ()


def record_script(host: Host, why: Mapping[str, Any]) -> FileView:
    """The script that made a record, as it was then, at the line of the call. ``why``: ``Explanation.data``.

    Raises ``UsageError`` where a person posted it.
    """
    if not why.get("run"):
        raise UsageError("a person posted this entry; there is no script", remedy="cleared why shows who.")
    path = str(why["script"]["file"])
    call = why.get("call")
    with host.open_for_reading() as repo:
        data = Snapshot(repo, str(why["commit"]["id"])).read_file(path)
        other = str(call["file"]) if call else path
        if call and other != path:
            data, path = Snapshot(repo, str(why["commit"]["id"])).read_file(other) or data, other
    if data is None:
        raise UsageError(f"{path} is not in that commit", remedy="cleared why shows what is known.")
    return FileView(
        path,
        _decode_lines(data),
        int(call["line"]) if call else None,
        "" if call else "Which line made the entry is not known any more.",
    )

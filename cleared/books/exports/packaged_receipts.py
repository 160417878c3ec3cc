"""The receipts of a period's entries, for the package: the files that this clone has, and which are missing in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from cleared.base.csv_text import format_record
from cleared.base.date_spans import DateSpan
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun, escape_text
from cleared.books.exports.exported_journal import ExportedBooks
from cleared.books.ledger.receipts import Receipt, parse_receipts
from cleared.books.reports.cell_texts import protect_text


@dataclass(frozen=True, slots=True)
class PackagedReceipt:
    """One receipt, with the entries of the period that it proves. ``data``: reads it; None where it is not here."""

    name: str
    file: str
    sha256: str
    entries: tuple[tuple[str, date], ...]
    data: Callable[[], bytes] | None


def find_receipts(exported: ExportedBooks, span: DateSpan, root: Path) -> list[PackagedReceipt]:
    """The receipts of the period's entries that stand, from the commit or, kept on this machine, from its folder."""
    path = exported.books.paths.receipts
    packaged = []
    for receipt in parse_receipts(exported.books.source.read(path), path).values():
        known = [entry for entry_id in receipt.entries if (entry := exported.index.find_entry(entry_id)) is not None]
        standing = [entry for entry in known if entry.status != "voided"]
        entries = tuple((e.entry_id, e.date) for e in standing if span.start <= e.date <= span.end)
        if entries:
            reader = _find_reader(exported, receipt, root)
            packaged.append(PackagedReceipt(receipt.name, receipt.file, receipt.sha256, entries, reader))
    return packaged


def _find_reader(exported: ExportedBooks, receipt: Receipt, root: Path) -> Callable[[], bytes] | None:
    """What reads the very file that was kept; None where this clone has not got it."""

    def read_committed() -> bytes:
        return exported.books.source.read(receipt.file) or b""

    def read_local() -> bytes:
        return read_stable(root / receipt.file, receipt.size, shown=receipt.file)[0]

    for read in (read_committed, read_local):
        try:
            if hashlib.sha256(read()).hexdigest() == receipt.sha256:
                return read
        except WorkspaceError:  # there is no such file
            continue
    return None


def describe_missing_receipts(receipts: Iterable[PackagedReceipt]) -> str:
    """What to say of receipts that this clone has not got; empty where it has all."""
    missing = [receipt for receipt in receipts if receipt.data is None]
    if not missing:
        return ""
    names = list_first([escape_text(receipt.name) for receipt in missing], 5)
    are = "is" if len(missing) == 1 else "are"
    return f"{count_noun(len(missing), 'receipt')} {are} not in this clone, and so not in the package: {names}"


def write_receipt_list(receipts: Iterable[PackagedReceipt]) -> Iterator[str]:
    """CSV: which receipt proves which entry."""
    yield format_record(["entry_id", "date", "name", "file", "sha256", "included"])
    for receipt in receipts:
        for entry_id, day in receipt.entries:
            included = "yes" if receipt.data is not None else "no"
            yield format_record(
                [entry_id, day.isoformat(), protect_text(receipt.name), receipt.file, receipt.sha256, included]
            )

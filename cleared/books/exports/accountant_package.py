"""The package for an accountant: statements, tables and the books' own files of a year, in one zip; receipts, too, and
which of them are missing in this clone.

The same commit gives the same bytes: files in one order, no times, no names of this machine. ``manifest.json`` comes
last, with the digest of each file.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from cleared.base.csv_text import format_record
from cleared.base.date_spans import DateSpan
from cleared.base.errors import PolicyError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun, escape_text
from cleared.books.exports.book_tables import list_tables
from cleared.books.exports.export_target import EXPORTS_DIR, open_target, refuse_target
from cleared.books.exports.exported_journal import ExportedBooks
from cleared.books.exports.journal_export import open_exported_books
from cleared.books.exports.workbook_export import list_reports, write_workbook
from cleared.books.ledger.receipts import Receipt, parse_receipts
from cleared.books.queries import make_report_books
from cleared.books.reports.cell_texts import protect_text
from cleared.books.reports.renderings import join_texts, write_text
from cleared.books.reports.report import Report, describe_pending
from cleared.books.reports.report_books import ReportBooks
from cleared.books.reports.report_notes import name_basis
from cleared.changes.host import Host

_DATE: Final = (1980, 1, 1, 0, 0, 0)
_CHUNK: Final = 1 << 16


def default_path(host: Host, year: str) -> Path:
    """Where a package goes if nothing else is said."""
    return host.root / EXPORTS_DIR / f"package-{''.join(c for c in year if c.isalnum())[:10]}.zip"


def export_package(host: Host, year: str, path: Path, *, draft: bool = False, force: bool = False) -> dict[str, Any]:
    """Write the package of a year (``2025``, or ``FY2025`` for a fiscal year): ``{file, period, files, warnings}``.

    Raises ``PolicyError`` where entries of it wait for review (unless ``draft``), or there is such a file already
    (unless ``force``); ``UsageError`` for what is no period.
    """
    refuse_target(host.root, path, force=force)
    with open_exported_books(host) as exported:
        books = make_report_books(host, exported.index, exported.books)
        span = books.parse_period(year)
        waiting = books.pending(span.start, span.end)
        if waiting.count and not draft:
            raise PolicyError(
                f"the books of {span.label} are {describe_pending(waiting, exported.currency).replace('N', 'n', 1)}",
                remedy="Decide about them (cleared review), or pass --draft: the package says so then.",
            )
        reports = list_reports(books, span.label)
        warnings = list(dict.fromkeys(line for report in reports for line in report.list_warnings()))
        receipts = find_receipts(exported, span, host.root)
        warnings += [line for line in (describe_missing_receipts(receipts),) if line]
        with open_target(host.root, path, force=force) as file:
            written = _write_package(file, exported, books, reports, receipts, span, warnings)
    return {"file": str(path), "period": span.label, "files": written, "warnings": warnings}


def _write_package(
    file: BinaryIO,
    exported: ExportedBooks,
    books: ReportBooks,
    reports: list[Report],
    receipts: list[PackagedReceipt],
    span: DateSpan,
    warnings: list[str],
) -> list[str]:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        package = _PackageWriter(archive)
        basis = name_basis(books, span.end)
        package.add_file("README.txt", [_encode(_describe_package(exported, span, basis, warnings))])
        if find_spec("xlsxwriter") is not None:
            with tempfile.TemporaryFile() as whole:
                write_workbook(whole, exported, [report for report in reports if report.name != "ledger"], span)
                whole.seek(0)
                package.add_file("books.xlsx", iter(lambda: whole.read(_CHUNK), b""))
        for report in reports:
            for format in ("html", "csv"):
                texts = join_texts(write_text(report, format))
                package.add_file(f"reports/{report.name}.{format}", (_encode(text) for text in texts))
        for table in list_tables(exported, span):
            name = f"{table.name.lower().replace(' ', '-')}.csv"
            package.add_file(name, (_encode(text) for text in join_texts(table.iter_csv())))
        for source, data in _list_sources(exported, span):
            package.add_file(f"source/{source}", [data])
        for receipt in receipts:
            if receipt.data is not None:
                package.add_file(receipt.file, [receipt.data()])
        package.add_file("receipts.csv", [_encode(text) for text in write_receipt_list(receipts)])
        manifest = {
            "business": exported.title,
            "period": span.label,
            "from": str(span.start),
            "through": str(span.end),
            "currency": exported.currency,
            "commit": exported.commit,
            "draft": bool(books.pending(span.start, span.end).count),
            "warnings": warnings,
            "files": package.files,
        }
        package.add_file("manifest.json", [json.dumps(manifest, indent=1).encode(), b"\n"])
    return [str(each["path"]) for each in package.files]


class _PackageWriter(Struct):
    """Adds files to a zip, and remembers the digest of each."""

    archive: zipfile.ZipFile
    files: list[dict[str, str | int]] = []

    def add_file(self, path: str, parts: Iterable[bytes]) -> None:
        info = zipfile.ZipInfo(path, _DATE)
        info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
        digest, size = hashlib.sha256(), 0
        with self.archive.open(info, "w", force_zip64=True) as target:
            for part in parts:
                target.write(part)
                digest.update(part)
                size += len(part)
        self.files.append({"path": path, "bytes": size, "sha256": digest.hexdigest()})


def _list_sources(exported: ExportedBooks, span: DateSpan) -> Iterator[tuple[str, bytes]]:
    """The files of the books as they are in the commit, byte for byte: chart, journals and bank facts of the period."""
    source, paths = exported.books.source, exported.books.paths
    months = {f"{year:04d}-{month:02d}" for year, month in span.months}
    names = [paths.chart, *(paths.journal_path(*key) for key in span.months), paths.periods]
    for name in source.list_paths(paths.bank_root):
        stem = Path(name).stem
        is_month = len(stem) == 7 and stem[4] == "-" and name.count("/") > paths.bank_root.count("/") + 1
        if not is_month or stem in months:
            names.append(name)
    for name in sorted(set(names)):
        data = source.read(name)
        if data is not None:
            yield name, data


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _describe_package(exported: ExportedBooks, span: DateSpan, basis: str, warnings: list[str]) -> str:
    draft = "".join(f"{line}\n" for line in warnings)
    return (
        f"{escape_text(exported.title)}: the books of {span.label} ({span.start} to {span.end})\n"
        f"{exported.currency}, {basis} basis, as of commit {exported.commit}\n{draft}\n"
        "reports/          statements, general ledger, vendors, taxes: pages to read and print, and CSV\n"
        "books.xlsx        statements with formulas, accounts, journal and bank lines\n"
        "accounts.csv      the chart of accounts\n"
        "journal.csv       every leg of every entry\n"
        "bank-lines.csv    what the banks reported, and the entries that post each line\n"
        "receipts.csv      which receipt proves which entry; the files lie in receipts/\n"
        "source/           the files of the books as they are kept, byte for byte\n"
        "manifest.json     each file's size and SHA-256\n\n"
        "Adjusting entries: send them back as CSV with the columns date, description, account, debit, credit.\n"
        "In the CSV files a text that a spreadsheet would take for a formula has a ' before it.\n"
    )


class PackagedReceipt(Struct, frozen=True):
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
        standing = [e for e in receipt.list_proved(exported.index.find_entry) if e.status != "voided"]
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

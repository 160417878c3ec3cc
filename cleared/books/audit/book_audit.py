"""The books as they are judged: what the runtime asks of a ``RecordAudit``.

Entries, bank lines and closed periods stay, and receipts that git kept. A commit that changes accounts that were in the
chart is told, as figures of all months follow from it, closed ones too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

from cleared.base.csv_text import split_rows
from cleared.base.effects import Effect
from cleared.base.errors import Place, RestoreRemedy, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.books.importing.kept_bank_files import find_altered_bank_files
from cleared.books.index.entry_lookup import EntryLookup
from cleared.books.index.journal_index import open_index
from cleared.books.index.past_lines import PastLines, read_imports_once
from cleared.books.ledger.book_paths import locate_books, select_months
from cleared.books.ledger.chart import Account, parse_chart
from cleared.books.ledger.checks import check_against_commit
from cleared.books.ledger.entry import HEADER, entry_of_leg
from cleared.books.ledger.receipts import Receipt, find_stray_links, parse_receipts
from cleared.books.staged_books import journal_bounds, open_books
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import NamedRow, RecordAudit, RowKind, SharedFile, Violation, describe_error
from cleared.git import Snapshot, history
from cleared.git.history import VersionSearch
from cleared.workspace.location import Layout

_YEAR: Final = re.compile(r"[0-9]{4}")


class BookAudit(RecordAudit):
    """Judges journal, bank lines, periods, receipts and the chart of accounts.

    It is asked at every command, mostly for little: what reads books is imported where it is needed.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.paths = locate_books(layout)

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        from cleared.books.audit.books_check import check_books
        from cleared.books.audit.judged_months import JudgedMonths
        from cleared.books.import_cards import list_explanations

        books, bank = open_books(self.layout, source)
        list_asked = partial(list_explanations, self.layout, source, bank)
        if commit is None:
            return check_books(books, bank, None, list_asked)
        index = open_index(self.layout, commit, books.bounds.places)
        return check_books(books, bank, JudgedMonths(index, commit, self.layout.state_dir), list_asked)

    def check_edits(self, source: FileSource, committed: FileSource) -> list[Violation]:
        books, _ = open_books(self.layout, source)
        before, _ = open_books(self.layout, committed)
        return check_against_commit(books, committed, sorted({*books.list_months(), *before.list_months()}))

    def check_history(self, commit: Snapshot, since: Snapshot | None = None) -> Iterable[Violation]:
        from cleared.books.audit.asked_questions import find_unasked

        return chain(
            find_lost_receipts(self.layout, commit),
            find_stray_receipts(self.layout, commit),
            find_altered_bank_files(self.layout, commit, since),
            self.find_damage(CommittedSource(commit)),
            find_unasked(self.layout, commit),
        )

    def find_damage(self, source: FileSource) -> Iterator[Violation]:
        past = PastLines(open_books(self.layout, source)[1], self.layout.state_dir)
        for read in (past.list_later_ids, partial(read_imports_once, self.layout.state_dir, source, self.paths)):
            try:
                read()
            except WorkspaceError as error:
                yield describe_error(error)

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        months = [month for month in map(self.paths.find_month, files) if month is not None]
        outcomes = [path for _, path in select_months(files, self.paths.outcomes)]
        if not months and not outcomes:
            return []
        from cleared.books.decision_effects import effects_between

        earlier, _ = open_books(self.layout, before)
        books, bank = open_books(self.layout, after)
        return effects_between(earlier, books, bank, months, outcomes)

    def name_decisions(self, files: Collection[str]) -> Iterator[str]:
        if self.paths.periods in files:
            yield "closed or reopened a period"

    @property
    def folders(self) -> Sequence[str]:
        fixed = [self.paths.folder, PurePosixPath(self.paths.chart).parent.as_posix()]
        if self.paths.journal_root:
            return fixed
        return [*fixed, *sorted(p.name for p in self.layout.root.iterdir() if _YEAR.fullmatch(p.name) and p.is_dir())]

    @property
    def shared_files(self) -> Sequence[SharedFile]:

        remedy = "To rename or close an account: cleared accounts."
        path = self.paths.chart
        return (SharedFile(path, "accounts", remedy, partial(describe_chart_changes, path=path)),)

    def is_record_file(self, path: str) -> bool:
        paths = self.paths
        return path == paths.chart or path.startswith(f"{paths.folder}/") or paths.find_month(path) is not None

    def list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:

        return split_rows(data) if self.paths.find_month(path) is None else list_without_status(data)

    @property
    def row_kinds(self) -> Sequence[RowKind]:

        return ENTRIES, LINES, PERIODS

    def find_row_kind(self, path: str) -> RowKind | None:
        entries, lines, periods = self.row_kinds
        if self.paths.find_month(path) is not None:
            return entries
        if path == self.paths.periods:
            return periods
        root = self.paths.bank_root
        return lines if path.startswith(f"{root}/") and path.count("/") > root.count("/") + 1 else None

    def list_roots(self, commit: Snapshot) -> Collection[str]:
        years = () if self.paths.journal_root else filter(_YEAR.fullmatch, commit.list_folder(""))
        return {self.paths.folder, *years}


_COMPARED_COLUMNS: Final = tuple(
    HEADER.index(name) for name in ("date", "account_id", "description", "debit", "credit")
)
_STATUS_COLUMN: Final = HEADER.index("status")
"""The column of a journal that may change."""


def _read_entries(text: str) -> Iterator[NamedRow]:
    for row in _read_csv(text):
        if len(row) > max(_COMPARED_COLUMNS):
            yield tuple(row[i] for i in _COMPARED_COLUMNS), entry_of_leg(row[0])


def _read_lines(text: str) -> Iterator[NamedRow]:
    return (((row[0],), row[0]) for row in _read_csv(text))


def _read_periods(text: str) -> Iterator[NamedRow]:
    return ((tuple(row), row[0]) for row in _read_csv(text))


def _read_csv(text: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    except csv.Error:
        return []


ENTRIES: Final = RowKind("entries", ("entry", "entries"), _read_entries, counted_as="rows of entries", shows_ids=True)
LINES: Final = RowKind("lines", ("bank line", "bank lines"), _read_lines, counted_as="rows of bank lines")
PERIODS: Final = RowKind("periods", ("closing", "closings"), _read_periods, label="periods")


def list_without_status(data: bytes) -> list[bytes]:
    """The rows of a journal without the status of their entries; as they are where they are no CSV."""
    rows = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))
    try:
        return [
            ",".join(row[:_STATUS_COLUMN] + row[_STATUS_COLUMN + 1 :]).encode("utf-8", "surrogateescape")
            for row in rows
        ]
    except csv.Error:
        return data.splitlines()


_NAMES: Final = {
    "account_name": "name",
    "account_type": "type",
    "parent_id": "parent",
    "tax_line": "tax line",
    "closed_on": "closed on",
}


def describe_chart_changes(before: Snapshot, after: Snapshot, path: str) -> list[str]:
    """Each account that is gone, or of which the chart says something else; new ones are in nobody's way. Where one of
    them cannot be read, that is said: what is altered could hide behind it.
    """
    if before.find_entry(path) is None:
        return []
    try:
        charts = [parse_chart(each.read_file(path), path) for each in (before, after)]
    except WorkspaceError as error:
        return [f"the chart before or after it cannot be read ({error.message})"]
    old, new = (chart.accounts for chart in charts)
    changed = [
        f"{number} {account.account_name} {_describe_change(account, new.get(number))}"
        for number, account in old.items()
        if new.get(number) != account
    ]
    headings = charts[1].parents - charts[0].parents
    return changed + [
        f"{number} {account.account_name} is a heading now: nothing can be posted to it"
        for number, account in old.items()
        if number in headings
    ]


def _describe_change(old: Account, new: Account | None) -> str:
    if new is None:
        return "is gone"
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in Account.__struct_fields__)
    texts = [f"{_NAMES.get(name, name)} {a or 'none'} → {b or 'none'}" for name, a, b in pairs if a != b]
    return f"({', '.join(texts)})"


def find_lost_receipts(layout: Layout, snapshot: Snapshot) -> Iterator[Violation]:
    """Receipts on record whose file is no plain file of the commit any more, though it was one. Those that stay on the
    machine which took them were never in git."""
    path = locate_books(layout).receipts
    kept = _read_receipts(snapshot, path)
    missing = {each.file: each for each in kept.values() if snapshot.read_file(each.file) is None}
    if not missing:
        return
    # The folder, not the files: of very many receipts the names would not fit into a command.
    commits = history.commits_touching(layout.root, sorted({file.partition("/")[0] for file in missing}))
    search = VersionSearch(snapshot)
    for file, receipt in missing.items():
        last = next((commit for commit in commits if file in (commit.files or ())), None)
        if last is not None:
            remedy = RestoreRemedy(file, f"Or keep it no more: cleared receipt remove {receipt.sha256[:8]}")
            yield Violation(
                "receipts",
                f"the receipt {receipt.name!r} was taken away by the commit {last.id[:10]} ({last.subject[:60]!r}, "
                f"{last.author})",
                search.name_version(remedy, receipt.has_content),
                Place(file),
            )


def _read_receipts(snapshot: Snapshot, path: str) -> Mapping[str, Receipt]:
    """None where they cannot be read, which the check of records tells of."""
    try:
        return parse_receipts(snapshot.read_file(path), path)
    except WorkspaceError:
        return {}


def find_stray_receipts(layout: Layout, snapshot: Snapshot) -> Iterator[Violation]:
    """Links of receipts to entries that git took back. A merge may bring another entry under the number of one."""
    path = locate_books(layout).receipts
    linked = [each for each in _read_receipts(snapshot, path).values() if each.links]
    if linked:
        index = open_index(layout, snapshot, journal_bounds(layout.config).places)
        yield from find_stray_links(linked, EntryLookup(index).find, path)

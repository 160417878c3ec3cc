"""The drop folder as one run sees it: which files are there, what they say, which rows are new.

A file is read once; what was read is what is posted, and the commit fails where the file has changed since.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache, partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import structs

from cleared.base import money
from cleared.base.clock import DeadlineExceeded, check_deadline
from cleared.base.errors import ClearedError, Place, PolicyError, PrimitiveError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import choose_free_name, resolve_inside
from cleared.books.bank_files import ImportFileError
from cleared.books.importing import file_cards
from cleared.books.importing.bank_file import (
    ImportFile,
    check_currency,
    find_covered_days,
    find_end_balances,
    has_line,
    identify_by_balance,
    refuse_future_rows,
)
from cleared.books.importing.file_cards import AFTER_UNDO, AS_OTHER_FORMAT, StageCard, describe_line, describe_repeat
from cleared.books.importing.folder_listing import list_names, refuse_bad_name
from cleared.books.importing.held_rows import (
    describe_early_row,
    describe_foreign_row,
    describe_late_row,
    describe_reused_ids,
    find_beginning,
    find_format_overlap,
    mark_foreign_rows,
    refuse_closed_account,
    refuse_early_file,
    refuse_late_file,
)
from cleared.books.importing.joined_files import JoinedFile
from cleared.books.importing.kept_bank_files import KEPT_TOGETHER, name_month_folder
from cleared.books.index.past_lines import PastLines
from cleared.books.ledger.bank_lines import BankLine, make_bank_line
from cleared.books.ledger.bank_row import BankRow
from cleared.books.ledger.import_records import ImportRecord
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.domain import import_when_called
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config
from cleared.workspace.watched_names import refuse_brought

# Who decides, or asks how things stand, opens no bank file: all formats would take longer to load than that.
_read_file: Final = import_when_called("cleared.books.bank_files.file_reading:read_file")
_resolve_accounts: Final = import_when_called("cleared.books.bank_files.account_matching:resolve_accounts")


class ImportSession:
    """What one run does with the drop folder. ``card`` stages a card (kind, key, title, **details)."""

    def __init__(
        self,
        layout: Layout,
        config: Config,
        books: Books,
        bank: BankBook,
        committed: Callable[[str], bool],
        folder: Path | None = None,
        only: frozenset[str] | None = None,
        today: date | None = None,
        card: StageCard = lambda *a, **k: None,
    ) -> None:
        self.layout = layout
        self.folder = folder or layout.root / layout.import_dir
        self.is_of_checkout = folder is None
        """Whether it is the folder that people drop files into, and not one that was made for a dry run."""
        self.only = only
        """Names that a scan finds, where a run is about certain files: others may be half written."""
        self.today = today
        """None: rows are not compared with it."""
        self.config = config
        self.books = books
        self.bank = bank
        self.committed = committed
        """Whether the commit the run builds on has a file, a symbolic link or a submodule at a path."""
        self.past_lines = PastLines(bank, layout.state_dir)
        self.opened: dict[str, list[ImportFile]] = {}
        """File name → what it says of each account."""
        self.targets: set[str] = set()
        self.refused: dict[str, ClearedError] = {}
        self.card = card

    # -- looking ------------------------------------------------------------------------------------------------

    def scan_folder(self) -> list[ImportFile]:
        """Every file that can be read, by name: for each of its bank accounts one. The others stay where they are; each
        reason gets one card."""
        files, refused = [], {}
        for name in check_deadline(list_names(self.folder)):
            is_left_out = self.only is not None and name not in self.only
            if is_left_out or (name in self.opened and all(file.processed_as for file in self.opened[name])):
                continue
            try:
                refuse_bad_name(name)
                files += self.open_file(name)
            except DeadlineExceeded:
                raise
            except ClearedError as e:
                if name not in self.refused:
                    refused[name] = self.refused[name] = e
        if refused:
            from cleared.cards.refused_files import stage_refusals  # late: mostly every file can be read

            stage_refusals(refused, self.folder, self.layout.import_dir, self.config.import_.max_bytes, self.card)
        return files

    def count_waiting_bytes(self) -> int:
        """How large the files together are that a scan would look at; of each no more than may be read."""
        total = 0
        for name in list_names(self.folder):
            if self.only is None or name in self.only:
                with suppress(OSError):
                    total += min((self.folder / name).lstat().st_size, self.config.import_.max_bytes)
        return total

    def open_file(self, name: str, format: str | None = None) -> list[ImportFile]:
        """Read and understand one file, once: what it says of each bank account. Raises ``ClearedError`` where it is
        refused, whole."""
        opened = self.opened.get(name)
        if opened is not None and (
            format is None or opened[0].format == format or any(file.is_in_run for file in opened)
        ):
            return opened
        shown = f"{self.layout.import_dir}/{name}"
        path = resolve_inside(self.folder, name)
        if path != self.folder.resolve() / name:
            why, remedy = f"{name!r} is reached through a symbolic link", "Copy the file itself into import/."
            raise PolicyError(why, place=Place(shown), remedy=remedy)
        # The path as it is on disk: a script can write ``./march.csv``.
        if self.is_of_checkout:
            inside = path.relative_to(self.folder.resolve()).as_posix()
            refuse_brought(f"{self.layout.import_dir}/{inside}", name, self.committed)
        data, _ = read_stable(path, self.config.import_.max_bytes, shown=shown)
        try:
            parsed = _read_file(name, data, self.config, self.books.bounds.places, format)
            accounts = _resolve_accounts(name, parsed, self.config)
        except ImportFileError as e:
            raise e.of_file(shown) from None  # places are relative to the workspace
        sha256 = hashlib.sha256(data).hexdigest()
        files = []
        for account, statements in accounts:
            check_currency(shown, statements, account, self.config.business.currency)
            statements = mark_foreign_rows(statements, account.currency or self.config.business.currency)
            refuse_future_rows(shown, statements, self.today)
            source = name if len(accounts) == 1 else f"{name}/{account.id}"
            rows = tuple(row for statement in statements for row in statement.rows)
            file = ImportFile(source, name, data, sha256, parsed.format, account, statements, rows, notes=parsed.notes)
            files.append(file)
        for file in files:
            self._separate_duplicates(file)
            refuse_closed_account(shown, file, self.books)
            refuse_early_file(shown, file, self.books)
            refuse_late_file(shown, file, self.books, self.bank, self._list_opened())
        self.opened[name] = files
        return files

    def _open_source(self, name: str, format: str | None = None) -> ImportFile:
        """What a script names: a file of one account, or one account's part of a file."""
        folder, _, account = name.rpartition("/")
        is_part = bool(folder) and not (self.folder / name).exists() and (self.folder / folder).is_file()
        files = self.open_file(folder if is_part else name, format)
        for file in files:
            if file.name == name or (is_part and len(files) == 1 and file.account.id == account):
                return file
        names = ", ".join(file.name for file in files)
        raise PrimitiveError(
            f"{name!r} names no account of the file; it has {names}",
            place=Place(field="filename"),
            remedy="Pass one of these names, as importer_scan gives them.",
        )

    def _separate_duplicates(self, file: ImportFile) -> None:
        """Sort the file's rows into new ones, pending ones, and repetitions of known bank lines."""
        account = file.account.id
        has_ids = any(map(attrgetter("bank_id"), file.rows))
        read_month_of = cache(lambda day: self.bank.read_month(account, day.isoformat()[:7]))
        opened: dict[str, BankLine] = {}
        for other in itertools.chain.from_iterable(self.opened.values()):
            for line in other.new if other.account.id == account else ():
                opened.setdefault(line.line_id, line)

        def find_committed(row: BankRow, line_id: str) -> BankLine | None:
            known = read_month_of(row.posted_date).get(line_id)
            return self.past_lines.find_with_bank_id(account, line_id) if known is None and has_ids else known

        def find_known(row: BankRow, line_id: str) -> BankLine | None:
            return find_committed(row, line_id) or opened.get(line_id)

        def list_lines(first: date, last: date) -> Iterable[BankLine]:
            return (*self.bank.iter_lines_between(account, first, last), *opened.values())

        @cache
        def join() -> JoinedFile:
            return JoinedFile(file.rows, partial(has_line, account, find_known), list_lines)

        identified = identify_by_balance(account, file.rows, find_known, lambda row, line: join().is_other(row, line))
        for row, occurrence, line_id in check_deadline(identified):
            earlier = find_committed(row, line_id)
            if earlier is not None and earlier.line_id in self.bank.released_line_ids:
                if earlier.file_sha256 != file.sha256:
                    file.released.append((row.row, line_id, AFTER_UNDO))
                earlier = None
            if earlier is None and line_id in self.bank.new_lines:
                earlier = self.bank.new_lines[line_id][1]
            if earlier is not None:
                file.duplicates.append((row.row, line_id, describe_repeat(earlier, row.balance)))
                continue
            line = make_bank_line(row, occurrence, line_id, file.sha256, self.config.business.currency)
            (file.pending if row.state == "pending" else file.new).append(line)

    # -- taking -------------------------------------------------------------------------------------------------

    def take_new_rows(self, name: str, format: str | None = None) -> ImportFile:
        """Take the file's new rows into the run: each must be posted, held or ignored before the commit."""
        for refused in (name, name.rpartition("/")[0]):
            if refused in self.refused:
                raise self.refused[refused]
        file = self._open_source(name, format)
        if file.processed_as:
            raise PrimitiveError(
                f"{name} was marked processed in this run already",
                place=Place(field="filename"),
                remedy="Parse a file before marking it.",
            )
        if not file.is_in_run:
            file.is_in_run = True
            # Another file of this run may have said the same meanwhile.
            fresh = [line for line in file.new if line.line_id not in self.bank.new_lines]
            for line in (each for each in file.new if each.line_id in self.bank.new_lines):
                note = describe_repeat(self.bank.new_lines[line.line_id][1], line.balance_after)
                file.duplicates.append((line.row, line.line_id, note))
            file.new = fresh
            currency = file.account.currency or self.config.business.currency
            self._hold_rows(file, partial(describe_foreign_row, currency=currency))
            self._hold_rows(file, describe_reused_ids(file, self.bank))
            self._hold_corrections(file)
            self._compare_with_other_formats(file)
            if (begins := find_beginning(file, self.books)) is not None:
                self._hold_rows(file, partial(describe_early_row, begins=begins))
            if self.books.periods.closed_through is not None:
                self._hold_rows(file, partial(describe_late_row, file, books=self.books, bank=self.bank))
            file_cards.stage_revisions(file, self.bank, self.past_lines, self._card_of(file))
            for line in [*file.new, *file.pending, *file.held]:
                self.bank.new_lines[line.line_id] = (file.account.id, line)
            for line in file.new:
                if line.amount == 0:
                    self.bank.set_line_aside(line.line_id, "ignored", "the bank reported an amount of zero")
        return file

    def _hold_corrections(self, file: ImportFile) -> None:
        """Hold the rows with which the bank takes back what it reported before: one that is posted already counts."""
        corrected = {row.row: row.corrects for row in file.rows if row.corrects}
        for line in [line for line in file.new if line.row in corrected]:
            staged = (other for owner, other in self.bank.new_lines.values() if owner == file.account.id)
            known = itertools.chain(self.bank.iter_account_lines(file.account.id), staged, file.new)
            taken_back = (other for other in known if other.bank_id == corrected[line.row] and other is not line)
            if (earlier := next(taken_back, None)) is not None:
                file.new.remove(line)
                why = f"the bank corrects or takes back {describe_line(earlier)}: void its entry, then decide this"
                self._hold_row(file, structs.replace(line, supersedes=earlier.line_id), why)

    def _compare_with_other_formats(self, file: ImportFile) -> None:
        """Leave out the rows that a file of another format has brought, and hold those that it may have."""
        overlap = find_format_overlap(file, self.bank, self._list_opened())
        decided = overlap.rows
        file.new = [line for line in file.new if line.line_id not in decided]
        file.duplicates += [(row.row, line.line_id, AS_OTHER_FORMAT) for row, line in overlap.matched]
        for row, line in overlap.held:
            self._hold_row(file, row, f"a file of another format has {describe_line(line)}; is it the same?")

    def _list_opened(self) -> Iterable[ImportFile]:
        return (each for files in self.opened.values() for each in files)

    def _hold_rows(self, file: ImportFile, describe: Callable[[BankLine], str | None]) -> None:
        """Hold the new rows of which ``describe`` says why."""
        reasons = {line.line_id: why for line in check_deadline(file.new) if (why := describe(line)) is not None}
        for line in [line for line in file.new if line.line_id in reasons]:
            file.new.remove(line)
            self._hold_row(file, line, reasons[line.line_id])

    def _hold_row(self, file: ImportFile, line: BankLine, why: str) -> None:
        file.held.append(line)
        self.bank.set_line_aside(line.line_id, "held", why)
        file_cards.stage_held_line(line, why, self._card_of(file))

    def _card_of(self, file: ImportFile) -> StageCard:
        """Stages a card about the file. What was asked before an import of it was undone is asked anew."""
        account = file.account.id
        undone = sum(u.account == account and u.file_sha256 == file.sha256 for u in self.bank.undone_imports)
        if not undone:
            return self.card

        def stage_again(kind: str, key: tuple[str, ...], title: str, **details: Any) -> Any:
            return self.card(kind, (*key, f"after {undone} undone"), title, **details)

        return stage_again

    def find_parsed_file(self, name: str) -> ImportFile:
        """A file this run has parsed."""
        for file in self._list_opened():
            if file.name == name and file.is_in_run:
                return file
        why, remedy = f"{name!r} was not parsed in this run", "Call importer_parse(filename) first."
        raise PrimitiveError(why, place=Place(field="filename"), remedy=remedy)

    def mark_processed(self, name: str, imported_at: str, run_id: str) -> ImportFile:
        """Stage that the file is done: it moves to ``import/processed/`` in the run's commit."""
        file = self.find_parsed_file(name)
        if file.processed_as:
            return file
        done = (other.processed_as for other in self.opened[file.file_name] if other.processed_as)
        file.processed_as = next(done, None) or self._choose_target(file.file_name, imported_at)
        first, last = find_covered_days(file)
        opening, closing = (money.format_amount(b.amount) if b else "" for b in find_end_balances(file))
        before = [r for r in self.bank.imports if r.account == file.account.id]
        record = ImportRecord(
            file.sha256,
            file.file_name,
            file.account.id,
            first.isoformat() if first else "",
            last.isoformat() if last else "",
            len(file.rows),
            len(file.new),
            money.format_amount(money.total([row.amount for row in file.rows if row.state != "foreign"])),
            opening,
            closing,
            imported_at,
            run_id,
            file.format,
        )
        card = self._card_of(file)
        file_cards.stage_overlap(file, before, self.bank, card)
        file_cards.stage_near_matches(file, before, self.bank, card)
        file_cards.stage_gaps(file, record, before, self.bank, card)
        self.bank.new_imports.append(record)
        taken = {line.line_id for line in [*file.new, *file.pending, *file.held]}
        self.bank.processed_line_ids |= taken
        ids = {row.row: row.bank_id for row in file.rows} if file.duplicates else {}
        for row, line_id, note in [*file.duplicates, *(each for each in file.released if each[1] in taken)]:
            bank_id = ids[row] if note == AS_OTHER_FORMAT else ""
            self.bank.new_duplicates.append((imported_at[:7], file.sha256, row, line_id, note, bank_id))
        file.rows, file.statements, file.in_time = (), (), None  # the run's lines have all that is still needed
        return file

    def _choose_target(self, name: str, imported_at: str) -> str:
        """Where the file will lie: its own name, or the first free of ``name-2``, ``name-3`` …"""
        is_full = len(self.bank.all_imports) >= KEPT_TOGETHER
        month = name_month_folder(self.layout, self.committed, imported_at) if is_full else ""
        known, root = self.targets, self.layout.root
        wanted = str(PurePosixPath(self.layout.processed_dir, month, name))
        target = choose_free_name(wanted, lambda n: n in known or self.committed(n) or os.path.lexists(root / n))
        known.add(target)
        return target

    # -- committing ------------------------------------------------------------------------------------------------

    def list_moves(self) -> Mapping[str, ImportFile]:
        """Files that leave the drop folder, all of their accounts being done: path → what they say of the first."""
        return {
            f"{self.layout.import_dir}/{name}": files[0]
            for name, files in self.opened.items()
            if all(file.processed_as for file in files)
        }

    def verify_unchanged(self) -> None:
        """Raises ``PrimitiveError`` where a file the run took rows from is no longer what was parsed."""
        for name, files in self.opened.items():
            if not any(file.is_in_run for file in files):
                continue
            shown = f"{self.layout.import_dir}/{name}"
            try:
                data, _ = read_stable(self.folder / name, self.config.import_.max_bytes, shown=shown)
                same = data == files[0].data
            except ClearedError:
                same = False
            if not same:
                raise PrimitiveError(
                    "the file changed after it was parsed", place=Place(shown), remedy="Run the agent again."
                )

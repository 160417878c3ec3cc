"""Taking back a whole import, in one commit: its entries are voided, its bank lines released, so that the file can come
again. What another file says, whose import stands, stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError, UsageError
from cleared.base.safe_files import read_stable
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.books.card_kinds import ENTRY, LINE
from cleared.books.decisions import book_subjects
from cleared.books.decisions.reconciling import take_back_balances
from cleared.books.decisions.transfer_pairing import settle_decided_transfers
from cleared.books.import_cards import settle_gone_imports
from cleared.books.importing.file_cards import list_overlap_ids
from cleared.books.ledger.agreed_balances import AGREED, LAPSED, AgreedBalance
from cleared.books.ledger.bank_lines import (
    BankLine,
    group_repeats,
)
from cleared.books.ledger.booked_lines import DECIDED
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.corrections import find_corrections, void_with_corrections
from cleared.books.ledger.entry import AMENDED, Entry, entry_of_leg, parse_entry_id
from cleared.books.ledger.import_records import ImportRecord, UndoneImport
from cleared.books.ledger.staged_bank_lines import RELEASED
from cleared.books.ledger.staged_journal import Books
from cleared.books.ledger.voided_lines import unmatch_entries
from cleared.books.line_cards import stage_line_card
from cleared.books.staged_books import books_of, open_books
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot, history
from cleared.primitives.context import Context
from cleared.trust.person_only import refuse_in_job

_MAX_SHOWN: Final = 10
_MAX_LISTED: Final = 5
Source = tuple[str, str]
"""What a file says of one account: its digest, and the account's id."""


class UndoneFiles(Struct):
    """What was taken back. ``lines``: bank lines that may come again; ``kept``: those that another file says, too."""

    files: list[str] = []
    runs: list[str] = []
    entries: list[str] = []
    lines: list[str] = []
    kept: list[str] = []
    commit: str = ""


def undo_import(host: Host, name: str, *, reason: str = "", despite: str = "") -> UndoneFiles:
    """Take back the import of a file, or all that a run imported. ``name``: the run's id, the file's name or a path.

    Where a file came several times, each of its imports is taken back. Raises ``UsageError`` where there is no such
    import, or several files of that name; ``PolicyError`` where it was undone already, where a day of it lies in a
    closed period, and, without ``despite`` (why it is done all the same), where somebody has decided about what it
    brought; inside a job.
    """
    refuse_in_job()
    reason, despite = (" ".join(host.redactor.redact_text(text).split()) for text in (reason, despite))
    result = UndoneFiles()

    def stage_undo(decision_context: DecisionContext) -> Decision:
        digest = _digest_file(host, decision_context.snapshot, name)
        undoing = ImportUndoing(host, decision_context, name, digest, result)
        undoing.stage("; ".join(filter(None, (reason, despite))), forced=bool(despite))
        subject = book_subjects.import_undone(result.files, len(result.entries), reason or despite)
        return Decision(subject, subject=("import undo", *sorted(result.runs), *sorted(result.files)))

    result.commit = require_commit(commit_decision(host, "import undo", stage_undo, collects=[result]))
    return result


def _digest_file(host: Host, snapshot: Snapshot, name: str) -> str:
    """The digest of the file at this path, from here or from the workspace; empty where there is none. One that git
    brought, elsewhere than in ``import/``, says nothing."""
    for path in (Path(name), host.root / name):
        if path.is_file() and not _is_brought_by_git(host, snapshot, path):
            data, _ = read_stable(path.resolve(), host.config.import_.max_bytes, shown=name)
            return hashlib.sha256(data).hexdigest()
    return ""


def _is_brought_by_git(host: Host, snapshot: Snapshot, path: Path) -> bool:
    place, root = path.resolve(), host.root.resolve()
    if not place.is_relative_to(root):
        return False
    inside = place.relative_to(root).as_posix()
    return not inside.startswith(f"{host.layout.import_dir}/") and snapshot.find_blob_id(inside) is not None


def describe_decided(books: Books, entry: Entry) -> str:
    """What somebody has decided about an entry; empty where nobody has."""
    corrections = find_corrections(books, entry)
    what = f"{entry.entry_id} {entry.date} {entry.amount} {entry.description[:60]}"
    if AMENDED in entry.tags.split(";"):
        return f"{what}: amended"
    if entry.status in DECIDED:
        return f"{what}: {entry.status}"
    return f"{what}: corrected by {', '.join(e.entry_id for e in corrections)}" if corrections else ""


class ImportUndoing:
    """One undoing on one commit: what belongs to it, what stands in its way, and its changes."""

    def __init__(
        self, host: Host, decision_context: DecisionContext, name: str, digest: str, result: UndoneFiles
    ) -> None:
        self.host, self.decision_context, self.result = host, decision_context, result
        self.context: Context = decision_context.context
        self.bank = books_of(self.context).bank
        self.sources = self._find_sources(name, digest)
        self.records = [r for r in self.bank.imports if (r.file_sha256, r.account) in self.sources]
        self.runs = {r.run for r in self.records}
        if not self.records:
            last = [u for u in self.bank.undone_imports if (u.file_sha256, u.account) in self.sources][-1]
            stays = [entry.entry_id for entry in self._find_entries(self._find_lines()[0])]
            raise PolicyError(
                f"the import of {name} was undone on {last.at[:10]} by {last.by}"
                + (f", but for what people had decided: {list_first(stays, _MAX_LISTED)}" if stays else ""),
                remedy=f"To take that back, too: cleared journal void {stays[0]} --reason …."
                if stays
                else "Put the file into import/ to import it again.",
            )
        self.replaced = self._find_replaced()

    def _find_sources(self, name: str, digest: str) -> set[Source]:
        records = self.bank.all_imports
        drop = self.host.layout.import_dir
        of_run = [r for r in records if r.run == name or (len(name) >= 4 and r.run.endswith(f"-{name}"))]
        of_content = [r for r in records if r.file_sha256 == digest]
        of_name = [r for r in records if name in (r.name, f"{drop}/{r.name}")]
        if not of_run and of_content and of_name and digest not in {r.file_sha256 for r in of_name}:
            others = (f"{r.name} (run {r.run})" for r in (of_name[-1], of_content[-1]))
            raise UsageError(
                f"{name!r} was imported, and the file that lies there now has the content of another one: "
                + " and ".join(others),
                place=Place(field="FILE"),
                remedy="Give the run of the one that you mean.",
            )
        named = of_run or of_content or of_name
        if not named:
            newest = [f"{r.name} ({r.run})" for r in self.bank.imports[: -_MAX_LISTED - 1 : -1]]
            raise UsageError(
                f"there is no import {name!r}",
                remedy=f"Give a run or a file; the newest imports: {', '.join(newest) or 'none yet'}.",
            )
        if not of_run and len({r.file_sha256 for r in named}) > 1:
            standing = {(r.file_sha256, r.account, r.run) for r in self.bank.imports}
            left = [r for r in named if (r.file_sha256, r.account, r.run) in standing]
            if len({r.file_sha256 for r in left}) != 1:
                runs = ", ".join(f"{r.run} of {r.imported_at[:10]}" for r in (left or named)[-_MAX_LISTED:])
                raise UsageError(
                    f"several files named {name!r} were imported",
                    place=Place(field="FILE"),
                    remedy=f"Give the run instead: {runs}.",
                )
            named = left
        return {(r.file_sha256, r.account) for r in named}

    # -- what belongs to it -----------------------------------------------------------------------------------------

    def _find_lines(self) -> tuple[list[BankLine], list[BankLine]]:
        """The lines that only these files say, and those that a standing import of another says, too."""
        repeated = group_repeats(self.bank.source, self.bank.paths)
        others = {(r.file_sha256, r.account) for r in self.bank.imports} - self.sources
        mine: list[BankLine] = []
        kept: list[BankLine] = []
        released = self.bank.released_line_ids
        for account in sorted({account for _, account in self.sources}):
            months = self._list_months(account, repeated)
            lines = (line for month in months for line in self.bank.read_month(account, month).values())
            for line in (line for line in lines if line.line_id not in released):
                said_by = {(sha, account) for sha in (line.file_sha256, *repeated.get(line.line_id, ()))}
                if not self.sources.isdisjoint(said_by):
                    (kept if not others.isdisjoint(said_by) else mine).append(line)
        return mine, kept

    def _list_months(self, account: str, repeated: Mapping[str, Collection[str]]) -> list[str]:
        """The months of an account with lines that these files say: of their days, or said before by another file."""
        files = {sha for sha, of in self.sources if of == account}
        spans = [
            (r.first_date[:7], r.last_date[:7] or "9")
            for r in self.bank.all_imports
            if r.account == account and r.file_sha256 in files
        ]
        known = [month for month, _ in self.bank.list_month_files(account)]
        months = {month for month in known if any(first <= month <= last for first, last in spans)}
        for month in months:  # most are there: then no others are looked through
            self.bank.read_month(account, month)
        again = (self.bank.find_line(line_id) for line_id, said_by in repeated.items() if not files.isdisjoint(said_by))
        months |= {line.posted_date.isoformat()[:7] for of, line in filter(None, again) if of == account}
        return [month for month in known if month in months]

    def _find_replaced(self) -> dict[str, list[BankLine]]:
        """Line → those that are set aside as it counts instead: doublets, and amounts that the bank revised."""
        found: dict[str, list[BankLine]] = {}
        for line_id, each in self.bank.read_outcomes().items():
            line = self.bank.find_line(line_id) if each.counts else None
            if line is not None and not self.bank.posted_amount(line_id):
                found.setdefault(each.counts, []).append(line[1])
        return found

    def _find_entries(self, lines: Iterable[BankLine]) -> list[Entry]:
        """The standing entries that post these lines, and those of the runs that post no line of a bank."""
        books = books_of(self.context).books
        ids: dict[str, None] = {}
        for line in lines:
            for leg_id, _ in self.bank.list_matches(line.line_id):
                ids[entry_of_leg(leg_id)] = None
        for run in sorted(self.runs):
            ids |= dict.fromkeys(self._list_lineless_entries(run))
        entries = [books.find_entry(entry_id) for entry_id in ids]
        return [entry for entry in entries if entry is not None and entry.status != "voided"]

    def _list_lineless_entries(self, run: str) -> Iterator[str]:
        """Entries that a run posted beside those of bank lines; none where it imported what stays, too: of which file
        they are is not known then."""
        if any(r.run == run and (r.file_sha256, r.account) not in self.sources for r in self.bank.imports):
            return
        repo, snapshot = self.decision_context.repo, self.decision_context.snapshot
        origins = CommitOrigins(self.host, repo, snapshot)
        for found in history.find_by_trailer(self.host.root, "Run", run):
            commit = history.read_commit(self.host.root, found.id)
            if "Event" not in commit.trailers or not origins.is_ours(commit):
                continue  # whoever can push claims to be a run
            (parent,) = read_parents(repo, commit.id)
            before, _ = open_books(self.host.layout, CommittedSource(Snapshot(repo, parent)))
            after, _ = open_books(self.host.layout, CommittedSource(Snapshot(repo, commit.id)))
            for file in commit.files or ():
                month = self.bank.paths.find_month(file)
                if month is not None:
                    known = before.committed_month(*month).entries
                    for number, entry in after.committed_month(*month).entries.items():
                        by_line = entry.reference and self.bank.find_line(entry.reference) is not None
                        if number in known or by_line or REVERSES in entry.tags:
                            continue
                        if entry.is_same_posting(books_of(self.context).books.find_entry(entry.entry_id)):
                            yield entry.entry_id

    # -- what stands in its way -------------------------------------------------------------------------------------

    def _refuse_closed(self, lines: Iterable[BankLine], entries: Iterable[Entry]) -> None:
        periods = books_of(self.context).books.periods
        posted = (line for line in lines if self.bank.posted_amount(line.line_id))  # the others are in no balance
        rows = [min(line.posted_date, line.transaction_date or line.posted_date) for line in posted]
        closed_rows = [day for day in rows if periods.is_closed(day)]
        closed_entries = [entry.date for entry in entries if periods.is_closed(entry.date)]
        if closed_rows or closed_entries:
            noun = ("row", "rows") if closed_rows else ("entry", "entries")  # a row has its entry mostly
            what, first = count_noun(len(closed_rows or closed_entries), *noun), min([*closed_rows, *closed_entries])
            lies = f"of {first}, lies" if what.startswith("1 ") else f"from {first} on, lie"
            raise PolicyError(
                f"{what} of it, {lies} in a period that is closed (through {periods.closed_through})",
                remedy=f"Reopen it first: cleared period reopen {first} --reason …",
            )

    def _list_decided(self, lines: Iterable[BankLine], entries: Iterable[Entry]) -> Iterator[str]:
        """What somebody has decided since, a line each."""
        for entry in entries:
            if decided := describe_decided(books_of(self.context).books, entry):
                yield decided
            elif others := self.replaced.get(entry.reference):
                what = f"{entry.entry_id} {entry.date} {entry.amount} {entry.description[:60]}"
                yield f"{what}: the row {others[0].posted_date} {others[0].amount} is set aside for it"
        for line in lines:
            found = self.bank.read_outcomes(line.line_id).get(line.line_id)
            if found is None or found.run in self.runs or found.outcome == RELEASED:
                continue
            if self.bank.posted_amount(line.line_id) != line.amount:
                what = f"{line.posted_date} {line.amount} {line.description[:60]}"
                yield f"bank line {what}: {found.outcome} ({found.text[:80]})"

    # -- its changes ------------------------------------------------------------------------------------------------

    def stage(self, reason: str, *, forced: bool = False, keeps_decided: bool = False) -> list[str]:
        """Stage all of it; ``forced``: also what somebody has decided about; ``keeps_decided``: but for that, whose ids
        are returned."""
        lines, kept = self._find_lines()
        entries = self._find_entries(lines)
        stays: list[str] = []
        if keeps_decided:
            stays = [entry.entry_id for entry in entries if any(self._list_decided((), [entry]))]
            entries = [entry for entry in entries if entry.entry_id not in stays]
            held = [line for line in lines if self._is_posted_by(line, stays) or any(self._list_decided([line], ()))]
            lines, kept = [line for line in lines if line not in held], [*kept, *held]
        self._refuse_closed(lines, entries)
        agreed = self._list_reconciled(lines)
        decided = [f"{x.account} was reconciled on {x.day} by {x.by}" for x in agreed if x.state == AGREED]
        decided += self._list_decided(lines, entries)
        if decided and not forced:
            more = f"\n  … and {len(decided) - _MAX_SHOWN} more" if len(decided) > _MAX_SHOWN else ""
            shown = "\n  ".join(decided[:_MAX_SHOWN])
            raise PolicyError(
                f"somebody has decided about what it brought:\n  {shown}{more}",
                remedy="To take these decisions back as well: --despite REASON.",
            )
        why = f"import undone: {reason}" if reason else "import undone"
        voided = self._void_entries(entries, why)
        unmatch_entries(self.bank, voided, why, RELEASED)
        for line in lines:
            self.bank.set_line_aside(line.line_id, RELEASED, why)
        released = {line.line_id for line in lines}
        for line in [each for line_id in released for each in self.replaced.get(line_id, ())]:
            if line.line_id not in released:
                self.bank.set_line_aside(line.line_id, "held", why)
                stage_line_card(self.context, line, "what counted instead was taken back", self.context.run_id)
        self._settle_cards(released, {entry.entry_id for entry, _ in voided})
        at, by = format_iso(self.context.now), self.decision_context.by
        self.bank.new_undone += [UndoneImport(r.file_sha256, r.account, r.run, at, by, reason) for r in self.records]
        self._fill_result(self.records, voided, lines, kept)
        done = f"{', '.join(self.result.files)}: {len(voided)} entries voided, {len(lines)} lines released"
        self.context.log_action("import_undo", f"{done}: {reason}"[:500])
        take_back_balances(self.decision_context, agreed, why, LAPSED)
        settle_gone_imports(self.context, self.bank, self.decision_context.host.config.bank_accounts)
        return stays

    def _is_posted_by(self, line: BankLine, entries: Collection[str]) -> bool:
        legs = (entry_of_leg(leg_id) for leg_id, _ in self.bank.list_matches(line.line_id))
        return any(entry in entries for entry in legs)

    def _list_reconciled(self, lines: Iterable[BankLine]) -> list[AgreedBalance]:
        """The balances that these lines are part of, and that the books agreed with."""
        first = min((line.posted_date for line in lines), default=None)
        accounts = {books_of(self.context).ledger_accounts.get(account) for _, account in self.sources}
        return [
            each
            for each in self.bank.list_agreed_balances()
            if first is not None and each.account in accounts and each.day >= first
        ]

    def _void_entries(self, entries: Iterable[Entry], why: str) -> list[tuple[Entry, Entry]]:
        """Void the entries and their corrections: each with its reversal, in the order of their ids."""
        books = books_of(self.context).books
        ordered = sorted(entries, key=lambda e: parse_entry_id(e.entry_id) or ())
        return [pair for entry in ordered for pair in void_with_corrections(books, entry, why)]

    def _settle_cards(self, lines: set[str], entries: set[str]) -> None:
        at, by = format_iso(self.context.now), self.decision_context.by
        files = {each for record in self.records for each in list_overlap_ids(record)}
        for card in self.context.cards.open_cards():
            if (
                (card.kind == ENTRY.name and card.record_id in entries)
                or (card.kind == LINE.name and card.details.get("line") in lines)
                or (card.id in files and card.run_id in self.runs)
            ):
                self.context.cards.resolve_card(card.id, at, by, "the import was undone")
        settle_decided_transfers(self.decision_context, entries)

    def _fill_result(
        self,
        records: Iterable[ImportRecord],
        voided: Iterable[tuple[Entry, Entry]],
        lines: Iterable[BankLine],
        kept: Iterable[BankLine],
    ) -> None:
        self.result.files = list(dict.fromkeys(r.name for r in records))
        self.result.runs = sorted(self.runs)
        self.result.entries = [entry.entry_id for entry, _ in voided]
        self.result.lines = [line.line_id for line in lines]
        self.result.kept = [line.line_id for line in kept]

"""What a run or a decision did to the books, done again on books to which others have added something.

Bank lines keep their ids: they follow from what the bank says. A line that others have brought is not brought again,
and the entry that booked it is theirs where they have booked it. Other entries get the next free id of their month.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from cleared.base.clock import format_iso
from cleared.base.file_source import FileSource
from cleared.books.decisions.hand_posting import require_same_posting
from cleared.books.ledger.agreed_balances import parse_agreed_balances
from cleared.books.ledger.bank_lines import (
    DUPLICATE_COLUMNS,
    DUPLICATE_OPTIONAL,
    BankLine,
    Outcome,
    append_rows,
    group_repeats,
    iter_lines,
    parse_matches,
    parse_outcomes,
    read_rows,
)
from cleared.books.ledger.chains import list_links
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.entry import ABOUT, AMENDABLE, Entry, entry_of_leg
from cleared.books.ledger.import_records import IMPORT_COLUMNS, IMPORT_OPTIONAL, parse_imports, parse_undone
from cleared.books.ledger.periods import Periods, parse_periods
from cleared.books.ledger.staged_bank_lines import RELEASED, BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import StagedBooks, books_of, open_books
from cleared.domains.renamed_records import KeyedRecord, RenamedRecords, WorkConflict
from cleared.primitives.context import Context

_Match = tuple[str, str, Decimal]


def redo_changes(context: Context, before: FileSource, after: FileSource, renamed: RenamedRecords) -> Collection[str]:
    """See ``Domain.redo``."""
    staged = books_of(context)
    old, had = open_books(staged.layout, before)
    new, has = open_books(staged.layout, after)
    redone = _Redone(staged, had, before, after, renamed, format_iso(context.now)[:7])
    months = [
        _Month(path, *(each.committed_month(*key).entries for each in (old, new)))
        for key in new.list_months()
        if before.read(path := new.paths.journal_path(*key)) != after.read(path)
    ]
    renamed.add(entry.entry_id for month in months for entry in month.list_added())
    if old.chart.accounts != new.chart.accounts:  # of one that is left out, the number may mean another one there
        renamed.add(str(n) for n in new.chart.accounts if n not in old.chart.accounts)
        staged.books.add_later_accounts(new.chart)  # for what it posts itself
    if context.event["kind"] == "decision" and redone.is_decided(months):
        redone.is_decision = renamed.is_repeated = True
    redone.add_lines()
    redone.bring_lines_anew(has)
    matches = redone.list_new_matches()
    for line_id, _, amount in (each for found in matches.values() for each in found):
        redone.net[line_id] += amount
    for month in months:
        redone.redo_month(month, matches)
    redone.stage_matches(matches)
    redone.stage_facts()
    redone.refuse_moved_sums(old)
    return redone.paths


class _Month(NamedTuple):
    """A month whose journal it changed: the entries by their numbers, before and after it."""

    path: str
    had: Mapping[int, Entry]
    has: Mapping[int, Entry]

    def list_added(self) -> list[Entry]:
        return [entry for number, entry in self.has.items() if number not in self.had]

    def list_changed(self) -> list[tuple[Entry, Entry]]:
        """Each as it was, and as it is."""
        pairs = ((was, self.has.get(number)) for number, was in self.had.items())
        return [(was, now) for was, now in pairs if now is not None and now != was]


class _Redone:
    def __init__(
        self,
        staged: StagedBooks,
        had: BankBook,
        before: FileSource,
        after: FileSource,
        renamed: RenamedRecords,
        month: str,
    ) -> None:
        self._books, self._bank, self._before, self._after = staged.books, staged.bank, before, after
        self._layout, self._had = staged.layout, had
        self._renamed = renamed
        self._month = month
        """That in which it imported files."""
        self._known_lines: set[str] = set()
        """Lines that others have brought, too."""
        self.paths: set[str] = set()
        self.net: defaultdict[str, Decimal] = defaultdict(Decimal)
        """Bank line → what it booked of it, less what it took back."""
        self.is_decision = False
        """Whether others have made the same decision."""

    def is_decided(self, months: Sequence[_Month]) -> bool:
        """Whether the entries that it changed are there as it left them, and were otherwise before. Raises
        ``WorkConflict`` where that holds of some of them only, and it posted entries: one of these would be a second
        reversal."""
        same, others = "", False
        for was, entry in (pair for month in months for pair in month.list_changed()):
            now = self._books.find_entry(self._renamed.find(entry.entry_id))
            texts = {key: self._rename(entry, key) for key in ("status", *AMENDABLE)}
            if (
                entry.status != was.status
                and now is not None
                and now.legs == entry.legs
                and all(getattr(now, key) == text for key, text in texts.items())
            ):
                same = f"{now.entry_id} {now.description[:60]} is {now.status}"
            else:
                others = True
        if same and others and any(month.list_added() for month in months):
            raise WorkConflict(f"{same} there already, and the others are not")
        return same != "" and not others

    def add_lines(self) -> None:
        """Stage the bank lines that it brought, and the files that these came from."""
        root = f"{self._bank.paths.bank_root}/"
        known = {(each.file_sha256, each.account) for each in self._bank.imports}
        for path in self._after.list_paths(self._bank.paths.bank_root):
            account, _, name = path.removeprefix(root).partition("/")
            if not name or (data := self._cut(path)) is None:
                continue
            for line in iter_lines(data, path):
                found = self._bank.find_line(line.line_id)
                if found is None or line.line_id in self._bank.released_line_ids:
                    self._bank.new_lines[line.line_id] = account, line
                    self._bank.processed_line_ids.add(line.line_id)
                elif (found[0], found[1].amount) != (account, line.amount):
                    raise WorkConflict(f"the bank line {line.line_id} is another one there")
                else:
                    self._known_lines.add(line.line_id)
                    if (line.file_sha256, account) not in known:  # it stays where only the others' file is taken back
                        repeat = (line.file_sha256, line.row, line.line_id, "", "")
                        self._bank.new_duplicates.append((self._month, *repeat))
        for _, path in self._bank.paths.list_month_files(self._after, self._bank.paths.imports):
            records = parse_imports(self._cut(path, IMPORT_COLUMNS, IMPORT_OPTIONAL), path)
            self._bank.new_imports += [each for each in records if (each.file_sha256, each.account) not in known]

    def bring_lines_anew(self, has: BankBook) -> None:
        """Stage the lines that were taken back before it, and that it brought again: these are in no file anew. Where
        others have brought such a line again, too, it is theirs."""
        named = {line_id for _, _, line_id, *_ in self._read_new_duplicates()}
        had = self._had.released_line_ids
        brought = had & ((had - has.released_line_ids) | named)
        for line_id in sorted(brought & self._bank.released_line_ids):
            if (found := self._bank.find_line(line_id)) is not None:
                self._bank.new_lines[line_id] = found

    def list_new_matches(self) -> dict[str, list[_Match]]:
        """What was matched to which lines, by the ids of the entries as they were here."""
        found: dict[str, list[_Match]] = {}
        for _, path in self._bank.paths.list_month_files(self._after, self._bank.paths.matches):
            for line_id, pairs in parse_matches(self._cut(path), path).items():
                for leg_id, amount in pairs:
                    found.setdefault(entry_of_leg(leg_id), []).append((line_id, leg_id, amount))
        return found

    def redo_month(self, month: _Month, matches: Mapping[str, Sequence[_Match]]) -> None:
        """Stage the entries of a month that it added or changed."""
        self.paths.add(month.path)
        for was, entry in month.list_changed():
            self._change_entry(was, entry)
        for entry in month.list_added():
            self._add_entry(entry, matches.get(entry.entry_id, ()))

    def _add_entry(self, entry: Entry, matches: Sequence[_Match]) -> None:
        if (double := self._find_double(entry, matches)) is not None:
            self._renamed.note_double(entry.entry_id, double)
            return
        texts = {
            name: self._rename(entry, name)
            for name in Entry.__struct_fields__
            if name not in ("entry_id", "date", "description", "legs")
        }
        for leg in entry.legs:
            self._renamed.find(str(leg.account_id))
        made = self._books.add_entry(entry.date, self._rename(entry, "description"), entry.legs, **texts)
        self._renamed.note(entry.entry_id, made.entry_id)

    def _find_double(self, entry: Entry, matches: Sequence[_Match]) -> str | None:
        """The entry by which others have booked what this one books."""
        if self._renamed.keyed is not None:
            return self._find_keyed(entry, self._renamed.keyed)
        if self.is_decision or (not matches and self._renamed.is_repeated):
            return self._find_same(entry)
        lines = dict.fromkeys(line_id for line_id, _, _ in matches)
        booked = {line for line in lines if self._is_brought(line) and self._bank.list_matches(line)}
        if not booked:
            return None
        theirs = {name for line in booked for name in self._bank.list_entry_ids(line)}
        standing = [e for name in theirs if (e := self._books.find_entry(name)) is not None and e.status != "voided"]
        if not standing:  # voided there: that it was booked is theirs, and what becomes of it
            wanted = {line_id: amount for line_id, _, amount in matches}
            posted = [leg_id for line in booked for leg_id, x in self._bank.list_matches(line) if x == wanted[line]]
            standing = [e for e in map(self._books.find_entry, posted[-1:]) if e is not None]
        if booked != lines.keys() or len(standing) != 1:
            raise WorkConflict(f"{entry.entry_id} {entry.description[:60]}: a part of it is booked there already")
        return standing[0].entry_id

    def _rename(self, entry: Entry, field: str) -> str:
        """A text of an entry with what it refers to: in its tags, and before the words of the one that it is about."""
        text, links = str(getattr(entry, field)), {name: mark for mark, name in list_links(entry.tags)}
        if field == "tags":
            marked = {f"{mark}{name}": f"{mark}{self._renamed.rename(name)}" for name, mark in links.items()}
            return ";".join(marked.get(tag, tag) for tag in text.split(";"))
        about = ABOUT.match(text) if field == "description" else None
        if about is None or about["entry"] not in links:
            return text
        of = self._renamed.rename(about["entry"])
        found = self._books.find_entry(of)
        return f"{about['act']} {of}: {text[about.end() :] if found is None else found.description}"[:2000]

    def _is_brought(self, line_id: str) -> bool:
        """Whether others have brought the line, too: in a file, or anew after it was taken back. What was booked of it
        before is in both."""
        theirs = self._bank.posted_amount(line_id) - self._had.posted_amount(line_id)
        return line_id in self._known_lines or self.net[line_id] * theirs > 0

    def _find_same(self, entry: Entry) -> str:
        """What the others' run for the same event, or their same decision, has posted. Raises ``WorkConflict`` where
        that is something else."""
        taken = {self._renamed.now.get(name, name) for name in self._renamed.doubles}
        wanted = (entry.date, self._rename(entry, "description"), entry.legs)
        for each in self._books.committed_month(*entry.month).entries.values():
            is_alike = not self.is_decision or each.status == entry.status
            if is_alike and each.entry_id not in taken and (each.date, each.description, each.legs) == wanted:
                return each.entry_id
        why = "decided otherwise there" if self.is_decision else "others have had its event"
        raise WorkConflict(f"{why}: they have not posted {entry.entry_id} {entry.description[:60]}")

    def _find_keyed(self, entry: Entry, keyed: KeyedRecord) -> str:
        """The entry that others have posted with the same key. Raises ``PolicyError`` where it is not the same entry,
        as both were posted."""
        books, _ = open_books(self._layout, keyed.files)
        posted = books.find_entry(keyed.record)
        if posted is None:
            raise WorkConflict(f"what others have made with the key {keyed.key} is no entry")
        require_same_posting(posted, keyed.key, entry)
        return posted.entry_id

    def _change_entry(self, was: Entry, wanted: Entry) -> None:
        name = self._renamed.find(was.entry_id)
        now = self._books.find_entry(name)
        if now is None:
            raise WorkConflict(f"{name} is not there any more")
        if now.legs != was.legs:  # both booked the same bank line: what was said of the one is not about the other
            raise WorkConflict(f"{name} {now.description[:60]} is booked on other accounts there")
        amended = {key: self._rename(wanted, key) for key in AMENDABLE}
        changed = {key: text for key, text in amended.items() if getattr(wanted, key) != getattr(was, key)}
        if all(getattr(now, key) == text for key, text in changed.items()) and wanted.status in (
            was.status,
            now.status,
        ):
            return  # decided the same way
        if any(getattr(now, key) not in (text, getattr(was, key)) for key, text in changed.items()):
            raise WorkConflict(f"{name} {now.description[:60]} was changed there, too, in another way")
        if changed and now.status == "voided" != was.status:
            raise WorkConflict(f"{name} {now.description[:60]} is voided there")
        if wanted.status != was.status:
            if now.status not in (was.status, wanted.status) and not _is_open(now.status):
                raise WorkConflict(f"{name} {now.description[:60]} is {now.status} there, and {wanted.status} here")
            self._books.set_status(name, wanted.status)
        if changed:
            self._books.amend_entry(name, **changed)

    def stage_matches(self, matches: Mapping[str, Sequence[_Match]]) -> None:
        """Stage which lines the entries book."""
        for name, pairs in matches.items():
            if name not in self._renamed.doubles:
                for line_id, leg_id, amount in pairs:
                    self._require_line(line_id)
                    self._bank.stage_match(line_id, self._renamed.find(name) + leg_id[len(name) :], amount)

    def stage_facts(self) -> None:
        """Stage what became of lines without an entry, files that were taken back, and balances that were compared."""
        paths = self._bank.paths
        taken_back = parse_undone(self._cut(paths.undone), paths.undone)
        undone, standing = ({each.file_sha256 for each in files} for files in (taken_back, self._bank.imports))
        repeated = group_repeats(self._bank.source, paths) if undone else {}
        for line_id, new in self._read_new_outcomes().items():
            now = self._bank.find_outcome(line_id)
            # After an earlier undoing.
            is_back = new.outcome == RELEASED and line_id not in self._bank.released_line_ids
            if now is not None and now.outcome == new.outcome and not is_back:
                continue
            found = self._require_line(line_id)
            said_by = {found.file_sha256, *repeated.get(line_id, ())}
            if new.outcome == RELEASED and not standing.isdisjoint(said_by - undone):
                raise WorkConflict(f"a file of others has the bank line {line_id}, too; take the import back again")
            had = self._had.find_outcome(line_id) if now is not None else None
            if now is not None and (had is None or had.outcome != now.outcome):
                raise WorkConflict(f"the bank line {line_id} was set aside there, too, in another way")
            self._bank.new_outcomes[line_id] = new
        for file, number, line_id, note, bank_id in self._read_new_duplicates():
            self._require_line(line_id)
            self._bank.new_duplicates.append((self._month, file, int(number), line_id, note, bank_id))
        known = {(each.file_sha256, each.account, each.run) for each in self._bank.undone_imports}
        self._bank.new_undone += [u for u in taken_back if (u.file_sha256, u.account, u.run) not in known]
        stand = {(each.account, each.day, each.amount, each.state) for each in self._bank.list_agreed_balances()}
        for _, path in paths.list_month_files(self._after, paths.reconciliations):
            for each in parse_agreed_balances(self._cut(path), path):
                if (each.account, each.day, each.amount, each.state) not in stand:
                    self._bank.new_agreed.append(each)

    def _read_new_outcomes(self) -> dict[str, Outcome]:
        """What became of which lines, and why."""
        found: dict[str, Outcome] = {}
        for _, path in self._bank.paths.list_month_files(self._after, self._bank.paths.outcomes):
            found |= parse_outcomes(self._cut(path), path)
        return found

    def _read_new_duplicates(self) -> Iterator[Sequence[str]]:
        """Rows of files of which it says that their lines were known, or had been taken back."""
        for _, path in self._bank.paths.list_month_files(self._after, self._bank.paths.duplicates):
            columns = DUPLICATE_COLUMNS, DUPLICATE_OPTIONAL
            rows = read_rows(self._cut(path, *columns), path, *columns)
            yield from (row for _, row in rows)

    def _require_line(self, line_id: str) -> BankLine:
        """Raises ``WorkConflict`` for a bank line whose import was left out, or taken back there."""
        found = self._bank.find_line(line_id)
        is_gone = line_id in self._bank.released_line_ids and line_id not in self._bank.new_lines
        if found is None or is_gone:
            why = "taken back there" if is_gone else "left out"
            raise WorkConflict(f"it is about the bank line {line_id}, whose import was {why}")
        return found[1]

    def refuse_moved_sums(self, old: Books) -> None:
        """Raises ``WorkConflict`` where it rests on sums that others have moved: of a closed period, of an account that
        was compared with the bank, of accounts that were opened."""
        opened = [leg.account_id for e in self._books.list_staged() if e.is_opening for leg in e.legs]
        openings = {*opened} - {OPENING_BALANCES}
        closed_through = None
        if self._before.read(self._bank.paths.periods) != self._after.read(self._bank.paths.periods):
            closed_through = parse_periods(self._after.read(self._bank.paths.periods), self._bank.paths.periods)
        if not (openings or closed_through or self._bank.new_agreed):
            return
        had = {self._renamed.find(e.entry_id) for e in old.iter_entries()}
        for month in self._books.list_months():
            for entry in self._books.committed_month(*month).entries.values():
                if entry.entry_id not in had:
                    self._refuse_moved_by(entry, openings, closed_through)

    def _refuse_moved_by(self, entry: Entry, openings: Collection[int], closed: Periods | None) -> None:
        what = f"others have posted {entry.entry_id} {entry.description[:60]}"
        accounts = {leg.account_id for leg in entry.legs}
        if closed is not None and closed.is_closed(entry.date):
            raise WorkConflict(f"{what}, in the period that was closed here; close it again")
        if any(each.account in accounts and entry.date <= each.day for each in self._bank.new_agreed):
            raise WorkConflict(f"{what}, on an account that was compared with the bank here; compare it again")
        if entry.is_opening and accounts & set(openings):
            raise WorkConflict(f"{what}, and what the account began with was posted here, too")

    def _cut(self, path: str, columns: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> bytes | None:
        """Of a file to which rows are only added the new ones, under its header; None where there are none. Such a file
        is all done with then. ``columns``: of one whose rows may have got the ``optional`` ones meanwhile."""
        before, after = self._before.read(path), self._after.read(path)
        if after is None or after == before:
            return None
        if before is not None and optional:
            before, after = (append_rows(each, columns, (), optional, file=path) for each in (before, after))
        if before is not None and not after.startswith(before):
            raise WorkConflict(f"{path}: it was not only added to")
        self.paths.add(path)
        return after if before is None else before[: before.index(b"\n") + 1] + after[len(before) :]


def _is_open(status: str) -> bool:
    return status in ("pending-review", "auto-confirmed")

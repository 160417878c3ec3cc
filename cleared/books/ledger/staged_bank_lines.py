"""The bank facts as a run sees them: recorded lines, what is posted of each, and what is staged on top."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Final

from cleared.base import money
from cleared.base.csv_text import format_record
from cleared.base.errors import Place, PrimitiveError
from cleared.base.file_source import FileSource
from cleared.books.ledger.agreed_balances import HEADER as AGREED_COLUMNS
from cleared.books.ledger.agreed_balances import AgreedBalance, read_agreed_balances
from cleared.books.ledger.bank_lines import (
    DUPLICATE_COLUMNS,
    DUPLICATE_OPTIONAL,
    LINE_COLUMNS,
    LINE_ID_PREFIX,
    MATCH_COLUMNS,
    OUTCOME_COLUMNS,
    BankLine,
    Outcome,
    Pairs,
    append_rows,
    iter_lines,
    parse_lines_once,
    parse_matches_once,
    parse_outcomes,
    why_not_postable,
)
from cleared.books.ledger.book_paths import BookPaths
from cleared.books.ledger.entry import Entry, format_entry_id, leg_suffix, parse_entry_id
from cleared.books.ledger.import_records import (
    IMPORT_COLUMNS,
    IMPORT_OPTIONAL,
    UNDONE_COLUMNS,
    ImportReader,
    ImportRecord,
    UndoneImport,
    parse_undone,
    read_imports,
)

NEAR_DAYS: Final = 5
RELEASED: Final = "released"
"""The outcome of a line whose import was undone: the next file that has it brings it anew."""
_LINE_ID: Final = itemgetter(0)
"""Of a match."""
_MONTH_FILE: Final = re.compile(r"([0-9]{4}-(?:0[1-9]|1[0-2]))\.csv", re.ASCII)


class BankBook:
    """Committed bank facts, and on top of them what a run reads, matches and sets aside."""

    def __init__(self, source: FileSource, paths: BookPaths, read_imports: ImportReader = read_imports) -> None:
        self.source, self.paths, self._read_imports = source, paths, read_imports
        self._months: dict[tuple[str, str], dict[str, BankLine]] = {}
        self._amounts: dict[tuple[str, str], dict[Decimal, list[BankLine]]] = {}
        self._months_left: list[tuple[str, str]] | None = None
        """Month and account of the files in which no line was looked for, oldest first."""
        self._place_of: dict[str, tuple[str, str]] = {}
        """Line → account and month of the file that it was read from."""
        self._scanned: set[str] = set()
        """Lines that were read without being kept."""
        self._matched: dict[str, Pairs] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._unread = {path: {"": None} for path in (paths.matches, paths.outcomes)}
        """Months of the lines that were read, and whose file was not; first that of earlier versions, without one."""
        self._read: dict[str, set[str]] = {path: set() for path in self._unread}
        self._has_all: set[str] = set()
        self._imports: list[ImportRecord] | None = None
        self._undone: list[UndoneImport] | None = None
        self._released: set[str] | None = None
        # the draft
        self.new_lines: dict[str, tuple[str, BankLine]] = {}
        """line_id → (account, line): rows of files parsed in this run that are not recorded yet."""
        self.processed_line_ids: set[str] = set()
        """line ids of files marked processed."""
        self.new_matches: list[tuple[str, str, Decimal]] = []
        self.new_outcomes: dict[str, Outcome] = {}
        self.new_imports: list[ImportRecord] = []
        self.new_duplicates: list[tuple[str, str, int, str, str, str]] = []  # month of the import, and its columns
        self.new_undone: list[UndoneImport] = []
        self.new_agreed: list[AgreedBalance] = []

    # -- committed ----------------------------------------------------------------------------------------------

    def read_month(self, account: str, month: str) -> dict[str, BankLine]:
        """One month (``YYYY-MM``) of one account's committed lines by id."""
        key = (account, month)
        if key not in self._months:
            path = self.paths.bank_path(account, month)
            lines = {line.line_id: line for line in parse_lines_once(self.source.read(path), path)}
            self._months[key] = lines
            self._place_of |= dict.fromkeys(lines, key)
            for unread in self._unread.values():
                unread[month] = None
        return self._months[key]

    def list_accounts(self) -> list[str]:
        root = self.paths.bank_root
        inner = [path[len(root) + 1 :] for path in self.source.list_paths(root)]
        return sorted({path.split("/", 1)[0] for path in inner if "/" in path})

    def iter_account_lines(self, account: str) -> Iterable[BankLine]:
        """Every committed line of an account that was not released, by month; all of them are kept in memory."""
        released = self.released_line_ids
        for month, _ in self.list_month_files(account):
            lines = self.read_month(account, month).values()
            yield from lines if not released else (line for line in lines if line.line_id not in released)

    def scan_account_lines(self, account: str, *, since: date = date.min) -> Iterable[BankLine]:
        """The same for who needs each line once: nothing is kept. A line that a file has twice comes once. ``since``:
        only months from this day's on."""
        released = self.released_line_ids
        for month, path in self.list_month_files(account):
            if month < since.isoformat()[:7]:
                continue
            if (account, month) in self._months:
                lines = self.read_month(account, month)
            else:
                lines = {line.line_id: line for line in iter_lines(self.source.read(path), path)}
                self.note_lines(month, lines)
            yield from (line for line in lines.values() if line.line_id not in released)

    def note_lines(self, month: str, line_ids: Iterable[str]) -> None:
        """Lines of a month that were read: the matches and outcomes of that month are all of theirs."""
        self._scanned.update(line_ids)
        for unread in self._unread.values():
            unread[month] = None

    def _list_unread(self, path: str, line_id: str | None) -> list[str]:
        """The files of matches or outcomes to be read for a line (None: for all). They lie in the file of its month:
        for a line of this run, and one of a month that was read, no other is read, however old the books are."""
        unread, known = self._unread[path], (self.new_lines, self._place_of, self._scanned)
        if path not in self._has_all and (line_id is None or not any(line_id in each for each in known)):
            self._has_all.add(path)
            unread |= dict.fromkeys(month for month, _ in self.paths.list_month_files(self.source, path))
        return [self.paths.month_path(path, month) for month in unread if month not in self._read[path]]

    def list_month_files(self, account: str) -> Iterable[tuple[str, str]]:
        root = f"{self.paths.bank_root}/{account}"
        for path in self.source.list_paths(root):
            if match := _MONTH_FILE.fullmatch(path, len(root) + 1):  # other files, as a note, are left alone
                yield match[1], path

    def find_line(self, line_id: str) -> tuple[str, BankLine] | None:
        """``(account, line)`` of a line read in this run or committed."""
        if (new := self.new_lines.get(line_id)) is not None:
            return new
        place = self._find_place(line_id)
        return (place[0], self._months[place][line_id]) if place in self._months else None

    def _find_place(self, line_id: str) -> tuple[str, str]:
        """Account and month of the file that has the line; empty where none has it. Most that is asked for is new."""
        if self._months_left is None and line_id not in self._place_of:
            accounts = self.list_accounts()
            self._months_left = sorted((month, each) for each in accounts for month, _ in self.list_month_files(each))
        while self._months_left and line_id not in self._place_of:
            month, account = self._months_left.pop()
            self.read_month(account, month)
        return self._place_of.get(line_id, ("", ""))

    def iter_lines_between(self, account: str, first: date, last: date) -> Iterator[BankLine]:
        """The account's posted lines of these days and those up to five around them, of this run and committed."""
        low = first - timedelta(days=min(NEAR_DAYS, (first - date.min).days))
        high = last + timedelta(days=min(NEAR_DAYS, (date.max - last).days))
        months = sorted(month for month, _ in self.list_month_files(account))
        wanted = [month for month in months if low.isoformat()[:7] <= month <= high.isoformat()[:7]]
        released = self.released_line_ids
        known = (line for month in wanted for line in self.read_month(account, month).values())
        committed = (line for line in known if line.line_id not in released)
        staged = (line for owner, line in self.new_lines.values() if owner == account)
        for line in itertools.chain(committed, staged):
            if line.state == "posted" and low <= line.posted_date <= high:
                yield line

    def find_similar_lines(self, account: str, line: BankLine) -> list[BankLine]:
        """Committed posted lines of the same amount within five days."""
        days = [line.posted_date + timedelta(days=d) for d in (-NEAR_DAYS, NEAR_DAYS)]
        indexes = [self._index_by_amount(account, month) for month in sorted({d.isoformat()[:7] for d in days})]
        others = (other for index in indexes for other in index.get(line.amount, ()))
        return [other for other in others if abs((other.posted_date - line.posted_date).days) <= NEAR_DAYS]

    def _index_by_amount(self, account: str, month: str) -> dict[Decimal, list[BankLine]]:
        """A month's committed posted lines by amount: a large file is compared with each of them otherwise."""
        key = (account, month)
        if key not in self._amounts:
            index: dict[Decimal, list[BankLine]] = {}
            for line in self.read_month(account, month).values():
                if line.state == "posted" and line.line_id not in self.released_line_ids:
                    index.setdefault(line.amount, []).append(line)
            self._amounts[key] = index
        return self._amounts[key]

    @property
    def matches(self) -> dict[str, Pairs]:
        """What is matched to each line, staged ones included."""
        self._load_matches()
        return self._matched

    def list_matches(self, line_id: str) -> Pairs:
        """The same of one line."""
        path = self.paths.matches
        if self._unread[path] or not (line_id in self._matched or line_id in self.new_lines or path in self._has_all):
            self._load_matches(line_id)
        return self._matched.get(line_id, ())

    def list_staged_matches(self) -> Iterator[tuple[str, Pairs]]:
        """The same of each line that the draft posts."""
        return ((line_id, self._matched[line_id]) for line_id in dict.fromkeys(map(_LINE_ID, self.new_matches)))

    def _load_matches(self, line_id: str | None = None) -> None:
        """Read the committed matches of a line (None: all)."""
        for path in self._list_unread(self.paths.matches, line_id):
            matched = parse_matches_once(self.source.read(path), path)
            in_both = self._matched.keys() & matched.keys()
            self._matched |= matched | {line: (*self._matched[line], *matched[line]) for line in in_both}
        self._read[self.paths.matches] |= self._unread[self.paths.matches].keys()
        self._unread[self.paths.matches].clear()

    def posted_amount(self, line_id: str) -> Decimal:
        """How much of the line is in the journal."""
        pairs = self.list_matches(line_id)
        return pairs[0][1] if len(pairs) == 1 else money.total([amount for _, amount in pairs])

    def list_entry_ids(self, line_id: str) -> list[str]:
        """The entries that were ever matched to the line, reversals too, oldest first."""
        parts = [parse_entry_id(leg_id) for leg_id, _ in self.list_matches(line_id)]
        return list(dict.fromkeys(format_entry_id(*each[:3]) for each in parts if each is not None))

    def find_outcome(self, line_id: str) -> Outcome | None:
        if line_id in self.new_outcomes:
            return self.new_outcomes[line_id]
        if line_id in self.new_lines:  # no file had it before, or it was released, and one has brought it anew
            return None
        return self.read_outcomes(line_id).get(line_id)

    def is_ignored(self, line_id: str) -> bool:
        """Whether somebody said that the line is not to be booked; it counts where the line is not booked."""
        outcome = self.find_outcome(line_id)
        return outcome is not None and outcome.outcome == "ignored"

    def read_outcomes(self, line_id: str | None = None) -> Mapping[str, Outcome]:
        """The committed outcomes: that of a line (None: all), and what was read before; each file is read once."""
        for path in self._list_unread(self.paths.outcomes, line_id):
            self._outcomes |= parse_outcomes(self.source.read(path), path)
        self._read[self.paths.outcomes] |= self._unread[self.paths.outcomes].keys()
        self._unread[self.paths.outcomes].clear()
        return self._outcomes

    @property
    def released_line_ids(self) -> set[str]:
        """The committed lines whose import was undone, and that no file has brought again since: they count as if
        the bank had not said them yet."""
        if self._released is None:
            released = set()
            if self.undone_imports:  # in the files of which months they are is not known here: all are read
                released = {i for i, each in self.read_outcomes().items() if each.outcome == RELEASED}
            if released:
                self._load_matches()
                staged: dict[str, Decimal] = defaultdict(Decimal)
                for line_id, _, amount in self.new_matches:
                    staged[line_id] += amount
                released = {i for i in released if self.posted_amount(i) == staged[i]}
            self._released = released
        return self._released

    @property
    def all_imports(self) -> list[ImportRecord]:
        """Files marked processed, committed and staged, those of undone imports too."""
        if self._imports is None:
            self._imports = self._read_imports(self.source, self.paths)
        return [*self._imports, *self.new_imports]

    @property
    def imports(self) -> list[ImportRecord]:
        """Files marked processed whose import stands."""
        undone = {(each.file_sha256, each.account, each.run) for each in self.undone_imports}
        records = self.all_imports
        return records if not undone else [r for r in records if (r.file_sha256, r.account, r.run) not in undone]

    @property
    def undone_imports(self) -> list[UndoneImport]:
        """The imports that were taken back, oldest first."""
        if self._undone is None:
            self._undone = parse_undone(self.source.read(self.paths.undone), self.paths.undone)
        return [*self._undone, *self.new_undone]

    def list_agreed_balances(self, since: date = date.min, through: date = date.max) -> list[AgreedBalance]:
        """The committed balances of the bank that the books agreed with and have to meet, by account and day: those of
        these days."""
        return [each for each in read_agreed_balances(self.source, self.paths, since, through) if each.stands]

    # -- the draft ----------------------------------------------------------------------------------------------

    def resolve_reference(self, reference: str) -> tuple[str, BankLine] | None:
        """The line a ``reference`` names, or None where it is free text. Unknown line ids are refused."""
        if not reference.startswith(LINE_ID_PREFIX):
            return None
        resolved = self.find_line(reference)
        if resolved is None:
            raise PrimitiveError(
                f"{reference!r} names no bank line",
                place=Place(field="reference"),
                remedy="Pass the reference of a dict that importer_parse returned, unchanged.",
            )
        if (why := why_not_postable(resolved[1])) is not None:
            raise PrimitiveError(
                f"the bank line {reference} is {why[0]}", place=Place(field="reference"), remedy=why[1]
            )
        return resolved

    def match_entry(self, line: BankLine, ledger_account: int, entry: Entry) -> None:
        """Match the entry's legs on ``ledger_account`` to the line; ``post_entry`` checked that they fit."""
        for i, leg in enumerate(entry.legs):
            if leg.account_id == ledger_account:
                moved, whole = leg.amount, line.amount
                amount = whole if moved == whole and moved.same_quantum(whole) else moved  # one number in memory
                self.stage_match(line.line_id, entry.entry_id + leg_suffix(i), amount)
        if line.line_id in self.new_outcomes and self.posted_amount(line.line_id) == line.amount:
            del self.new_outcomes[line.line_id]

    def stage_match(self, line_id: str, leg_id: str, amount: Decimal) -> None:
        self._matched[line_id] = (*self.list_matches(line_id), (leg_id, amount))
        self.new_matches.append((line_id, leg_id, amount))

    def set_line_aside(self, line_id: str, outcome: str, reason: str, counts: str = "") -> None:
        """Stage what becomes of it. ``counts``: the line that counts in its place."""
        self.new_outcomes[line_id] = Outcome(outcome, reason, counts)

    def is_accounted(self, line: BankLine, posted: Decimal) -> bool:
        """Check 7 for one line, of which ``posted`` is in the journal: posted whole, or not at all and set aside with a
        reason; pending ones need nothing.

        Where one of two entries that posted a line was voided, its part is open again and waits for a person: that is
        accounted for, too.
        """
        if posted == line.amount and posted != 0:
            return True
        outcome = self.find_outcome(line.line_id)
        if posted != 0:
            part = (posted > 0) == (line.amount > 0) and abs(posted) < abs(line.amount)
            return part and outcome is not None and outcome.outcome == "voided"
        return line.state == "pending" or outcome is not None

    def staged_line_ids(self) -> set[str]:
        """Line ids the draft posts or sets aside: these are recorded even if their file is not marked processed."""
        return {*map(_LINE_ID, self.new_matches), *self.new_outcomes}

    def render_files(self, run_id: str) -> dict[str, bytes]:
        """The bank files as they will be: path → bytes, only those that change."""
        out: dict[str, bytes] = {}
        recorded: dict[tuple[str, str], list[BankLine]] = {}
        to_record = (self.processed_line_ids | self.staged_line_ids()) - self.released_line_ids
        month_of = {}
        for line_id, (account, line) in self.new_lines.items():
            if line_id in to_record:
                month = month_of[line_id] = line.posted_date.isoformat()[:7]
                recorded.setdefault((account, month), []).append(line)
        matched = defaultdict[str, list[tuple[str, str, Decimal]]](list)
        for match in self.new_matches:
            matched[month_of.get(match[0]) or self._find_place(match[0])[1]].append(match)
        Columns = tuple[str, ...]
        texts = defaultdict[tuple[str, str, Columns, Columns], list[str]](list)
        for line_id, each in self.new_outcomes.items():
            month = month_of.get(line_id) or self._find_place(line_id)[1]
            row = format_record((line_id, each.outcome, each.text, run_id))
            texts[self.paths.outcomes, month, OUTCOME_COLUMNS, ()].append(row)
        for record in self.new_imports:
            month = record.imported_at[:7]
            texts[self.paths.imports, month, IMPORT_COLUMNS, IMPORT_OPTIONAL].append(record.to_csv())
        for agreed in self.new_agreed:
            month = agreed.day.isoformat()[:7]
            texts[self.paths.reconciliations, month, AGREED_COLUMNS, ()].append(agreed.to_csv())
        for month, digest, number, *rest in self.new_duplicates:
            row = format_record((digest, str(number), *rest))
            texts[self.paths.duplicates, month, DUPLICATE_COLUMNS, DUPLICATE_OPTIONAL].append(row)

        def add(path: str, columns: Columns, rows: Iterable[str], optional: Columns = ()) -> None:
            out[path] = append_rows(self.source.read(path), columns, rows, optional, file=path)

        for place, lines in recorded.items():
            add(self.paths.bank_path(*place), LINE_COLUMNS, (line.to_csv() for line in lines))
        for month, pairs in matched.items():
            rows = (format_record((a, b, money.format_amount(c))) for a, b, c in pairs)
            add(self.paths.month_path(self.paths.matches, month), MATCH_COLUMNS, rows)
        for (path, month, columns, optional), of_month in texts.items():
            add(self.paths.month_path(path, month), columns, of_month, optional)
        if self.new_undone:
            add(self.paths.undone, UNDONE_COLUMNS, (each.to_csv() for each in self.new_undone))
        return out

"""The invariants over all months, and the bank lines against the journal: what ``cleared check`` judges books by.

Each month is judged for itself (``judged_months``), and all of them together by what is needed of each. Of a month that
was right, and is as it was, that is known. What no month can tell alone is judged each time: lines that are not simply
booked, chains, balances.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date

from cleared.base import money
from cleared.base.errors import Place
from cleared.books.audit.judged_months import (
    JudgedMonth,
    JudgedMonths,
    MatchedLeg,
    describe_match,
    describe_unknown_line,
    find_leg,
    iter_month_lines,
    judge_month,
    list_far_legs,
    name_month,
)
from cleared.books.index.journal_index import MonthKey
from cleared.books.ledger.agreed_balances import (
    AgreedBalance,
    AgreementCheck,
    BankTiming,
    ListAsked,
    MatchedLine,
    read_agreed_balances,
)
from cleared.books.ledger.bank_lines import Pairs, parse_matches, parse_outcomes
from cleared.books.ledger.book_paths import BookPaths
from cleared.books.ledger.closed_periods import check_closed_periods
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import entry_of_leg
from cleared.books.ledger.receipts import find_altered_receipts, parse_receipts
from cleared.books.ledger.single_count import check_chains, check_line
from cleared.books.ledger.staged_bank_lines import RELEASED, BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.record_audit import TWO_CLONES_PAGE, Violation


def check_books(
    books: Books,
    bank: BankBook,
    kept: JudgedMonths | None = None,
    list_asked: ListAsked = lambda account, since, day: (),
) -> list[Violation]:
    """Every invariant over all months, and the bank lines against the journal. ``kept``: what is known of the months of
    the commit that these are of. ``list_asked``: see ``AgreementCheck``.

    Months are read one after the other, and let go.
    """
    return _BooksCheck(books, bank, kept, list_asked).list_violations()


class _BooksCheck:
    def __init__(self, books: Books, bank: BankBook, kept: JudgedMonths | None, list_asked: ListAsked) -> None:
        self._books, self._bank, self._kept, self._list_asked = books, bank, kept, list_asked
        self._lines = _list_bank_files(bank)
        matches = dict(bank.paths.list_month_files(bank.source, bank.paths.matches))
        self._older_path = matches.pop("", None)
        self._older = (
            parse_matches(bank.source.read(self._older_path), self._older_path) if self._older_path is not None else {}
        )
        """Matches of lines of all months, as earlier versions wrote them; a month takes those of its lines away."""
        self._matches = {_parse_month(month): path for month, path in matches.items()}
        outcomes = bank.paths.list_month_files(bank.source, bank.paths.outcomes)
        self._outcomes = {_parse_month(month): path for month, path in outcomes if month}
        self._judged: dict[MonthKey, JudgedMonth] = {}
        self._wanted: dict[MonthKey, dict[str, MatchedLeg | None]] = defaultdict(dict)
        """Month → its legs that lines of other months are matched to; None where it has no such leg."""
        self._moved = DayBalances()
        self._violations: list[Violation] = []

    def list_violations(self) -> list[Violation]:
        self._judge_months()
        path = self._books.paths.receipts
        receipts = parse_receipts(self._bank.source.read(path), path).values()
        return [
            *self._violations,
            *self._find_twice(),
            *self._check_others(),
            *self._check_balances(),
            *find_altered_receipts(receipts, self._bank.source.read),
            *check_chains([entry for judged in self._judged.values() for entry in judged.chained]),
        ]

    # -- each month -----------------------------------------------------------------------------------------------

    def _judge_months(self) -> None:
        journals, matched = set(self._books.list_months()), dict[MonthKey, dict[str, Pairs]]()
        for month in {*journals, *self._lines, *self._matches, *self._outcomes}:
            known = self._find_known(month, has_journal=month in journals)
            if known is not None and self._books.chart.accounts.keys() >= set(known.accounts):
                self._judged[month] = known
                pairs = [other.pairs for other in known.others]
            else:
                known = None
                path = self._matches.get(month)
                matched[month] = parse_matches(self._bank.source.read(path), path) if path is not None else {}
                pairs = [*matched[month].values(), *self._older.values()]
            for other, leg_id in list_far_legs(month, pairs):
                if known is None or known.versions.get(name_month(other)) != self._find_version(other):
                    self._wanted[other][leg_id] = None
        read = sorted({*matched, *(journals & self._wanted.keys())})
        right = {month for month in read if self._read_month(month, matched)}
        for line_id, pairs_of_line in self._older.items():
            self._violations += describe_unknown_line(self._bank.paths.matches, line_id, pairs_of_line)
        self._judged = dict(sorted(self._judged.items()))
        changed = [month for month, judged in self._judged.items() if self._take_wanted(month, judged)]
        news = {*right, *changed} - (matched.keys() - right)
        if self._kept is not None and self._older_path is None:
            self._kept.keep_months({month: self._judged[month] for month in news})

    def _find_known(self, month: MonthKey, *, has_journal: bool) -> JudgedMonth | None:
        """What is known of a month. Nothing where one file has the matches of all, as earlier versions wrote it."""
        if self._kept is None or self._older_path is not None:
            return None
        journal = [self._books.paths.journal_path(*month)] if has_journal else []
        others = [files[month] for files in (self._matches, self._outcomes) if month in files]
        return self._kept.find_month(month, [*journal, *(path for _, path in self._lines.get(month, ())), *others])

    def _read_month(self, month: MonthKey, matched: dict[MonthKey, dict[str, Pairs]]) -> bool:
        """Take the legs that are wanted of a month; judge it, where it is not known to be right. Whether it is."""
        journal = self._books.scan_month(*month)
        for leg_id in self._wanted.get(month, ()):
            self._wanted[month][leg_id] = find_leg(journal, leg_id)
        if month not in matched:
            return False
        if self._kept is not None:
            if month in self._kept.index.blobs:
                self._kept.index.add_month(journal)
        else:
            for entry in journal.entries.values():
                self._moved.add_entry(entry)
        files, path = self._lines.get(month, []), self._find_matches(month)
        aside = self._outcomes.get(month, self._bank.paths.outcomes)
        outcomes = aside, parse_outcomes(self._bank.source.read(aside), aside) if month in self._outcomes else ()
        found, judged = judge_month(
            journal, self._bank, files, path, matched[month], self._older, outcomes, self._books.chart.accounts
        )
        self._judged[month], matched[month] = judged, {}
        self._violations += found
        return not found

    def _take_wanted(self, month: MonthKey, judged: JudgedMonth) -> bool:
        """Add to a month the legs of others that were wanted for it; whether there are such."""
        far = [
            (other, leg_id)
            for other, leg_id in list_far_legs(month, [each.pairs for each in judged.others])
            if leg_id in self._wanted.get(other, ())
        ]
        for other, leg_id in far:
            leg = self._wanted[other][leg_id]
            judged.legs.pop(leg_id, None)
            judged.legs |= {leg_id: leg} if leg is not None else {}
            judged.versions[name_month(other)] = self._find_version(other)
        return bool(far)

    def _find_matches(self, month: MonthKey) -> str:
        return self._matches.get(month, self._bank.paths.matches)

    def _find_version(self, month: MonthKey) -> str:
        return self._kept.find_version(self._books.paths.journal_path(*month)) if self._kept is not None else ""

    # -- all together ---------------------------------------------------------------------------------------------

    def _find_twice(self) -> Iterator[Violation]:
        """The bank lines that are recorded twice."""
        marks = array("Q", b"".join(judged.marks for judged in self._judged.values()))
        if len(set(marks)) == len(marks):
            return
        seen = set()
        for account, line in iter_month_lines(self._bank, [file for files in self._lines.values() for file in files]):
            if line.line_id in seen:
                yield Violation(
                    "lines_accounted",
                    f"the bank line {line.line_id} of {account} is recorded twice",
                    f"Restore books/bank from the last good commit; where two clones were joined: {TWO_CLONES_PAGE}.",
                    Place(field=line.line_id),
                )
            seen.add(line.line_id)

    def _check_others(self) -> Iterator[Violation]:
        """Whether lines that are not simply booked are accounted for, by legs that there are, once on every day."""
        strays = {line_id for judged in self._judged.values() for line_id in judged.strays}
        for month, judged in self._judged.items():
            path = self._find_matches(month)
            for bank_account, line, pairs in judged.others:
                posted = money.total([amount for _, amount in pairs])
                if not (line.line_id in strays or self._bank.is_accounted(line, posted)):
                    yield Violation(
                        "lines_accounted",
                        f"{bank_account} {line.posted_date} {line.amount} {line.description[:60]!r}: "
                        f"{posted} of it is posted, and nobody set it aside",
                        "Post it, or ignore it with a reason.",
                        Place(field=line.line_id),
                    )
                for leg_id, amount in pairs:
                    if (leg := judged.legs.get(leg_id)) is None:
                        why = f"the bank line {line.line_id} is matched to {leg_id}, which is not there"
                        yield describe_match(path, why)
                    elif leg.amount != amount:
                        yield describe_match(path, f"{leg_id} moves {leg.amount}, its match says {amount}")
                if len(pairs) > 1:
                    legs = {entry_of_leg(i): judged.legs[i].day for i, _ in pairs if i in judged.legs}
                    yield from check_line(line, pairs, legs)

    def _check_balances(self) -> Iterator[Violation]:
        """Whether closed periods are as they were closed, and the books still meet each balance that they once met."""
        recorded = read_agreed_balances(self._bank.source, self._bank.paths)
        yield from _check_files(recorded, self._bank.paths)
        agreed = [each for each in recorded if each.stands]
        if not agreed and self._books.periods.closed_through is None:
            return
        balances = self._kept.index.day_balances(since=date.min) if self._kept is not None else self._moved
        yield from check_closed_periods(self._books, balances)
        if agreed:
            check = AgreementCheck(agreed, balances, self._time_lines(), self._list_asked)
            yield from check.list_violations()

    def _time_lines(self) -> BankTiming:
        """What stands between the balances of bank and books: the lines that are not booked whole, on their day."""
        timing, booked_on = BankTiming(), dict[str, int]()
        for judged in self._judged.values():
            booked_on |= judged.booked_on
        for judged in self._judged.values():
            for bank_account, line, pairs in judged.others:
                legs = [judged.legs[leg_id] for leg_id, _ in pairs if leg_id in judged.legs]
                account = legs[-1].account if legs else booked_on.get(bank_account)
                if account is not None and line.state == "posted" and not self._is_released(line.line_id, pairs):
                    parts = tuple((leg.day, leg.amount) for leg in legs if leg.account == account)
                    is_ignored = self._bank.is_ignored(line.line_id)
                    timing.add_line(
                        account, MatchedLine(line.line_id, line.posted_date, line.amount, parts, is_ignored)
                    )
        return timing

    def _is_released(self, line_id: str, pairs: Pairs) -> bool:
        outcome = self._bank.find_outcome(line_id)
        return outcome is not None and outcome.outcome == RELEASED and not money.total([each for _, each in pairs])


def _check_files(recorded: Iterable[AgreedBalance], paths: BookPaths) -> Iterator[Violation]:
    """Whether each balance that the books agreed with is on record in the file of its month."""
    for each in recorded:
        own = paths.month_path(paths.reconciliations, each.day.isoformat()[:7])
        if each.file not in (paths.reconciliations, own):
            why = f"a balance of {each.account} on {each.day} is not in the file of its month, where runs look"
            yield Violation("reconciled", why, "Restore the file (git log -- books).", Place(each.file))


def _list_bank_files(bank: BankBook) -> dict[MonthKey, list[tuple[str, str]]]:
    """Month → bank account and path of each file of its bank lines."""
    files: dict[MonthKey, list[tuple[str, str]]] = defaultdict(list)
    for account in bank.list_accounts():
        for month, path in bank.list_month_files(account):
            files[_parse_month(month)].append((account, path))
    return files


def _parse_month(name: str) -> MonthKey:
    return int(name[:4]), int(name[5:7])

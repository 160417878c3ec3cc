"""Rows that follow from what persons decided: grouped by payee and direction, then by bank account or amount.

A group becomes a row where at least three decisions are equal and none differs. Only persons' decisions count, as
anybody may write a bank's text: nothing is learned from what a script booked.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import groupby, pairwise, takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base import money
from cleared.base.short_text import join_words, quote_text
from cleared.base.terminal import count_noun
from cleared.books.ledger.all_booked_lines import AllBookedLines, GroupKey, LinePart, iter_lines_with
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.booked_lines import DECIDED, BookedLine, clean_payee
from cleared.books.teaching.row_limits import RowLimits
from cleared.books.teaching.vendor_table import MAX_WORDS, VendorRow, contains_words

LEAST: Final = 3
"""Equal decisions that make a row."""
_REMEMBERED: Final = 40
"""Decisions of one group that count: the newest."""
_MOST_RANGES: Final = 3
"""Ranges of amounts of one payee; more are no rule."""
_MIN_LETTERS: Final = 3
_ANYBODYS: Final = re.compile(
    r"(?:(?:ACH|ATM|AUTOPAY|BANK|BANKING|BILL|CARD|CASH|CHECK|CHECKCARD|CHEQUE|CO|COMPANY|CORP|CREDIT|DEBIT|DEPOSIT|DIRECT"
    r"|EFT|ELECTRONIC|EXTERNAL|FROM|GMBH|IN|INC|INTERNET|LLC|LTD|MASTERCARD|MOBILE|OF|ONLINE|OUT|PAY|PAYMENT|POS"
    r"|PREAUTHORIZED|PURCHASE|RECURRING|REFUND|SALE|SEPA|THE|TO|TRANSACTION|TRANSFER|VISA|WEB|WIRE|WITHDRAWAL|XFER)"
    r"(?: |$))+"
)
"""Words that stand in the texts of many payees: a row of nothing else would take lines of anybody."""
WAITING: Final = "pending-review"
UNATTESTED: Final = "unattested"
"""Of a line whose status says that a person decided it, which nothing attests."""
_ROOM: Final = 2
"""A learned row counts up to so many times the largest amount that was decided, and down to that part of the smallest:
what is much larger or smaller may follow another rule that nobody has seen yet."""
_SMALL: Final = 5

_AS_DECIDED: Final = "as you did"
_UNDECIDED: Final = "booked so by no person"
_OTHERWISE: Final = "otherwise than they are booked"
_WAITS: Final = "still waiting for you"
_KINDS: Final = (_AS_DECIDED, _UNDECIDED, _OTHERWISE, _WAITS)

_Part = tuple[Sequence[BookedLine], RowLimits]
Verdict = tuple[tuple[int, Decimal | None], ...]
"""Where a line went: one account (without its amount), or the parts of a split."""


class LearnedRow(Struct, frozen=True):
    """A row, and the decisions that it follows from."""

    row: VendorRow
    decisions: tuple[BookedLine, ...]
    """All of its group, equal, oldest first."""

    @property
    def title(self) -> str:
        """``BLUEBIRD HOLDINGS (money out) → 5040 from now on, as you decided 3 of 3 times``"""
        number = len(self.decisions)
        return f"{self.row.describe()} from now on, as you decided {number} of {number} times"


class Contradiction(Struct, frozen=True):
    """A group of which no rule can be made: equal lines went to different accounts."""

    key: GroupKey
    text: str
    """The bank's text of the newest."""
    counts: tuple[tuple[int, int], ...]
    """Account → decisions, most first."""
    last: date


def row_verdict(row: VendorRow) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Where a row sends its lines."""
    return row.account, tuple(sorted(row.limits.split))


def verdict_of(line: BookedLine) -> Verdict:
    """Where a line went."""
    return ((line.account, None),) if len(line.lines) == 1 else tuple(sorted(line.lines))


class DecidedHistory:
    """What persons decided of the lines of the books, and the rows that follow from it.

    ``answers``: where a person has said that a contradiction was an exception: group → account that it always is →
    until when.
    """

    def __init__(self, lines: AllBookedLines, answers: Mapping[GroupKey, Mapping[int, date]] | None = None) -> None:
        self.lines = lines
        self._answers = answers or {}
        self._groups: dict[GroupKey, list[BookedLine]] = {}
        self._learned: dict[GroupKey, list[LearnedRow]] = {}

    def find_group(self, key: GroupKey) -> list[BookedLine]:
        """The newest decisions of a group, oldest first, without exceptions."""
        if key not in self._groups:
            decided = sorted(self.lines.list_decided(key, _REMEMBERED), key=lambda line: line.day)[-_REMEMBERED:]
            self._groups[key] = leave_out_answered(decided, self._answers.get(key, {}))
        return self._groups[key]

    def learn_rows(self, key: GroupKey) -> list[LearnedRow]:
        """The rows that follow from the decisions of one group; none where they contradict each other or are too few,
        and none whose words would take in what was decided otherwise."""
        if key not in self._learned:
            parts = _divide(key, self.find_group(key))
            rows = self._make_rows(key, parts) if parts else []
            if any(self._is_contradicted(each.row) for each in rows):
                rows = []
            self._learned[key] = rows
        return self._learned[key]

    def find_contradiction(self, key: GroupKey) -> Contradiction | None:
        """What contradicts, of a group with enough decisions for a rule of which none can be made."""
        lines = self.find_group(key)
        counts = Counter(line.account for line in lines)
        if len(counts) < 2 or counts.most_common(1)[0][1] < LEAST or _divide(key, lines):
            return None
        return Contradiction(key, lines[-1].text, tuple(counts.most_common()), lines[-1].day)

    def describe_past(self, row: VendorRow) -> str:
        """``It would have booked 11 past lines, all as you did.`` What no person decided is told from what one did."""
        kinds = self._compare_past(row)
        how = "all as you did"
        if kinds[_AS_DECIDED] < kinds.total():
            how = join_words([f"{kinds[kind]} {kind}" for kind in _KINDS if kinds[kind]])
        return f"It would have booked {count_noun(kinds.total(), 'past line')}, {how}."

    def find_doubt(self, row: VendorRow) -> str:
        """Why a person must look at a row; empty where each line that it fits was decided as it says, by a person, and
        its words name nobody else. What a person said of exceptions does not count here: they were decisions, too."""
        if row.limits.split:
            return "it splits amounts"
        kinds = self._compare_past(row)
        other = next((f"{kinds[kind]} {kind}" for kind in reversed(_KINDS) if kinds[kind]), "")
        if kinds.total() > kinds[_AS_DECIDED]:
            return f"of its past lines, {other}"
        payee = clean_payee(row.words)
        also = self._find_other_payee(payee, payee)
        return f"its words stand in lines of {quote_text(also, MAX_WORDS)}, too" if also else ""

    def list_confirmed(self, row: VendorRow) -> dict[str, frozenset[str]]:
        """The entries of all lines that a row fits about which there is no doubt, with the accounts they went to."""
        return {
            line.entry_id: frozenset((str(line.bank), str(row.account)))
            for part in self.lines.parts
            for line in _iter_fitting(part, self.lines.banks, row)
        }

    def _compare_past(self, row: VendorRow) -> Counter[str]:
        """How many lines that a row fits stand how to it."""
        return sum(map(Counter, self.lines.recall(dict[str, int], _count_fitting, row)), Counter())

    def _find_other_payee(self, words: str, payee: str) -> str:
        """The first other payee in whose texts the words stand; empty where there is none."""
        return min(filter(None, self.lines.recall(str, _find_other_payee, words, payee)), default="")

    def _make_rows(self, key: GroupKey, parts: Sequence[_Part]) -> list[LearnedRow]:
        rows = []
        for lines, limits in parts:
            words = find_common_words([line.text for line in lines])
            if not words or not self._names_only(words, key.payee):
                return []
            newest = lines[-1]
            name = next((line.counterparty for line in reversed(lines) if line.counterparty), "") or words.title()
            if len(newest.lines) > 1:
                whole = abs(newest.amount)
                split = tuple((a, money.format_amount(abs(v))) for a, v in newest.lines if a != newest.account)
                if any((v > 0) == (newest.amount > 0) for _, v in newest.lines):
                    return []
                limits = replace(limits, least=whole, most=whole, split=split)
            else:
                sizes = [abs(line.amount) for line in lines]
                least, most = round_down(min(sizes) / _ROOM), round_up(max(sizes) * _ROOM)
                limits = replace(limits, least=limits.least or least, most=limits.most or most)
            rows.append(LearnedRow(VendorRow(words, _plain(name), newest.account, limits), tuple(lines)))
        return rows

    def _names_only(self, words: str, payee: str) -> bool:
        """Whether the words are the payee's whole text, or no other payee of the books has them: what banks put before
        every text (``POS PURCHASE``) names nobody, also where a text says nothing else."""
        plain = clean_payee(words)
        return not is_anybodys(words) and (plain == payee or not self._find_other_payee(plain, payee))

    def _is_contradicted(self, row: VendorRow) -> bool:
        """Whether a person decided otherwise of any line that the row fits, also of another payee."""
        accounts, words = {row.account, *(account for account, _ in row.limits.split)}, clean_payee(row.words)
        return any(
            {account for account, _ in line.lines} != accounts and row.fits(line.text, line.amount, line.bank)
            for key in self.lines.decided_keys
            if words in key.payee
            for line in self.find_group(key)
        )


def _iter_fitting(part: LinePart, banks: frozenset[int], row: VendorRow) -> Iterator[BookedLine]:
    return (line for line in iter_lines_with(part, banks, row.words) if row.fits(line.text, line.amount, line.bank))


def _count_fitting(part: LinePart, banks: frozenset[int], row: VendorRow) -> dict[str, int]:
    return Counter(_compare(line, row) for line in _iter_fitting(part, banks, row))


def _find_other_payee(part: LinePart, banks: frozenset[int], words: str, payee: str) -> str:
    payees = {clean_payee(line.text) for line in iter_lines_with(part, banks, words)}
    return min((each for each in payees if each != payee and contains_words(each, words)), default="")


def _compare(line: BookedLine, row: VendorRow) -> str:
    """How a line stands to what a row would have made of it."""
    if line.status == WAITING:
        return _WAITS
    if {account for account, _ in line.lines} != {row.account, *(account for account, _ in row.limits.split)}:
        return _OTHERWISE
    return _AS_DECIDED if line.status in DECIDED else _UNDECIDED


def _divide(key: GroupKey, lines: Sequence[BookedLine]) -> list[_Part]:
    """The decisions of a group in parts that each went to one place: all of it, by bank account, or by amount."""
    if _is_equal(lines):
        return [(lines, RowLimits(key.money))]
    banks = _by_bank(lines)
    if all(_is_equal(of_bank) for of_bank in banks.values()):
        return [(of_bank, RowLimits(key.money, bank)) for bank, of_bank in banks.items()]
    return _split_by_amount(key, lines)


def leave_out_answered(lines: Sequence[BookedLine], answers: Mapping[int, date]) -> list[BookedLine]:
    """The decisions without those that a person has said were exceptions. ``answers``: account that it always is →
    until when."""
    return [
        line for line in lines if all(line.account == account or line.day > until for account, until in answers.items())
    ]


def _is_equal(lines: Sequence[BookedLine]) -> bool:
    return len(lines) >= LEAST and len({verdict_of(line) for line in lines}) == 1


def _by_bank(lines: Sequence[BookedLine]) -> dict[int, list[BookedLine]]:
    banks: dict[int, list[BookedLine]] = defaultdict(list)
    for line in lines:
        banks[line.bank].append(line)
    return banks


def _split_by_amount(key: GroupKey, lines: Sequence[BookedLine]) -> list[_Part]:
    """Ranges of amounts that each went to one place, if there are few and each has enough decisions."""
    ordered = sorted(lines, key=lambda line: (abs(line.amount), verdict_of(line)))
    ranges = [list(same) for _, same in groupby(ordered, key=verdict_of)]
    sizes = [(abs(each[0].amount), abs(each[-1].amount)) for each in ranges]
    apart = all(before[1] < after[0] for before, after in pairwise(sizes))
    if not apart or len(ranges) > _MOST_RANGES or not all(_is_equal(each) for each in ranges):
        return []
    parts: list[_Part] = []
    for number, (each, (low, high)) in enumerate(zip(ranges, sizes, strict=True)):
        least = low if number else None
        most = high if number < len(ranges) - 1 else None
        parts.append((sorted(each, key=lambda line: line.day), RowLimits(key.money, None, least, most)))
    return parts


def is_anybodys(words: str) -> bool:
    """Whether the words stand in the texts of many payees, so that they name none."""
    return _ANYBODYS.fullmatch(clean_payee(words)) is not None


def round_up(amount: Decimal) -> Decimal:
    """To the next of 1, 2, 5, 10, 20, 50 …, so that a row reads as a person would have written it."""
    return next(step for step in _iter_steps() if step >= amount)


def round_down(amount: Decimal) -> Decimal | None:
    """The same downwards; None for what is so small that a limit says nothing."""
    if amount < _SMALL:
        return None
    return max(takewhile(lambda step: step <= amount, _iter_steps()))


def _iter_steps() -> Iterator[Decimal]:
    step = Decimal(1)
    while True:
        yield from (step, 2 * step, 5 * step)
        step *= 10


def _plain(name: str) -> str:
    """A vendor's name as a table can have it."""
    return "".join(c for c in " ".join(name.split()) if c.isprintable())[:MAX_WORDS] or "?"


def find_common_words(texts: Sequence[str]) -> str:
    """The first words that all these texts share, up to a number that stands behind one; empty where they name nobody.
    What a name begins with may be a number: ``3M COMPANY``."""
    split = [normalise_description(text).split() for text in texts]
    words: list[str] = []
    for column in zip(*split, strict=False):
        is_named = any(sum(map(str.isalpha, word)) >= _MIN_LETTERS for word in words)
        if len(set(column)) > 1 or (is_named and any(c.isdigit() for c in column[0])):
            break
        words.append(column[0])
    found = " ".join(words).strip(" -,.:*#")
    is_name = sum(c.isalpha() for c in found) >= _MIN_LETTERS and len(found) <= MAX_WORDS and found.isprintable()
    return found if is_name and all(contains_words(text, found) for text in texts) else ""

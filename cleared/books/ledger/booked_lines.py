"""How bank lines are booked: one movement of a bank account and where it went, corrections counted in.

Booked lines may explain another one by amount and days: the other side of a transfer, the purchase that a refund gives
back, the same charge of the months before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct, field

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.chains import CORRECTS
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferSide, find_transfers

DECIDED: Final = frozenset({"user-confirmed", "user-corrected"})
"""The statuses that a person gives."""


class BookedLine(NamedTuple):
    """One entry of a bank account. ``amount``: as the bank moves, negative is money out."""

    entry_id: str
    day: date
    text: str
    bank: int
    amount: Decimal
    lines: tuple[tuple[int, Decimal], ...]
    """The other accounts and their amounts, positive is a debit: together the opposite of ``amount``."""
    status: str
    counterparty: str
    reference: str

    @property
    def account(self) -> int:
        """The account of the largest part."""
        return max(self.lines, key=lambda line: (abs(line[1]), -line[0]))[0]


_FEW: Final = 2


def clean_payee(description: str) -> str:
    """What equal payees have in common: the words of the text, without numbers and marks. A name may begin with a digit
    or two and letters (``3M COMPANY``); what has more of them, or stands later, is a number of the line."""
    text, words = normalise_description(description), []
    for number, word in enumerate(text.replace("*", " ").replace("#", " ").split()):
        plain = word.strip(".,;:-/()'\"")
        if plain.isalpha() or (plain and sum(map(str.isdigit, plain)) <= (0 if number or plain.isdigit() else _FEW)):
            words.append(plain)
    return " ".join(words) or text


def read_booked_lines(entries: Iterable[Entry], bank_accounts: Collection[int]) -> Iterator[BookedLine]:
    """The standing entries that move one bank account, in the order of the journal."""
    corrections: dict[str, list[Leg]] = defaultdict(list)
    heads = {entry.entry_id: entry for entry in check_deadline(entries) if entry.status != "voided"}
    corrected = {entry_id: standing for entry_id, entry in heads.items() if (standing := _corrected(entry, heads))}
    for entry_id, originals in corrected.items():
        for original in originals:
            corrections[original] += heads[entry_id].legs
    for entry_id, entry in heads.items():
        if entry_id in corrected:
            continue
        totals: dict[int, Decimal] = {}
        for leg in (*entry.legs, *corrections.get(entry_id, ())):
            totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
        banks = [account for account, amount in totals.items() if amount and account in bank_accounts]
        lines = tuple((a, amount) for a, amount in totals.items() if amount and a not in bank_accounts)
        if len(banks) == 1 and lines:
            yield BookedLine(
                entry_id,
                entry.date,
                entry.description,
                banks[0],
                totals[banks[0]],
                lines,
                entry.status,
                entry.counterparty,
                entry.reference,
            )


def _corrected(entry: Entry, standing: Collection[str]) -> list[str]:
    """The standing entries that an entry corrects."""
    if CORRECTS not in entry.tags:
        return []
    named = [tag.removeprefix(CORRECTS) for tag in entry.tags.split(";") if tag.startswith(CORRECTS)]
    return [entry_id for entry_id in named if entry_id in standing]


REFUND_DAYS: Final = 120
"""Days after a purchase in which its refund is looked for."""
TEXT_LENGTH: Final = 200
"""Of a bank's text, what a transfer's card keeps."""
_MONTH: Final = range(25, 37)
_NEAR: Final = 0.4
"""How alike the payees must be."""
_MAX_CANDIDATES: Final = 50
_MOST_MONTHS: Final = 6
_REFUND_WORDS: Final = frozenset({"REFUND", "RETURN", "RETURNED", "CREDIT", "REVERSAL", "PURCHASE"})

Likeness = Callable[[str, str], float]
"""How alike two payees are, from 0 to 1."""


class OpenLine(Struct, frozen=True):
    """A bank line that has no account yet. ``reference`` and ``entry_id``: what is no evidence about itself."""

    text: str
    amount: Decimal
    day: date
    bank: int
    reference: str = ""
    entry_id: str = ""

    def is_same(self, line: BookedLine) -> bool:
        """Whether the booked line is this one."""
        return line.entry_id == self.entry_id or (bool(self.reference) and line.reference == self.reference)


class AmountMatches(Struct):
    """Booked lines by amount. ``refused``: texts of both sides of what persons said is no transfer, cleaned."""

    likeness: Likeness
    refused: set[tuple[str, str]] = set()
    _by_amount: dict[Decimal, list[BookedLine]] = field(default_factory=lambda: defaultdict(list))

    def add_lines(self, lines: Iterable[BookedLine]) -> None:
        """Learn all booked lines, once."""
        for line in lines:
            self._by_amount[line.amount].append(line)
        for same in self._by_amount.values():
            same.sort(key=lambda line: line.day)

    def find_other_side(self, open_line: OpenLine) -> BookedLine | None:
        """The only line of another own account that the line can be a transfer to or from."""
        sides, known = [_open_side(open_line)], {}
        for amount in (open_line.amount, -open_line.amount):
            for line in self._between(amount, open_line.day, 3 * MAX_DAYS, 3 * MAX_DAYS):
                if not open_line.is_same(line) and len(line.lines) == 1:
                    sides.append(_booked_side(line))
                    known[line.entry_id] = line
        sides.sort(key=lambda side: (side.day, side.entry_id))
        for pair in find_transfers(sides).proposed:
            texts = (clean_payee(pair.out.text[:TEXT_LENGTH]), clean_payee(pair.into.text[:TEXT_LENGTH]))
            if "" in (pair.out.entry_id, pair.into.entry_id) and texts not in self.refused:
                return known[pair.into.entry_id or pair.out.entry_id]
        return None

    def find_purchase(self, open_line: OpenLine) -> BookedLine | None:
        """The newest purchase of the same amount and a like payee, if it was not refunded yet."""
        if open_line.amount <= 0:
            return None
        bought = self._alike(open_line, -open_line.amount, REFUND_DAYS, 0)
        returned = self._alike(open_line, open_line.amount, REFUND_DAYS, 0)
        return bought[0] if len(bought) > len(returned) else None

    def find_months_before(self, open_line: OpenLine) -> list[BookedLine]:
        """The same amount of a like payee a month before, and in the months before that; newest first."""
        alike = self._alike(open_line, open_line.amount, (_MOST_MONTHS + 1) * _MONTH.stop, 0)
        found: list[BookedLine] = []
        day = open_line.day
        for line in alike:
            if (day - line.day).days in _MONTH and len(found) < _MOST_MONTHS:
                found.append(line)
                day = line.day
        return found

    def _alike(self, open_line: OpenLine, amount: Decimal, before: int, after: int) -> list[BookedLine]:
        """Lines of the same bank account that are more than a guess, newest first."""
        payee = _plain_payee(open_line.text)
        near = self._between(amount, open_line.day, before, after)
        firm = (
            line
            for line in reversed(near)
            if line.bank == open_line.bank and line.status != "pending-review" and not open_line.is_same(line)
        )
        return [
            line
            for line in islice(firm, _MAX_CANDIDATES)
            if all(account != CLEARING_ACCOUNT for account, _ in line.lines)
            and self.likeness(payee, _plain_payee(line.text)) >= _NEAR
        ]

    def _between(self, amount: Decimal, day: date, before: int, after: int) -> list[BookedLine]:
        lines = self._by_amount.get(amount, [])
        first = day - timedelta(days=min(before, (day - date.min).days))
        last = day + timedelta(days=min(after, (date.max - day).days))
        low, high = bisect_left(lines, first, key=_day), bisect_right(lines, last, key=_day)
        return lines[max(low, high - _MAX_CANDIDATES * 10) : high]


def _plain_payee(text: str) -> str:
    words = clean_payee(text).split()
    return " ".join(word for word in words if word not in _REFUND_WORDS) or " ".join(words)


def _open_side(line: OpenLine) -> TransferSide:
    return TransferSide("", line.day, line.bank, line.amount, line.text, "pending-review", False)


def _booked_side(line: BookedLine) -> TransferSide:
    return TransferSide(
        line.entry_id, line.day, line.bank, line.amount, line.text, line.status, line.account == CLEARING_ACCOUNT
    )


def _day(line: BookedLine) -> date:
    return line.day

"""What an index knows of one month's journal: its sums by day and account, and its entries by column."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import islice, pairwise, starmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from cleared.base import money
from cleared.books.ledger.entry import CLOSING, ZERO, Entry, Leg, entry_to_json, leg_suffix, parse_number

if TYPE_CHECKING:
    from cleared.books.ledger.journal import JournalMonth

_SEARCHED: Final = ("description", "counterparty", "reference", "evidence", "notes")
_TEXTS: Final = (
    "entry_id",
    "description",
    "status",
    "counterparty",
    "reference",
    "confidence",
    "evidence",
    "receipt_hash",
    "tags",
    "notes",
)
_BETWEEN: Final = "\0"
_TWO: Final = 2


class Sums(NamedTuple):
    """Debits and credits, in the currency's smallest unit."""

    debit: int = 0
    credit: int = 0

    def plus(self, debit: int, credit: int) -> Sums:
        return Sums(self.debit + debit, self.credit + credit)


class MonthSums(Struct, frozen=True):
    """The sums of one month. ``days``: the date as written → account → debits and credits of that day."""

    count: int
    statuses: Mapping[str, int]
    """Status → number of entries."""
    days: Mapping[str, Mapping[int, Sums]]
    closing: Mapping[str, Mapping[int, Sums]] = {}
    """The same of the entries that close a year (``@kind=closing``): they are among ``days``, too."""
    pending: Mapping[str, Sequence[int]] = {}
    """The date → how many entries of that day wait for review, and the sum of their amounts in the smallest unit."""
    accounts: Mapping[int, Sums] = {}
    """Account → debits and credits of the whole file; reckoned from ``days`` where it is not given."""

    def __post_init__(self) -> None:
        if self.accounts:
            return
        totals: dict[int, Sums] = {}
        for day in self.days.values():
            for account, sums in day.items():
                totals[account] = totals[account].plus(*sums) if account in totals else sums
        force_setattr(self, "accounts", totals)

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> MonthSums:
        return msgspec.msgpack.decode(data, type=cls)


class MonthTotals(Struct, frozen=True):
    """What ``MonthSums`` has of the whole file alone, for who reads nothing else of it."""

    accounts: Mapping[int, Sums] = {}

    @classmethod
    def decode(cls, data: bytes) -> MonthTotals:
        return msgspec.msgpack.decode(data, type=cls)


def sum_month(month: JournalMonth, places: int) -> MonthSums:
    """The sums of a month that was parsed."""
    days: dict[str, dict[int, list[int]]] = {}
    closing: dict[str, dict[int, list[int]]] = {}
    pending: dict[str, list[int]] = {}
    units: dict[Decimal, int] = {}
    for entry in month.entries.values():
        day = entry.date.isoformat()
        groups = [days.setdefault(day, {})]
        if CLOSING in entry.tags and CLOSING in entry.tags.split(";"):
            groups.append(closing.setdefault(day, {}))
        waiting = pending.setdefault(day, [0, 0]) if entry.status == "pending-review" else None
        if waiting is not None:
            waiting[0] += 1
        for leg in entry.legs:
            for group in groups:
                sums = group.setdefault(leg.account_id, [0, 0])
                for i, amount in enumerate((leg.debit, leg.credit)):
                    if amount:
                        if amount not in units:
                            units[amount] = money.count_units(amount, places)
                        sums[i] += units[amount]
            if waiting is not None and leg.debit:
                waiting[1] += units[leg.debit]
    statuses = Counter(entry.status for entry in month.entries.values())
    return MonthSums(len(month.entries), dict(statuses), _freeze(days), _freeze(closing), dict(sorted(pending.items())))


def _freeze(days: Mapping[str, Mapping[int, list[int]]]) -> dict[str, dict[int, Sums]]:
    return {day: {account: Sums(*pair) for account, pair in sums.items()} for day, sums in sorted(days.items())}


class _Amounts(dict[str, Decimal]):
    """Amounts as numbers, each made once, when it is asked for."""

    def __missing__(self, text: str) -> Decimal:
        self[text] = number = Decimal(text)
        return number


class MonthEntries:
    """The entries of one month, by column, in the order of the file."""

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self._columns = columns
        self.ids: list[str] = columns["entry_id"]
        self.dates: list[str] = columns["date"]
        self.statuses: list[str] = columns["status"]
        self._accounts: list[int] = columns["account"]
        self._debits: list[str] = columns["debit"]
        self._credits: list[str] = columns["credit"]
        ends, end = [0], 0
        for legs in columns["legs"]:
            end += legs
            ends.append(end)
        self._ends = ends
        self._amounts = _Amounts({"": ZERO})

    def __len__(self) -> int:
        return len(self.ids)

    def encode(self) -> bytes:
        return json.dumps(self._columns, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> MonthEntries:
        return cls(msgspec.json.decode(data))

    def make_entry(self, at: int) -> Entry:
        """The entry at this place of the file, counted from 0."""
        c = self._columns
        return Entry(
            self.ids[at],
            self._days[self.dates[at]],
            c["description"][at],
            tuple(self.legs_at(at)),
            c["status"][at],
            c["counterparty"][at],
            c["reference"][at],
            c["confidence"][at],
            c["evidence"][at],
            c["receipt_hash"][at],
            c["tags"][at],
            c["notes"][at],
        )

    def make_entries(self, places: Sequence[int]) -> Iterable[Entry]:
        """The entries at these places, column by column: in half of the time that one after the other takes."""
        c, ends, amounts = self._columns, self._ends, self._amounts.__getitem__
        is_whole = places == range(len(self))
        numbers = range(ends[-1]) if is_whole else [n for at in places for n in range(ends[at], ends[at + 1])]

        def take(column: list[Any], at: Sequence[int]) -> Iterable[Any]:
            return column if is_whole else map(column.__getitem__, at)

        sides = (map(amounts, take(side, numbers)) for side in (self._debits, self._credits))
        legs = starmap(Leg, zip(take(self._accounts, numbers), *sides, strict=True))
        columns = (
            take(self.ids, places),
            map(self._days.__getitem__, take(self.dates, places)),
            take(c["description"], places),
            [tuple(islice(legs, count)) for count in take(c["legs"], places)],
            *(take(c[name], places) for name in _TEXTS[_TEXTS.index("status") :]),
        )
        return starmap(Entry, zip(*columns, strict=True))

    def list_dicts(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """The entries at these places as ``entry_to_json`` gives them, in a third of its time."""
        c, amounts = self._columns, self._postings[0]
        numbers: dict[str, str] = {}
        for at in places:
            legs = range(self._ends[at], self._ends[at + 1])
            if self._has_nothing_posted or any((self._debits[n] == "") == (self._credits[n] == "") for n in legs):
                yield entry_to_json(self.make_entry(at))
                continue
            entry_id, confidence, tags = self.ids[at], c["confidence"][at], c["tags"][at]
            if confidence not in numbers:
                numbers[confidence] = money.format_amount(parse_number(confidence))
            lines, zero = [], self._zero
            for i, n in enumerate(legs):
                debit, credit = self._debits[n], self._credits[n]
                lines.append(
                    {
                        "leg_id": entry_id + leg_suffix(i),
                        "account_id": self._accounts[n],
                        "debit": debit or zero,
                        "credit": credit or zero,
                    }
                )
            yield {
                "entry_id": entry_id,
                "date": self.dates[at],
                "description": c["description"][at],
                "amount": amounts[at],
                "status": self.statuses[at],
                "counterparty": c["counterparty"][at],
                "reference": c["reference"][at],
                "confidence": numbers[confidence],
                "evidence": c["evidence"][at],
                "tags": tags.split(";") if tags else [],
                "notes": c["notes"][at],
                "lines": lines,
            }

    def legs_at(self, at: int) -> Iterator[Leg]:
        """The legs of the entry at this place."""
        amounts = self._amounts
        for n in range(self._ends[at], self._ends[at + 1]):
            yield Leg(self._accounts[n], amounts[self._debits[n]], amounts[self._credits[n]])

    def list_accounts(self) -> Iterable[tuple[int, ...]]:
        """The accounts of each entry, as its legs have them."""
        if set(self._columns["legs"]) == {_TWO}:  # of most months all
            return zip(self._accounts[::2], self._accounts[1::2], strict=True)
        return (tuple(self._accounts[start:end]) for start, end in pairwise(self._ends))

    def list_movements(self, places: Iterable[int]) -> Iterator[list[tuple[int, str]]]:
        """Of the entries at these places: each leg's account and amount as it is written, a credit with a minus."""
        accounts, debits, credits = self._accounts, self._debits, self._credits
        for at in places:
            legs: list[tuple[int, str]] = []
            for n in range(self._ends[at], self._ends[at + 1]):
                debit, credit = debits[n], credits[n]
                if debit and credit:  # as only a damaged one can have
                    debit, credit = money.format_amount(Decimal(debit) - Decimal(credit)), ""
                legs.append((accounts[n], debit or f"-{credit or '0'}"))
            yield legs

    def digest_postings(self, accounts: Collection[int]) -> str:
        """A digest of what is posted to some accounts: of which entries, on which days, voided or not."""
        legs = [at for at, account in enumerate(self._accounts) if account in accounts]
        of = [bisect_right(self._ends, at) - 1 for at in legs]
        c, is_voided = self._columns, [status == "voided" for status in self.statuses]
        rows = [(self._accounts[n], self._debits[n], self._credits[n]) for n in legs]
        heads = [(self.ids[at], self.dates[at], is_voided[at], c["tags"][at]) for at in of]
        return hashlib.sha256(json.dumps([rows, heads]).encode()).hexdigest()

    def list_postings(self, places: Sequence[int]) -> tuple[list[str], list[str], list[str]]:
        """Of the entries at these places: the amount, the accounts that it is posted to, and from; joined by ``+``."""
        amounts, debited, credited = self._postings
        return [amounts[at] for at in places], [debited[at] for at in places], [credited[at] for at in places]

    @cached_property
    def _days(self) -> dict[str, date]:
        return {text: date.fromisoformat(text) for text in set(self.dates)}

    @cached_property
    def _has_nothing_posted(self) -> bool:
        """Whether an amount of the month is zero, as only a damaged one can have."""
        return any(text and not text.strip("0.") for text in {*self._debits, *self._credits})

    @cached_property
    def _zero(self) -> str:
        """Nothing, with as many decimals as the amounts of the month have."""
        _, point, decimals = next(filter(None, (*self._debits, *self._credits)), "0").partition(".")
        return f"0{point}{'0' * len(decimals)}"

    @cached_property
    def _postings(self) -> tuple[list[str], list[str], list[str]]:
        amounts: list[str] = []
        debited: list[str] = []
        credited: list[str] = []
        names = {account: str(account) for account in set(self._accounts)}
        accounts, debits, credits = self._accounts, self._debits, self._credits
        for start, end in pairwise(self._ends):
            if end - start == 2 and debits[start] and credits[start + 1] and not (credits[start] or debits[start + 1]):
                amounts.append(debits[start])
                debited.append(names[accounts[start]])
                credited.append(names[accounts[start + 1]])
                continue
            legs = range(start, end)
            amounts.append(money.format_amount(money.total([Decimal(debits[n]) for n in legs if debits[n]])))
            for side, texts in ((debits, debited), (credits, credited)):
                texts.append("+".join([names[accounts[n]] for n in legs if side[n] and Decimal(side[n])]))
        return amounts, debited, credited

    def list_texts(self, name: str, places: Sequence[int]) -> list[str]:
        """One text of each of the entries at these places, such as ``description`` or ``date``."""
        column = self._columns[name]
        return [column[at] for at in places]

    def find_account(self, account: int) -> list[int]:
        """The places of the entries that post to an account, in order."""
        return self._places_by_account.get(account, [])

    def find_amount(self, amount: Decimal) -> list[int]:
        """The places of the entries that move an amount by one leg, and of those that have not two, in order."""
        places, others = self._places_by_amount
        return sorted([*places.get(_strip_zeros(money.format_amount(amount)), ()), *others])

    @cached_property
    def _places_by_amount(self) -> tuple[dict[str, list[int]], list[int]]:
        """Amount → the places of the entries of two legs that move it; and the places of all others."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        others: list[int] = []
        for at, (start, count) in enumerate(zip(self._ends, self._columns["legs"], strict=False)):
            if count == _TWO:
                places[self._debits[start] or self._credits[start]].append(at)
            else:
                others.append(at)
        plain: defaultdict[str, list[int]] = defaultdict(list)
        for text, of_text in places.items():
            plain[_strip_zeros(text)] += of_text
        return dict(plain), others

    def find_text(self, text: str) -> list[int]:
        """The places of the entries that hold the text in one of the fields that are searched; no case."""
        needle = text.casefold()
        hay, starts = self._searched
        if _BETWEEN in needle:
            return [at for at in range(len(self)) if needle in hay[starts[at] : starts[at + 1] - 1]]
        places: list[int] = []
        found = hay.find(needle)
        while found >= 0 and found < starts[-1]:
            at = bisect_right(starts, found) - 1
            places.append(at)
            found = hay.find(needle, starts[at + 1])
        return places

    @cached_property
    def _places_by_account(self) -> dict[int, list[int]]:
        places: dict[int, list[int]] = {}
        for at in range(len(self)):
            for account in set(self._accounts[self._ends[at] : self._ends[at + 1]]):
                places.setdefault(account, []).append(at)
        return places

    @cached_property
    def _searched(self) -> tuple[str, list[int]]:
        """What is searched, of all entries, and where in it each entry begins."""
        texts = ["\n".join(fields).casefold() for fields in zip(*(self._columns[f] for f in _SEARCHED), strict=True)]
        starts, start = [0], 0
        for text in texts:
            start += len(text) + 1
            starts.append(start)
        return _BETWEEN.join([*texts, ""]), starts


def _strip_zeros(amount: str) -> str:
    """An amount as any number of decimals gives it."""
    return amount.rstrip("0").rstrip(".") if "." in amount else amount


def list_columns(month: JournalMonth) -> MonthEntries:
    """The entries of a month that was parsed."""
    entries = list(month.entries.values())
    columns: dict[str, list[Any]] = {name: [getattr(entry, name) for entry in entries] for name in _TEXTS}
    columns["date"] = [e.date.isoformat() for e in entries]
    columns["legs"] = [len(e.legs) for e in entries]
    legs = [leg for entry in entries for leg in entry.legs]
    columns["account"] = [leg.account_id for leg in legs]
    columns["debit"] = ["" if leg.debit is ZERO else money.format_amount(leg.debit) for leg in legs]
    columns["credit"] = ["" if leg.credit is ZERO else money.format_amount(leg.credit) for leg in legs]
    return MonthEntries(columns)

"""What the bank said that an account held at the ends of days, by the running balance of its rows and by its files."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from operator import attrgetter

from msgspec import Struct

from cleared.base import money
from cleared.books.ledger.agreed_balances import MET
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.bank_row import order_rows
from cleared.books.ledger.entry import ZERO
from cleared.books.ledger.import_records import ImportRecord
from cleared.books.ledger.staged_bank_lines import BankBook


class StatedBalance(Struct, frozen=True):
    """What the bank said an account held at the end of a day."""

    day: date
    amount: Decimal


def list_stated_balances(
    lines: Sequence[BankLine], bank: BankBook, name: str, account: int, since: date = date.min
) -> list[StatedBalance]:
    """The balances at the ends of days, from ``since`` on. ``lines``: those of the bank account ``name`` that are
    posted; at least those of these days, and all of the files that have one of these.

    A file may have been taken before its last day was over. So where files say different balances of a day, one from
    which another row of that day goes on is not its end; of the others the newest file's counts.
    """
    moved = {
        (each.day, each.by): each.amount
        for each in bank.list_agreed_balances(since)
        if (each.account, each.state) == (account, MET)
    }
    of_day: dict[date, list[BankLine]] = defaultdict(list)
    by_file: dict[str, list[BankLine]] = defaultdict(list)
    for line in lines:
        of_day[line.posted_date].append(line)
        by_file[line.file_sha256].append(line)
    records = [record for record in bank.imports if record.account == name]
    order = {record.file_sha256: place for place, record in enumerate(records)}
    said = [
        (order.get(file, -1), day, balance) for file, own in by_file.items() for day, balance in _list_day_ends(own)
    ]
    for place, record in enumerate(records):
        stated = record.read_closing() if record.last_date >= since.isoformat() else None
        if stated is not None:
            day, closing = stated
            by_now = moved.get((day, record.name), closing)
            if by_now == closing:
                by_now += _sum_later(of_day[day], place, record, order)
            said.append((place, day, by_now))
    ends: dict[date, list[Decimal]] = defaultdict(list)
    for _, day, balance in sorted(said, key=lambda each: each[0]):
        if day >= since:
            ends[day].append(balance)
    return [StatedBalance(day, _choose_end(ends[day], of_day[day])) for day in sorted(ends)]


def find_stated_beginning(
    lines: Sequence[BankLine], bank: BankBook, name: str, *, has_foreign: bool
) -> StatedBalance | None:
    """What the account held before its first row, as the file says that begins with it. None where no such file says
    it, or several say different ones. ``lines``, ``name``: as above. ``has_foreign``: whether there are rows in another
    currency, of which it is not known what they moved; only a file that lacks rows is believed then."""
    first = min((line.posted_date for line in lines), default=None)
    records = [r for r in bank.imports if first and r.account == name and r.first_date == first.isoformat()]
    said = {record.opening_balance for record in records}
    if first is None or len(said) != 1 or "" in said or (has_foreign and any(map(_is_whole, records))):
        return None
    return StatedBalance(find_day_before(first), Decimal(said.pop()))


def find_day_before(day: date) -> date:
    """The day before; of the first day that there is, this day."""
    return day - timedelta(days=min(1, (day - date.min).days))


def _is_whole(record: ImportRecord) -> bool:
    """Whether a file's rows make up the difference of its balances, as far as it says both."""
    if not record.opening_balance or not record.closing_balance:
        return True
    return Decimal(record.opening_balance) + Decimal(record.sum) == Decimal(record.closing_balance)


def _list_day_ends(in_file: list[BankLine]) -> Iterator[tuple[date, Decimal]]:
    """The running balance of one file at the end of each of its days."""
    for day, of_day in itertools.groupby(_in_time(in_file), key=lambda line: line.posted_date):
        balance = list(of_day)[-1].balance_after
        if balance is not None:
            yield day, balance


def _sum_later(of_day: Iterable[BankLine], place: int, record: ImportRecord, order: Mapping[str, int]) -> Decimal:
    """What rows of a file's last day come to that a later file brought, and that say no balance themselves. Of a file
    that is not whole they are what it lacks, and its balance has them; one that looks like an earlier one may be it."""
    if not _is_whole(record):
        return ZERO
    lines = [(order.get(line.file_sha256, -1), line) for line in of_day]
    known = {line.amount for at, line in lines if at <= place}
    later = (line for at, line in lines if at > place and line.balance_after is None and line.amount not in known)
    return money.total([line.amount for line in later])


def _choose_end(said: Sequence[Decimal], of_day: Iterable[BankLine]) -> Decimal:
    """The last of these from which no row of the day goes on; the last of all where they go round in a circle."""
    if len(set(said)) == 1:
        return said[0]
    stated = [(line.balance_after, line.amount) for line in of_day if line.balance_after is not None]
    after = Counter(balance for balance, _ in stated)
    before = Counter(balance - amount for balance, amount in stated)
    ends = [balance for balance in said if not before[balance] or after[balance] > before[balance]]
    return (ends or said)[-1]


def _in_time(lines: list[BankLine]) -> list[BankLine]:
    """The lines of one file, oldest first: files have them in either direction."""
    rows = sorted(lines, key=lambda line: line.row)
    return sorted(order_rows(rows, attrgetter("balance_after")), key=lambda line: line.posted_date)

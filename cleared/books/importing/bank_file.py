"""A bank file that was read and understood, the order in which its rows happened, and which of several equal rows is
which.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.books.bank_files import ImportFileError
from cleared.books.ledger.bank_lines import BankLine, identify_rows, make_line_id
from cleared.books.ledger.bank_row import Balance, BankRow, Statement, order_rows
from cleared.workspace.settings.bank_section import BankAccount

_FUTURE: Final = timedelta(days=366)


class ImportFile(Struct):
    """What a file of the drop folder says of one bank account, read and understood.

    A file of several accounts is several of these, each with a name of its own: ``statement.ofx/checking``, which no
    file can have.
    """

    name: str
    """The file's, relative to the drop folder, ``/`` between folders; of several accounts with ``/`` and the account's
    id behind it."""
    file_name: str
    data: bytes
    sha256: str
    format: str
    account: BankAccount
    statements: tuple[Statement, ...]
    rows: tuple[BankRow, ...]
    """Of all its statements, in file order."""
    new: list[BankLine] = []
    pending: list[BankLine] = []
    held: list[BankLine] = []
    """Rows that wait for a person: no script is given them."""
    duplicates: list[tuple[int, str, str]] = []
    """(row, the line it repeats, note)"""
    released: list[tuple[int, str, str]] = []
    """(row, line, note) of lines that another file had brought, whose import was undone: they are new again."""
    notes: tuple[str, ...] = ()
    """What a person should know of how it was read."""
    is_in_run: bool = False
    processed_as: str | None = None
    _moving: list[BankLine] | None = None
    _fees: dict[int, Decimal] | None = None
    in_time: list[BankRow] | None = None
    """What ``list_in_time`` found."""

    def list_in_time(self) -> list[BankRow]:
        """The posted rows as they happened."""
        if self.in_time is None:
            self.in_time = order_in_time(self.rows)
        return self.in_time

    def find_fee(self, line: BankLine) -> Decimal | None:
        """What a processor kept of the line's gross (negative); None where the file does not say."""
        if self._fees is None:
            self._fees = {row.row: row.fee for row in self.rows if row.fee is not None}
        return self._fees.get(line.row)

    def moving_lines(self) -> list[BankLine]:
        """The new lines that move money, once the file's rows are taken: a list that a script may ask for by parts."""
        if self._moving is None:
            self._moving = self.new if all(line.amount for line in self.new) else [x for x in self.new if x.amount]
        return self._moving


def refuse_future_rows(shown: str, statements: Iterable[Statement], today: date | None) -> None:
    """Raises ``ImportFileError`` for a row of more than a year ahead: a mistyped year would lie in no report."""
    if today is None or today > date.max - _FUTURE:
        return
    late = (row for statement in statements for row in statement.rows if row.posted_date > today + _FUTURE)
    row = next(late, None)
    if row is not None:
        raise ImportFileError(
            f"a row is dated {row.posted_date}, more than a year ahead",
            place=Place(shown, line=row.row, field="date"),
            remedy="Download the file again, or correct the date in it; nothing of it was taken.",
        )


def order_in_time(all_rows: Sequence[BankRow]) -> list[BankRow]:
    """The posted ones of these rows as they happened."""
    return order_rows([row for row in all_rows if row.state == "posted"], attrgetter("balance"))


def find_balance_gaps(rows_in_time: Sequence[BankRow]) -> list[tuple[str, str, Decimal]]:
    """``(day, next day, amount missing)`` wherever the running balance does not follow from the row before."""
    gaps = []
    for a, b in itertools.pairwise(rows_in_time):
        if a.balance is not None and b.balance is not None and a.balance + b.amount != b.balance:
            gaps.append((str(a.posted_date), str(b.posted_date), b.balance - a.balance - b.amount))
    return gaps


def find_statement_gaps(statements: Sequence[Statement]) -> list[tuple[str, str, Decimal]]:
    """``(day, next day, amount missing)`` where the balances that the statements state do not follow from their rows,
    or one statement does not begin with what the one before ended with."""
    gaps = []
    before: Balance | None = None
    for statement in statements:
        opening, closing = statement.opening, statement.closing
        if before is not None and opening is not None and opening.amount != before.amount:
            gaps.append((_day_text(before), _day_text(opening), opening.amount - before.amount))
        if opening is not None and closing is not None:
            total = money.total([row.amount for row in statement.rows if row.state == "posted"])
            if opening.amount + total != closing.amount:
                missing = closing.amount - opening.amount - total
                gaps.append((_day_text(opening), _day_text(closing), missing))
        before = closing
    return gaps


def _day_text(balance: Balance) -> str:
    return balance.day.isoformat() if balance.day else ""


def find_end_balances(file: ImportFile) -> tuple[Balance | None, Balance | None]:
    """What the account held before the first row and after the last: as stated, else by the running balance.

    A closing balance of a day after the statement's last may count rows that the file does not have (some banks state
    that of the day of the download): it stands for the end only where the statement states its beginning, too.
    """
    rows = file.list_in_time()
    first, last = (rows[0], rows[-1]) if rows else (None, None)
    statement = file.statements[-1]
    opening, closing = file.statements[0].opening, statement.closing
    if closing is not None and opening is None:
        end = max((day for day in (statement.last_day, last and last.posted_date) if day), default=None)
        if end is not None and (closing.day is None or closing.day > end):
            closing = None
    if opening is None and first is not None and first.balance is not None:
        opening = Balance(first.balance - first.amount, first.posted_date)
    if closing is None and last is not None and last.balance is not None:
        closing = Balance(last.balance, last.posted_date)
    return opening, closing


def find_covered_days(file: ImportFile) -> tuple[date | None, date | None]:
    """First and last day of its rows, or the day after that for whose end it states a balance that counts; of a file
    without rows, the days it says it is about."""
    days = [row.posted_date for row in file.rows]
    first, last = file.statements[0], file.statements[-1]
    if days:
        _, closing = find_end_balances(file)
        end = closing.day if closing is not None and closing is last.closing else None
        is_within = end is not None and (last.last_day is None or end <= last.last_day)
        return min(days), max(*days, end) if end is not None and is_within else max(days)
    stated = [
        first.first_day or (first.opening.day if first.opening else None),
        last.last_day or (last.closing.day if last.closing else None),
    ]
    known = [day for day in stated if day is not None]
    return (known[0], known[-1]) if known else (None, None)


def find_entry_day(account: BankAccount, line: BankLine) -> date:
    """The day that the entry of a line has: when it was posted or, where the account goes by that, bought."""
    by_transaction = account.date_basis == "transaction" and line.transaction_date is not None
    return line.transaction_date if by_transaction and line.transaction_date else line.posted_date


def check_currency(shown: str, statements: Sequence[Statement], account: BankAccount, base: str) -> None:
    """Raises ``PrimitiveError`` where a statement of the file ``shown`` is not in its account's currency, or none of
    its rows is, or the account not in ``base``, that of the books. Single rows in another currency are held."""
    wanted = account.currency or base
    rows = [row for statement in statements for row in check_deadline(statement.rows)]
    foreign = [row for row in rows if row.currency not in (None, wanted)]
    code = next((each.currency for each in statements if each.currency not in (None, wanted)), None)
    at = foreign[0] if foreign and len(foreign) == len(rows) and code is None else None
    code = at.currency if at is not None else code
    if code is not None:
        other = f"the books are in {base}" if wanted == base else f"the account {account.id} is in {wanted}"
        raise PrimitiveError(
            f"the {'row' if at is not None else 'statement'} is in {code}, {other}",
            place=Place(shown, at.row if at is not None else None, field="currency"),
            remedy=f"Amounts in other currencies cannot be posted yet; export the account in {wanted}.",
        )
    if wanted != base:
        raise PrimitiveError(
            f"the account is in {wanted}, the books are in {base}",
            place=Place(shown, field="currency"),
            remedy=f"Amounts in other currencies cannot be posted yet; export the account in {base}.",
        )


def identify_by_balance(
    account: str,
    rows: Sequence[BankRow],
    find_known: Callable[[BankRow, str], BankLine | None],
    is_other: Callable[[BankRow, BankLine], bool],
) -> list[tuple[BankRow, int, str]]:
    """Each row with its occurrence and line id, in file order.

    Equal rows count in file order, but a file that begins in between would take one for another: the row with the
    balance of a line that is known is this line, and a line that is another one for sure is none of the file's rows.
    ``find_known``: the line of an id, if there is one; ``is_other``: whether it is another one than a row.
    """
    identified = identify_rows(account, rows)
    for places in _group_doubtful_rows(account, identified, find_known):
        row, free = rows[places[0]], dict.fromkeys(places)
        stated: dict[Decimal | None, list[int]] = {}
        for at in reversed(places):
            stated.setdefault(rows[at].balance, []).append(at)
        left: list[tuple[int, str]] = []
        for occurrence in itertools.count(1):
            identity = occurrence, make_line_id(account, row, occurrence)
            known = find_known(row, identity[1])
            balance = known.balance_after if known is not None else None
            if balance is not None and stated.get(balance):
                same = stated[balance].pop()
                del free[same]
                identified[same] = (rows[same], *identity)
            elif known is None or not is_other(row, known):
                left.append(identity)
            if known is None and len(left) >= len(free):
                break
        for at, identity in zip(free, left, strict=False):
            identified[at] = (rows[at], *identity)
    return identified


def has_line(account: str, find_known: Callable[[BankRow, str], BankLine | None], row: BankRow) -> bool:
    """Whether one of the known lines that are equal to a row states its balance, too."""
    for occurrence in itertools.count(1):
        known = find_known(row, make_line_id(account, row, occurrence))
        if known is None or known.balance_after == row.balance:
            return known is not None
    raise AssertionError("counting has no end")


def _group_doubtful_rows(
    account: str,
    identified: Sequence[tuple[BankRow, int, str]],
    find_known: Callable[[BankRow, str], BankLine | None],
) -> list[list[int]]:
    """The places of rows that are equal but for the balance which they state, in file order: of several, and of single
    ones whose line states another balance, or another day."""
    groups: dict[str, list[int]] = {}
    for at, (row, occurrence, line_id) in enumerate(identified):
        if row.balance is None and not row.bank_id:
            continue
        if occurrence > 1:
            groups.setdefault(make_line_id(account, row, 1), []).append(at)
            continue
        known = find_known(row, line_id)
        if known is not None and (known.balance_after, known.posted_date) != (row.balance, row.posted_date):
            groups.setdefault(line_id, [])
    if not groups:
        return []
    firsts = {line_id: at for at, (_, _, line_id) in enumerate(identified) if line_id in groups}
    return [[firsts[first], *others] for first, others in groups.items()]

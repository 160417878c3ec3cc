"""Where the money in the bank came from and went to: direct, bank account by bank account.

What went by way of the clearing account counts where the other side of the transfer moves it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.base.errors import UsageError
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferSide, pair_sides
from cleared.books.reports.account_tree import AccountTree, Amounts, add_amounts
from cleared.books.reports.correction_origins import CorrectionOrigins, find_origin
from cleared.books.reports.month_digests import iter_digests
from cleared.books.reports.report import BarChart, Column, Report, Row
from cleared.books.reports.report_books import ReportBooks

OPENED: Final = -1
BETWEEN: Final = -2
MIXED: Final = -3
_LABELS: Final = {BETWEEN: "Between own bank accounts", MIXED: "Entries over several bank accounts"}
_SECTIONS: Final = (
    ("Received and paid for the business", ("revenue", "expense")),
    ("Other assets", ("asset",)),
    ("Cards, loans and other debts", ("liability",)),
    ("Owners", ("equity",)),
)
Flows = Mapping[tuple[int, int], int]
"""Bank account and where it is from (an account, or one of the marks above) → smallest units."""
Corrections = Mapping[str, Mapping[int, int]]
"""Entry → by account the smallest units that corrections of it, and what takes these back, post beside the banks."""


def make_cash_flow(books: ReportBooks, period: DateSpan) -> Report:
    """Cash at the beginning, each movement by the account on the other side, cash at the end.

    Raises ``UsageError`` where the settings name no bank account that holds money.
    """
    banks = list(books.cash_accounts)
    if not banks:
        raise UsageError(
            "there is no bank account in config.yaml that holds money", remedy="Add one: cleared bank add FILE."
        )
    flows = _collect_flows(books, period, frozenset(banks))

    def amounts_of(source: int) -> Amounts:
        units = [flows.get((bank, source), 0) for bank in banks]
        return tuple(money.from_units(n, books.index.places) for n in (*units, sum(units)))

    width = len(banks) + 1
    before = books.balances(None, period.start - timedelta(days=1)) if period.start > date.min else {}
    held = [before.get(bank, books.zero) for bank in banks]
    opening = add_amounts([(*held, money.total(held)), amounts_of(OPENED)], width, books.zero)
    sources = sorted({source for _, source in flows} - {OPENED})
    rows = [Row("Cash at the beginning", opening, "total", key="opening")]
    tops: list[tuple[str, int]] = [("opening", 1)]
    sums = [opening]
    for title, types in _SECTIONS:
        listed = {n: amounts_of(n) for n in sources if n > 0 and books.is_of(n, *types)}
        if listed:
            inner, parts, total = AccountTree(books.accounts, listed, width, books.zero).list_rows(1, types[0])
            total_row = Row(f"Total {title[0].lower()}{title[1:]}", total, "total", key=types[0], parts=parts)
            rows += [Row(title, kind="heading"), *inner, total_row]
            tops.append((types[0], 1))
            sums.append(total)
    for mark, label in _LABELS.items():
        if mark in sources:
            rows.append(Row(label, amounts_of(mark), key=label))
            tops.append((label, 1))
            sums.append(amounts_of(mark))
    change = add_amounts(sums[1:], width, books.zero)
    rows.append(Row("Change", change, "total", key="change", parts=tuple(tops[1:])))
    closing = add_amounts([opening, change], width, books.zero)
    rows.append(Row("Cash at the end", closing, "total", key="closing", parts=(("opening", 1), ("change", 1))))
    columns = [Column(str(number), f"{number} {books.find_account(number).account_name}") for number in banks]
    return books.make_report(
        "cash-flow",
        "Cash flow",
        period,
        [*columns, Column("total", "total")],
        rows,
        pending=books.pending(period.start, period.end),
        make_chart=lambda: _chart_cash(books, period, banks),
    )


def _chart_cash(books: ReportBooks, period: DateSpan, banks: Sequence[int]) -> BarChart | None:
    if not 1 < len(period.months) <= 36:
        return None
    groups = []
    last = max(books.index.months, default=(0, 0))
    for month in period.split_months():
        if month.start is not None and (month.start.year, month.start.month) > last:
            break  # nothing is booked yet
        held = books.balances(None, month.end)
        groups.append((month.label, (money.total([books.zero, *(held.get(b, books.zero) for b in banks)]),)))
    return BarChart("Cash at the end of each month", ("",), tuple(groups))


def _collect_flows(books: ReportBooks, period: DateSpan, banks: frozenset[int]) -> Flows:
    places = books.index.places
    flows: dict[tuple[int, int], int] = defaultdict(int)
    corrections: dict[str, dict[int, int]] = {}
    for part, posted in iter_digests(
        books.index, period, ("flows", banks, places), lambda e, at: _sum_flows(e, at, banks, places)
    ):
        for pair, units in part.items():
            flows[pair] += units
        for entry_id, amounts in posted.items():
            sums = corrections.setdefault(entry_id, defaultdict(int))
            for account, units in amounts.items():
                sums[account] += units
    origins = CorrectionOrigins(books.index, banks)
    for entry_id, sums in sorted(corrections.items()):
        bank = origins.find_bank(entry_id) if any(sums.values()) else None
        if bank is not None:
            for account, units in sums.items():
                flows[bank, account] -= units
    for moved in list_cleared_movements(books, period):
        if moved.bank in banks:
            flows[moved.bank, CLEARING_ACCOUNT] += moved.units
            flows[moved.bank, BETWEEN if moved.target in banks else moved.target] -= moved.units
    for pair in [pair for pair, units in flows.items() if not units]:
        del flows[pair]
    return flows


def _sum_flows(
    entries: MonthEntries, at: Sequence[int], banks: frozenset[int], places: int
) -> tuple[Flows, Corrections]:
    flows: dict[tuple[int, int], int] = defaultdict(int)
    corrections: dict[str, dict[int, int]] = {}
    for legs, tags in zip(entries.list_movements(at), entries.list_texts("tags", at), strict=True):
        touched = {account for account, _ in legs if account in banks}
        origin = "" if touched else find_origin(tags)
        if not touched and not origin:
            continue
        is_opening = any(account == OPENING_BALANCES for account, _ in legs)
        others = [leg for leg in legs if leg[0] not in banks]
        for account, text in legs:
            units = money.count_written_units(text, places)
            if origin:
                corrections.setdefault(origin, defaultdict(int))[account] += units
            elif account in banks:
                if is_opening or len(touched) > 1:
                    flows[account, OPENED if is_opening else MIXED if others else BETWEEN] += units
            elif len(touched) == 1 and not is_opening:
                flows[next(iter(touched)), account] -= units
    return flows, corrections


class ClearedMovement(NamedTuple):
    """What the entries of a period that belong to one bank line post to the clearing account."""

    bank: int
    """The account that the bank line moves."""
    target: int
    """The account that the other side moves."""
    units: int
    """Debits less credits on the clearing account, in the smallest unit."""


def list_cleared_movements(books: ReportBooks, period: DateSpan) -> list[ClearedMovement]:
    """The movements of the period whose other side is in the books, whenever that arrived."""
    accounts = frozenset(bank.ledger_account for bank in books.business.banks)
    origins = CorrectionOrigins(books.index, accounts)
    posted = _sum_by_root(books, period, origins)
    if not posted:
        return []
    days = [day for root in sorted(posted) if (day := origins.find_day(root)) is not None]
    first, last = min([period.start, *days]), max([period.end, *days])
    margin = timedelta(days=MAX_DAYS)
    around = DateSpan(max(first, date.min + margin) - margin, min(last, date.max - margin) + margin, "")
    sides = []
    for root, units in sorted(_sum_by_root(books, around, origins).items()):
        day, account = origins.find_day(root), origins.find_bank(root)
        if units and day is not None and account is not None:
            amount = money.from_units(-units, books.index.places)
            sides.append(TransferSide(root, day, account, amount, "", "", True))
    targets: dict[str, tuple[int, int]] = {}
    for pair in pair_sides(sorted(sides, key=lambda side: (side.day, side.entry_id))):
        targets[pair.out.entry_id] = pair.out.account, pair.into.account
        targets[pair.into.entry_id] = pair.into.account, pair.out.account
    return [ClearedMovement(*targets[root], units) for root, units in posted.items() if root in targets]


def _sum_by_root(books: ReportBooks, period: DateSpan, origins: CorrectionOrigins) -> dict[str, int]:
    """Entry of a bank line → what it, its corrections and what takes these back post to the clearing account."""
    places = books.index.places
    sums: dict[str, int] = defaultdict(int)
    digests = iter_digests(books.index, period, ("clearing", places), lambda e, at: _list_posted(e, at, places))
    for entry_id, units in (pair for part in digests for pair in part):
        sums[origins.find_root(entry_id)] += units
    return sums


def _list_posted(entries: MonthEntries, at: Sequence[int], places: int) -> list[tuple[str, int]]:
    """The entries that post to the clearing account, each with its smallest units."""
    wanted = set(at)
    found = [place for place in entries.find_account(CLEARING_ACCOUNT) if place in wanted]
    posted = []
    for entry_id, legs in zip(entries.list_texts("entry_id", found), entries.list_movements(found), strict=True):
        amounts = [text for account, text in legs if account == CLEARING_ACCOUNT]
        posted.append((entry_id, sum(money.count_written_units(text, places) for text in amounts)))
    return posted

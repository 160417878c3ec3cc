"""A report as a value: what all renderings show, and nothing of how they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from cleared.base.date_spans import DateSpan

Cell = Decimal | int | str | date | None
"""An amount in the currency, a count, a text, a day, or nothing."""


class Column(Struct, frozen=True):
    """One column beside that of the labels."""

    key: str
    """What programs call it."""
    title: str
    kind: Literal["amount", "count", "text", "date"] = "amount"
    is_summed: bool = True
    """Whether a total sums this column; else its cell is a figure of its own."""
    hides_zero: bool = False
    """Whether people are shown nothing where a line has zero."""


class Row(Struct, frozen=True):
    """One row; ``depth`` and the order say what stands below what."""

    label: str
    cells: tuple[Cell, ...] = ()
    """One for each column; of a heading none at all."""
    kind: Literal["heading", "line", "total"] = "line"
    depth: int = 0
    account_id: int | None = None
    key: str = ""
    """Names the row for those that sum it, and for programs."""
    parts: tuple[tuple[str, int], ...] = ()
    """Of a total: the keys of the rows that it sums, each with 1 or -1."""
    above: int = 0
    """Of a total without ``parts``: the number of rows just above that it sums; 0: it is no sum of rows shown."""
    entries: tuple[str, ...] = ()
    """Ids of the entries behind it, where the report drills down to them."""

    @property
    def amounts(self) -> tuple[Decimal, ...]:
        """Its cells that are amounts."""
        return tuple(cell for cell in self.cells if isinstance(cell, Decimal))

    @property
    def is_bold(self) -> bool:
        """Whether it stands out: a heading or a total."""
        return self.kind in ("heading", "total")


class BarChart(Struct, frozen=True):
    """What an HTML page draws: groups of bars."""

    title: str
    series: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Decimal, ...]], ...]
    """Label of a group, and one amount for each of the series."""


class Pending(Struct, frozen=True):
    """Entries of the period that wait for review."""

    count: int = 0
    amount: Decimal = Decimal(0)


class Report(Struct, frozen=True):
    """A report of the books as they are in one commit."""

    name: str
    title: str
    business: str
    currency: str
    period: DateSpan
    commit: str
    columns: Sequence[Column]
    rows: Iterable[Row]
    """Can be gone through again. Of a long report the rows are made while they are taken."""
    compared: DateSpan | None = None
    as_of: bool = False
    """Whether it shows what is there at the end of the period, not what happened in it."""
    label_title: str = "account"
    notes: Sequence[str] = ()
    """What a reader has to know; one sentence each."""
    pending: Pending = field(default_factory=Pending)
    make_chart: Callable[[], BarChart | None] = lambda: None
    """Only pages draw it, and sums for it are slower than the report."""
    basis: str = "cash"

    @property
    def span(self) -> str:
        """What it is about, in words: ``2025-Q1 (2025-01-01 to 2025-03-31)``."""
        if self.as_of:
            return f"as of {self.period.end}"
        days = f"{self.period.start} to {self.period.end}"
        return days if self.period.label in (days, str(self.period.start)) else f"{self.period.label} ({days})"

    def list_heads(self) -> list[str]:
        """The lines above the table: business, span, basis, commit, what is pending, notes."""
        lines = [
            f"{self.business} · {self.title} · {self.span}",
            f"{self.currency}, {self.basis} basis, commit {self.commit[:10] or 'none'}",
        ]
        return lines + self.list_warnings()

    def list_warnings(self) -> list[str]:
        """What makes the figures less than final, first what is pending."""
        waiting = [describe_pending(self.pending, self.currency)] if self.pending.count else []
        return [*waiting, *self.notes]


def describe_pending(pending: Pending, currency: str) -> str:
    """``Not final: 3 entries of 120.00 USD in all wait for review.``"""
    one = pending.count == 1
    return (
        f"Not final: {pending.count} {'entry' if one else 'entries'} of {pending.amount:f} {currency}"
        f"{'' if one else ' in all'} {'waits' if one else 'wait'} for review."
    )

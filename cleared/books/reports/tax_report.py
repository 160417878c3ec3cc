"""Revenue and expenses by the lines of the entity's tax form, down to the entries.

The lines come from the tables that are shipped for each tax year. A line is ``[key, line, title]`` or ``[key, line,
title, share that is deducted]``, in the order of the form.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.base.errors import CheckFailed
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.entry import CLOSING
from cleared.books.reports.account_tree import add_amounts
from cleared.books.reports.report import Column, Report, Row, describe_pending
from cleared.books.reports.report_books import ReportBooks

_NO_LINE = "Without a line on the form"


def make_tax_report(books: ReportBooks, period: DateSpan, *, draft: bool) -> Report:
    """Raises ``CheckFailed`` where entries of the period wait for review, unless it is to be a draft."""
    pending = books.pending(period.start, period.end)
    if pending.count and not draft:
        raise CheckFailed(
            f"the tax report cannot be made: {describe_pending(pending, books.business.currency)[11:-1]}",
            remedy="Decide about them (cleared review), or add --draft.",
        )
    year = choose_tax_year(period.end.year)
    lines = read_tax_lines(year)
    sums = books.balances(period.start, period.end, closings=False)
    numbers = [n for n in books.accounts if sums.get(n) and books.is_of(n, "revenue", "expense")]
    for number in sums:
        books.find_account(number)
    by_line: dict[tuple[str, str, str], list[int]] = {(line.form, line.line, line.title): [] for line in lines.values()}
    unlisted: list[int] = []
    for number in numbers:
        line = lines.get(books.accounts[number].tax_line)
        (by_line[line.form, line.line, line.title] if line else unlisted).append(number)
    ids = _list_entries(books, period, set(numbers))
    rows: list[Row] = []
    parts: list[tuple[str, int]] = []
    form = ""
    for (title, line_number, line_title), listed in by_line.items():
        if listed:
            if title != form:
                form = title
                rows.append(Row(f"{title}, {year}", kind="heading"))
            key = f"{title}.{line_number}.{line_title}"
            rows += _list_line(books, f"{line_number}  {line_title}", key, listed, lines, sums, ids)
            parts.append((key, 1))
    if unlisted:
        rows += _list_line(books, _NO_LINE, "none", unlisted, lines, sums, ids)
        parts.append(("none", 1))
    totals = [row.amounts for row in rows if row.kind == "total"]
    net = add_amounts(totals, 2, books.zero)
    rows.append(Row("Revenue less expenses", (net[0], None, net[1]), "total", key="net", parts=tuple(parts)))
    columns = (Column("books", "in the books"), Column("share", "share", "text", False), Column("form", "on the form"))
    title = f"Tax, {'DRAFT' if pending.count else 'by the lines of the form'}"
    return books.make_report(
        "tax",
        title,
        period,
        columns,
        rows,
        label_title="line",
        pending=pending,
        notes=_list_notes(books, period, year, unlisted, lines),
    )


def _list_line(
    books: ReportBooks,
    title: str,
    key: str,
    numbers: Sequence[int],
    lines: Mapping[str, TaxLine],
    sums: Mapping[int, Decimal],
    ids: Mapping[int, Sequence[str]],
) -> list[Row]:
    """The accounts of a line, and their sum. Expenses are negative: all lines together are the income."""
    rows = []
    for number in numbers:
        account, amount = books.accounts[number], -sums[number]
        line = lines.get(account.tax_line)
        share = line.share if line else Decimal(1)
        on_form = money.allocate(amount, [share, 1 - share], books.index.places)[0]
        rows.append(
            Row(
                account.account_name,
                (amount, f"{(100 * share).normalize():f} %", on_form),
                depth=1,
                account_id=number,
                key=f"{key}.{number}",
                entries=tuple(ids.get(number, ())),
            )
        )
    total = add_amounts([row.amounts for row in rows], 2, books.zero)
    parts = tuple((row.key, 1) for row in rows)
    return [*rows, Row(title, (total[0], None, total[1]), "total", key=key, parts=parts)]


def _list_entries(books: ReportBooks, period: DateSpan, numbers: set[int]) -> dict[int, list[str]]:
    ids: dict[int, list[str]] = defaultdict(list)
    for entries, places in books.index.iter_months(EntryFilter(start=period.start, end=period.end), None):
        texts = (entries.list_texts(name, places) for name in ("entry_id", "tags"))
        for entry_id, tags, legs in zip(*texts, entries.list_movements(places), strict=True):
            if not (CLOSING in tags and CLOSING in tags.split(";")):
                for number in {account for account, _ in legs} & numbers:
                    ids[number].append(entry_id)
    return ids


def _list_notes(
    books: ReportBooks, period: DateSpan, year: int, unlisted: Sequence[int], lines: Mapping[str, TaxLine]
) -> list[str]:
    notes = ["Expenses are negative. Shares are those of the general rule; special cases are for a tax adviser."]
    if year != period.end.year:
        notes.append(
            f"The lines of the forms of {period.end.year} are not known to this version; those of {year} are used."
        )
    if unlisted:
        notes.append(
            f"These accounts have no line on the form: {', '.join(map(str, unlisted))}. Move what is there to others, "
            "or give them one (cleared accounts add … --tax-line)."
        )
    unknown = sorted({books.accounts[n].tax_line for n in unlisted} - {""})
    if unknown:
        notes.append(f"No form has these keys: {', '.join(unknown)}. Known are {', '.join(sorted(lines)[:3])} ….")
    return notes


_FOLDER: Final = Path(__file__).parent / "tax_tables"


class TaxLine(Struct, frozen=True):
    """What a key means on the form of one year."""

    key: str
    """Such as ``sched_c.advertising``."""
    form: str
    line: str
    title: str
    share: Decimal
    """The part of the amount that is deducted."""


@cache
def list_tax_years() -> list[int]:
    """The years that a table is shipped for."""
    return sorted(int(path.stem) for path in _FOLDER.glob("[0-9][0-9][0-9][0-9].json"))


def choose_tax_year(year: int) -> int:
    """The year whose table is used: that year, else the last before it, else the first there is."""
    years = list_tax_years()
    return max((y for y in years if y <= year), default=years[0])


@cache
def read_tax_lines(year: int) -> dict[str, TaxLine]:
    """Key → its line, in the order of the forms, of a year that a table is shipped for."""
    table = json.loads((_FOLDER / f"{year}.json").read_text("utf-8"))
    lines = {}
    for form in table["forms"]:
        for key, line, title, *share in form["lines"]:
            name = f"{form['prefix']}.{key}"
            lines[name] = TaxLine(name, form["title"], line, title, Decimal(share[0]) if share else Decimal(1))
    return lines

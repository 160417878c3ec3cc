"""The books: balances, an account's ledger, a month's journal, an entry with its why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from cleared.base.date_spans import parse_span
from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.books import queries
from cleared.books.index.entry_selection import AmountRange, find_months, parse_amounts
from cleared.books.index.journal_index import EntryFilter
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.book_paths import list_journal_months
from cleared.web.form_answers import refused
from cleared.web.page import PageRequest

_LISTED: Final = 500


def show_books(page: PageRequest) -> Response:
    """The trial balance, and the months that have entries."""
    host = page.site.open_host()
    balances = queries.read_balances(host)
    months = [f"{year:04d}-{month:02d}" for year, month in reversed(list_journal_months(host.layout))]
    return page.render("books.html", balances=balances, months=months, asked=_read_search(page))


def search_entries(page: PageRequest) -> Response:
    """Entries of which all that is asked for holds: a month, an account, a text, an amount, days; newest last."""
    month, text, account = page.read_query("month"), page.read_query("text")[:200].strip(), page.read_query("account")
    amount, problem = page.read_query("amount")[:40].strip(), ""
    entries: list[dict[str, Any]] = []
    try:
        entries = _find_entries(page, month, text, account, amount)
    except UsageError as error:  # the form comes again, as it was filled in
        problem = str(error)
    asked = [month, f"account {account}" if account else "", f"“{text}”" if text else "", amount]
    answer = page.render(
        "journal.html",
        title=" · ".join(filter(None, asked)) or "Entries",
        problem=problem,
        asked=_read_search(page),
        entries=entries[:_LISTED],
        more=len(entries) > _LISTED,
        listed=_LISTED,
    )
    return refused(answer) if problem else answer


def _find_entries(page: PageRequest, month: str, text: str, account: str, amount: str) -> list[dict[str, Any]]:
    """One more than is listed, at most. Raises ``UsageError`` for what is no such thing."""
    if account and parse_count(account) is None:
        raise UsageError(f"{account[:20]!r} is no account's number", remedy="Choose one from the books.")
    span = parse_span(month) if month else None
    wanted = EntryFilter(
        start=_read_day(page, "from") or (span.start if span else None),
        end=_read_day(page, "to") or (span.end if span else None),
        account=int(account) if account else None,
        text=text or None,
    )
    with queries.open_journal_index(page.site.open_host()) as (index, _):
        amounts = parse_amounts(amount) if amount else AmountRange()
        return list(islice(_iter_entries(find_months(index, wanted, amounts)), _LISTED + 1))


def _read_search(page: PageRequest) -> dict[str, str]:
    """What the form asked for, to stand in it again; a month that a link asked for as its days."""
    asked = {name: page.read_query(name)[:200] for name in ("text", "amount", "account", "from", "to")}
    if (month := page.read_query("month")) and not (asked["from"] or asked["to"]):
        with suppress(UsageError):  # it is told where it is looked for
            span = parse_span(month)
            asked |= {"from": str(span.start or ""), "to": str(span.end or "")}
    return asked


def _iter_entries(months: Iterable[tuple[MonthEntries, list[int]]]) -> Iterator[dict[str, Any]]:
    for entries, places in months:
        yield from entries.list_dicts(places)


def _read_day(page: PageRequest, name: str) -> date | None:
    text = page.read_query(name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f"{text[:20]!r} is not a day", remedy="Write 2025-01-31.") from None

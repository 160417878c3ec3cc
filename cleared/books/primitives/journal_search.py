"""Finding entries by status, period, account and text."""

from __future__ import annotations

from datetime import date

from cleared.base.errors import Place, PrimitiveError
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.staged_journal import Books


def find_entries(
    books: Books,
    status: str | None = None,
    year: int | None = None,
    month: int | None = None,
    account: int | None = None,
    text: str | None = None,
    limit: int | None = None,
    date_from: date | None = None,
    date_to: date | None = None,
) -> list[Entry]:
    """What ``journal_query`` shows; both dates are included."""
    require_month(year, month)
    first, last = date_from or date.min, date_to or date.max
    if limit is not None and limit < 0:
        raise PrimitiveError("limit is negative", place=Place(field="limit"), remedy="Leave it out for all entries.")
    needle = text.casefold() if text else None
    entries = [
        entry
        for key in books.list_months()
        if (year in (None, key[0]) and month in (None, key[1]))
        and (first.year, first.month) <= key <= (last.year, last.month)
        for entry in books.iter_entries(*key)
        if first <= entry.date <= last
        and (status is None or entry.status == status)
        and (account is None or any(leg.account_id == account for leg in entry.legs))
        and (needle is None or needle in _searched_text(entry))
    ]
    if limit is not None:
        entries = entries[max(0, len(entries) - limit) :]
    return entries


def _searched_text(entry: Entry) -> str:
    return "\n".join((entry.description, entry.counterparty, entry.reference, entry.evidence, entry.notes)).casefold()


def require_month(year: int | None, month: int | None) -> None:
    """Raises ``PrimitiveError`` where there is no such month or year."""
    if month is not None and not 1 <= month <= 12:
        raise PrimitiveError(f"there is no month {month}", place=Place(field="month"), remedy="Use 1 to 12.")
    if year is not None and not 1 <= year <= 9999:
        raise PrimitiveError(f"there is no year {year}", place=Place(field="year"), remedy="Use four digits.")

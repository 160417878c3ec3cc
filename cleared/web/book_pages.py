"""The books: balances, an account's ledger, a month's journal, an entry with its why."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cleared import queries
from cleared.errors import UsageError
from cleared.review.explanation import explain_entry
from cleared.web.page import PageRequest

_LISTED: Final = 500


def show_books(page: PageRequest) -> Response:
    """The trial balance, and the months that have entries."""
    host = page.site.open_host()
    balances = queries.read_balances(host)
    months = [f"{year:04d}-{month:02d}" for year, month in reversed(host.layout.list_journals())]
    return page.render("books.html", balances=balances, months=months)


def search_entries(page: PageRequest) -> Response:
    """Entries of a month, an account or with a text."""
    host = page.site.open_host()
    month, text, account = (
        page.read_query("month") or None,
        page.read_query("text")[:200].strip() or None,
        page.read_query("account"),
    )
    if account and not account.isdecimal():
        raise UsageError(f"{account[:20]!r} is no account's number", remedy="Choose one from the books.")
    entries = queries.read_journal(
        host, month=month, text=text, account=int(account) if account else None, limit=_LISTED + 1
    )
    title = month or (f"Account {account}" if account else f"“{text or ''}”")
    return page.render(
        "journal.html", title=title, entries=entries[:_LISTED], more=len(entries) > _LISTED, listed=_LISTED,
    )  # fmt: skip


def show_entry(page: PageRequest) -> Response:
    """An entry, and all that explains it."""
    why = explain_entry(page.site.open_host(), page.part("entry"))
    return page.render("entry.html", why=why, entry=why["entry"], accounts=_account_names(page))


def _account_names(page: PageRequest) -> dict[int, str]:
    return {row["account_id"]: row["account_name"] for row in queries.read_accounts(page.site.open_host())}

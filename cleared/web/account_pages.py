"""The chart of accounts: looking at it, adding to it, renaming, closing and reopening."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count, quote_name
from cleared.books.decisions.account_changes import add_account, close_account, rename_account, reopen_account
from cleared.books.ledger.chart import TYPES
from cleared.books.queries import read_accounts, read_balances
from cleared.web.form_answers import answer_form, read_account, read_day
from cleared.web.page import PageRequest


def show_chart(page: PageRequest, problem: str = "") -> Response:
    """All accounts, by type, and the form for a new one."""
    accounts = read_accounts(page.site.open_host())
    return page.render("chart.html", problem=problem, accounts=accounts, types=TYPES)


def add_to_chart(page: PageRequest) -> Response:
    """Add an account."""
    host, form = page.site.open_host(), page.form

    def add() -> str:
        name, kind = form.get("name").strip(), form.get("type")
        is_numbered = form.get("number").strip()
        number = read_account(page, "number") if is_numbered else _choose_number(read_accounts(host), name, kind)
        parent = read_account(page, "parent") if form.get("parent") else None
        tax_line, description = form.get("tax_line"), form.get("description")
        add_account(host, number, name, kind, parent=parent, tax_line=tax_line, description=description)
        return f"{quote_name(name)} is account {number} now"

    card = form.get("card")  # what asked for an account that was not there
    back = f"/queue?card={quote(card)}" if card else "/books/accounts"
    return answer_form(page, add, show_chart, what=f"Add the account {form.get('name').strip()[:60]}", back=back)


def _choose_number(accounts: Sequence[Mapping[str, Any]], name: str, kind: str) -> int:
    """A number for a form that names none. Raises ``UsageError`` where it was sent twice, as by a double click."""
    for each in accounts:
        if (each["account_name"], each["account_type"]) == (name, kind) and each["status"] == "open":
            raise UsageError(
                f"{quote_name(name)} is account {each['account_id']} already",
                remedy="To have another one of that name, fill in its number.",
            )
    return find_next_number(accounts, kind)


def find_next_number(accounts: Sequence[Mapping[str, Any]], kind: str) -> int:
    """A number that is free, behind those of a type."""
    taken = {each["account_id"] for each in accounts}
    last = max((each["account_id"] for each in accounts if each["account_type"] == kind), default=1000)
    return next(number for number in range(last // 10 * 10 + 10, 10**9, 10) if number not in taken)


def show_account(page: PageRequest, problem: str = "") -> Response:
    """One account: what it is, its balance, and the forms that change it."""
    host, number = page.site.open_host(), _read_number(page)
    account = next((each for each in read_accounts(host) if each["account_id"] == number), None)
    if account is None:
        raise UsageError(f"there is no account {number}", remedy="The chart of accounts lists all.")
    balance = next((row["balance"] for row in read_balances(host, number)), "0")
    return page.render("account.html", problem=problem, account=account, balance=balance)


def change_account(page: PageRequest) -> Response:
    """Rename, close or reopen it."""
    host, form, number = page.site.open_host(), page.form, _read_number(page)

    def rename() -> str:
        rename_account(host, number, form.get("name"))
        return f"Account {number} is called {quote_name(form.get('name').strip())} now"

    def close() -> str:
        close_account(host, number, read_day(page, "on") if form.get("on") else None)
        return f"Account {number} is closed"

    def reopen() -> str:
        reopen_account(host, number)
        return f"Account {number} is open again"

    changes: dict[str, tuple[str, Callable[[], str]]] = {
        "rename": ("Rename", rename),
        "close": ("Close", close),
        "reopen": ("Reopen", reopen),
    }
    if form.get("choice") not in changes:
        raise UsageError("the form does not say what to do", remedy="Load the page again.")
    verb, change = changes[form.get("choice")]
    return answer_form(page, change, show_account, what=f"{verb} account {number}", back=f"/books/accounts/{number}")


def _read_number(page: PageRequest) -> int:
    number = parse_count(page.part("number"), 10)
    if number is None:
        raise UsageError("that is no account’s number", remedy="The chart of accounts lists all.")
    return number

"""Books against bank: reconciling with a statement, and posting what an account held before its first row."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from starlette.responses import Response

from cleared.base.errors import ClearedError, UsageError
from cleared.base.short_text import quote_name
from cleared.base.terminal import count_noun
from cleared.books.decisions.bank_agreement import list_completeness, parse_balance, read_reconciliation
from cleared.books.decisions.opening_balances import (
    SHOWN,
    digest_openings,
    list_opening_balances,
    post_opening_balances,
    post_typed_opening,
)
from cleared.books.decisions.reconciling import record_agreement, withdraw_agreement
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.web.form_answers import answer_form, read_account, read_day, refused
from cleared.web.page import PageRequest

_ENTRY: Final = re.compile(r"\d{4}-\d\d-\d+")


def show_reconciliation(page: PageRequest, problem: str = "", data: dict[str, Any] | None = None) -> Response:
    """The form: a bank account, a day, and what its statement says. ``data``: where they differ, what explains it."""
    host = page.site.open_host()
    today = host.clock.now().astimezone(page.site.style.timezone).date()
    return page.render(
        "reconcile.html",
        problem=problem,
        last_day=today.replace(day=1) - timedelta(days=1),
        accounts=list_completeness(host),
        data=data,
        is_entry=lambda name: bool(_ENTRY.fullmatch(name)),
        is_turned=data is not None and Decimal(data["stated"]) == -Decimal(data["booked"]),
    )


def reconcile(page: PageRequest) -> Response:
    """Compare, and record it where they agree; or take back that they did."""
    host = page.site.open_host()
    if page.form.get("choice") == "withdraw":

        def withdraw() -> str:
            account, day = read_account(page), read_day(page, "date")
            withdraw_agreement(host, account, day, page.form.get("reason"))
            return f"{account} of {day} is not reconciled any more"

        return answer_form(
            page, withdraw, show_reconciliation, what="Take back a reconciliation", back="/books/reconcile"
        )
    try:
        account, day, typed = read_account(page), read_day(page, "date"), page.read_value("balance")
        if not typed:
            raise UsageError("type what the statement says that the account holds")
        data = read_reconciliation(host, account, day, typed)
    except ClearedError as error:
        return refused(show_reconciliation(page, str(error)))
    if data["difference"] != "0":
        return refused(show_reconciliation(page, data=data))

    def record() -> str:
        commit = record_agreement(host, account, day, parse_balance(host, typed))
        before = "" if commit else "; that was on record already"
        return f"{quote_name(data['account_name'])} agrees with the bank on {day}: {data['stated']}{before}"

    return answer_form(
        page,
        record,
        show_reconciliation,
        what=f"{data['account_name']} of {day} agrees with the bank: {data['stated']}",
        back="/books/reconcile",
    )


def show_openings(page: PageRequest, problem: str = "") -> Response:
    """What is known of opening balances and not booked; and a form for what only a person knows."""
    host = page.site.open_host()
    due = page.site.recall("opening balances", list_opening_balances)
    return page.render(
        "opening.html",
        problem=problem,
        due=due,
        digest=digest_openings(due),
        banks={account.id: account for account in host.config.bank_accounts},
        accounts=list_completeness(host),
        equity=OPENING_BALANCES,
    )


def post_openings(page: PageRequest) -> Response:
    """Post those that are known, as they were shown; or one that was typed."""
    host = page.site.open_host()

    def post_known() -> str:
        entries, _ = post_opening_balances(host)
        return f"{count_noun(len(entries), 'opening balance')} booked: {', '.join(e.entry_id for e in entries)}"

    def post_typed() -> str:
        account, day = read_account(page), read_day(page, "date")
        posted = post_typed_opening(host, account, day, page.read_value("balance"))
        return f"Opening balance of {account} booked: {posted.entry_id}"

    is_typed = page.form.get("choice") == "typed"
    return answer_form(
        page,
        post_typed if is_typed else post_known,
        show_openings,
        what="Book an opening balance" if is_typed else "Book the opening balances",
        back="/books/opening",
        shown=None if is_typed else {SHOWN: page.form.get("digest")},
    )

"""Months: which are closed, closing the next, and opening them again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from starlette.responses import Response

from cleared.base.date_spans import parse_span
from cleared.base.days import parse_month
from cleared.base.errors import PolicyError, UsageError
from cleared.books.decisions.period_closing import close_period, reopen_period
from cleared.books.ledger.book_paths import list_journal_months
from cleared.books.queries import read_periods
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.changes.host import Host
from cleared.web.form_answers import answer_form
from cleared.web.forms import Form
from cleared.web.page import PageRequest


def show_months(page: PageRequest, problem: str = "") -> Response:
    """Through which day the books are closed, with the forms that close and reopen."""
    host = page.site.open_host()
    marks = read_periods(host)
    closed = marks[-1]["through"] if marks else None
    return page.render(
        "periods.html",
        problem=problem,
        seen=[*page.form.get_all("seen"), *([digest_shown(problem)] if problem else [])],
        marks=marks,
        closed=closed,
        next=_suggest_month(host, closed or ""),
    )


def _suggest_month(host: Host, closed: str) -> str:
    """The first month with entries that is over, and is not closed."""
    today = f"{host.clock.now():%Y-%m}"
    months = (f"{year:04d}-{month:02d}" for year, month in list_journal_months(host.layout))
    return next((month for month in sorted(months) if closed[:7] < month < today), "")


def decide_months(page: PageRequest) -> Response:
    """Close, or reopen, as the command does."""
    host, form = page.site.open_host(), page.form

    def close() -> str:
        day = parse_span(_read_period(page, "through")).end
        overrides: dict[str, Any] = {}
        for name, value in (("with_pending", bool(form.get("with_pending"))), ("despite", form.get("despite").strip())):
            try:  # what stands in the way has to be what this person was shown
                _close(host, day, form, overrides)
            except PolicyError as error:
                if not value or digest_shown(str(error)) not in form.get_all("seen"):
                    raise
                overrides[name] = value
            else:
                return f"The books are closed through {day}"
        _close(host, day, form, overrides)
        return f"The books are closed through {day}"

    def reopen() -> str:
        day = parse_span(_read_period(page, "start"), host.config.fiscal.start_month).start
        reopen_period(host, day, form.get("reason"), filed=bool(form.get("filed")))
        return f"The books are open from {day}"

    is_reopening = form.get("choice") == "reopen"
    verb, name = ("Reopen the books from", "start") if is_reopening else ("Close the books through", "through")
    what = f"{verb} {form.get(name)[:20]}"
    return answer_form(page, reopen if is_reopening else close, show_months, what=what, back="/books/months")


def _close(host: Host, day: date, form: Form, overrides: Mapping[str, Any]) -> None:
    close_period(host, day, filed=bool(form.get("filed")), reason=form.get("reason").strip(), **overrides)


def _read_period(page: PageRequest, name: str) -> str:
    typed = page.read_value(name)
    if not typed:
        raise UsageError("say which month", remedy="Write 2025-01, or a day.")
    if len(typed) == len("2025-01"):
        parse_month(typed)
    return typed

"""Reports on the page: any of them, of any period, with its chart, down to the entries; and as files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec.structs import replace
from starlette.responses import Response

from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.books.queries import make_report_books, open_journal_index
from cleared.books.reports.catalogue import COMPARED, REPORTS, ReportRequest, make_report
from cleared.books.reports.html_page import write_body
from cleared.books.reports.renderings import write_file
from cleared.books.reports.report import Report, Row
from cleared.books.reports.report_books import ReportBooks
from cleared.web.command_pages import link_commands
from cleared.web.form_answers import refused
from cleared.web.page import PageRequest

_ROWS_SHOWN: Final = 2_000
"""Of the general ledger; the file has all."""
_MEDIA: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_MEMORY: Final = 8 << 20
_CHUNK: Final = 1 << 16


def list_reports(page: PageRequest) -> Response:
    """All reports by name."""
    return page.render("reports.html", reports=REPORTS)


def show_report(page: PageRequest) -> Response:
    """One report, of the period and beside the one that are asked for."""
    asked = {key: page.read_query(key)[:60] for key in ("period", "compare", "account")}
    problem = ""
    with _open_report_books(page) as books:
        try:
            request = _read_request(page)
            report = make_report(books, request)
        except UsageError as error:  # the form comes again, as it was filled in
            problem, request = str(error), _plain_request(page)
            report = make_report(books, request)
        rows = list(islice(report.rows, _ROWS_SHOWN + 1))
        shown = replace(report, rows=rows[:_ROWS_SHOWN])
        style = page.site.style
        say = partial(link_commands, prefix=page.prefix, thousands=style.thousands, zone=style.timezone)
        parts = write_body(shown, _make_link(page, report), style.thousands, say)
        body = Markup("".join(parts))  # it quotes every text
    answer = page.render(
        "report.html",
        report=report,
        request=request,
        asked=asked,
        problem=problem,
        body=body,
        reports=REPORTS,
        formats=_MEDIA,
        is_compared=request.name in COMPARED,
        more=len(rows) > _ROWS_SHOWN,
        listed=_ROWS_SHOWN,
        query=urlencode({} if problem else {key: text for key, text in asked.items() if text}),
    )
    return refused(answer) if problem else answer


def download_report(page: PageRequest) -> Response:
    """The report as a file."""
    request, format = _read_request(page), page.part("format")
    if format not in _MEDIA:
        raise UsageError(f"{format[:20]!r} is no format", remedy=f"There are: {', '.join(_MEDIA)}.")
    with tempfile.SpooledTemporaryFile(_MEMORY) as file:
        with _open_report_books(page) as books:
            report = make_report(books, request)
            write_file(report, format, file, books.index.places)  # type: ignore[arg-type]
        file.seek(0)
        data = b"".join(iter(lambda: file.read(_CHUNK), b""))
    name = f"{request.name}-{report.period.label}.{format}".replace('"', "")
    headers = {"Content-Disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}"'}
    return Response(data, media_type=_MEDIA[format], headers=headers)


@contextmanager
def _open_report_books(page: PageRequest) -> Iterator[ReportBooks]:
    host = page.site.open_host()
    with open_journal_index(host) as (index, books):
        yield make_report_books(host, index, books)


def _read_request(page: PageRequest) -> ReportRequest:
    account = page.read_query("account")
    if account and parse_count(account) is None:
        raise UsageError(f"{account[:20]!r} is no account's number", remedy="Choose one from the books.")
    return replace(
        _plain_request(page),
        period=page.read_query("period")[:60].strip() or None,
        compare=page.read_query("compare") or None,
        account=int(account) if account else None,
    )


def _plain_request(page: PageRequest) -> ReportRequest:
    return ReportRequest(page.part("name"), draft=page.part("name") == "tax")


def _make_link(page: PageRequest, report: Report) -> Callable[[Row], str]:
    """Where a row leads: to its entry, or to the ledger of its account in the period of the report."""
    prefix = page.prefix

    def link(row: Row) -> str:
        if len(row.entries) == 1:
            return f"{prefix}/books/entries/{row.entries[0]}"
        if row.account_id is None or row.kind == "total" or report.name == "ledger":
            return ""
        query = urlencode({"account": row.account_id, "period": report.period.label})
        return f"{prefix}/reports/ledger?{query}"

    return link

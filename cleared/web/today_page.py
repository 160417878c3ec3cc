"""Today: what came in, what waits, what failed, what runs next."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cleared import queries
from cleared.review.bank_agreement import describe_completeness, list_completeness
from cleared.service.status_report import service_status, upcoming_runs
from cleared.web.page import PageRequest

_RUNS: Final = 8
_DAYS: Final = 7.0


def show_today(page: PageRequest) -> Response:
    """The start page of a workspace."""
    host = page.site.open_host()
    accounts = [describe_completeness(account) for account in list_completeness(host)]
    waiting = sorted(
        path.name for path in (host.root / host.layout.import_dir).glob("*") if path.is_file() and path.name[0] != "."
    )
    return page.render(
        "today.html", status=service_status(host), runs=queries.read_runs(host, _RUNS), files=waiting,
        upcoming=upcoming_runs(host, _DAYS, limit=_RUNS), accounts=accounts,
    )  # fmt: skip

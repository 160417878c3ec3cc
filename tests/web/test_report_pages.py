"""Reports and the search on the page: the same figures as the command line's, down to the entries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace
from web_client import Server, page_server

from cleared.books.reports.catalogue import REPORTS


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with page_server(posted) as server:
        yield server


def test_b19_every_report_is_a_page_with_the_figures_of_the_command(server: Server, posted: Workspace) -> None:
    """B19: reports, with pending entries named, a chart, and a way down to ledger, entry and why."""
    reports = server.get("/reports")
    for name in REPORTS:
        assert f'href="{server.home}/reports/{name}"' in reports.body
        page = server.get(f"/reports/{name}?period=2025")
        assert page.status == 200 and "2025" in page.text, (name, page)
    profit = server.get("/reports/pnl?period=2025-01&compare=previous")
    net = posted.ok("report", "pnl", "--period", "2025-01", "--format", "csv").out.splitlines()[-1].split(",")
    assert f"Net income {net[-1]}" in profit.text.replace(",", ""), net
    assert "waits for review" in profit.text or "wait for review" in profit.text
    assert "2024-12" in profit.text, "the period before stands beside it"
    assert "<svg" in server.get("/reports/monthly?period=2025").body
    assert f'href="{server.home}/reports/ledger?account=5020&amp;period=2025-01"' in profit.body
    ledger = server.get("/reports/ledger?account=5020&period=2025-01")
    assert f'href="{server.home}/books/entries/2025-01-001"' in ledger.body and "GITHUB" in ledger.text
    csv = server.get("/reports/pnl/file.csv?period=2025-01")
    assert csv.body == posted.ok("report", "pnl", "--period", "2025-01", "--format", "csv").out
    assert csv.headers["content-disposition"] == 'attachment; filename="pnl-2025-01.csv"'
    for path in ("/reports/none", "/reports/none?period=soon", "/reports/pnl/file.exe"):
        page = server.get(path)
        assert page.status == 404 and "Traceback" not in page.body, (path, page)
    for path in ("ledger?account=x", "cash-flow?compare=previous", "pnl?account=5020"):
        page = server.get(f"/reports/{path}")
        assert page.status == 409 and "Not done: " in page.text and "<form" in page.body, (path, page)
    page = server.get("/reports/pnl?period=soon&compare=year")
    assert page.status == 409 and "soon" in page.text and "Not done: " in page.text
    assert 'value="soon"' in page.body, "a form that is refused stays as it was filled in"
    assert "file.csv?" not in page.body, "the files are of the report that is shown"


def test_entries_are_found_by_text_amount_and_days(server: Server) -> None:
    for query, found in (
        ("text=coffee", True),
        ("amount=4..5", True),
        ("amount=5..40", False),
        ("month=2025-01", True),
        ("text=coffee&from=2025-02-01", False),
        ("to=2025-01-31&amount=4.50", True),
    ):
        assert ("COFFEE" in server.get(f"/books/entries?{query}").text) is found, query
    for query in ("amount=x", "from=soon", "month=soon", "account=x"):
        page = server.get(f"/books/entries?text=coffee&{query}")
        assert page.status == 409 and "Not done: " in page.text and 'value="coffee"' in page.body, query
        assert "GITHUB" not in page.text and "COFFEE" not in page.text

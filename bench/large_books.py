"""What somebody at the page of large books waits for: a year of 100,000 entries, of which 10,000 wait for a decision.

The server is a process of its own, as whoever uses it has it; its processor time is measured, not the client's.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from bench.measure import Result, seconds
from bench.pace import PacedTime, judge_time, take_paced
from bench.pages import Browser
from bench.startup import CLEARED
from bench.workspaces import chase, copy, host, place, workspace
from cleared.books.decisions.receipt_filing import file_receipt
from cleared.books.reports.catalogue import REPORTS
from cleared.gate.manual_runs import run_now
from cleared.gate.proposals.setting_changes import set_setting
from cleared.web.application import make_routes

ROWS = 100_000
DECISIONS = 30
_TEXTS = (*("GITHUB INC", "AWS EMEA") * 4, "GITHUB INC", "CORNER SHOP")
"""One of ten is known to no script, and waits."""
_TODAY, _QUEUE = "/", "/queue"
PAGES = (
    *(_TODAY, _QUEUE, "/agents", "/agents/ingest", "/runs", "/books", "/books/entries", "/books/entries?text=corner"),
    *("/books/accounts", "/books/accounts/1010", "/books/months", "/books/reconcile", "/books/opening", "/bank"),
    *("/receipts", "/rules", "/settings", "/settings/business.name", "/phones", "/chat", "/reports"),
    *(f"/reports/{name}" for name in REPORTS),
)
LEFT_OUT = {
    "/books/check": "it reads every byte of the books, and says how far it is",
    "/reports/{name}/file.{format}": "a file of all postings is as long as the books",
    "/agents/{name}/changes/{proposal}": "two versions of one script, whatever the books hold",
    "/bank/files/{file}": "a file that is in no books yet",
    "/receipts/{receipt}/file": "the file itself",
    "/chat/{session}": "of a session, not of the books",
    "/work/{work}": "of what is under way",
    "/loop": "of the loop's own folder",
    "/live": "it does not end",
    "/loop/tree.json": "a program asks for it",
    "/metrics": "a program asks for it",
    "/api/openapi.json": "a program asks for it",
}
"""Pages that are not measured, and why."""
_BEHIND = ("group", "code", "file")
_SETTLE_SECONDS = 4.0
"""What the server reads ahead, once nobody asks for half a second, is no page's."""
_PAUSE_SECONDS = 2.0
"""Between decisions: memory is given back once nobody has asked for half a second."""


class _Books(NamedTuple):
    root: Path
    pages: tuple[str, ...]
    """Those of ``PAGES``, and those of single things."""


@cache
def _open_books() -> _Books:
    root = workspace(files={"bank.csv": chase(ROWS, days=365, texts=_TEXTS)})
    set_setting(host(root), "sandbox.timeout", "300")  # the books are to be made, also where the machine is busy
    result = run_now(host(root), "ingest")
    assert result.error is None and len(result.records["entries"]) == ROWS, result.error
    receipt = place().with_suffix(".txt")
    receipt.write_text("CORNER SHOP\n2025-06-01\nTotal 12.50\n")
    file_receipt(host(root), receipt)
    with _serve(root) as (_, browser):  # what lies in .cleared/ for all later starts is made at the first
        pages = (*PAGES, *_list_single_pages(browser, result.run_id))
        for page in pages:
            browser.send("GET", page)
    missing = _find_missing(pages)
    assert not missing, f"these pages are neither measured nor left out: {missing}"
    return _Books(root, pages)


def _list_single_pages(browser: Browser, run: str) -> list[str]:
    """The pages of a card, a run, an entry and a receipt."""
    card = re.findall(r'name="card" value="([^"]*)"', browser.send("GET", _QUEUE)[1])[0]
    receipt = re.findall(r'href="[^"]*(/receipts/[0-9a-f]{64})"', browser.send("GET", "/receipts")[1])[0]
    behind = [f"/queue/{card}/{each}" for each in _BEHIND]
    return [
        f"/queue?card={card}",
        f"/queue/accounts?card={card}&q=5",
        *behind,
        f"/runs/{run}",
        "/books/entries/2025-03-001",
        receipt,
    ]


def _find_missing(pages: Sequence[str]) -> list[str]:
    """The routes of which no page is measured, and nobody has said why."""
    routes = [each for each in make_routes() if "GET" in (each.methods or ()) and each.path not in LEFT_OUT]
    paths = [page.partition("?")[0] for page in pages]
    return [each.path for each in routes if not any(each.path_regex.match(path) for path in paths)]


@contextmanager
def _serve(root: Path) -> Iterator[tuple[int, Browser]]:
    """A server that has just begun to answer, and somebody who has signed in: its process, and the browser."""
    argv = [CLEARED, "server", "--json", "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
    process = subprocess.Popen(
        argv, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process.pid, Browser(json.loads(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


def _ask(pid: int, browser: Browser, page: str, count: Callable[[int], float] | None = None) -> float:
    """Processor seconds of the server for a page. ``count``: those of the server so far."""
    count = count or _spent
    before = count(pid)
    status, body = browser.send("GET", page)
    assert status == 200, (page, status, body[:300])
    return count(pid) - before


def _spent_in_all(pid: int) -> float:
    """Processor seconds of a process so far, those of threads that have ended, too; in whole ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _spent(pid: int) -> float:
    """Processor seconds of a process so far, to the nanosecond: the sum of its threads'."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e9


def warm_pages(quick: bool) -> Result:
    """The slowest page, asked again while nothing has changed."""
    books = _open_books()
    with _serve(books.root) as (pid, browser):
        costs = {}
        time.sleep(_SETTLE_SECONDS)
        for page in books.pages:
            browser.send("GET", page)
            costs[page] = take_paced(partial(_ask_again, pid, browser, page, 2 if quick else 5), 1)
    return _tell_slowest("any page, asked again", costs, 0.15)


def first_pages(quick: bool) -> Result:
    """The slowest page straight after the start of a server; the start itself is not counted."""
    books = _open_books()

    def start(page: str) -> float:
        with _serve(books.root) as (pid, browser):
            return _ask(pid, browser, page, _spent_in_all)  # reading ahead has a thread that ends

    pages = (_TODAY, _QUEUE) if quick else books.pages
    costs = {page: take_paced(partial(start, page), 1 if quick else 3) for page in pages}
    return _tell_slowest("the first page after a start", costs, 1.0)


def _ask_again(pid: int, browser: Browser, page: str, count: int) -> float:
    return statistics.median(_ask(pid, browser, page) for _ in range(count))


def _tell_slowest(name: str, costs: dict[str, PacedTime], most: float) -> Result:
    slow = sorted(costs, key=lambda page: costs[page].at_reference, reverse=True)
    median = statistics.median(cost.measured for cost in costs.values())
    return judge_time(
        f"{name}, {ROWS:,} entries, {ROWS // len(_TEXTS):,} cards: the slowest, processor time",
        costs[slow[0]],
        most,
        baseline=f"{seconds(median)} the median of {len(costs)}",
        note="; ".join(f"{page} {costs[page]}" for page in slow[:5]),
    )


def next_card(quick: bool) -> Result:
    """The page of the queue after a decision, which is another request; and the memory over many of them."""
    count = 3 if quick else DECISIONS
    with _serve(copy(_open_books().root)) as (pid, browser):
        memory, left = list[float](), list[str]()
        browser.send("GET", _QUEUE)

        def decide() -> float:
            time.sleep(_PAUSE_SECONDS)
            memory.append(_resident(pid))
            body = browser.send("GET", _QUEUE)[1]
            fields = {
                name: re.findall(rf'name="{name}" value="([^"]*)"', body)[0] for name in ("token", "card", "digest")
            }
            status, _ = browser.send("POST", _QUEUE, {**fields, "choice": "confirm"})
            assert status == 303, status
            took = _ask(pid, browser, _QUEUE)
            left.append(re.findall(r"([\d,]+) cards to decide", body)[0])
            return took

        spent = take_paced(decide, count)
        time.sleep(_PAUSE_SECONDS)
        memory.append(_resident(pid))
        assert len({*left}) == count, "a decision was refused"
    early = max(memory[: max(1, count // 6) + 1])
    return judge_time(
        f"the next card after a decision, {ROWS:,} entries, processor time",
        spent,
        0.05,
        memory=(memory[-1], 1.25 * early),
        note=f"the bound of its memory is 1.25 times what it was after {max(1, count // 6)} decisions",
    )


def _resident(pid: int) -> float:
    """MB of memory that a process holds."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1e3


def why_entry(quick: bool) -> Result:
    """The page that says why an entry is as it is, of entries of one long run that nobody has asked about."""
    books = _open_books()
    with _serve(books.root) as (pid, browser):
        first, *others = [f"/books/entries/2025-{month:02d}-001" for month in range(1, 3 if quick else 13)]
        browser.send("GET", first)
        time.sleep(_SETTLE_SECONDS)
        costs = [take_paced(partial(_ask, pid, browser, name), 1) for name in others]
    median = statistics.median(cost.measured for cost in costs)
    return judge_time(
        f"why of an entry of a run of {ROWS:,} rows, its page, processor time",
        max(costs, key=lambda cost: cost.at_reference),
        0.3,
        baseline=f"{seconds(median)} the median of {len(costs)}",
    )


FIGURES = {"warm_pages": warm_pages, "first_pages": first_pages, "next_card": next_card, "why_entry": why_entry}

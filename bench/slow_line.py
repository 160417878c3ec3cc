"""The next card on a slow line, from the tap to the card, in a browser of a phone."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Final

from bench import review
from bench.measure import Result, seconds
from bench.pace import PacedTime, judge_time, read_pace
from bench.page_person import PHONE, open_browser
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.web.page_server import PageServer, serve_in_background

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROUND_TRIP, BYTES_A_SECOND = 0.4, 50_000
"""Slow 3G: 400 ms there and back, 400 kbit/s."""
_PAUSE_MS: Final = 1_000
"""Somebody reads the card; what comes just before a tap is taken for none."""
_LOADED: Final = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const files = performance.getEntriesByType("resource").filter((each) => /css|script/.test(each.initiatorType));
  return [1 + page.redirectCount + files.filter((each) => each.transferSize).length,
    [page, ...files].reduce((sum, each) => sum + each.transferSize, 0)];
}"""
"""How often the line was gone there and back for what the card is shown with, and the bytes that came."""


def next_card_on_slow_line(quick: bool) -> Result:
    """What the line takes follows from what went over it, and is the same on any machine: a browser that slows itself
    down counts the server's time as part of the line's. The rest is judged at the pace of the reference."""
    here, lines, paced = list[float](), list[float](), list[float]()
    server = PageServer([review.book_month(review.MONTH)], open_workspace, as_refusal, 0)
    with serve_in_background(server) as place, open_browser() as browser:
        page = browser.new_page(service_workers="block", **PHONE)  # one hides what came over the line
        page.goto(f"{place['url'].replace('127.0.0.1', 'localhost')}/login#{place['code']}")
        page.wait_for_url("**/s/*/")
        page.goto(f"{page.url}queue")
        for _ in range(2 if quick else 12):
            here.append(_approve(page))
            trips, size = page.evaluate(_LOADED)
            lines.append(trips * ROUND_TRIP + size / BYTES_A_SECOND)
            paced.append(lines[-1] + here[-1] / read_pace())
    took = [line + rest for line, rest in zip(lines, here, strict=True)]
    return judge_time(
        "the next card on slow 3G (400 ms, 400 kbit/s), from the tap, by the clock",
        PacedTime(statistics.median(took), statistics.median(paced)),
        0.8,
        baseline=f"{seconds(statistics.median(lines))} the line alone",
    )


def _approve(page: Page) -> float:
    """Seconds from the tap to the next card, without the line."""
    page.wait_for_timeout(_PAUSE_MS)
    card = page.locator("#card").get_attribute("data-card")
    button = page.get_by_role("button", name="Approve").first
    began = time.perf_counter()
    button.click()
    page.locator(f"#card:not([data-card='{card}'])").wait_for()
    return time.perf_counter() - began

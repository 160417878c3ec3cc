"""What somebody at the page waits for: a card of a long queue, and a decision."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from urllib.parse import urlencode

from bench import review
from bench.measure import Result, compare
from bench.pace import judge_time, take_paced, time_act
from bench.workspaces import host
from cleared.changes.host_cache import HostCache
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.review.card_decisions import confirm_records
from cleared.review.queue_cards import read_cards
from cleared.web.page_server import PageServer, serve_in_background


class Browser:
    """Signed in, on one connection."""

    def __init__(self, place: dict[str, str]) -> None:
        self._port = int(place["url"].rsplit(":", 1)[1])
        self._wire = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        self._cookie = self._home = ""
        answer, _ = self._ask("POST", "/login", {"code": place["code"]})
        self._cookie, self._home = answer.headers["set-cookie"].split(";")[0], answer.headers["location"].rstrip("/")

    def send(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str]:
        """Status and body of a page of the session."""
        answer, text = self._ask(method, self._home + path, fields)
        return answer.status, text

    def _ask(self, method: str, path: str, fields: dict[str, str] | None) -> tuple[http.client.HTTPResponse, str]:
        headers = {
            "Host": f"localhost:{self._port}",
            "Origin": f"http://localhost:{self._port}",
            "Cookie": self._cookie,
        }
        body = urlencode(fields) if fields else None
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._wire.request(method, path, body, headers)
        answer = self._wire.getresponse()
        return answer, answer.read().decode()


def long_queue(quick: bool) -> Result:
    """A card of a queue of 10,000: server and client together; nothing has changed since the last request."""
    with serve_in_background(PageServer([review.fill_queue()], open_workspace, as_refusal, 0)) as place:
        browser = Browser(place)
        browser.send("GET", "/queue")

        def ask() -> None:
            status, body = browser.send("GET", "/queue")
            assert status == 200 and f"{review.CARDS} cards" in body.replace(",", ""), status

        spent = take_paced(lambda: time_act(lambda: [ask() for _ in range(10)]) / 10, 1 if quick else 5)
    return judge_time(f"a page of a queue of {review.CARDS:,} cards, processor time", spent, 0.1)


def page_decision(quick: bool) -> Result:
    """One confirmation by a form of the page, and in an open process."""
    root, other = review.book_month(review.MONTH), review.book_month(review.MONTH)
    session = HostCache(lambda: host(other))
    waiting = iter([card["id"] for card in read_cards(session())])
    with serve_in_background(PageServer([root], open_workspace, as_refusal, 0)) as place:
        browser = Browser(place)

        def ours() -> Callable[[], object]:
            body = browser.send("GET", "/queue")[1]
            names = ("token", "card", "digest")
            fields = {name: re.findall(rf'name="{name}" value="([^"]*)"', body)[0] for name in names}
            return lambda: browser.send("POST", "/queue", {**fields, "choice": "confirm"})

        def theirs() -> Callable[[], object]:
            name = next(waiting)
            return lambda: confirm_records(session(), [name])

        return compare("a decision on the page / in an open process", ours, theirs, 1.3, 5 if quick else 25)

"""A person at the page in a real browser, who notices what must not happen: errors, other hosts, blocked content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest
from patience import PATIENCE
from web_client import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

CHROMIUM_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PHONE: Final[Mapping[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}

DESK: Final[Mapping[str, Any]] = {"viewport": {"width": 1280, "height": 800}}
at_both_widths = pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])


class Visit:
    """One server, and browser windows on it. ``problems``: what a console or the network complained of."""

    def __init__(self, server: Server, browser: Browser) -> None:
        self.server, self._browser = server, browser
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self._signed_in: Any = None
        self.home = ""
        """What the addresses of the session begin with."""

    def open(self, path: str = "/", **options: Any) -> Page:
        """A window of its own, signed in by the link of the server the first time, then by the same cookie. ``path``:
        below the session's home."""
        context = self._browser.new_context(storage_state=self._signed_in, base_url=self.server.url, **options)
        context.set_default_timeout(PATIENCE * 1000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self._note_problem(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2] if "://" in request.url else ""))
        if self._signed_in is None:
            page.goto(f"/login#{self.server.code}")
            page.wait_for_url(f"{self.server.url}/s/*/")
            self.home = page.url.removeprefix(self.server.url).rstrip("/")
            self._signed_in = context.storage_state()
        self.go(page, path)
        return page

    def go(self, page: Page, path: str) -> None:
        """Another page of the session."""
        page.goto(self.home + path)

    def _note_problem(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def assert_clean(self) -> None:
        """Nothing was blocked or failed, and nobody else was asked."""
        assert self.problems == [], self.problems
        assert self.hosts <= {self.server.url.split("/")[2], ""}

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def find_message(page: Page, text: str) -> Locator:
    """What the page says of the last act; the button that undoes it names it, too."""
    return page.get_by_role("status").get_by_text(text)


def press(page: Page, key: str) -> None:
    """A key, once the page is there."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def swipe(page: Page, direction: str) -> None:
    """A thumb over the card."""
    page.wait_for_load_state("load")
    box = page.locator("#card").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 40
    steps = {"right": (40, 0), "left": (-40, 0), "down": (0, 40)}[direction]
    session = page.context.new_cdp_session(page)
    touch = "Input.dispatchTouchEvent"
    session.send(touch, {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for count in range(1, 6):
        point = {"x": x + count * steps[0], "y": y + count * steps[1]}
        session.send(touch, {"type": "touchMove", "touchPoints": [point]})
    session.send(touch, {"type": "touchEnd", "touchPoints": []})
    session.detach()

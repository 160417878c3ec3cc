"""Somebody at the page with a phone or at a desk, who only taps, types and chooses files; both are counted."""

from __future__ import annotations

import re
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Request

PHONE: Final[Mapping[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
DESK: Final[Mapping[str, Any]] = {"viewport": {"width": 1280, "height": 800}}
CHROMIUM_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
DEVICE: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
_TERMINAL: Final = re.compile(r"terminal|(?<!\w)cleared [a-z]|--[a-z]")
"""What somebody without a terminal must never read."""
_SET_UP: Final = re.compile(r"\(in the machine’s terminal: cleared (?:up|backup)\)")
"""But for what only whoever has set it up can do."""
_PATIENCE_MS: Final = 25_000


class Person:
    """A browser with a passkey. ``taps``, ``typed``: how often and how many characters so far; ``signed``: how often
    the device was asked for a finger."""

    def __init__(self, browser: Browser, base: str, look: Mapping[str, Any]) -> None:
        self.base = base
        self.taps = self.typed = self.signed = 0
        self.problems: list[str] = []
        """What a page said of a terminal, a console complained of, or stuck out."""
        context = browser.new_context(base_url=base, **look)
        context.set_default_timeout(_PATIENCE_MS)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        steering = context.new_cdp_session(self.page)
        steering.send("WebAuthn.enable")
        steering.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
        self.page.on("request", self._count_signature)

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "409" not in text:  # a refusal is told as one
            self.problems.append(text)

    def _count_signature(self, request: Request) -> None:
        if request.method == "POST" and "question=" in (request.post_data or "") and "answer=" in request.post_data:
            self.signed += 1

    def read(self, selector: str = "main") -> str:
        """The text of a part of the page."""
        return self.page.locator(selector).first.inner_text()

    def tap(self, name: str, role: str = "button", *, exact: bool = False, at: str = "main") -> None:
        """A button or a link, by its words."""
        self.touch(self.page.locator(at).get_by_role(role, name=name, exact=exact).first)  # type: ignore[arg-type]

    def touch(self, what: Locator) -> None:
        """Tap it, and wait until the page that comes then is there: after the passkey, and what takes long."""
        self.taps += 1
        what.click()
        self.settle()

    def settle(self) -> None:
        """Wait for the page that comes, after the passkey and what takes long."""
        self.page.locator("main:not(:has(form[data-passkey], [data-steps=work]))").wait_for()
        self.page.wait_for_load_state("load")
        self._check()

    def type(self, label: str, text: str, *, at: str = "main") -> None:
        """Into the field of that label: a tap, and the characters."""
        self.taps += 1
        self.typed += len(text)
        self.page.locator(at).get_by_label(label).first.fill(text)

    def choose(self, label: str, option: str, *, at: str = "main") -> None:
        """An option of a list: it is opened, and one is tapped."""
        self.taps += 2
        field = self.page.locator(at).get_by_label(label).and_(self.page.locator("select"))
        field.first.select_option(option)
        self.settle()

    def hand_in(self, label: str, *files: Path) -> None:
        """Choose files: the button, and each of them."""
        self.taps += 1 + len(files)
        self.page.get_by_label(label).first.set_input_files([*files])
        self.settle()

    def open_part(self, selector: str) -> None:
        """A part of the page that is folded away."""
        if self.page.locator(f"{selector}[open]").count() == 0:
            self.taps += 1
            self.page.locator(f"{selector} > summary").first.click()

    def go(self, *names: str) -> None:
        """By the links above, then by those of each page."""
        self.tap(names[0], "link", exact=True, at="nav")
        for name in names[1:]:
            self.tap(name, "link", exact=True)

    def message(self) -> str:
        """What the page says of the last act."""
        return "\n".join(self.page.locator("[role=status] .message, [role=alert]").all_inner_texts())

    def _check(self) -> None:
        """Nothing speaks of a terminal, and nothing sticks out."""
        page, path = self.page, re.sub(r".*/s/[^/]+", "", self.page.url)
        text = _SET_UP.sub("", page.locator("body").inner_text())
        if found := _TERMINAL.search(text):
            around = " ".join(text[max(0, found.start() - 120) : found.end() + 120].split())
            self.problems.append(f"{path} speaks of a terminal: {around}")
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            self.problems.append(f"{path} sticks out")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Debian's chromium."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if executable is None:
        raise FileNotFoundError("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def make_receipt(seed: int) -> bytes:
    """A picture, another one for each number."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width, height = 60, 90
    rows = b"".join(b"\x00" + bytes((seed + x * y) % 256 for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts

"""Pictures of every page, light, dark and on a phone: ``python -m docs.screenshots``.

Needs the packages of ``.[dev]`` and Debian's chromium. The pages show the workspace of ``cleared demo``: the same each
time, but for ids and commits. Written into ``docs/screenshots/``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "screenshots"
CLOCK = "2025-02-03T08:30:00Z"
PAGES = {
    "today": "/",
    "queue": "/queue",
    "agents": "/agents",
    "agent": "/agents/ingest",
    "runs": "/runs",
    "books": "/books",
    "report": "/reports/monthly",
    "entry": "/books/entries/2025-01-001",
    "receipts": "/receipts",
}
LOOKS = {
    "light": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "color_scheme": "light"},
}
NEW_VENDORS = '\n    ("SWEETGREEN", "Sweetgreen", 5070, 0.97),\n    ("AMZN MKTP", "Amazon", 5060, 0.96),'
SHOWN_TWICE = {"queue", "today", "report", "receipts"}
"""Pages that are shown in the dark and on a phone, too."""


def take_pictures(folder: Path) -> None:
    """Write all pictures."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"CLEARED_HOME": f"{home}/keys", "CLEARED_CLOCK": CLOCK}
        books = Path(home) / "books"
        command = [str(Path(sys.executable).with_name("cleared"))]
        subprocess.run([*command, "demo", str(books)], check=True, env=environment, capture_output=True)
        server = subprocess.Popen(
            [*command, "server", "--json", "--port", "0"],
            cwd=books,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            place = json.loads(server.stdout.readline())
            with sync_playwright() as playwright:
                executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
                browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
                signed_in, session = _take_each(browser, place["url"], place["code"], folder)
                _propose_change(books, command, environment)
                _take_proposal(browser, place["url"], signed_in, session, folder)
        finally:
            server.terminate()
            server.wait()


def _propose_change(books: Path, command: list[str], environment: dict[str, str]) -> None:
    """A change whose card has groups of entries."""
    script = books / "agents/ingest.py"
    script.write_text(script.read_text("utf-8").replace("VENDORS = [", f"VENDORS = [{NEW_VENDORS}", 1), "utf-8")
    words = ["agent", "propose", "ingest", "-m", "Lunches are meals; Amazon sells office supplies"]
    subprocess.run([*command, *words], cwd=books, check=True, env=environment, capture_output=True)


def _take_proposal(browser: object, base: str, signed_in: object, session: str, folder: Path) -> None:
    """The card of a proposal, with its smallest group opened; the whole page, as it is longer than a screen."""
    for look in ("light", "phone"):
        context = browser.new_context(base_url=base, storage_state=signed_in, **LOOKS[look])  # type: ignore[attr-defined]
        page = context.new_page()
        page.goto(f"{session}/queue")
        page.locator("details.part > summary").nth(2).click()
        page.locator(".card").screenshot(path=folder / f"proposal-{look}.png")
        context.close()


def _take_each(browser: object, base: str, code: str, folder: Path) -> tuple[object, str]:
    """The pages of ``PAGES``; the state of a browser that is signed in, and what the session's addresses begin with."""
    signed_in, home = None, ""
    for look, options in LOOKS.items():
        context = browser.new_context(base_url=base, storage_state=signed_in, **options)  # type: ignore[attr-defined]
        page = context.new_page()
        if signed_in is None:
            page.goto(f"/login#{code}")
            page.wait_for_url(f"{base}/s/*/")
            home = page.url.removeprefix(base).rstrip("/")  # what the addresses of the session begin with
            signed_in = context.storage_state()
        for name, path in PAGES.items():
            if look == "light" or name in SHOWN_TWICE:
                page.goto(home + path)
                page.wait_for_load_state()
                page.screenshot(path=folder / f"{name}-{look}.png")
        context.close()
    return signed_in, home


if __name__ == "__main__":
    take_pictures(FOLDER)

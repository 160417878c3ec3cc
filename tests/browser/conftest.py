"""A real browser: Debian's chromium, driven by Playwright. A machine without it skips these tests, and says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from browsing import CHROMIUM_NAMES, Visit
from harness import Workspace
from patience import PATIENCE
from web_client import page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file: while it is open, an event loop runs in this thread."""
    executable = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if executable is None:
        pytest.skip("NO BROWSER: install chromium (apt-get install chromium) to test the page in one")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visit(posted: Workspace, chromium: Browser) -> Iterator[Visit]:
    """The page of January's books, two cards waiting; nobody is signed in yet."""
    with page_server(posted, sign_in=False) as server:
        visit = Visit(server, chromium)
        yield visit
        visit.close()

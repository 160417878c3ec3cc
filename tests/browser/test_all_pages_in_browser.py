"""Every page that a link leads to, and those behind a form, on a phone and on a desk, in the dark and in the light."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axe_playwright_python
import pytest
from browsing import DESK, PHONE, Visit
from fake_provider import FakeProvider
from harness import Workspace, chase
from playwright.sync_api import expect
from receipt_files import make_png
from scripted_model import ANSWERED, KEY, use_provider
from web_client import inner_server

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DARK_PHONE, LIGHT_DESK = {**PHONE, "color_scheme": "dark"}, {**DESK, "color_scheme": "light"}
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
ALIKE = {
    r"/entries/\d{4}-\d\d-\d+": "/entries/ENTRY",
    r"/settings/[^?]+": "/settings/KEY",
    r"/accounts/\d+": "/accounts/NUMBER",
    r"/queue/[^/]+/": "/queue/CARD/",
    r"/changes/[^?]+": "/changes/PROPOSAL",
}
"""Pages of which one stands for all."""
FILE = re.compile(r"/file(?:\.\w+)?(?:\?.*)?$")
OUTSIDE = ("/login", "/passkeys/new", "/nothing/of/it")
UNSURE = "When,What,Note,Sum\n01/02/2025,GITHUB PRO,one,4.00\n01/03/2025,INVOICE,two,1500.00\n"


@pytest.fixture
def full_visit(
    posted: Workspace, chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visit]:
    """Books in which something of each kind waits, with a model to speak to."""
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    photo = tmp_path / "2025-01-10 45.10.png"
    photo.write_bytes(make_png(300, 400))
    posted.ok("receipt", "add", str(photo))
    posted.drop("more.csv", chase(*((f"02/{day:02}/2025", f"SHELL OIL {day}00", f"-{day}.00") for day in (3, 4, 5))))
    posted.run("ingest")
    posted.ok("period", "close", "2024-12")
    posted.agent("fails", "journal_list(month='2025-99')")
    posted("agent", "run", "fails")
    text = posted.read("agents/ingest.py").replace("VENDORS = [\n", 'VENDORS = [\n    ("SHELL", "S", 5210, 0.99),\n')
    posted.put("agents/ingest.py", text)
    posted.ok("agent", "propose", "ingest")
    with FakeProvider() as provider:
        use_provider(posted, provider)
        provider.script("You have three.", ANSWERED)
        with inner_server(posted.root) as server:
            visit = Visit(server, chromium)
            yield visit
            visit.close()


@pytest.mark.parametrize(
    "device", [{**PHONE, "color_scheme": "dark"}, {**DESK, "color_scheme": "light"}], ids=["phone", "desk"]
)
def test_nothing_keeps_somebody_out(
    full_visit: Visit, posted: Workspace, tmp_path: Path, device: dict[str, Any]
) -> None:
    """axe finds nothing serious, and nothing sticks out, also with all opened that can be."""
    page = full_visit.open(bypass_csp=True, **device)
    unsure = tmp_path / "unsure.csv"
    unsure.write_text(UNSURE)
    page.set_input_files("#files", unsure)
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_text("does not say everything")).to_be_visible()
    full_visit.go(page, "/chat")
    page.get_by_role("textbox").fill("how many agents?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("You have three.").first).to_be_visible()
    faults: dict[str, list[str]] = {}
    cards = [f"/queue?card={card['id']}" for card in posted.cards()]
    ahead, seen = ["/", *cards], {"/"}
    while ahead:
        path = ahead.pop()
        full_visit.go(page, path)
        faults[path] = list_faults(page)
        for address in page.eval_on_selector_all("a[href]", "all => all.map((each) => each.getAttribute('href'))"):
            found = address.partition("#")[0].removeprefix(full_visit.home)
            if (found.startswith("/") and not FILE.search(found)) or "/queue/" in found:
                kind = describe_kind(found)
                ahead += [] if kind in seen else [found]
                seen.add(kind)
    for path in OUTSIDE:
        page.goto(path)
        faults[path] = list_faults(page)
    assert {path: found for path, found in faults.items() if found} == {}
    assert len(seen) > 45, seen
    wanted = (
        "/chat/S",
        "/bank/files/",
        "/queue/CARD/group",
        "/queue/CARD/code",
        "/queue/CARD/file",
        "/receipts/",
        "/runs/",
    )
    assert all(any(kind.startswith(each) for kind in seen) for each in wanted), seen


def describe_kind(path: str) -> str:
    """The address, with one name in the place of all things of a kind, and of a query only what it asks about."""
    place, _, query = path.partition("?")
    for pattern, name in ALIKE.items():
        place = re.sub(pattern, name, place)
    return "?".join([place, *sorted(each.partition("=")[0] for each in query.split("&") if each)])


def list_faults(page: Page) -> list[str]:
    """What of a page keeps somebody out, or sticks out."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.add_script_tag(path=AXE)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    faults = [
        f"{each['id']}: {each['nodes'][0]['html'][:160]} {each['nodes'][0]['failureSummary'][:200]}"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return faults if fits else [*faults, "it sticks out"]

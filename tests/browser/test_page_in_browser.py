"""The page in a real browser: keys, thumbs, live, without JavaScript, hostile texts, accessible to everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, Visit, at_both_widths, find_message, press, swipe
from harness import Workspace, chase
from playwright.sync_api import Request, Route, expect
from running import eventually

pytestmark = pytest.mark.slow

FEBRUARY = chase(("02/03/2025", "GITHUB *PRO", "-4.00"), ("02/06/2025", "ZEPHYR LLC", "-80.00"))


def statuses(ws: Workspace) -> dict[str, str]:
    return {entry["description"]: entry["status"] for entry in ws.entries()}


@at_both_widths
def test_a_month_by_keyboard(visit: Visit, posted: Workspace, tmp_path: Path, device: dict[str, Any]) -> None:
    """A file is handed in and imported in one step, and each card decided: no hand leaves the keys once the file is
    chosen."""
    page = visit.open(**device)
    file = tmp_path / "february.csv"
    file.write_text(FEBRUARY)
    page.set_input_files("#files", file)
    page.get_by_role("button", name="Hand in and import").press("Enter")
    expect(find_message(page, "february.csv")).to_be_visible()
    expect(find_message(page, "1 booked, 1 for you")).to_be_visible()
    visit.go(page, "/queue")
    expect(page.get_by_text("3 cards to decide")).to_be_visible()
    press(page, "a")
    expect(find_message(page, "Confirmed: ACME INVOICE 12")).to_be_visible()
    press(page, "c")
    expect(page.get_by_label("Account, by name or number")).to_be_focused()
    page.keyboard.type("meals")
    page.get_by_role("button", name="5070").press("Enter")
    expect(find_message(page, "Corrected: COFFEE")).to_be_visible()
    press(page, "s")
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    press(page, "r")
    page.get_by_role("button", name="Personal").press("Enter")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("ZEPHYR").first).to_be_visible()
    press(page, "a")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert statuses(posted)["COFFEE"] == "user-corrected" and posted.ok("check")
    visit.assert_clean()


def test_a_thumb_approves_puts_off_and_rejects(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue", **PHONE)
    expect(page.locator(".about")).to_contain_text("ACME")
    swipe(page, "down")
    expect(page.locator(".about")).to_contain_text("COFFEE")
    swipe(page, "right")
    expect(find_message(page, "Confirmed: COFFEE")).to_be_visible()
    swipe(page, "left")
    page.get_by_role("button", name="Personal").click()  # so soon after a swipe, chromium takes a tap for its end
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert statuses(posted)["COFFEE"] == "user-confirmed"
    visit.assert_clean()


def is_live(request: Request) -> bool:
    """Whether the page asks by itself, as something has changed."""
    return "hx-request" in request.headers


def test_what_comes_meanwhile_appears_without_a_reload(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue")
    page.evaluate("window.stays = true")
    expect(page.get_by_text("2 cards to decide")).to_be_visible()
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    expect(page.get_by_text("3 cards to decide")).to_be_visible()
    assert page.evaluate("window.stays"), "the page was not loaded again"
    expect(page.locator("#split .left")).to_have_text("1,500.00 left to place")
    held: list[Route] = []
    page.route("**/queue", lambda route: held.append(route) if is_live(route.request) else route.continue_())
    with page.expect_request(is_live):
        posted.ok("queue", "approve", posted.cards()[-1]["entry_id"])
    page.get_by_text("Correct the account").click()  # somebody begins while it is asked for
    with page.expect_event("requestfinished", is_live):
        held[0].continue_()
    page.get_by_text("Several accounts").click()
    page.get_by_label("Amount 1").fill("500")
    expect(page.get_by_text("1,000.00 left to place")).to_be_visible()
    expect(page.get_by_text("3 cards to decide")).to_be_visible()
    visit.assert_clean()


def test_what_was_said_of_the_last_act_stays_when_something_comes(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue")
    page.get_by_role("button", name="Approve", exact=True).click()
    said = find_message(page, "Confirmed: ACME INVOICE 12")
    expect(said).to_be_visible()
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    expect(page.get_by_text("2 cards to decide")).to_be_visible()
    expect(said).to_be_visible()
    visit.assert_clean()


def test_what_changes_before_a_page_listens_appears_too(visit: Visit, posted: Workspace) -> None:
    page = visit.open(service_workers="block")
    held: list[Route] = []
    page.route("**/live?*", lambda route: held.append(route))
    with page.expect_request("**/live?*"):
        visit.go(page, "/queue")
    expect(page.get_by_text("2 cards to decide")).to_be_visible()
    posted.ok("queue", "approve", "2025-01-002")
    held[0].continue_()
    expect(page.get_by_text("1 card to decide")).to_be_visible()


def test_a_tap_on_a_card_that_has_just_come_decides_nothing(visit: Visit, posted: Workspace) -> None:
    """Another tab has decided the one that somebody was about to tap."""
    page = visit.open("/queue", **PHONE)
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.method) if each.is_navigation_request() else None)
    tap = "() => document.querySelector('[data-key=a]').click()"
    page.evaluate(f"document.addEventListener('htmx:after:swap', {tap}, {{once: true}})")
    with page.expect_request(is_live):
        posted.ok("queue", "approve", "2025-01-002")
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    page.get_by_role("button", name="Correct").or_(page.get_by_text("Correct the account")).first.click()
    assert sent == [] and statuses(posted)["COFFEE"] == "pending-review"
    visit.assert_clean()


def test_reading_and_deciding_without_javascript(visit: Visit, posted: Workspace) -> None:
    visit.open("/queue")
    page = visit.open("/queue", java_script_enabled=False)
    page.get_by_role("button", name="Approve").click()
    expect(find_message(page, "Confirmed: ACME INVOICE 12")).to_be_visible()
    page.get_by_text("Correct the account").click()
    page.get_by_label("Account, by name or number").fill("meals")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="5070").click()
    expect(find_message(page, "Corrected: COFFEE")).to_be_visible()
    visit.go(page, "/books")
    expect(page.get_by_role("heading", name="Books")).to_be_visible()


def test_letters_of_a_word_decide_nothing(visit: Visit, posted: Workspace) -> None:
    """Somebody types an account's name, and the field is not there yet."""
    page = visit.open("/queue")
    page.wait_for_load_state()
    before = posted.entries()
    page.keyboard.type("meals")
    page.wait_for_timeout(300)
    expect(page.get_by_text("2 cards to decide")).to_be_visible()
    assert posted.entries() == before and page.locator(".about").inner_text().startswith("ACME")
    visit.assert_clean()


MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><a href=javascript:alert(3)>{{7*7}}"
BACKWARDS = "‮gnp.exe"


def test_texts_of_a_bank_are_texts(visit: Visit, posted: Workspace) -> None:
    """Markup is shown, not followed; what turns the reading direction is escaped; long ones do not break the page."""
    rows = [("02/01/2025", text, "-9.00") for text in (MARKUP, BACKWARDS, "X" * 400)]
    posted.drop("hostile.csv", chase(*rows))
    posted.run("ingest")
    cards = [card["id"] for card in posted.cards()]
    page = visit.open("/queue", **PHONE)
    for card in cards:
        visit.go(page, f"/queue?card={card}")
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
    visit.go(page, "/books/entries")
    text = page.locator("main").inner_text()
    assert "<script>alert(2)</script>" in text and "{{7*7}}" in text and "\u202e" not in text
    assert page.locator("main img, main script").count() == 0
    visit.assert_clean()


def test_the_first_page_is_small(visit: Visit) -> None:
    page = visit.open("/queue")
    sizes: list[int] = page.evaluate(
        "[performance.getEntriesByType('navigation')[0], ...performance.getEntriesByType('resource')]"
        ".map(entry => entry.encodedBodySize)"
    )
    assert len(sizes) >= 4 and sum(sizes) <= 60_000, sizes


@at_both_widths
def test_tables_are_read_whole_and_cards_beside_their_buttons(
    visit: Visit, posted: Workspace, device: dict[str, Any]
) -> None:
    """PAGE 6 and 7: no amount is hidden, no button lies over the end of a text, no swipe in a table decides."""
    page, width = visit.open("/books/entries", **device), device["viewport"]["width"]
    measure = """(rows) => rows.map((row) => {
      const amount = row.querySelector(".amount").getBoundingClientRect();
      return [amount.left, amount.right, row.getBoundingClientRect().height];
    })"""
    measured = page.locator("table.lines tbody tr").evaluate_all(measure)  # at once: the page may show news meanwhile
    assert measured and all(left >= 0 and right <= width and height <= 80 for left, right, height in measured), measured
    posted.put(
        "agents/ingest.py",
        posted.read("agents/ingest.py").replace("VENDORS = [\n", 'VENDORS = [\n    ("COFFEE", "C", 5070, 0.99),\n'),
    )
    posted.ok("agent", "propose", "ingest")
    visit.go(page, "/queue")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    table = page.locator("#card .scroll").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    drag = """([x, y]) => {
      const node = document.elementFromPoint(x, y);
      for (const [kind, n] of [["touchstart", 0], ["touchmove", 100], ["touchend", 200]]) {
        const at = [new Touch({identifier: 1, target: node, clientX: x - n, clientY: y})];
        const touches = kind === "touchend" ? [] : at;
        node.dispatchEvent(new TouchEvent(kind, {bubbles: true, touches, changedTouches: at}));
      }
    }"""
    page.evaluate(drag, [box["x"] + 150, box["y"] + 20])  # also a screen of this width may be touched
    expect(page.locator("details.reject[open]")).to_have_count(0)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    covered = page.evaluate(
        "() => { const last = document.getElementById('card').lastElementChild.getBoundingClientRect();"
        " const bar = document.querySelector('form.decide').getBoundingClientRect(); return last.bottom - bar.top; }"
    )
    assert covered <= 0, covered
    visit.assert_clean()


@at_both_widths
def test_a_link_pasted_where_the_form_is_shown_signs_in(
    visit: Visit, posted: Workspace, device: dict[str, Any]
) -> None:
    """The address changes behind the # alone, so the page is not loaded anew."""
    page = visit.open()
    context = page.context.browser
    assert context is not None
    other = context.new_page(base_url=visit.server.url, **device)
    other.goto("/login")
    port = visit.server.port
    link = posted.ok("server", "--link", "--port", str(port)).out.strip()
    code = link.partition("#")[2]
    other.evaluate("code => { location.hash = code; }", code)
    other.wait_for_url("**/s/*/")
    other.close()


@at_both_widths
def test_the_next_card_takes_one_way_to_the_server_and_something_moves_meanwhile(
    visit: Visit, posted: Workspace, device: dict[str, Any]
) -> None:
    """On a slow line each way counts. Loaded anew, no form is sent again"""
    page = visit.open("/queue", **device)
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.method) if each.is_navigation_request() else None)
    page.evaluate("onpagehide = () => { sessionStorage.moving = document.getAnimations().length }")
    page.get_by_role("button", name="Approve").first.click()
    expect(find_message(page, "Confirmed: ACME INVOICE 12")).to_be_visible()
    assert asked == ["POST"] and page.evaluate("sessionStorage.moving") == "1"
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    head = posted.head()
    page.reload()
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    assert asked == ["POST", "GET"] and posted.head() == head
    assert page.evaluate("document.getAnimations().length") == 0
    visit.assert_clean()


@at_both_widths
def test_a_page_says_that_the_server_was_not_reached(visit: Visit, device: dict[str, Any]) -> None:
    """It can be installed, and stands in for the browser's own page; nothing of the books is kept."""
    page = visit.open(**device)
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    manifest = page.request.get(page.locator("link[rel=manifest]").get_attribute("href") or "").json()
    assert manifest["display"] == "standalone"
    assert all(page.request.get(icon["src"]).ok for icon in manifest["icons"])
    visit.assert_clean()
    visit.go(page, "/queue")
    page.context.set_offline(True)
    heading = page.get_by_role("heading", name="The server was not reached")
    # A worker that the browser has just started anew may be told a moment later that there is no network.
    eventually(lambda: page.reload() and heading.is_visible())
    page.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_text("to decide")).to_be_visible()


def test_a_file_that_is_handed_in_goes_past_the_worker(visit: Visit, tmp_path: Path) -> None:
    """It answers for pages that cannot be had; what is sent is sent once, by the browser."""
    file = tmp_path / "february.csv"
    file.write_text(FEBRUARY)
    page = visit.open()
    eventually(lambda: page.evaluate("navigator.serviceWorker.controller !== null"))
    with page.expect_response(lambda response: response.request.is_navigation_request()) as asked:
        visit.go(page, "/")
    assert asked.value.from_service_worker
    page.set_input_files("#files", file)
    with page.expect_response(lambda response: response.request.method == "POST") as sent:
        page.get_by_role("button", name="Hand in and import").click()
    assert not sent.value.from_service_worker
    expect(find_message(page, "february.csv")).to_be_visible()


def test_a_page_whose_session_has_ended_leads_to_signing_in(visit: Visit) -> None:
    """As when the server was killed and started again: no page goes on saying that something is at work."""
    page = visit.open(service_workers="block")
    asked: list[str] = []

    def answer_without_a_stream(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            page.context.clear_cookies()
        route.fulfill(content_type="text/html", body="Sign in")

    page.route("**/live?*", answer_without_a_stream)
    with page.expect_response(lambda each: each.request.resource_type == "fetch") as looked:
        visit.go(page, "/queue")
    assert is_live(looked.value.request), "it takes away nothing that is told once, such as what a form came to"
    expect(page.get_by_text("to decide")).to_be_visible()
    assert len(asked) == 1 and page.url.endswith("/queue"), "a stream that fails alone takes nobody's page away"
    visit.go(page, "/books")
    page.wait_for_url("**/login*")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_an_open_page_says_while_the_server_is_not_reached(visit: Visit) -> None:
    page = visit.open(service_workers="block")
    for address in ("**/live?*", "**/healthz"):
        page.route(address, lambda route: route.abort("connectionrefused"))
    visit.go(page, "/queue")
    expect(page.get_by_text("The server is not reached")).to_be_visible()
    for address in ("**/live?*", "**/healthz"):
        page.unroute(address)
    expect(page.get_by_text("The server is not reached")).to_be_hidden(timeout=30_000)

"""The page by its keys alone: what they are, what they never do, and that they stay where they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import Visit, at_both_widths, find_message, press
from harness import Workspace, chase
from playwright.sync_api import expect
from receipt_files import make_png
from reviewers import People
from web_client import inner_server

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_the_keys_of_a_page_are_listed_and_enter_takes_the_only_account(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue")
    press(page, "?")
    keys = page.get_by_role("dialog")
    expect(keys.get_by_text("Approve", exact=True)).to_be_visible()
    expect(keys.get_by_text("Later", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    press(page, "c")
    expect(page.get_by_label("Account, by name or number")).to_be_focused()
    page.keyboard.type("meals")
    expect(page.locator("#accounts button")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(find_message(page, "Corrected: ")).to_be_visible()
    assert "user-corrected" in {entry["status"] for entry in posted.entries()}
    visit.assert_clean()


def test_escape_closes_what_a_key_has_opened(visit: Visit, posted: Workspace) -> None:
    """The innermost first; the keyboard is where it was opened from, and the next key counts."""
    page = visit.open("/queue")
    press(page, "c")
    page.get_by_text("Several accounts").press("Enter")
    page.get_by_label("Amount 1").focus()
    for part in ("#split", "#correct"):
        expect(page.locator(part)).to_have_attribute("open", "")
        page.keyboard.press("Escape")
        expect(page.locator(part)).not_to_have_attribute("open", "")
        expect(page.locator(f"{part} > summary")).to_be_focused()
    press(page, "s")
    expect(find_message(page, "Put behind the others")).to_be_visible()
    visit.assert_clean()


def test_what_is_opened_while_news_comes_in_stays_open(visit: Visit, posted: Workspace) -> None:
    """The card is there anew; a moment later it was given the attributes of the one before."""
    page = visit.open("/queue")
    page.evaluate("""async () => {
      addEventListener("htmx:before:settle", () => { document.getElementById("correct").open = true; }, {once: true});
      await htmx.ajax("GET", location.href, {target: "#main", select: "#main", swap: "outerHTML"});
    }""")
    expect(page.locator("#correct")).to_have_attribute("open", "")
    visit.assert_clean()


@at_both_widths
def test_cards_of_receipts_and_checks_are_decided_by_keys(
    visit: Visit, posted: Workspace, tmp_path: Path, device: dict[str, Any]
) -> None:
    """``f`` opens the receipt, a number answers in the card's words, and what is undone is named by its title."""
    photo = tmp_path / "2025-01-10 45.10.png"
    photo.write_bytes(make_png(300, 400))
    posted.ok("receipt", "add", str(photo))
    posted.put("books/2025/01/journal.csv", posted.read("books/2025/01/journal.csv").replace("COFFEE", "TOFFEE"))
    posted.git("commit", "-qam", "by hand")
    assert posted("check", "--card").code == 1
    cards = {card["kind"]: card["id"] for card in posted.cards()}
    page = visit.open(f"/queue?card={cards['receipt']}", **device)
    press(page, "f")
    expect(page.get_by_role("img", name="The receipt")).to_be_visible()
    page.go_back()
    press(page, "1")
    expect(find_message(page, "Answered “It is the receipt of this entry”: 2025-01-10 45.10.png")).to_be_visible()
    press(page, "u")
    expect(find_message(page, "Taken back: 2025-01-10 45.10.png")).to_be_visible()
    expect(page.locator("#card .about")).to_contain_text("2025-01-10 45.10.png")
    visit.go(page, f"/queue?card={cards['damage']}")
    expect(page.locator("#card .about")).to_contain_text("changed the books without a run")
    press(page, "1")
    expect(find_message(page, "Answered “Seen; it is not asked again”")).to_be_visible()
    assert cards["damage"] not in [card["id"] for card in posted.cards()]
    visit.assert_clean()


@at_both_widths
def test_what_takes_two_is_decided_by_keys(
    posted: Workspace, chromium: Browser, tmp_path: Path, device: dict[str, Any]
) -> None:
    """The first by ``a``, the second by ``w``; when it was said is told in the time zone of the books."""
    posted.config("business.timezone=Asia/Tokyo")
    people = People(posted, tmp_path, two="1000")
    for name, key, said in (("ana", "a", "you are the first for 2025-01-002"), ("ben", "w", "Agreed: ACME")):
        with people.at_the_keyboard(name), inner_server(posted.root) as server:
            visit = Visit(server, chromium)
            page = visit.open("/queue", **device)
            press(page, key)
            expect(find_message(page, said)).to_be_visible()
            if name == "ana":
                expect(page.locator("#card")).to_contain_text(re.compile(r"at \d{4}-\d\d-\d\d \d\d:\d\d(?!:|Z)"))
            assert "cleared " not in page.locator("main").inner_text()
            visit.assert_clean()
            visit.close()
    assert "user-confirmed" in {entry["status"] for entry in posted.entries() if entry["entry_id"] == "2025-01-002"}


def test_no_key_decides_behind_the_list_of_keys(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue")
    before = posted.entries()
    press(page, "?")
    for key in "?sa":
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "s")  # at once: Escape is no letter of a word
    expect(find_message(page, "Put behind the others")).to_be_visible()
    assert posted.entries() == before
    visit.assert_clean()


def import_more(ws: Workspace) -> None:
    """What an open page shows within moments."""
    ws.drop("march.csv", chase(("03/04/2025", "ZEPHYR LLC", "-81.00")))
    ws.run("ingest")


@pytest.mark.parametrize(
    ("path", "role", "name"),
    [
        ("/queue", "button", "Later"),
        ("/", "link", "Opening balances"),
        ("/receipts", "link", "2025-01-10 COFFEE"),
        ("/books/entries/2025-01-001", "summary", "Void"),
        ("/books/months", "button", "Close"),
        ("/reports/trial-balance", "link", "4010 Service revenue"),
    ],
)
def test_the_keyboard_stays_where_it_was_when_the_page_changes(
    visit: Visit, posted: Workspace, path: str, role: str, name: str
) -> None:
    page = visit.open(path)
    place = page.locator("summary", has_text=name) if role == "summary" else page.get_by_role(role, name=name)  # type: ignore[arg-type]
    place.first.focus()
    page.evaluate("document.getElementById('main').dataset.before = 'yes'")
    import_more(posted)
    expect(page.locator("#main:not([data-before])")).to_be_visible()
    expect(place.first).to_be_focused()
    visit.assert_clean()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))


def test_where_another_card_has_come_the_keyboard_is_on_none_of_its_buttons(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/queue")
    page.get_by_role("button", name="Approve").focus()
    expect(page.locator(".about")).to_contain_text("ACME")
    posted.ok("queue", "approve", posted.cards()[0]["entry_id"])
    expect(page.locator(".about")).to_contain_text("COFFEE")
    assert focused(page) == "main", "the next Tab goes on in the content"
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 card to decide")).to_be_visible()
    visit.assert_clean()


def test_a_reason_that_is_typed_decides_nothing_before_a_button_is_pressed(visit: Visit, posted: Workspace) -> None:
    """Letters of the reason are no keys, and Enter behind it is no choice of what the bank's line is."""
    page = visit.open("/queue")
    before = posted.entries()
    press(page, "r")
    expect(page.get_by_label("Why")).to_be_focused()
    page.keyboard.type("a gift")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Personal")).to_be_focused()
    expect(page.get_by_text("2 cards to decide")).to_be_visible()
    assert posted.entries() == before
    page.keyboard.press("Enter")
    expect(find_message(page, "Rejected: ACME")).to_be_visible()
    visit.assert_clean()


def test_escape_leads_back_from_a_group_to_its_card(visit: Visit, posted: Workspace) -> None:
    posted.drop("march.csv", chase(("03/04/2025", "ZEPHYR LLC", "-81.00"), ("03/05/2025", "ZEPHYR LLC", "-82.00")))
    posted.run("ingest")
    card = next(each["id"] for each in posted.cards() if "ZEPHYR" in each["title"])
    page = visit.open(f"/queue?card={card}")
    press(page, "g")
    expect(page.get_by_role("button", name="Approve all 2")).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#card")).to_have_attribute("data-card", card)
    visit.assert_clean()


def test_enter_behind_a_reason_disables_no_agent(visit: Visit, posted: Workspace) -> None:
    page = visit.open("/agents/ingest")
    page.get_by_text("Disable it, or bring the version before back").click()
    page.get_by_label("Why").fill("it is late")
    page.get_by_label("Why").press("Enter")
    page.get_by_label("Why").press("Tab")
    expect(page.get_by_role("button", name="Disable")).to_be_focused()
    assert "disabled" not in {agent["state"] for agent in posted.json("agent", "list")}
    visit.assert_clean()

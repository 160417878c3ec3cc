"""The books kept by taps and typing alone, on a phone and on a desk; nothing sticks out on either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import Visit, at_both_widths, find_message, press
from harness import Workspace, chase
from playwright.sync_api import Page, expect
from receipt_files import make_png

pytestmark = pytest.mark.slow

UNSURE = "When,What,Note,Sum\n01/02/2025,GITHUB PRO,one,4.00\n01/03/2025,INVOICE OF A LONG NAME,two,1500.00\n"


def assert_fits(page: Page) -> None:
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{page.url} sticks out"


@at_both_widths
def test_what_needs_a_look_leads_to_its_form(
    visit: Visit, posted: Workspace, tmp_path: Path, device: dict[str, Any]
) -> None:
    """From Today to an opening balance, a reconciled statement, a new bank account and a closed month."""
    page = visit.open(**device)
    page.get_by_role("link", name="Opening balances").click()
    assert_fits(page)
    page.get_by_role("button", name="Book it").click()
    expect(find_message(page, "1 opening balance booked")).to_be_visible()
    visit.go(page, "/books")
    page.get_by_role("link", name="Reconcile").click()
    page.get_by_label("The statement’s last day").fill("2025-01-31")
    page.get_by_label("What the statement says").fill("2,450.90")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("The difference is")).to_be_visible()
    assert_fits(page)
    page.get_by_label("What the statement says").fill("2,446.40")
    page.get_by_role("button", name="Compare").click()
    expect(find_message(page, "agrees with the bank on 2025-01-31")).to_be_visible()

    file = tmp_path / "unsure.csv"
    file.write_text(UNSURE)
    visit.go(page, "/")
    page.set_input_files("#files", file)
    page.get_by_role("button", name="Hand in and import").click()
    page.get_by_label("Days are written").select_option("%m/%d/%Y")  # each tap shows what it makes of the file
    expect(page.get_by_label("Days are written")).to_have_value("%m/%d/%Y")
    page.get_by_label("Money out is written").select_option("inverted")
    expect(page.get_by_text("As understood: 2 rows")).to_be_visible()
    assert_fits(page)
    page.get_by_label("What it is at the bank").select_option("savings")
    page.get_by_role("button", name="It is right: add it and import").click()
    expect(find_message(page, "unsure.csv; 1 booked")).to_be_visible()

    visit.go(page, "/books/months")
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_text("decisions about the time up to 2025-01-31 wait")).to_be_visible()
    assert_fits(page)
    page.get_by_label("Although decisions wait").check()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_text("The books are closed through 2025-01-31").first).to_be_visible()
    visit.problems[:] = [each for each in visit.problems if "409" not in each]  # a refusal is told as one
    visit.assert_clean()
    posted.in_order()


@at_both_widths
def test_a_receipt_is_taken_and_an_entry_split(
    visit: Visit, posted: Workspace, tmp_path: Path, device: dict[str, Any]
) -> None:
    """A picture is kept as soon as it is taken, one tap links it; what is left to place of a split is counted."""
    photo = tmp_path / "2025-01-10 45.10.png"
    photo.write_bytes(make_png(300, 400))
    page = visit.open("/receipts", **device)
    page.get_by_label("Take a picture").set_input_files(photo)
    expect(page.get_by_role("img", name="The receipt")).to_be_visible()
    assert_fits(page)
    page.get_by_role("button", name="Amazon Web Services").click()
    expect(find_message(page, "has its receipt")).to_be_visible()
    [aws] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "45.10"]
    visit.go(page, f"/books/entries/{aws}")
    expect(page.get_by_role("img", name="The receipt")).to_be_visible()
    assert_fits(page)
    page.get_by_text("Split it over several accounts").click()
    page.get_by_label("Account 1").select_option("5020")
    page.get_by_label("Amount 1").fill("30")
    expect(page.get_by_text("15.10 left to place")).to_be_visible()
    page.get_by_label("Account 2").select_option("5060")
    page.get_by_label("Amount 2").fill("20")
    expect(page.get_by_text("4.90 too much")).to_be_visible()
    page.get_by_label("Amount 2").fill("")
    page.get_by_role("button", name="Split").click()
    expect(find_message(page, f"Corrected: {aws}")).to_be_visible()
    for path in ("/books/entries?month=2025-01", "/", "/books/accounts", "/rules", "/settings", "/bank"):
        visit.go(page, path)
        assert_fits(page)
    visit.assert_clean()
    posted.in_order()


CUT = """() => [...document.querySelectorAll("svg text")].filter((text) => {
  const box = text.getBoundingClientRect(), around = text.ownerSVGElement.getBoundingClientRect();
  return box.left < around.left - 1 || box.right > around.right + 1;
}).map((text) => text.textContent)"""
COVERED = """() => {
  const boxes = [...document.querySelectorAll("svg text[text-anchor=end]")].map((each) => each.getBoundingClientRect());
  return boxes.some((one, n) =>
    boxes.slice(n + 1).some((other) => one.top < other.bottom - 3 && other.top < one.bottom - 3));
}"""


@at_both_widths
def test_long_values_and_amounts_of_a_chart_stay_on_the_page(
    visit: Visit, posted: Workspace, device: dict[str, Any]
) -> None:
    posted.ok("journal", "add", "2025-03-05", "A machine", "1500=73230.40", "1010=-73230.40")
    page = visit.open(**device)
    visit.go(page, "/settings")
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert_fits(page)
    visit.go(page, "/reports/cash-flow?period=2025")
    expect(page.locator("svg text[text-anchor=end]").filter(has_text="-7")).to_be_visible()
    assert page.evaluate(CUT) == []
    assert not page.evaluate(COVERED)


@at_both_widths
def test_the_bank_file_opens_at_the_row(visit: Visit, posted: Workspace, device: dict[str, Any]) -> None:
    rows = [(f"02/{1 + n // 20:02}/2025", f"SHELL OIL {n:03}", "-7.00") for n in range(300)]
    posted.drop("fuel.csv", chase(*rows))
    posted.run("ingest")
    card = next(each["id"] for each in posted.cards() if "SHELL OIL 280" in each["title"])
    page = visit.open(f"/queue?card={card}", **device)
    press(page, "f")
    expect(page.locator("tr.here")).to_contain_text("SHELL OIL 280")
    expect(page.locator("tr.here")).to_be_in_viewport()
    press(page, "Escape")
    expect(page.locator("#card")).to_have_attribute("data-card", card)
    visit.assert_clean()

"""Amounts on the page have separators as the business's locale has them; files, forms and commands have none."""

from __future__ import annotations

import pytest
from harness import Workspace
from web_client import inner_server

from cleared.base.money import find_separator, group_thousands


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("0.00", "0.00"),
        ("999.99", "999.99"),
        ("1500.00", "1,500.00"),
        ("-1234567.5", "-1,234,567.5"),
        ("1234567", "1,234,567"),
        ("2025-01-003", "2025-01-003"),
        ("", ""),
    ],
)
def test_thousands_are_grouped(text: str, grouped: str) -> None:
    assert group_thousands(text, ",") == grouped and group_thousands(text, "") == text
    assert group_thousands(text, "’") == grouped.replace(",", "’")
    assert find_separator("CHF") == "’"


@pytest.mark.parametrize(("setting", "shown"), [("auto", "1,500.00"), ("none", "1500.00"), ("space", "1 500.00")])
def test_the_page_shows_them_as_the_setting_says(posted: Workspace, setting: str, shown: str) -> None:
    """It is a harmless setting: it takes effect at once."""
    posted.ok("config", "set", "business.thousands", setting)
    [invoice] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "1500.00"]
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        for address in (
            f"/books/entries/{invoice}",
            "/books/entries?month=2025-01",
            "/queue",
            "/reports/pnl?period=2025",
        ):
            text = server.get(address).text
            assert shown in text, (address, text)
        card = server.get("/queue").text.partition("Several accounts")[0]
        assert card.count(shown) == card.replace(shown, "1500.00").count("1500.00") >= 3, card
        standing = server.get("/").text
        assert f"opening balance of {shown.replace('500', '000')}" in standing, standing
        chart = server.get("/reports/pnl?period=2025").body
        assert "2025-01</text>" in chart and "2025-02</text>" not in chart, "it ends where data ends"

"""An amount that is typed is read as it was meant, or refused: never as a thousandth of it, never as a hundredfold."""

from __future__ import annotations

import pytest
from harness import Workspace
from web_client import Page, inner_server

pytestmark = pytest.mark.slow

UNCLEAR = ("1.200,00", "1.200", "12,50", "1,2,3.00", "1_000", "1e3", "١٢", "NaN", "-Infinity", "12 50", "9" * 79)
"""Commas and points that mean something else in another country, and what only a program takes for a number."""
CLEAR = {"1,200.00": "1200.00", "1 200.5": "1200.50", "1’200": "1200.00", "1,200": "1200.00", "+1200": "1200.00"}


def test_a_typed_opening_balance_is_what_was_meant(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        form = [("token", server.get("/books/opening").fields("token")[0]), ("choice", "typed"), ("account", "1010")]
        head = posted.head()

        def type_balance(text: str) -> Page:
            return server.follow(
                server.send("POST", "/books/opening", [*form, ("date", "2024-12-31"), ("balance", text)])
            )

        for text in UNCLEAR:
            refused = type_balance(text)
            assert refused.status == 409 and "is no amount of money" in refused.text, (text, refused.text)
        refused = type_balance("9" * 25)
        assert refused.status == 409 and "is larger than 1000000000000, the most" in refused.text, refused.text
        assert posted.head() == head
        for text, meant in CLEAR.items():
            done = type_balance(text)
            assert "Opening balance of 1010 booked" in done.text, (text, done.text)
            entry = done.text.partition("1010 booked: ")[2].split()[0]
            assert meant in [each["amount"] for each in posted.entries() if each["entry_id"] == entry], text
            posted.ok("journal", "void", entry, "--reason", "typed once more")
    posted.in_order()


def test_a_split_of_a_card_is_what_was_meant_and_stays_as_it_was_typed(posted: Workspace) -> None:
    """The rest goes to the other account, so that a hundredfold would add up."""
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        queue, head = server.get("/queue"), posted.head()
        assert 'data-whole="1500.00"' in queue.body
        for text in ("12,50", "1.200,00", "1.200", "1e2"):
            parts = (("part_account", "4010"), ("part_amount", text), ("part_account", "4020"), ("part_amount", ""))
            refused = server.submit(queue, "/queue", ("choice", "correct"), *parts)
            assert "is no amount of money" in refused.text and posted.head() == head, refused.text
            assert f'value="{text}"' in refused.body
            refused = server.submit(queue, "/queue", ("choice", "correct"), ("split", f"4010=-{text} 4020="))
            assert "the split cannot be taken" in refused.text and posted.head() == head, refused.text
        for rows, said in (
            ((("4010", "12.50,00"),), "amount: '12.50,00' is no amount of money"),
            ((("4010", "800"), ("4020", "800")), "100.00 is too much"),
            ((("4010", "800"), ("4020", "600")), "100.00 is left to place"),
            ((("4010", "800"), ("", "700")), "700 has no account yet"),
            ((("4010", "1500"), ("4020", "")), "Not done: "),
            ((("4010", "1500"), ("4020", "0")), "Not done: "),
            ((("4010", "-100"), ("4020", "1600")), "“Amounts of both signs are meant”"),
        ):
            parts = [
                (f"part_{name}", value) for row in rows for name, value in zip(("account", "amount"), row, strict=True)
            ]
            refused = server.submit(queue, "/queue", ("choice", "correct"), *parts)
            assert said in refused.text and posted.head() == head, (rows, refused.text)
            assert "5060=30" not in refused.text and "the word mixed" not in refused.text, refused.text
        parts = (("part_account", "4010"), ("part_amount", "1,250.00"), ("part_account", "4020"), ("part_amount", ""))
        assert "Corrected: ACME" in server.submit(queue, "/queue", ("choice", "correct"), *parts).text
    posted.in_order()

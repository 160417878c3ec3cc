"""The books are kept through the page: what needs a look leads to its form, and a form does what its command does."""

from __future__ import annotations

import re

from committing import list_commands
from harness import Workspace
from web_client import Page, Server, inner_server

from cleared.web.command_pages import PAGES, TERMINAL_ONLY, find_page, link_commands


def test_every_command_has_a_page_or_is_of_the_terminal() -> None:
    commands = list_commands()
    assert len(commands) > 100
    for command in commands:
        words = [command, command.rpartition(" ")[0], command.partition(" ")[0]]
        is_of_terminal = any(each in TERMINAL_ONLY for each in words)
        assert (find_page(command) is not None) or is_of_terminal, command
    known = {part for command in commands for part in (command, command.partition(" ")[0])}
    for command in [name for page in PAGES for name in page.commands]:
        assert command in known, command


def test_texts_of_commands_lead_to_pages() -> None:
    def told(text: str) -> str:
        return str(link_commands(text, "/s/x"))

    way = '<a class="way" href="/s/x{}">{}</a>'.format
    assert told("its files state no balance (cleared reconcile 1010 --date … --balance …)") == (
        f"its files state no balance {way('/books/reconcile?account=1010', 'Reconcile')}"
    )
    assert told("Reopen first: cleared period reopen DATE.") == f"Reopen first: {way('/books/months', 'Close months')}."
    assert way("/agents/ingest", "Agents") in told("See it all: cleared agent check ingest.")
    assert "in the machine’s terminal: <code>cleared up</code>" in told("the service is not up (cleared up)")
    assert told("<b>cleared review</b>") == f"&lt;b&gt;{way('/queue', 'Queue')}&lt;/b&gt;"
    assert "All the same, because" in told("or close all the same: --despite REASON.")


def signed_in(server: Server) -> Server:
    server.sign_in(server.code)
    return server


def send(server: Server, page: Page, path: str, *fields: tuple[str, str]) -> Page:
    """Send a form of the page, as the first of its kind stands there."""
    own = [
        ("token", page.fields("token")[0]),
        *[("digest", page.fields("digest")[0]) for _ in page.fields("digest")[:1]],
    ]
    return server.follow(server.send("POST", path, [*own, *fields]))


def test_a_statement_is_reconciled_and_taken_back(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/reconcile?account=1010")
        assert re.search(r'value="1010" selected', page.body)
        before, head = ("account", "1010"), posted.head()
        for typed, said in (("", "type what the statement says"), ("x", "is no amount of money")):
            refused = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", typed))
            assert refused.status == 409 and said in refused.text and 'value="2025-01-31"' in refused.body
        differs = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", "2450.90"))
        assert differs.status == 409 and "The difference is" in differs.text and posted.head() == head
        opening = server.get("/books/opening")
        assert "1000" in opening.text and "Book it" in opening.text
        stale = server.follow(
            server.send("POST", "/books/opening", [("token", opening.fields("token")[0]), ("digest", "0" * 64)])
        )
        assert stale.status == 409 and "has changed since it was shown" in stale.text and posted.head() == head
        assert "1 opening balance booked" in send(server, opening, "/books/opening").text
        again = send(server, opening, "/books/opening")
        assert again.status == 409
        cash = posted.json("journal", "add", "2025-01-20", "Cash out", "5070=9", "1010=-9")["entry_id"]
        differs = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", "2446.40"))
        assert "Cash out" in differs.text and f"/books/entries/{cash}" in differs.body, differs.text
        posted.ok("journal", "void", cash, "--reason", "it was not paid")
        agreed = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", "2446.40"))
        assert "agrees with the bank on 2025-01-31: 2446.40" in agreed.text, agreed.text
        assert "reconciled through 2025-01-31" in agreed.text
        withdrawal = (before, ("date", "2025-01-31"), ("choice", "withdraw"))
        refused = send(server, agreed, "/books/reconcile", *withdrawal)
        assert refused.status == 409 and "withdrawing needs a reason" in refused.text
        page = send(server, agreed, "/books/reconcile", *withdrawal, ("reason", "the bank corrected it"))
        assert "is not reconciled any more" in page.text
    posted.in_order()


def test_an_opening_balance_that_no_file_says_is_typed(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/opening")
        typed = (("choice", "typed"), ("account", "1010"), ("date", "2024-12-31"))
        refused = send(server, page, "/books/opening", *typed, ("balance", "a lot"))
        assert refused.status == 409 and "is no amount of money" in refused.text and 'value="a lot"' in refused.body
        assert (
            "Opening balance of 1010 booked" in send(server, page, "/books/opening", *typed, ("balance", "1000")).text
        )
    posted.in_order()

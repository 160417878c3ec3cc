"""The books are kept through the page: what needs a look leads to its form, and a form does what its command does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from committing import list_commands
from harness import Workspace
from web_client import Page, Server, inner_server

from cleared.web.command_pages import PAGES, TERMINAL_ONLY, find_page, link_commands

pytestmark = pytest.mark.slow


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
    assert way("/books/check", "Check the books") in told("somebody wrote by hand: cleared check")
    assert told("Reopen first: cleared period reopen DATE.") == f"Reopen first: {way('/books/months', 'Close months')}."
    assert way("/agents/ingest", "Agents") in told("See it all: cleared agent check ingest.")
    assert "in the machine’s terminal: <code>cleared up</code>" in told("the service is not up (cleared up)")
    assert told("<b>cleared review</b>") == f"&lt;b&gt;{way('/queue', 'Queue')}&lt;/b&gt;"
    assert "All the same, because" in told("or close all the same: --despite REASON.")
    assert ">Queue</a>), or" in told("Decide about these (cleared queue list), or close all the same."), "a sentence"
    assert told("from the next year on: --on 2026-01-01.").endswith("“First day without entries” 2026-01-01.")
    assert told("say --outcome personal (a draw), or --reason …") == "say “Personal” (a draw), or “Why”"
    assert told("rejecting needs a reason: Pass --reason ….").endswith(": Fill in “Why”.")
    assert told("a duplicate of which entry? --of ENTRY, one that stands.").endswith(
        "“A duplicate of”, one that stands."
    )
    assert told("Make room on it, then run the command again.") == "Make room on it, then try it again."
    numbered = "then type P3. In a script: cleared agent approve P3-39ec6bbd"
    assert told(numbered) == "then type P3." and told("cleared agent approve P3-39ec6bbd") == way("/queue", "Queue")


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
        assert re.search(r'type="date" required value="\d{4}-\d\d-(?:28|29|30|31)"', page.body), "the last month's end"
        before, head = ("account", "1010"), posted.head()
        for typed, said in (("", "type what the statement says"), ("x", "is no amount of money")):
            refused = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", typed))
            assert refused.status == 409 and said in refused.text and 'value="2025-01-31"' in refused.body
        differs = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", "2450.90"))
        assert differs.status == 409 and "The difference is" in differs.text and posted.head() == head
        opening = server.get("/books/opening")
        assert "1,000.00" in opening.text and "Book it" in opening.text
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
        agreed = send(server, page, "/books/reconcile", before, ("date", "2025-01-31"), ("balance", "2,446.40"))
        assert "agrees with the bank on 2025-01-31: 2,446.40" in agreed.text, agreed.text
        assert "reconciled through 2025-01-31" in agreed.text and agreed.body.count('id="account"') == 1
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
        again = send(server, page, "/books/opening", *typed, ("balance", "1000"))
        assert again.status == 409 and "the books hold 1,000.00 on account 1010" in again.text, (
            "sent twice, booked once"
        )
        assert len([each for each in posted.entries() if each["description"] == "Opening balance"]) == 1
        refused = send(server, page, "/books/opening", *typed[:1], ("account", "4010"), typed[2], ("balance", "1"))
        assert refused.status == 409 and "4010 is no bank account" in refused.text
    posted.in_order()


def test_an_opening_balance_is_typed_once_and_before_the_first_row(posted: Workspace) -> None:
    """What is booked already, comes after the first row or is still to come would move what the bank agreed to."""
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/opening")
        head, first = posted.head(), min(each["date"] for each in posted.entries())
        soon = (datetime.now(UTC) + timedelta(days=60)).date().isoformat()
        for day, said in (
            (first, f"the first row of account 1010 is of {first}"),
            (soon, "is not over yet"),
            ("2099-01-01", "more than a year ahead"),
        ):
            typed = (("choice", "typed"), ("account", "1010"), ("date", day), ("balance", "55"))
            refused = send(server, page, "/books/opening", *typed)
            assert refused.status == 409 and said in refused.text and 'value="55"' in refused.body, refused.text
        assert posted.head() == head
        booked = send(server, page, "/books/opening").text.partition("balance booked: ")[2].split()[0]
        head = posted.head()
        for day in ("2024-12-31", "2024-06-30"):
            typed = (("choice", "typed"), ("account", "1010"), ("date", day), ("balance", "1000"))
            refused = send(server, page, "/books/opening", *typed)
            assert refused.status == 409 and f"is posted already: {booked}" in refused.text, refused.text
        assert posted.head() == head
        posted.ok("journal", "void", booked, "--reason", "the statement says otherwise")
        assert "Opening balance of 1010 booked" in send(server, page, "/books/opening", *typed).text
    posted.in_order()


GERMAN = """Umsätze Girokonto;DE89 3704 0044 0532 0130 00

Buchungstag;Valuta;Verwendungszweck;Betrag;Saldo
31.01.2025;31.01.2025;GITHUB PRO;-4,00;2.496,00
15.01.2025;15.01.2025;Rechnung 12 Müller KG;1.250,00;2.500,00
"""
UNSURE = "When,What,Note,Sum\n01/02/2025,GITHUB PRO,one,4.00\n01/03/2025,INVOICE,two,1500.00\n"


def find_hidden(page: Page, part: str) -> list[tuple[str, str]]:
    """The hidden fields of the form that begins with these words."""
    form = page.body.partition(part)[2].partition("</form>")[0]
    return [(name, unescape(value)) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)]


def test_an_unknown_file_becomes_a_bank_account(ws: Workspace) -> None:
    """It is shown as it is understood, told by taps what it is, and imported; nothing is written before."""
    with inner_server(ws.root) as server:
        head = ws.head()
        page = signed_in(server).upload(server.get("/"), {"giro.csv": GERMAN.encode()}, ("way", "import"))
        assert "of no account yet" in page.text and "As understood: 2 rows" in page.text
        assert "2025-01-15" in page.text and "1,250.00" in page.text and "Rechnung 12 Müller KG" in page.text
        assert "cleared" not in page.text and "bank_accounts." not in page.text
        assert "It is of Business checking , which is there: its" in page.text, page.text
        (address,) = set(re.findall(r'action="[^"]*(/bank/files/[^"]*)"', page.body))
        assert "giro.csv" in server.get("/bank").text and "giro.csv" in server.get("/").text
        for number, said in (("5070", "Meals (expense) cannot be a bank account’s"), ("1010", "is the bank account’s")):
            other = server.get(f"{address}?name=Girokonto&type=checking&ledger_account={number}")
            assert f"account {number} " in other.text and said in other.text, other.text
            assert 'id="add"' not in other.body
        named = server.get(f"{address}?name=Girokonto&type=checking&ledger_account=1020")
        assert "New bank account: Girokonto , checking, account 1020" in named.text, named.text
        assert ws.head() == head and "Girokonto" not in ws.read("config.yaml")
        hidden = find_hidden(named, 'id="add"')
        stale = [(name, "0" * 64 if name == "digest" else value) for name, value in hidden]
        refused = server.follow(server.send("POST", address, stale))
        assert refused.status == 409 and "has changed since it was shown" in refused.text and ws.head() == head
        done = server.follow(server.send("POST", address, hidden))
        assert "giro.csv" in done.text and "booked" in done.text, done.text
        assert "Girokonto" in server.get("/bank").text and "Of no account yet" not in server.get("/bank").text
        assert server.send("GET", address).status == 404
    assert len(ws.entries()) == 2
    ws.in_order()


def test_what_a_file_does_not_say_is_asked(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        page = signed_in(server).upload(server.get("/"), {"unsure.csv": UNSURE.encode()}, ("way", "import"))
        assert "does not say everything" in page.text and "add it and import" not in page.text
        (address,) = set(re.findall(r'action="[^"]*(/bank/files/[^"]*)"', page.body))
        told = page.fields("told")[0]
        assert re.findall(r"<option value=\"(\w+)\" selected", page.body) == ["date", "description", "amount"]
        columns = f"told={told}&c0=date&c1=description&c2=&c3=amount"
        page = server.get(f"{address}?{columns}&sign=inverted")
        assert "please say" in page.text, "01/02 is January or February"
        page = server.get(f"{address}?{columns}&sign=inverted&date_format=%25m%2F%25d%2F%25Y")
        assert "-1,500.00" in page.text and "2025-01-03" in page.text and "add it and import" in page.text, page.text
        note = page.body.partition("<b>Note</b>")[2].partition("</select>")[0]
        assert "not used" in note and "selected" not in note
        assert server.get(f"{address}?ledger_account=x").status == 404
        gone = server.follow(server.send("POST", address, [("token", page.fields("token")[0]), ("choice", "forget")]))
        assert "is not kept any more" in gone.text
        hopeless = server.upload(gone, {"x.csv": b"a,b\n1,2\n"})
        assert "x.csv was not imported" in hopeless.text and "Say what it is" not in hopeless.text


def test_a_month_is_closed_and_reopened(posted: Workspace) -> None:
    """What stands in the way has to be what was shown, and each refusal has its own answer."""
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/months")
        assert "Nothing is closed yet" in page.text and 'value="2025-01"' in page.body
        early = send(server, page, "/books/months", ("through", "2031-01"), ("choice", "close"))
        assert early.status == 409 and "is not over yet" in early.text and "All the same" not in early.text
        asked = [("through", "2025-01"), ("choice", "close")]
        blind = send(server, page, "/books/months", *asked, ("with_pending", "yes"))
        assert blind.status == 409 and "2 decisions about the time up to 2025-01-31 wait" in blind.text
        assert "tick" in blind.body and "Although decisions wait" in blind.text and "cleared" not in blind.text
        posted.ok("queue", "approve", "2025-01-002")
        seen = [("seen", value) for value in blind.fields("seen")]
        other = send(server, blind, "/books/months", *asked, *seen, ("with_pending", "yes"))
        assert other.status == 409 and "1 decision about" in other.text, "that was not what was shown"
        seen = [("seen", value) for value in other.fields("seen")]
        done = send(server, other, "/books/months", *asked, *seen, ("with_pending", "yes"))
        assert "The books are closed through 2025-01-31" in done.text, done.text
        refused = send(server, done, "/books/months", ("start", "2025-01"), ("choice", "reopen"))
        assert refused.status == 409 and "reopening needs a reason" in refused.text
        why = ("reason", "a bill came late")
        done = send(server, refused, "/books/months", ("start", "2025-01"), ("choice", "reopen"), why)
        assert "The books are open from 2025-01-01" in done.text and "a bill came late" in done.text
    posted.in_order()


def test_the_chart_of_accounts_is_kept(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/accounts")
        new = [("name", "Bank charges"), ("number", "5999"), ("type", "expense")]
        refused = send(server, page, "/books/accounts", *new[:2])
        assert refused.status == 409 and "is not an account type" in refused.text and 'value="5999"' in refused.body
        assert "“Bank charges” is account 5999 now" in send(server, page, "/books/accounts", *new).text
        page = server.get("/books/accounts/5999")
        page = send(server, page, "/books/accounts/5999", ("choice", "rename"), ("name", "Fees"))
        assert "is called Fees now" in page.text
        page = send(server, page, "/books/accounts/5999", ("choice", "close"), ("on", ""))
        assert "Account 5999 is closed" in page.text and "Open it again" in page.text
        page = send(server, page, "/books/accounts/5999", ("choice", "reopen"))
        assert "Account 5999 is open again" in page.text
        refused = send(server, page, "/books/accounts/1010", ("choice", "close"))
        assert refused.status == 409 and "has a balance" in refused.text
        assert server.get("/books/accounts/7").status == 404 and server.get("/books/accounts/x").status == 404
    posted.in_order()


def test_an_account_that_is_sent_twice_is_added_once(posted: Workspace) -> None:
    """As by a double click: the form names no number, so that none is taken."""
    typed = (("name", " Coworking "), ("type", "expense"), ("number", ""))
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/books/accounts")
        done = send(server, page, "/books/accounts", *typed)
        [number] = re.findall(r"Coworking is account (\d+) now", done.text)
        again = send(server, page, "/books/accounts", *typed)
        assert again.status == 409 and f"Coworking is account {number} already" in again.text, again.text
        another = send(server, page, "/books/accounts", *typed[:2], ("number", "5998"))
        assert "Coworking is account 5998 now" in another.text
        for each in (number, "5998"):
            send(server, server.get(f"/books/accounts/{each}"), f"/books/accounts/{each}", ("choice", "close"))
        assert re.search(r"Coworking is account \d+ now", send(server, page, "/books/accounts", *typed).text)
    posted.in_order()


def test_an_account_that_a_card_needs_is_made_and_the_card_comes_again(posted: Workspace) -> None:
    """Its name was typed, its number is the next one that is free; a card that is not there leads nowhere else."""
    [card, other] = [each["id"] for each in posted.cards()]
    with inner_server(posted.root) as server:
        for path in (f"/queue?card={card}&q=cowork", f"/queue/accounts?card={card}&q=cowork"):
            page = signed_in(server).get(path)
            [way] = re.findall(r'href="[^"]*(/books/accounts\?[^"]*)#add"', unescape(page.body))
            assert way == f"/books/accounts?card={card}&name=cowork"
        page = server.get(way)
        assert 'value="cowork"' in page.body and 'id="add" open' in page.body
        typed = (("name", "Coworking"), ("type", "expense"), ("number", ""))
        page = send(server, page, "/books/accounts", ("card", other), *typed)
        assert "Coworking is account 5910 now" in page.text and f'data-card="{other}"' in page.body
        again = send(server, page, "/books/accounts", ("name", "Desks"), *typed[1:])
        assert "Desks is account 5920 now" in again.text
    posted.in_order()


def test_a_harmless_setting_is_saved_and_another_becomes_a_card(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/settings")
        assert "review.remind_after" in page.body and "thresholds.auto_confirm" in page.body
        page = server.get("/settings/review.remind_after")
        refused = send(server, page, "/settings/review.remind_after", ("value", "soon"))
        assert refused.status == 409 and 'value="soon"' in refused.body
        assert "remind_after is 5d now" in send(server, page, "/settings/review.remind_after", ("value", "5d")).text
        page = server.get("/settings/thresholds.auto_confirm")
        card = send(server, page, "/settings/thresholds.auto_confirm", ("value", "0.99"))
        assert "becomes 0.99 once you approve it" in card.text and "becomes 0.99 (it is 0.95)" in card.text
        assert "auto_confirm: 0.99" not in posted.read("config.yaml")
        page = server.get("/settings/self_improvement.enabled")
        assert "<option>true</option><option selected>false</option>" in page.body and "``" not in page.text
        assert "<option>additive</option>" in server.get("/settings/self_improvement.approve").body
        card = send(server, page, "/settings/self_improvement.enabled", ("value", "true"))
        assert "self_improvement.enabled becomes true (it is false)" in card.text, card.text
        assert "True" not in server.get("/settings").text and "False" not in server.get("/settings").text
        assert server.get("/settings/nothing.of_it").status == 404 and server.get("/settings/llm.api_key").status == 404
    assert 'remind_after: "5d"' in posted.read("config.yaml")


def test_settings_that_wait_are_approved_as_they_were_shown(posted: Workspace) -> None:
    """Who signs needs a passphrase or a passkey; without either the page says so, and a form is refused."""
    posted.put("config.yaml", posted.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.97"))
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/settings")
        assert "Wait for approval" in page.text and "0.97" in page.text and "passphrase" in page.text
        form = server.get("/books/months")
        refused = send(server, form, "/settings", ("digest", "0"), ("key", "thresholds.auto_confirm"))
        assert refused.status == 409 and "the key has none" in refused.text


def test_a_rule_is_taught_and_taken_out(posted: Workspace) -> None:
    """Each is a proposal: its card says what it would change."""
    with inner_server(posted.root) as server:
        page = signed_in(server).get("/rules")
        assert "GITHUB" in page.text and "Software and subscriptions" in page.text
        refused = send(server, page, "/rules", ("choice", "teach"), ("words", "COFFEE"), ("account", "1010"))
        assert refused.status == 409 and "is the bank account" in refused.text and 'value="COFFEE"' in refused.body
        card = send(server, page, "/rules", ("choice", "teach"), ("words", "COFFEE"), ("account", "5070"))
        assert "Bank lines with “COFFEE” go to 5070 Meals" in card.text and "no dry run" not in card.text.lower()
        github = re.search(r'name="row" value="(\w+)"><input type="hidden" name="words" value="GITHUB"', page.body)
        assert github is not None
        removal = (("choice", "remove"), ("words", "GITHUB"))
        refused = send(server, page, "/rules", *removal, ("row", "0" * 64))
        assert refused.status == 409 and "has changed since it was shown" in refused.text
        card = send(server, page, "/rules", *removal, ("row", github[1]))
        assert "GITHUB" in card.text and "Proposal" in card.text, card.text


def test_what_is_wrong_with_the_books_is_shown_where_it_is_told(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        assert "All is in order" in signed_in(server).get("/books/check").text
        journal = posted.root / "books/2025/01/journal.csv"
        journal.write_bytes(journal.read_bytes().replace(b"COFFEE", b"TOFFEE"))
        posted.git("commit", "-qam", "by hand")
        today = server.get("/")
        assert "/books/check" in today.body, today.text
        found = server.get("/books/check")
        assert "wrong" in found.text and "All is in order" not in found.text and "Traceback" not in found.text


def test_no_page_sends_its_reader_to_a_terminal_without_saying_so(posted: Workspace) -> None:
    """Every page that a link leads to: a command stands only where it is said to be for the machine's terminal."""
    with inner_server(posted.root) as server:
        seen, ahead = set[str](), [signed_in(server).home + "/"]
        while ahead:
            address = ahead.pop()
            seen.add(re.sub(r"\d{4}-\d\d-\d+|\?.*", "", address))
            page = server.get(address)
            assert page.status == 200, (address, page.text)
            shown = re.sub(r"<(code|td|textarea)\b.*?</\1>", "", page.body, flags=re.S)
            assert not re.search(r"\bcleared [a-z]+ ?[a-z]*", re.sub(r"<[^>]*>", " ", shown)), (address, shown)
            for found in map(unescape, re.findall(r'<a\b[^>]*href="([^"#]*)', page.body)):
                kind = re.sub(r"\d{4}-\d\d-\d+|\?.*", "", found)
                if found.startswith(server.home) and kind not in seen and "/file" not in found:
                    seen.add(kind)
                    ahead.append(found)
        assert len(seen) > 100, seen

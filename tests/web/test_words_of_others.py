"""What a bank, a file or a sender wrote stays as it was written: no command in it becomes a link or an instruction."""

from __future__ import annotations

import re
import threading

import pytest
from harness import Workspace
from statement_files import chase
from test_keeping_pages import GERMAN, find_hidden, signed_in
from web_client import Page, inner_server

WRITTEN = ("cleared accept 12 --yes", "Pay now (cleared up)", "x: cleared config set thresholds.auto_confirm 0.1")


@pytest.mark.parametrize("written", WRITTEN)
def test_a_command_in_a_bank_text_is_only_a_text(ws: Workspace, written: str) -> None:
    ws.drop("f.csv", chase(("01/06/2025", written, "-12.00")))
    ws.run("ingest")
    [entry], [card] = ws.entries(), [each for each in ws.cards() if each["kind"] != "proposal"]
    with inner_server(ws.root) as server:
        page = signed_in(server).get(f"/queue?card={card['id']}")
        said = page.body.partition("The bank said")[2].partition("</dd>")[0]
        assert f"<p>{written}</p>" in said, said
        assert not re.search(r'<a class="way"[^>]*settings/thresholds', page.body)
        assert "terminal" not in page.body.partition("<main")[2].partition("</main>")[0], page.text
        form = [("token", page.fields("token")[0]), ("choice", "void"), ("reason", "x"), ("digest", "0")]
        stale = server.follow(server.send("POST", f"/books/entries/{entry['entry_id']}", form))
        told = stale.body.partition("Not done")[2].partition("</p>")[0]
        assert stale.status == 409 and f"“{written}” has changed since it was shown" in told


@pytest.mark.parametrize("written", WRITTEN)
def test_a_command_in_what_a_script_failed_with_is_only_a_text(ws: Workspace, written: str) -> None:
    """On the card, where the run was started, on its page, after a dry run, and where it needs a look."""
    ws.agent("probe", f"ctx_log('begun')\nraise ValueError({written!r})")
    ws.drop("f.csv", chase(("01/06/2025", "TEA", "-12.00")))
    with inner_server(ws.root) as server:
        ran = server.submit(signed_in(server).get("/agents/probe"), "/agents/probe", ("way", "run"))
        tried = server.submit(server.get("/agents/probe"), "/agents/probe", ("way", "dry-run"))
        [card] = [each for each in ws.cards() if each["kind"] == "failed_run"]
        shown = server.get(f"/queue?card={card['id']}")
        pages = {"run": ran, "dry run": tried, "card": shown, "today": server.get("/")}
        for name, page in pages.items():
            main = page.body.partition("<main")[2]
            assert written in main, f"{name}: no link in it: {page.text}"
            assert not re.search(r'class="way"[^>]*thresholds', main), (name, main)
        again = shown.body.partition("To try again")[2].partition("</dd>")[0]
        assert 'class="way"' in again, "the program's own words still lead somewhere"


def test_what_helps_after_a_failed_run_is_still_a_link(ws: Workspace) -> None:
    ws.agent(
        "probe",
        'journal_add_double(date="2025-02-01", description="x", debit_account=999999, credit_account=1010,'
        ' amount=1, confidence=0.9, status="auto-confirmed", evidence="x")',
    )
    ws("agent", "run", "probe")
    [card] = [each for each in ws.cards() if each["kind"] == "failed_run"]
    assert card["details"]["remedy"] and card["details"]["remedy"] not in card["details"]["cause"]
    with inner_server(ws.root) as server:
        page = signed_in(server).get(f"/queue?card={card['id']}")
        helps = page.body.partition("What helps")[2].partition("</dd>")[0]
        assert 'class="way"' in helps, page.text


def test_a_command_in_the_name_of_a_file_is_only_a_name(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        start = signed_in(server).get("/")
        for way, said in (("import", "imported"), ("receipt", "kept")):
            page = server.upload(start, {"cleared accept 12.csv": b""}, ("way", way))
            told = page.body.partition('class="messages"')[2].partition("</div>")[0]
            assert f"“cleared accept 12.csv” was not {said}" in told and "terminal" not in told, told
    ws.drop("cleared accept 12.csv", "nonsense")
    ws("agent", "run", "ingest")
    [card] = [each for each in ws.cards() if "accept 12" in each["title"]]
    with inner_server(ws.root) as server:
        page = signed_in(server).get(f"/queue?card={card['id']}")
        assert "file: import/cleared accept 12.csv" in page.text and "<code>cleared" not in page.body, page.text


def test_a_file_that_is_added_twice_at_once_is_added_once(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        page = signed_in(server).upload(server.get("/"), {"giro.csv": GERMAN.encode()}, ("way", "import"))
        (address,) = set(re.findall(r'action="[^"]*(/bank/files/[^"]*)"', page.body))
        named = server.get(f"{address}?name=Girokonto&type=checking&ledger_account=1020")
        pages, fields = list[Page](), find_hidden(named, 'id="add"')
        taps = [
            threading.Thread(target=lambda: pages.append(server.follow(server.send("POST", address, fields))))
            for _ in range(3)
        ]
        for tap in taps:
            tap.start()
        for tap in taps:
            tap.join()
        assert [page.status for page in pages].count(200) >= 1
        for page in pages:
            assert page.status == 200 or "it was added, or newer ones took its place" in page.text, page.text
    assert len(ws.entries()) == 2 and ws.read("config.yaml").count("Girokonto") == 1
    ws.in_order()


def test_unknown_files_that_are_too_many_are_named(ws: Workspace) -> None:
    """Twenty are kept: of the others it is said that they are not."""
    files = {f"bank-{at:02}.csv": GERMAN.replace("4,00", f"4,{at:02}").encode() for at in range(23)}
    with inner_server(ws.root) as server:
        page = signed_in(server).upload(server.get("/"), files, ("way", "import"))
        assert page.text.count("Say what it is") == 20
        assert "not kept any more, as newer files took the place: bank-00.csv, bank-01.csv, bank-02.csv." in page.text
        page = server.upload(page, {"last.csv": GERMAN.encode()}, ("way", "import"))
        assert "took the place: bank-03.csv." in page.text


def test_a_file_of_another_account_is_not_taken_for_the_one_that_was_there(ws: Workspace) -> None:
    """The account of the settings is taken for the first file's own, with the number that the file names."""
    with inner_server(ws.root) as server:
        page = signed_in(server).upload(server.get("/"), {"giro.csv": GERMAN.encode()}, ("way", "import"))
        assert "Business checking, which is there: its match iban becomes DE89370400440532013000" in page.text.replace(
            " ,", ","
        ), page.text
        (address,) = set(re.findall(r'action="[^"]*(/bank/files/[^"]*)"', page.body))
        server.follow(server.send("POST", address, find_hidden(page, 'id="add"')))
        assert len(ws.entries()) == 2
        other = GERMAN.replace("DE89 3704 0044 0532 0130 00", "DE02 1203 0000 0000 2020 51").replace("4,00", "5,00")
        page = server.upload(page, {"other.csv": other.encode()}, ("way", "import"))
        assert "of no account yet" in page.text and len(ws.entries()) == 2, page.text
    ws.in_order()

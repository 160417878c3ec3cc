"""What can be looked at, handed in and run on the page, and how its process begins and ends."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import sqlite3
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from harness import JANUARY, Workspace, chase, copy_books
from listening import take_port
from patience import PATIENCE
from statement_files import MONTH, write_camt
from web_client import Page, Server, inner_server, page_server


def test_a_month_from_the_bank_file_to_the_why(ws: Workspace) -> None:
    """Row C10: a run that is asked for on the page is the same as the command line's: one commit, one record."""
    with page_server(ws) as server:
        today = server.get("/")
        assert today.status == 200 and "To begin, hand in a file of your bank" in today.text
        assert (
            "T06:00" not in today.text and "/loop" not in today.body
        )  # a day and a time; no link to what is not there
        today = server.upload(today, {"january.csv": JANUARY.encode()})
        assert "1 file handed in: january.csv" in today.text and (ws.root / "import/january.csv").exists()
        other = JANUARY.replace("COFFEE", "TEA").encode()
        refusal = server.upload(today, {"january.csv": other, "february.csv": JANUARY.encode()})
        assert "is waiting there already" in refusal.text and not (ws.root / "import/february.csv").exists()
        refusal = server.upload(server.get("/"), {"../../evil.csv": b"x"})
        assert "evil.csv was not imported" in refusal.text and not list(ws.root.glob("**/evil.csv"))
        agent = server.get("/agents/ingest")
        assert "starter" in agent.text and "import_" not in agent.text.split("The script")[0]
        assert "Runs on a schedule, when a file is dropped" in agent.text and "Next run" in agent.text
        assert "post entries to the journal" in agent.text and "sha256:" not in agent.text
        agent = server.submit(agent, "/agents/ingest", ("way", "dry-run"))
        assert "Dry run: dry" in agent.text or "Nothing of it is kept" in agent.text
        assert ws.entries() == [] and "4 entries" in agent.text
        run = server.submit(agent, "/agents/ingest", ("way", "run"))
        assert "succeeded" in run.text and "journal_add" in run.text and "agents/ingest.py:" in run.text
        assert len(ws.entries()) == 4
        assert ws.json("run", "list")[0]["agent"] == "ingest"
        health = "ingest: 1 run, 0 errors, 50% done without asking"
        for address in ("/agents", "/agents/ingest"):
            shown = server.get(address)
            assert health in shown.text and ": 4 records, 2 asked about, 0 errors" in shown.body
        runs, books = server.get("/runs"), server.get("/books")
        assert "ingest" in runs.text and "2025-01" in books.text and "1010" in books.text
        entry = server.get("/books/entries/2025-01-001")
        assert "The bank said" in entry.text and "january.csv" in entry.text and "journal_add" in entry.text
        assert "COFFEE" in server.get("/books/entries?text=coffee").text
        assert "No entry." in server.get("/books/entries?text=nothing+like+it").text
        for path, status in (
            ("/agents/none", 404),
            ("/runs/none", 404),
            ("/books/entries/2031-01-001", 404),
            ("/books/entries?account=x", 409),
            ("/books/entries?month=soon", 409),
            ("/x", 404),
            ("/queue/none/code", 404),
            ("/queue/none/group", 404),
        ):
            page = server.get(path)
            assert page.status == status and "Traceback" not in page.body, (path, page)
    ws.in_order()


def test_a_file_is_imported_from_today_and_a_refusal_names_no_place_of_the_server(ws: Workspace) -> None:
    with page_server(ws) as server:
        told = replace(MONTH, account="DE89370400440532013000", currency="EUR")
        today = server.upload(server.get("/"), {"giro.xml": write_camt(told).encode()})
        assert "giro.xml It is of no account yet" in today.text and "DE89370400440532013000" in today.text
        assert "/0/giro.xml" not in today.text and "Run ingest" not in today.text
        today = server.upload(today, {"january.csv": JANUARY.encode()})
        assert "Import them now." in today.text and "Run ingest" in today.text
        assert "service is not up" not in today.text, "the page imports files itself: nothing waits for it"
        assert "What runs next Once the service is up" in today.text
        run = server.submit(today, "/agents/ingest", ("way", "run"))
        assert "succeeded" in run.text and len(ws.entries()) == 4
        assert "Run ingest" not in server.get("/").text
    ws.in_order()


def test_a_page_tells_what_changed_meanwhile(posted: Workspace) -> None:
    with page_server(posted) as server:
        wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        wire.request(
            "GET", f"{server.home}/live", headers={"Host": f"localhost:{server.port}", "Cookie": server.cookie}
        )
        stream = wire.getresponse()
        first = stream.readline()
        assert first.startswith(b"data: ") and posted.head().encode() in first
        posted.ok("queue", "approve", "2025-01-002")
        line = b""
        while posted.head().encode() not in line:
            line = stream.readline()
        assert line.startswith(b"data: ")
        code, _ = server.end()  # an open stream does not hold it up
        wire.close()
    assert code == 0


def test_times_are_those_of_the_books(posted: Workspace) -> None:
    posted.config("business.timezone=Pacific/Auckland")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        began = datetime.fromisoformat(posted.json("run", "list")[0]["started_at"])
        shown = f"{began.astimezone(ZoneInfo('Pacific/Auckland')):%Y-%m-%d %H:%M}"
        (row,) = re.findall("<time datetime=[^>]*>([^<]*)</time>", server.get("/runs").body)
        assert row == shown and "UTC" not in server.get("/runs").text


def test_several_workspaces_are_apart(posted: Workspace, starting_point: Path, tmp_path: Path) -> None:
    other = Workspace(copy_books(starting_point, tmp_path / "others"))
    with page_server(posted, posted.root, other.root) as server:
        assert "books" in server.get("/").text and "others" in server.get("/").text
        assert "2 cards" in server.get("/w/books/queue").text
        assert "Nothing waits" in server.get("/w/others/queue").text
        assert server.get("/w/none/queue").status == 404
        chat = server.get("/w/others/chat")
        assert "no language model is set up" in chat.text and f'href="{server.home}/w/others/chat"' in chat.body
        queue = server.get("/w/books/queue")
        assert "Confirmed" in server.submit(queue, "/w/books/queue", ("choice", "confirm")).text
    assert other.json("queue", "list") == []


def test_what_cannot_be_served_is_said(ws: Workspace, tmp_path: Path) -> None:
    with take_port("127.0.0.1") as taken:
        port = str(taken.getsockname()[1])
        refusal = ws.process("server", "--port", port)
        assert refusal.code == 5 and f"port {port}" in refusal.err
    refusal = ws.process("server", str(tmp_path / "nowhere"))
    assert refusal.code == 4 and "Traceback" not in refusal.err
    refusal = ws.process("server", str(ws.root), str(ws.root))
    assert refusal.code == 2 and "two workspaces" in refusal.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(ws: Workspace, number: int) -> None:
    with page_server(ws) as server:
        code, errors = server.end(number)
    assert code == 0 and "Traceback" not in errors


def test_a_kill_in_the_middle_of_decisions_loses_and_doubles_nothing(ws: Workspace) -> None:
    """Killed while it decides: each card is decided once, or waits."""
    ws.drop("many.csv", chase(*((f"01/{n + 1:02}/2025", f"SHOP {chr(65 + n)}", f"-{n + 1}.00") for n in range(12))))
    ws.run("ingest")
    for after in (1, 3):
        with page_server(ws) as server:
            queue = server.get("/queue")
            for _ in range(after):
                queue = server.submit(queue, "/queue", ("choice", "confirm"))
            wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            _send_without_waiting(wire, server, queue.fields("token")[0], ws)
            server.process.kill()
            server.process.wait()
            wire.close()
    left = len(ws.cards())
    confirmed = [entry for entry in ws.entries() if entry["status"] == "user-confirmed"]
    assert len(confirmed) + left == 12 and len(confirmed) >= 4
    ws.in_order()


def _send_without_waiting(wire: http.client.HTTPConnection, server: Server, token: str, ws: Workspace) -> None:
    from urllib.parse import urlencode

    queue = server.get("/queue")
    body = urlencode(
        [
            ("token", token),
            ("card", queue.fields("card")[0]),
            ("digest", queue.fields("digest")[0]),
            ("choice", "confirm"),
        ]
    )
    wire.request(
        "POST",
        f"{server.home}/queue",
        body,
        {
            "Host": f"localhost:{server.port}",
            "Cookie": server.cookie,
            "Origin": server.url,
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )


def test_runs_of_one_agent_and_page_by_page(posted: Workspace) -> None:
    """PAGE 7."""
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        every = server.get("/runs")
        assert "<option>ingest</option>" in every.body and "ingest" in every.text and "Older" not in every.text
        assert "<option selected>ingest</option>" in server.get("/runs?agent=ingest").body
        assert "Nothing has run yet" in server.get("/runs?agent=monthly_summary").text
        assert "Nothing has run here" in server.get("/runs?page=2").text
        with contextlib.closing(sqlite3.connect(posted.root / ".cleared/runs.db")) as db, db:
            (columns,) = [[row[1] for row in db.execute("PRAGMA table_info(runs)")]]
            others = ", ".join(name for name in columns if name != "id")
            for number in range(60):
                db.execute(f"INSERT INTO runs (id, {others}) SELECT id || '-{number}', {others} FROM runs LIMIT 1")
        newest = server.get("/runs")
        assert newest.body.count("/runs/") == 50 and "Older" in newest.text and "Newer" not in newest.text
        older = server.get("/runs?page=2")
        assert 0 < older.body.count("/runs/") < 50 and "Newer" in older.text and "Older" not in older.text


def test_the_search_keeps_what_was_asked(posted: Workspace) -> None:
    """PAGE 7."""
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        found = server.get("/books/entries?text=COFFEE&amount=1..9&from=2025-01-01")
        assert 'value="COFFEE"' in found.body and 'value="1..9"' in found.body and 'value="2025-01-01"' in found.body
        month = server.get("/books/entries?month=2025-01").body
        assert 'value="2025-01-01"' in month and 'value="2025-01-31"' in month
        assert "Business checking 1010" in server.get("/books").text, "names stand before numbers"


def test_an_entry_is_corrected_and_voided_on_its_page(posted: Workspace) -> None:
    """PAGE 3: by what was shown; one that a card asks about is decided there."""
    waiting = next(entry for entry in posted.entries() if entry["status"] == "pending-review")
    booked = next(entry for entry in posted.entries() if entry["status"] == "auto-confirmed")
    address = f"/books/entries/{booked['entry_id']}"
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        asked = server.get(f"/books/entries/{waiting['entry_id']}")
        assert "Decide about it" in asked.text and 'value="void"' not in asked.body
        before = server.get(address)
        digest = ("digest", before.fields("digest")[0])
        wrong = server.submit(before, address, digest, ("choice", "correct"), ("account", "x"))
        assert "is no account's number" in wrong.text
        done = server.submit(before, address, digest, ("choice", "correct"), ("account", "5070"), ("note", "lunch"))
        assert f"Corrected: {booked['entry_id']}" in done.text, done.text
        assert "As it stands after its corrections" in done.text and "Meals 5070" in done.text
        stale = server.submit(before, address, digest, ("choice", "void"), ("reason", "twice"))
        assert "has changed since it was shown" in stale.text
        now = ("digest", done.fields("digest")[0])
        assert "voiding needs a reason" in server.submit(done, address, now, ("choice", "void"), ("reason", " ")).text
        gone = server.submit(done, address, now, ("choice", "void"), ("reason", "twice"))
        assert f"Voided: {booked['entry_id']}, taken back by" in gone.text and 'value="void"' not in gone.body
    posted.in_order()


@pytest.mark.slow
def test_an_entry_is_split_on_its_page(posted: Workspace) -> None:
    """PAGE 3: what was typed stays after a refusal, which says how much is left; one amount may be left out."""
    [aws] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "45.10"]
    address, names = f"/books/entries/{aws}", ("part_account", "part_amount")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        page = server.get(address)
        assert (
            'data-whole="45.10"' in page.body and server.get(f"{address}?rows=9").body.count('name="part_amount"') == 9
        )

        def split(page: Page, *parts: tuple[str, str]) -> Page:
            typed = [pair for part in parts for pair in zip(names, part, strict=True)]
            digest = ("digest", page.fields("digest")[0])
            return server.submit(page, address, digest, ("choice", "split"), ("note", "two things"), *typed)

        for parts, said in (
            ((("5020", "30"), ("5060", "10")), "5.10 is left to place"),
            ((("5020", "30"), ("5060", "20")), "4.90 is too much"),
            ((("5020", ""), ("5060", "")), "two amounts are missing"),
            ((("5020", "45.10"), ("", "")), "two accounts or more"),
            ((("5020", "30"), ("", "15.10")), "has no account yet"),
            ((("5020", "a lot"), ("5060", "")), "is no amount of money"),
        ):
            refused = split(page, *parts)
            assert refused.status == 409 and said in refused.text, refused.text
            assert (
                all(f'value="{amount}"' in refused.body for _, amount in parts) and 'value="two things"' in refused.body
            )
        done = split(page, ("5020", "30"), ("5060", ""))
        assert f"Corrected: {aws}" in done.text and "Office supplies 5060 15.10" in done.text, done.text
    posted.in_order()

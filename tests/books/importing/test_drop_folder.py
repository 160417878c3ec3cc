"""Rows B6–B10, B12, B19 (CSV), B22, B24: bank files in, as a user hands them in."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from harness import (
    ATTESTED,
    CARD_HEADER,
    CHASE_HEADER,
    CLOCK,
    JANUARY,
    LOG,
    QUEUE,
    Workspace,
    chase,
    fails,
    refused,
    unchanged,
)
from statement_files import LINES, MONTH, Line, Told, write_ofx

from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now

COUNTS = '{"imported": %d, "confirmed": %d, "review": %d}'
PARSE = 'importer_parse(importer_scan()[0]["name"])'


def ingest(ws: Workspace) -> tuple[int, int, int]:
    found = ws.run("ingest")["result"]
    return found["imported"], found["confirmed"], found["review"]


def balance(ws: Workspace, account: int) -> str:
    found: str = ws.json("journal", "balance", str(account))[0]["balance"]
    return found


def test_b6_what_a_transaction_is(ws: Workspace) -> None:
    """B6: date, description, amount, reference, type; currency, balance, state too. Scan gives name, path, size, …"""
    ws.drop("january.csv")
    found = ws.script("files = importer_scan()\n[files, importer_parse(files[0]['name'])]", "--dry-run")["result"]
    assert found[0] == [
        {
            "name": "january.csv",
            "path": "import/january.csv",
            "size": len(JANUARY),
            "format": "chase_checking",
            "account": "checking",
            "ledger_account": 1010,
        },
    ]
    first = found[1][0]
    reference = first.pop("reference")
    assert (
        first
        == {
            "date": "2025-01-03",
            "description": "GITHUB *PRO",
            "amount": {"$decimal": "-4.00"},
            "type": "ACH_DEBIT",
            "bank_id": "",
            "currency": "USD",
            "balance": {"$decimal": "996.00"},
            "fee": None,
            "state": "posted",
            "account": "checking",
            "ledger_account": 1010,
        }
        or first["amount"] == "-4.00"
    )
    assert reference.startswith("f1:") and len({t["reference"] for t in found[1][1:]} | {reference}) == 4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../config.yaml", ".."),
        ("/etc/passwd", "absolute"),
        ("a/../../config.yaml", ".."),
        ("", "empty"),
        ("..", ".."),
        ("nothing.csv", "no such file"),
        ("processed", "a directory"),
        ("~/x.csv", "absolute"),
        ("C:\\\\x.csv", "backslash"),
        ("a\\nb.csv", "one line"),
        ("link.csv", "symbolic link"),
        ("out/passwd", "leads out"),
        ("loop/x.csv", "loop"),
        ("pipe", "named pipe"),
    ],
)
def test_b7_paths_stay_inside(ws: Workspace, name: str, said: str) -> None:
    """B7: .., absolute paths, symbolic links out of import/, pipes: refused, never opened."""
    (ws.root / "import/link.csv").symlink_to("/etc/passwd")
    (ws.root / "import/out").symlink_to("/etc")
    (ws.root / "import/loop").symlink_to("loop")
    os.mkfifo(ws.root / "import/pipe")
    for primitive in ("importer_parse", "importer_mark_processed"):
        if primitive == "importer_mark_processed":
            fails(ws, f'{primitive}("{name}")', primitive)
        else:
            fails(ws, f'{primitive}("{name}")', said, primitive, "probe.py:5")


def test_b7_a_link_in_the_drop_folder_gets_a_card(ws: Workspace) -> None:
    """B7: scanning leaves links out of import/ alone and says so; inside, too: the file itself is what counts."""
    secret = ws.put("../outside.csv", JANUARY)
    ws.drop("good.csv")
    (ws.root / "import/link.csv").symlink_to(secret)
    (ws.root / "import/inner.csv").symlink_to("good.csv")
    (ws.root / "import/folder").symlink_to(secret.parent)
    assert ingest(ws) == (4, 2, 2)
    bad = sorted(c["details"]["file"] for c in ws.cards() if c["kind"] == "bad_file")
    assert bad == ["import/inner.csv", "import/link.csv"]
    assert (ws.root / "import/link.csv").is_symlink() and secret.read_text() == JANUARY


def test_b8_dedupe_of_the_same_file(ws: Workspace) -> None:
    """B8: re-import adds 0, under the same name and under another one; the card names what it repeats."""
    ws.drop("january.csv")
    assert ingest(ws) == (4, 2, 2)
    journal = ws.read("books/2025/01/journal.csv")
    ws.drop("january.csv")
    assert ingest(ws) == (0, 0, 0)
    ws.drop("january (1).csv")
    assert ingest(ws) == (0, 0, 0)
    assert ws.read("books/2025/01/journal.csv") == journal
    assert any("same file as january.csv" in c["title"] for c in ws.cards() if c["kind"] == "duplicate_file")
    assert sorted(p.name for p in (ws.root / "import/processed").iterdir() if p.name != ".gitkeep") == [
        "january (1).csv",
        "january-2.csv",
        "january.csv",
    ]
    ws.in_order()


def test_b8_dedupe_keeps_equal_purchases_of_one_day(ws: Workspace) -> None:
    """B8: two equal same-day purchases stay 2, however often the file comes."""
    rows = [("01/10/2025", "COFFEE", "-4.50"), ("01/10/2025", "COFFEE", "-4.50")]
    ws.drop("a.csv", chase(*rows))
    assert ingest(ws) == (2, 0, 2)
    ws.drop("b.csv", chase(*rows))
    assert ingest(ws) == (0, 0, 0)
    ws.drop("c.csv", chase(*rows, ("01/10/2025", "COFFEE", "-4.50")))
    assert ingest(ws) == (1, 0, 1), "a third one is new"
    assert balance(ws, 1010) == "-13.50"
    ws.in_order()


def test_b8_dedupe_of_overlapping_files(ws: Workspace) -> None:
    """B8: a file that overlaps the last one by a week adds only the new week; the rows left out are recorded."""
    week = [(f"01/{d:02}/2025", f"SHOP {d}", f"-{d}.00") for d in range(1, 15)]
    ws.drop("a.csv", chase(*week[:10]))
    assert ingest(ws)[0] == 10
    ws.drop("b.csv", chase(*week[3:]))
    assert ingest(ws)[0] == 4
    assert balance(ws, 1010) == f"-{sum(range(1, 15))}.00"
    duplicates = ws.read("books/bank/duplicates-2025-02.csv").splitlines()[1:]
    assert len(duplicates) == 7
    lines = {r.split(",")[0] for r in ws.read("books/bank/checking/2025-01.csv").splitlines()[1:]}
    assert len(lines) == 14 and {d.split(",")[2] for d in duplicates} <= lines
    ws.in_order()


@pytest.mark.parametrize(
    ("balance_there", "balance_again", "asked"),
    [("996.00", "996.00", 0), ("996.00", "", 1), ("", "", 1), ("996.00", "995.00", 1)],
)
def test_b8_nobody_is_asked_about_rows_that_have_their_balance(
    ws: Workspace, balance_there: str, balance_again: str, asked: int
) -> None:
    """B8: who downloads files that overlap is asked only where a row that is left out may be another one."""
    ws.drop("a.csv", chase(("01/03/2025", "GITHUB *PRO", "-4.00", balance_there)))
    ws.run("ingest")
    rows = ("01/03/2025", "GITHUB *PRO", "-4.00", balance_again), ("01/04/2025", "SHOES", "-5.00", "991.00")
    ws.drop("b.csv", chase(*rows))
    ws.run("ingest")
    assert balance(ws, 1010) == "-9.00"
    assert len([card for card in ws.cards() if card["kind"] == "duplicate_file"]) == asked
    assert "b.csv: 1 new, 1 known" in ws.read("logs/agent-log-2025-02.csv")
    assert len(ws.read("books/bank/duplicates-2025-02.csv").splitlines()) == 2


def test_b8_a_balance_that_comes_back_on_the_day_is_asked_about(ws: Workspace) -> None:
    """B8: a file that begins within a day may bring another row that is equal, its balance too."""
    ws.drop("a.csv", chase(*(("01/03/2025", *each) for each in (("Y", "-5.00", "95.00"), ("X", "5.00", "100.00")))))
    ws.run("ingest")
    ws.drop("b.csv", chase(("01/03/2025", "X", "5.00", "100.00"), ("01/04/2025", "Z", "-1.00", "99.00")))
    ws.run("ingest")
    (card,) = [card for card in ws.cards() if card["kind"] == "duplicate_file"]
    assert "1 of 2 rows came before" in card["title"]
    ws.drop("c.csv", chase(*((f"01/0{day}/2025", "SHOP", "-1.00", f"{99 - day}.00") for day in (4, 5))))
    ws.run("ingest")
    more = chase(*((f"01/0{day}/2025", "SHOP", "-1.00", f"{99 - day}.00") for day in (5, 6)))
    ws.drop("d.csv", more)
    ws.run("ingest")
    assert len([card for card in ws.cards() if card["kind"] == "duplicate_file"]) == 1, "nothing came in on the 5th"


@pytest.mark.parametrize(
    ("text_again", "day_again", "asked"), [("GITHUB", "03", 0), ("GITHUB", "04", 1), ("PARKING", "03", 1)]
)
def test_b8_nobody_is_asked_about_rows_that_have_their_id(
    ws: Workspace, text_again: str, day_again: str, asked: int
) -> None:
    """B8: of the same day and text; some banks make ids of the day and amount, and mean another row."""
    ws.put_config(ws.read("config.yaml").replace("    format: chase_checking\n", ""))
    first, more = Line("2025-01-03", "-4.00", "GITHUB", "1"), Line("2025-01-05", "-5.00", "SHOES", "2")
    ws.drop("a.ofx", write_ofx(Told(lines=(first,))))
    ws.run("ingest")
    ws.drop("b.ofx", write_ofx(Told(lines=(Line(f"2025-01-{day_again}", "-4.00", text_again, "1"), more))))
    ws.run("ingest")
    assert balance(ws, 1010) == "-9.00"
    assert len([card for card in ws.cards() if card["kind"] == "duplicate_file"]) == asked


def test_b8_two_overlapping_files_in_one_run(ws: Workspace) -> None:
    """B8: the second file of the same run does not post what the first one has."""
    ws.drop("a.csv", JANUARY)
    ws.drop("b.csv", JANUARY + chase(("01/11/2025", "TEA", "-3.00"))[len(CHASE_HEADER) :])
    assert ingest(ws) == (5, 2, 3)
    assert len(ws.entries()) == 5
    ws.in_order()


def test_b8_document_003_cannot_post_a_line_twice(ws: Workspace) -> None:
    """B8: the same content again, also where a script parses it twice in one run and never deduplicates."""
    ws.drop("a.csv")
    found = ws.script(
        'n = 0\nfor i in range(2):\n    for t in importer_parse("a.csv"):\n'
        "        r = journal_add_double(t['date'], t['description'], 5030 if t['amount'] < 0 else 1010,\n"
        "            1010 if t['amount'] < 0 else 4010, abs(t['amount']), reference=t['reference'])\n"
        "        q = queue_add_review('pending', t['description'])\n"
        "        n = n + (1 if r['duplicate'] and q is None else 0)\n"
        'importer_mark_processed("a.csv")\nn'
    )
    assert found["result"] in (0, 4)
    assert len(ws.entries()) == 4 and len([c for c in ws.cards() if c["kind"] == "entry"]) == 4
    ws.in_order()


def test_b8_posting_a_posted_line_stages_nothing(posted: Workspace) -> None:
    """B8: the existing entry is returned; a following entry_id="pending" does nothing."""
    reference = posted.entries()[0]["reference"]
    head = posted.head()
    found = posted.script(
        f'r = journal_add_double("2025-01-03", "again", 5020, 1010, 4, reference="{reference}")\n'
        '[r, queue_add_review("pending", "x")]'
    )
    assert found["result"][0] == {
        "entry_id": "2025-01-001",
        "date": "2025-01-03",
        "status": "auto-confirmed",
        "duplicate": True,
    }
    assert found["result"][1] is None and found["entries"] == [] and found["cards"] == [] and found["commits"] == []
    assert posted.git("rev-list", "--count", f"{head}..HEAD").strip() == "1", "only the script's own commit"


def test_b9_one_name_twice_keeps_both_files(ws: Workspace) -> None:
    """B9: the file moves to import/processed/ in the run's commit; a second one of the name gets another."""
    ws.drop("chase.csv", chase(("01/03/2025", "A", "-1.00")))
    ingest(ws)
    ws.drop("chase.csv", chase(("02/03/2025", "B", "-2.00")))
    ingest(ws)
    assert ws.read("import/processed/chase.csv").endswith('"A",-1.00,ACH_DEBIT,,,\n')
    assert ws.read("import/processed/chase-2.csv").endswith('"B",-2.00,ACH_DEBIT,,,\n')
    assert not (ws.root / "import/chase.csv").exists()
    assert set(ws.git("ls-files", "import").split()) == {
        "import/.gitkeep",
        "import/processed/.gitkeep",
        "import/processed/chase.csv",
        "import/processed/chase-2.csv",
    } or "import/processed/chase-2.csv" in ws.git("ls-files", "import")
    ws.in_order()


@pytest.mark.parametrize("keep", ["git", "local"])
def test_b9_the_files_of_old_books_lie_by_month(ws: Workspace, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    """B9: a folder with all files that were ever imported would be written anew with each; and a bank that calls each
    file the same begins anew with its numbers."""
    ws.config(f"import.keep={keep}")
    monkeypatch.setattr("cleared.books.importing.drop_folder.KEPT_TOGETHER", 1)
    for day in ("03", "04", "05"):
        ws.drop("chase.csv", chase((f"01/{day}/2025", day, f"-{int(day)}.00")))
        ingest(ws)
    month = f"import/processed/{CLOCK[:7]}"
    assert "-3.00" in ws.read("import/processed/chase.csv")
    assert "-4.00" in ws.read(f"{month}/chase.csv") and "-5.00" in ws.read(f"{month}/chase-2.csv")
    assert (f"{month}/chase.csv" in ws.git("ls-files", "import")) == (keep == "git")
    ws("import", str(ws.root / month / "chase.csv"))
    assert len(ws.entries()) == 3, "what is handed in again is booked already"
    ws.in_order()


@pytest.mark.parametrize("what", ["file", "link"])
def test_b9_a_month_whose_name_is_taken_holds_up_no_import(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Whoever can push can put something there."""
    monkeypatch.setattr("cleared.books.importing.drop_folder.KEPT_TOGETHER", 0)
    place = ws.root / f"import/processed/{CLOCK[:7]}"
    if what == "file":
        place.write_text("mine\n")
    else:
        place.symlink_to("../../books")
    ws.git("add", "-f", "import")
    ws.git("commit", "-qm", "docs")
    ws.drop("chase.csv", chase(("01/03/2025", "A", "-1.00")))
    ingest(ws)
    assert len(ws.entries()) == 1 and "-1.00" in ws.read("import/processed/chase.csv")


def test_b9_content_can_stay_on_this_machine(ws: Workspace) -> None:
    """import.keep: local: the file moves all the same, but only its hash is committed."""
    ws.config("import.keep=local")
    ws.drop("chase.csv")
    assert ingest(ws)[0] == 4
    assert ws.read("import/processed/chase.csv") == JANUARY and not (ws.root / "import/chase.csv").exists()
    assert "chase.csv" not in ws.git("ls-files", "import")
    assert hashlib.sha256(JANUARY.encode()).hexdigest() in ws.read("books/bank/imports-2025-02.csv")
    ws.in_order()


ROW = 'DEBIT,01/03/2025,"GITHUB *PRO",-4.00,ACH_DEBIT,996.00,,\n'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \r\n", "empty"),
        (CHASE_HEADER.encode(), "no rows"),
        (b"Datum;Betrag;Text\n01.02.2025;1,00;x\n", "no known format"),
        ((CHASE_HEADER + ROW + ROW[:20]).encode(), "line 3"),
        ((CHASE_HEADER + ROW.replace("-4.00", "four")).encode(), "line 2"),
        ((CHASE_HEADER + ROW + ROW.replace("01/03/2025", "02/30/2025")).encode(), "line 3"),
        ((CHASE_HEADER + ROW.replace("2025", "0001")).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("2025", "9999")).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("-4.00", "-4.001")).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("-4.00", "-12345678901234567.89")).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("-4.00", "NaN")).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("GITHUB", "G" * 11_000)).encode(), "line 2"),
        ((CHASE_HEADER + ROW.replace("GITHUB", "GIT\0HUB")).encode(), "NUL"),
        ((CHASE_HEADER + ROW).encode().replace(b"GITHUB", b"G\x81"), "offset"),
        ((CHASE_HEADER + ROW.replace(' *PRO"', "")).encode(), "quote"),
        (b"PK\x03\x04" + bytes(range(256)) * 4, "not a text file"),
        (b"%PDF-1.7\n%\xe2\xe3", "not a text file"),
        (bytes(range(256)), "import/bad.csv"),
        ((CHASE_HEADER + ROW).encode("utf-32"), "UTF-32"),
        ((CHASE_HEADER + ROW).encode("utf-16-le"), "UTF-16"),
    ],
    ids=str,
)
def test_b10_malformed_files(ws: Workspace, data: bytes, said: str) -> None:
    """B10: empty, header-only, wrong-header, truncated, binary …: named by line and reason; the file stays where it is,
    nothing of it is posted, the other file is handled, and the card comes once."""
    ws.drop("bad.csv", data)
    ws.drop("good.csv")
    done = ws("agent", "run", "ingest", "--json")
    assert done.code == 0 and done.json["result"]["imported"] == 4, done
    [card] = [c for c in done.json["cards"] if c["kind"] == "bad_file"]
    assert card["details"]["file"] == "import/bad.csv"
    text = f"{card['title']} {card['details']}"
    assert said.lower() in text.lower(), text
    assert card["details"]["remedy"] and "bad.csv" in done.err
    assert (ws.root / "import/bad.csv").read_bytes() == data
    assert len(ws.entries()) == 4 and not (ws.root / "import/good.csv").exists()
    assert [c["kind"] for c in ws.run("ingest")["cards"]] == []
    assert len([c for c in ws.cards() if c["kind"] == "bad_file"]) == 1
    fails(ws, 'importer_parse("bad.csv")', "bad.csv")
    ws.in_order()


def test_b10_a_gigabyte(ws: Workspace) -> None:
    """B10: 1 GB (sparse) is refused by its size, at once; so is one byte more than import.max_bytes."""
    with ws.drop("huge.csv", CHASE_HEADER).open("r+b") as file:
        file.truncate(1 << 30)
    ws.drop("good.csv")
    assert ingest(ws) == (4, 2, 2)
    [card] = [c for c in ws.cards() if c["kind"] == "bad_file"]
    assert "1,073,741,824 bytes" in card["title"]
    assert (ws.root / "import/huge.csv").stat().st_size == 1 << 30


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_b10_no_permission(ws: Workspace) -> None:
    """B10: a file that may not be read."""
    ws.drop("secret.csv").chmod(0)
    ws.drop("good.csv")
    assert ingest(ws) == (4, 2, 2)
    [card] = [c for c in ws.cards() if c["kind"] == "bad_file"]
    assert "permission denied" in card["title"]


def test_b10_files_that_are_being_written_are_left_alone(ws: Workspace) -> None:
    """B10: browsers' and editors' half-written files are no bank files."""
    for name in ("a.csv.part", "b.csv.crdownload", ".c.csv.swp", "d.tmp", "e.csv~"):
        ws.drop(name)
    assert ingest(ws) == (0, 0, 0) and ws.cards() == []


def test_b10_a_file_that_changes_after_it_was_parsed(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """ARCHITECTURE: a file that changed since it was parsed fails the seal."""
    from cleared.books import queries  # noqa: F401 - loaded before the clock is wound up
    from cleared.runs import execution

    path = ws.drop("a.csv")
    original = execution._AgentRun._finish_run

    def change(self: execution._AgentRun, result: object) -> None:
        path.write_text(JANUARY + "x")
        original(self, result)  # type: ignore[arg-type]

    monkeypatch.setattr(execution._AgentRun, "_finish_run", change)
    before = ws.state()
    done = ws("agent", "run", "ingest", "--json")
    assert done.code == 1 and "import/a.csv changed since it was read" in done.err and "Run the agent again" in done.err
    assert ws.state().changed_since(before) <= {"import/a.csv", ATTESTED, LOG, QUEUE}
    assert ws.entries() == []


def test_b12_the_queue_is_durable(posted: Workspace) -> None:
    """B12: cards survive the deletion of .cleared/, and are in every clone."""
    before = posted.cards()
    assert len(before) == 2
    shutil.rmtree(posted.root / ".cleared")
    assert posted.cards() == before
    posted.git("clone", "-q", str(posted.root), str(posted.root.parent / "clone"))
    clone = Workspace(posted.root.parent / "clone")
    assert clone.cards() == before
    assert clone.json("run", "list")[0]["message"].startswith("import: 4")
    run_id = clone.json("run", "list")[0]["run_id"]
    assert clone.json("run", "show", run_id)["commits"] == [posted.head()]
    clone.in_order()


def test_b22_a_file_is_processed_when_every_line_is_accounted_for(ws: Workspace) -> None:
    """B22: a script that skips a line cannot mark the file processed; all lines left over are listed."""
    ws.config("self_improvement.auto_revert_on.invariant_violations=0")  # else the agent is stopped as well (D11)
    ws.drop("a.csv")
    body = (
        'txns = importer_parse("a.csv")\n'
        "for t in txns[:2]:\n"
        "    journal_add_double(t['date'], t['description'], 5030 if t['amount'] < 0 else 1010,\n"
        "        1010 if t['amount'] < 0 else 4010, abs(t['amount']), reference=t['reference'])\n"
    )
    found = fails(
        ws, body + 'importer_mark_processed("a.csv")', "2 invariants are violated", "lines_accounted", "COFFEE"
    )
    assert "AWS EMEA" in found["error"]["message"]
    assert (ws.root / "import/a.csv").exists()
    rest = (
        'importer_ignore(txns[2]["reference"], "private")\n'
        'queue_add_review(txns[3]["reference"], "what was this?")\n'
        'importer_mark_processed("a.csv")["new"]'
    )
    assert ws.script(body + rest)["result"] == 4
    outcomes = ws.read("books/bank/outcomes-2025-01.csv")
    assert ",ignored,private," in outcomes and ",held,what was this?," in outcomes
    [card] = [c for c in ws.cards() if c["kind"] == "line"]
    assert "COFFEE" in card["title"]
    assert not (ws.root / "import/a.csv").exists()
    ws.in_order()


def test_b22_what_is_staged_after_the_scripts_check_is_checked_too(ws: Workspace) -> None:
    ws.drop("january.csv", JANUARY)
    late = 'importer_parse("january.csv")\nimporter_mark_processed("january.csv")'
    ws.agent("late", f'git_commit("nothing yet")\nimporter_scan()\n{late}\nNone')
    done = ws("agent", "run", "late")
    assert done.code == 1 and "neither posted, held nor ignored" in done.err
    assert (ws.root / "import/january.csv").exists() and not ws.entries()


def test_b22_a_file_that_is_not_marked_comes_again(ws: Workspace) -> None:
    """B22: what was posted of it is not offered again."""
    ws.drop("a.csv")
    ws.script(
        't = importer_parse("a.csv")[0]\n'
        "journal_add_double(t['date'], t['description'], 5020, 1010, 4, reference=t['reference'])"
    )
    assert (ws.root / "import/a.csv").exists()
    assert ingest(ws) == (3, 1, 2)
    assert len(ws.entries()) == 4
    ws.in_order()


def test_importer_ignore(ws: Workspace) -> None:
    """importer_ignore: refused for posted lines, free text and empty reasons; the line does not come back."""
    ws.drop("a.csv")
    fails(ws, 'importer_ignore("R1", "x")', "not the reference of a bank line")
    fails(ws, f'importer_ignore({PARSE}[0]["reference"], " ")', "needs a reason")
    post = (
        't = importer_parse("a.csv")[0]\njournal_add_double(t["date"], "x", 5020, 1010, 4, reference=t["reference"])\n'
    )
    fails(ws, post + 'importer_ignore(t["reference"], "x")', "is posted", "probe.py:7")
    ws.script(f'for t in {PARSE}:\n    importer_ignore(t["reference"], "private")\nimporter_mark_processed("a.csv")')
    ws.drop("a.csv")
    assert ingest(ws) == (0, 0, 0) and ws.entries() == []
    ws.in_order()


def test_b22_splits_must_sum_to_the_line(ws: Workspace) -> None:
    """journal_add with splits and money_allocate: the bank leg is the line; two entries may share it, not exceed it."""
    ws.drop("a.csv", chase(("01/03/2025", "MARKET", "-10.00")))
    head = 't = importer_parse("a.csv")[0]\nparts = money_allocate(-t["amount"], [1, 1, 1])\n'
    split = (
        'lines = [{"account_id": a, "debit": p} for a, p in zip([5020, 5030, 5040], parts)]\n'
        'lines = lines + [{"account_id": 1010, "credit": 10}]\n'
        'journal_add(t["date"], t["description"], lines, reference=t["reference"])\n'
    )
    done = 'importer_mark_processed("a.csv")\n'
    half = 'journal_add_double(t["date"], "half", 5020, 1010, %s, reference=t["reference"])\n'
    fails(ws, head + half % 6 + half % 5, "not yet posted", "probe.py:8")
    fails(ws, head + half % 6 + done, "only -6.00 of it is posted")
    fails(ws, head + 'journal_add_double(t["date"], "x", 5020, 3010, 10, reference=t["reference"])', "1010", "5020")
    fails(ws, head + 'journal_add_double(t["date"], "x", 1010, 5020, 10, reference=t["reference"])', "Money in")
    found = ws.script(head + split + done)
    assert [x["debit"] for x in found["entries"][0]["lines"][:3]] == ["3.34", "3.33", "3.33"]
    ws.in_order()
    ws.ok("journal", "void", "2025-01-001", "--reason", "split otherwise")
    reference = found["entries"][0]["reference"]
    ws.script(
        f'journal_add_double("2025-01-03", "a", 5020, 1010, 6, reference="{reference}")\n'
        f'journal_add_double("2025-01-03", "b", 5030, 1010, 4, reference="{reference}")'
    )
    assert balance(ws, 1010) == "-10.00"
    ws.in_order()


def test_importer_deduplicate(posted: Workspace) -> None:
    """importer_deduplicate: each line once, those in the books not at all."""
    posted.drop("b.csv", chase(("02/03/2025", "TEA", "-3.00")))
    found = posted.script(
        't = importer_parse("b.csv")\nold = journal_query()[0]["reference"]\n'
        '[len(importer_deduplicate(t + t)), len(importer_deduplicate([{"reference": old}]))]',
        "--dry-run",
    )
    assert found["result"] == [1, 0]
    fails(posted, 'importer_deduplicate([{"reference": "x"}])', "txns[0]")
    fails(posted, "importer_deduplicate([5])", "txns[0]")


def test_queue_add_review_twice_makes_one_card(ws: Workspace) -> None:
    """queue_add_review: the same question twice is one card, in one run and in the next."""
    post = 'journal_add_double("2025-01-03", "x", 5030, 1010, 4)\n'
    found = ws.script(post + '[queue_add_review("pending", "what?"), queue_add_review("2025-01-001a", "really?")]')
    assert found["result"][0] == found["result"][1] and len(found["cards"]) == 1
    again = ws.script('[queue_add_review("2025-01-001", "again?"), len(queue_pending())]')
    assert again["result"] == [found["result"][0], 1] and again["cards"] == []
    assert len(ws.cards()) == 1
    fails(ws, post + 'queue_add_review("pending", "x", 2)', "between 0 and 1", "probe.py:6")


def test_b24_transfers_between_own_accounts(ws: Workspace) -> None:
    """B24: a card payment from both sides, either order, over a month end: 1090 is zero, no profit or loss."""
    config = ws.read("config.yaml")
    card = "  - {id: card, type: credit_card, ledger_account: 2010, format: chase_card}\n"
    ws.put_config(config.replace("bank_accounts:\n", "bank_accounts:\n" + card))
    body = (
        "for f in importer_scan():\n    for t in importer_parse(f['name']):\n"
        "        bank = t['ledger_account']\n"
        "        out = t['amount'] < 0\n"
        "        journal_add_double(t['date'], t['description'], 1090 if out else bank, bank if out else 1090,\n"
        "            abs(t['amount']), reference=t['reference'])\n"
        "    importer_mark_processed(f['name'])"
    )
    ws.drop("card.csv", CARD_HEADER + "02/01/2025,02/02/2025,Payment Thank You,,Payment,250.00,\n")
    assert len(ws.script(body)["entries"]) == 1
    assert balance(ws, 1090) == "-250.00"
    ws.drop("checking.csv", chase(("01/31/2025", "CHASE CARD PAYMENT", "-250.00")))
    assert len(ws.script(body)["entries"]) == 1
    assert (balance(ws, 1090), balance(ws, 1010), balance(ws, 2010)) == ("0.00", "-250.00", "250.00")
    ws.in_order()


def test_b19_a_profile_in_the_config(ws: Workspace) -> None:
    """B19: a bank described in config.yaml: decimal comma, debit and credit columns, cp1252, preamble, symbols."""
    config = ws.read("config.yaml")
    i, j = config.index("  # profiles:"), config.index("# How sure an agent")
    ws.put_config(
        config[:i].replace("format: chase_checking", "format: haus")
        + (
            "  profiles:\n    haus:\n"
            "      columns: {date: Buchung, description: Text, debit: Soll, credit: Haben, currency: Währung}\n"
            '      date_format: "%d.%m.%Y"\n      delimiter: ";"\n      encoding: cp1252\n      decimal: ","\n'
            '      thousands: "."\n      skip_lines: 1\n      currency_symbols: ["€"]\n\n'
        )
        + config[j:]
    )
    text = "Konto 12\r\nBuchung;Text;Soll;Haben;Währung\r\n"
    text += "31.01.2025;Bäckerei;1.234,50 €;;USD\r\n01.02.2025;x;;7,00;USD\r\n"
    ws.drop("haus.csv", text.encode("cp1252"))
    assert ingest(ws) == (2, 0, 2)
    assert [(e["description"], e["amount"]) for e in ws.entries()] == [("Bäckerei", "1234.50"), ("x", "7.00")]
    ws.drop("euro.csv", text.replace("USD", "EUR").replace("31.01", "30.01").encode("cp1252"))
    ingest(ws)
    [card] = [c for c in ws.cards() if c["kind"] == "bad_file"]
    assert "EUR" in card["title"] and "line 3" in card["title"]


def test_b6_the_banks_own_id_reaches_scripts(ws: Workspace) -> None:
    """B6, fault 18: beside ``reference``, which stays as it is; the type checker knows it."""
    config = ws.read("config.yaml").replace("format: chase_checking", "format: plain")
    columns = "columns: { date: Day, description: Text, amount: Amount, id: Id }"
    ws.put_config(config.replace("  # profiles:\n", f"  profiles:\n    plain:\n      {columns}\n", 1))
    ws.drop("plain.csv", "Day,Text,Amount,Id\n2025-01-03,GITHUB,-4.00,FT-77\n2025-01-04,SHOES,-5.00,\n")
    body = f"[t['bank_id'] + '|' + t['reference'][:3] for t in {PARSE}]"
    assert ws.script(body, "--dry-run")["result"] == ["FT-77|f1:", "|f1:"]
    ws.run("ingest")
    lines = ws.read("books/bank/checking/2025-01.csv")
    ws.drop("again.csv", "Day,Text,Amount,Id\n2025-01-03,GITHUB INC,-4.00,FT-77\n")
    ws.run("ingest")
    assert ws.read("books/bank/checking/2025-01.csv") == lines, "what is imported is known as before"
    ws.agent("typed", PARSE + "[0]['bank_i']", commit=False)
    assert "bank_i" in ws("agent", "check", "typed").out


def test_an_account_that_nobody_declared(ws: Workspace) -> None:
    """BOOKS: ambiguous or unknown accounts are refused with the line to add."""
    ws.drop("card.csv", CARD_HEADER + "02/01/2025,02/02/2025,TEA,,Sale,-2.50,\n")
    assert ingest(ws) == (0, 0, 0)
    [card] = ws.cards()
    assert "bank_accounts" in card["details"]["remedy"] and "chase_card" in card["details"]["remedy"]


@pytest.mark.parametrize(
    ("encode", "ends"), [("utf-8-sig", "\r\n"), ("utf-16", "\r\n"), ("utf-8", "\r\n"), ("utf-8", "\n")]
)
def test_encodings_and_line_ends(ws: Workspace, encode: str, ends: str) -> None:
    """Import: BOM, UTF-16, CRLF are one and the same file."""
    ws.drop("a.csv", JANUARY.replace("\n", ends).encode(encode))
    assert ingest(ws) == (4, 2, 2)
    assert ws.read("books/bank/checking/2025-01.csv").count("\n") == 5
    ws.drop("b.csv", JANUARY)
    assert ingest(ws) == (0, 0, 0)
    ws.in_order()


def test_odd_descriptions_are_stored_exactly_and_shown_escaped(ws: Workspace) -> None:
    """Import: formulas, text direction, newlines and quotes: as they are in the books, harmless on a terminal."""
    odd = [
        "=cmd|' /C calc'!A0",
        "+1",
        "@SUM(A1)",
        "\u202eevil\u2066",
        'say "hi"',
        "two\nlines",
        "\x1b[31mred",
        "a,b;c\t",
    ]
    ws.drop("a.csv", chase(*((f"01/{i + 1:02}/2025", text, "-1.00") for i, text in enumerate(odd))))
    assert ingest(ws)[0] == len(odd)
    assert [e["description"] for e in ws.entries()] == odd
    shown = (
        ws.ok("journal", "list").out
        + ws.ok("queue", "list").out
        + ws.ok("run", "show", ws.json("run", "list")[0]["run_id"]).out
    )
    for raw in ("\u202e", "\u2066", "\x1b", "two\nlines"):
        assert raw not in shown
    assert "\\u202eevil" in shown and "two\\nlines" in shown
    assert ws.json("journal", "list", "--text", "evil")[0]["description"] == odd[3]
    ws.drop("b.csv", chase(*((f"01/{i + 1:02}/2025", text, "-1.00") for i, text in enumerate(odd))))
    assert ingest(ws)[0] == 0
    ws.in_order()


def test_running_balances_that_jump_are_named(ws: Workspace) -> None:
    """B22: gaps within a file and between files: dates and amount; a warning, no refusal."""
    ws.drop("a.csv", chase(("01/03/2025", "A", "-4.00", "96.00"), ("01/05/2025", "B", "-1.00", "90.00")))
    assert ingest(ws)[0] == 2
    [card] = [c for c in ws.cards() if c["kind"] == "balance_gap"]
    assert "-5.00" in card["title"] and "2025-01-03" in card["title"] and "2025-01-05" in card["title"]
    ws.drop("b.csv", chase(("01/08/2025", "C", "-1.00", "80.00")))
    ingest(ws)
    cards = [c for c in ws.cards() if c["kind"] == "balance_gap"]
    assert len(cards) == 2 and "-9.00" in cards[1]["title"]


def test_import_command(ws: Workspace, tmp_path: Path) -> None:
    """``cleared import``: copies whole files, those that are recognised, and runs the agents that watch for them."""
    one, two, photo = tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "photo.png"
    one.write_text(JANUARY)
    two.write_text(JANUARY)
    photo.write_bytes(b"\x89PNG....")
    other = tmp_path / "other" / "one.csv"
    other.parent.mkdir()
    other.write_text(chase(("02/01/2025", "OTHER", "-1.00")))
    waits = ws.json("import", str(one), "--no-run")
    assert waits["files"] == [{"file": "import/one.csv", "format": "chase_checking", "accounts": ["checking"]}]
    with unchanged(ws):
        refused(ws("import", str(other)), 2, "waiting there already")
        refused(ws("import", str(two), str(tmp_path / "nothing.csv")), 4, "nothing.csv", "no such file")
        refused(ws("import", str(tmp_path)), 4, "directory")
        refused(ws("import"), 2)
        assert ws("import", str(photo)).code == 1
    assert ws.ok("import", str(one), "--no-run"), "the file that waits is this one"
    done = ws("import", str(two), str(photo), str(tmp_path))
    assert done.code == 0 and "photo.png was not imported: this is an image" in done.err
    assert len(ws.entries()) == 4, "both files, once"
    again = ws.ok("import", str(one)).err
    assert "one.csv is the same file as two.csv, imported" in again and "nothing of it is new" in again
    two.write_text(chase(("02/03/2025", "NEW", "-1.00")))
    assert ws.json("import", str(two))["runs"][0]["result"]["imported"] == 1
    two.write_text(chase(("02/03/2025", "NEW", "-1.O0")))
    assert ws("import", str(two)).code == 1, "a bank file that is refused"


def test_import_preview_shows_what_is_understood_and_writes_nothing(ws: Workspace, tmp_path: Path) -> None:
    """B19: whoever's account it is; 1 where the file is refused."""
    path = tmp_path / "one.ofx"
    path.write_text(write_ofx(replace(MONTH, lines=LINES[:1])))
    with unchanged(ws):
        shown = ws.json("import", "--preview", str(path))
        (statement,) = shown.pop("statements")
        (row,) = statement.pop("rows")
        assert shown == {"format": "ofx", "notes": []}
        assert statement == {
            "account": "1234567890",
            "bank": "121000248",
            "currency": "USD",
            "opening": None,
            "closing": "996.00",
        }
        assert (
            row.items()
            >= {
                "date": "2025-01-03",
                "amount": "-4.00",
                "description": "GITHUB *PRO",
                "bank_id": "F1",
                "state": "posted",
            }.items()
        )
        assert "GITHUB *PRO" in ws.ok("import", "--preview", str(path)).out
        path.write_text(path.read_text().replace("</OFX>", ""))
        refused(ws("import", "--preview", str(path), "--json"), 1, "truncated", "one.ofx")


def test_import_preview_says_where_the_account_does_not_take_it(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "one.ofx"
    path.write_text(write_ofx(replace(MONTH, lines=LINES[:1])))
    ws.ok("bank", "add", str(path), "--account", "checking", "--yes")
    path.write_text(write_ofx(replace(MONTH, lines=LINES[:1], currency="EUR")))
    with unchanged(ws):
        shown = ws.ok("import", "--preview", str(path)).out
        assert "checking (1010), which does not take it: the statement is in EUR" in shown, shown
        refused(ws("import", str(path)), 1, "the statement is in EUR")


def test_formats_are_checked_when_named(ws: Workspace) -> None:
    """importer_parse(name, format=…): unknown and wrong formats are refused."""
    ws.drop("a.csv")
    fails(ws, 'importer_parse("a.csv", format="quicken")', "quicken", "chase_checking")
    fails(ws, 'importer_parse("a.csv", format="chase_card")', "chase_card", "Posting Date")
    assert ws.script('len(importer_parse("a.csv", format="chase_checking"))', "--dry-run")["result"] == 4


def test_marking_needs_parsing(ws: Workspace) -> None:
    """importer_mark_processed: of a file this run has parsed; parsing after marking is refused."""
    ws.drop("a.csv")
    fails(ws, 'importer_mark_processed("a.csv")', "was not parsed")
    ignore = 'for t in importer_parse("a.csv"):\n    importer_ignore(t["reference"], "x")\n'
    ignore += 'importer_mark_processed("a.csv")\n'
    fails(ws, ignore + 'importer_parse("a.csv")', "was marked processed", "probe.py:8")


def test_a_failed_run_leaves_the_input(ws: Workspace) -> None:
    """A run is a transaction: the input stays where it is."""
    ws.drop("a.csv")
    fails(ws, ws.read("agents/ingest.py").split('"""')[2] + "\nconfig_get('no.such')", "no.such")
    assert ingest(ws) == (4, 2, 2)
    ws.in_order()


def test_scripts_get_what_a_processor_kept(ws: Workspace) -> None:
    """B19: the fee of a row, where the file has one; the amount is net of it."""
    ws.config("bank_accounts.checking.format=stripe_report")
    ws.drop(
        "stripe.csv",
        "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,description\n"
        'txn_1,2025-01-31 10:02:11,2025-02-02 00:00:00,usd,25.00,1.03,23.97,charge,"ACME, INC."\n'
        'txn_2,2025-01-31 11:02:11,2025-02-02 00:00:00,usd,-23.97,0.00,-23.97,payout,"PAYOUT"\n',
    )
    body = "[[str(t['amount']), str(t['fee'])] for f in importer_scan() for t in importer_parse(f['name'])]"
    assert ws.script(body, "--dry-run")["result"] == [["23.97", "-1.03"], ["-23.97", "0.00"]]


@pytest.mark.parametrize("in_one_run", [True, False])
def test_of_equal_rows_the_one_with_the_known_balance_came_before(ws: Workspace, in_one_run: bool) -> None:
    """A file that overlaps has four rows of a day, of which an earlier one has the first."""
    coffee = ("01/13/2025", "BLUE BOTTLE", "-6.75")
    ws.drop("a.csv", chase((*coffee, "93.25")))
    if not in_one_run:
        ws.run("ingest")
    ws.drop(
        "b.csv",
        chase(("01/14/2025", "LATER", "-1.00", "78.75"), (*coffee, "79.75"), (*coffee, "86.50"), (*coffee, "93.25")),
    )
    ws.run("ingest")
    rows = ws.read("books/bank/checking/2025-01.csv").splitlines()[1:]
    assert sorted(row.split(",")[7] for row in rows) == ["78.75", "79.75", "86.50", "93.25"]
    assert not [card for card in ws.cards() if "carry another balance" in card["title"]]
    ws.in_order()


@pytest.mark.parametrize("when", ["ran", "intent", "prepared"])
def test_b12_a_file_that_changes_after_it_was_read_is_not_booked(ws: Workspace, when: str) -> None:
    """B12: looked at before the commit is prepared, and again under the lock; the next run books what is new."""
    ws.drop("january.csv")
    rows = chase(("01/03/2025", "GITHUB *PRO", "-4.00"))

    def replace_file(step: str) -> None:
        if step == when:
            ws.drop("january.csv", rows)

    result = run_now(open_workspace(ws.root, on_step=replace_file), "ingest")
    assert result.status == "failed" and result.error is not None
    said = "changed since it was read" if when == "ran" else "changed after it was parsed"
    assert said in result.error.message
    assert ws.entries() == [] and ws.read("import/january.csv") == rows
    assert ingest(ws)[0] == 1
    ws.in_order()

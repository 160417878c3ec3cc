"""``cleared receipt``: receipts are kept by digest, proposed for entries, linked by people, listed where missing."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forked import Forks
from harness import Workspace, chase, copy_books, refused, take_ok, unchanged
from receipt_files import JPEG, make_pdf
from synced import follow
from world import World

from cleared.books.importing.receipt_text import find_amounts, find_days, read_receipt
from cleared.git import STEPS

DEPOT = b"Coffee house\nDate: 01/19/2025\nSubtotal 40.00\nTax 5.10\nTotal $45.10\n"


@pytest.fixture
def paid(posted: Workspace) -> dict[str, Any]:
    """The entry of 45.10 in January."""
    return next(entry for entry in posted.entries() if entry["amount"] == "45.10")


def drop_receipt(ws: Workspace, name: str, data: bytes) -> Path:
    path = ws.root / "receipts/inbox" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def receipt_cards(ws: Workspace) -> list[dict[str, Any]]:
    return [card for card in ws.cards() if card["kind"] == "receipt"]


def test_b29_a_receipt_of_the_inbox_is_kept_proposed_and_linked(posted: Workspace, paid: dict[str, Any]) -> None:
    """B29: kept by digest in one commit, matched by amount and day, linked by a person's answer, no longer missing."""
    day = paid["date"]
    path = drop_receipt(posted, "scan 1.txt", DEPOT.replace(b"01/19/2025", day.encode()))
    posted.ok("journal", "add", "2024-12-31", "Opening balance", "1010=-90", "3900=90")  # which nobody was paid
    missing = posted.json("receipt", "missing", "--over", "40")
    assert [p["entry_id"] for p in missing["payments"]] == [paid["entry_id"]] and missing["total"] == "45.10"
    made = posted.json("receipt", "add")
    [filed] = made["receipts"]
    digest = hashlib.sha256((posted.root / filed["file"]).read_bytes()).hexdigest()
    assert filed["sha256"] == digest and filed["file"] == f"receipts/{digest[:2]}/{digest}.txt"
    assert filed["proposed"] == paid["entry_id"] and filed["new"] and not path.exists()
    assert posted.git("ls-files", filed["file"]).strip() == filed["file"], "a clone has it"
    [card] = receipt_cards(posted)
    assert posted.json("receipt", "list", "--loose")["receipts"][0]["entries"] == [], "nothing is linked by itself"
    posted.ok("queue", "answer", card["id"], "link")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [paid["entry_id"]]
    assert posted.json("receipt", "missing", "--over", "40")["payments"] == []
    assert posted.json("why", paid["entry_id"])["receipts"][0] == {
        "name": "scan 1.txt",
        "file": filed["file"],
        "sha256": digest,
        "is_here": True,
    }
    posted.in_order()
    posted.ok("queue", "undo")
    assert posted.json("receipt", "list", "--loose")["receipts"] and receipt_cards(posted)
    posted.in_order()
    assert posted("receipt", "add").out == "Nothing lies in receipts/inbox/.\n"


def test_a_receipt_that_lies_in_the_inbox_twice_is_told_as_one(posted: Workspace) -> None:
    for name in ("a.txt", "b.txt"):
        drop_receipt(posted, name, DEPOT)
    assert [each["new"] for each in posted.json("receipt", "add")["receipts"]] == [True, False]
    assert posted.git("log", "-1", "--format=%s").strip() == "confirm: kept a.txt"
    assert len(posted.json("receipt", "list")["receipts"]) == 1
    posted.in_order()


def test_of_several_payments_that_fit_a_person_says_which(posted: Workspace) -> None:
    posted.drop("two.csv", chase(("02/06/2025", "SHOP A", "-80.00"), ("02/06/2025", "SHOP B", "-80.00")))
    posted.run("ingest")
    drop_receipt(posted, "2025-02-05 Shop 80,00.jpg", JPEG)
    done = posted.ok("receipt", "add")
    assert "2 payments fit it. cleared receipt link" in done.out and "2025-02-001  2025-02-06  80.00  SHOP" in done.out
    assert receipt_cards(posted) == []
    digest = posted.json("receipt", "list")["receipts"][0]["sha256"]
    posted.ok("receipt", "link", digest[:8], "2025-02-002")
    posted.in_order()


def test_b29_a_receipt_may_come_before_its_entry(posted: Workspace) -> None:
    """B29: an import that brings the entry proposes what lies there; each pair is asked once."""
    drop_receipt(posted, "2025-02-05 Zephyr 80,00.jpg", JPEG)
    assert posted.json("receipt", "add")["receipts"][0]["proposed"] is None
    posted.drop("february.csv", chase(("02/06/2025", "ZEPHYR LLC", "-80.00"), ("02/06/2025", "OTHER", "-81.00")))
    posted.run("ingest")
    [card] = receipt_cards(posted)
    assert "80.00 on 2025-02-06 (ZEPHYR LLC)" in card["title"]
    posted.ok("queue", "answer", card["id"], "different")
    posted.drop("later.csv", chase(("02/07/2025", "SOMETHING", "-3.00")))
    posted.run("ingest")
    assert receipt_cards(posted) == []


def test_the_service_keeps_what_is_dropped(posted: Workspace) -> None:
    """``cleared up`` takes a file that has lain still for a minute; it names what it cannot take once."""
    with World(posted) as world:
        path = drop_receipt(posted, "one.txt", b"Total 45.10")
        drop_receipt(posted, "empty.txt", b"")
        world.settle()
        assert path.exists(), "it may still be written"
        for _ in range(3):
            world.time.forward(minutes=1)
            world.settle()
        assert not path.exists() and posted.json("receipt", "list")["receipts"][0]["by"] == "receipts inbox"
        assert [row["what"] for row in world.log() if row["what"].startswith("receipts.")] == [
            "receipts.kept",
            "receipts.refused",
        ]
    posted.in_order()


def test_the_same_file_twice_two_entries_and_a_void(posted: Workspace, paid: dict[str, Any], tmp_path: Path) -> None:
    """One is kept once; it may prove two entries, which may be taken back; a voided entry needs none."""
    file = tmp_path / "paper.pdf"
    file.write_bytes(make_pdf("nothing"))
    first = posted.json("receipt", "add", str(file), "--entry", paid["entry_id"])["receipts"][0]
    again = posted.json("receipt", "add", str(file), "--entry", "2025-01-001")["receipts"][0]
    assert (again["new"], again["entries"]) == (False, [paid["entry_id"], "2025-01-001"]) and file.exists()
    head = posted.head()
    assert "already" in posted.ok("receipt", "link", first["sha256"][:8], "2025-01-001").out and posted.head() == head
    posted.ok("receipt", "unlink", "paper.pdf", "2025-01-001")
    posted.ok("journal", "void", paid["entry_id"], "--reason", "twice")
    [row] = posted.json("receipt", "list", "--loose")["receipts"]
    assert row["voided"] == [paid["entry_id"]]
    for argv, code, cause in (
        (("receipt", "link", "paper.pdf", paid["entry_id"]), 2, "is voided"),
        (("receipt", "link", "paper.pdf", "2025-09-999"), 2, "there is no entry '2025-09-999'"),
        (("receipt", "link", "other", "2025-01-001"), 2, "no receipt is 'other'"),
        (("receipt", "unlink", "paper.pdf", "2025-01-001"), 2, "is not linked to 2025-01-001"),
        (("receipt", "missing", "--over", "much"), 2, "is not an amount"),
        (("receipt", "add", str(tmp_path / "none.pdf")), 4, "there is no such file"),
    ):
        with unchanged(posted):
            refused(posted(*argv), code, cause)
    posted.ok("receipt", "remove", "paper.pdf")
    assert posted.json("receipt", "list")["receipts"] == [] and not (posted.root / first["file"]).exists()
    posted.in_order()


def test_an_entry_that_is_posted_again_needs_its_receipt(posted: Workspace, tmp_path: Path) -> None:
    """B29: a correction of the day voids the entry and posts another: missing says so, and the file proposes it."""
    [old] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "4.50"]
    file = tmp_path / "2025-01-10 coffee 4.50.jpg"
    file.write_bytes(JPEG)
    posted.ok("receipt", "add", str(file), "--entry", old)
    assert old not in [p["entry_id"] for p in posted.json("receipt", "missing")["payments"]]
    posted.ok("queue", "correct", old, "--date", "2025-01-11")
    [again] = [p["entry_id"] for p in posted.json("receipt", "missing")["payments"] if p["amount"] == "4.50"]
    assert again != old
    assert posted.json("receipt", "add", str(file))["receipts"][0]["proposed"] == again
    [card] = receipt_cards(posted)
    posted.ok("queue", "answer", card["id"], "link")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [old, again]
    with unchanged(posted):
        assert posted.json("receipt", "add", str(file))["receipts"][0]["proposed"] is None
    posted.in_order()


def test_an_entry_that_an_undo_brings_back_has_its_receipt(posted: Workspace, paid: dict[str, Any]) -> None:
    """The undo of the link takes it from what came back, too."""
    drop_receipt(posted, "scan.txt", DEPOT.replace(b"01/19/2025", paid["date"].encode()))
    posted.ok("receipt", "add")
    posted.ok("queue", "answer", receipt_cards(posted)[0]["id"], "link")
    posted.ok("queue", "reject", paid["entry_id"], "--reason", "unclear", "--outcome", "suspense")
    posted.ok("queue", "undo")
    [again] = [e["entry_id"] for e in posted.entries() if e["amount"] == "45.10" and e["status"] != "voided"]
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [paid["entry_id"], again]
    assert posted.json("receipt", "missing", "--over", "40")["payments"] == []
    posted.in_order()
    posted.ok("queue", "undo")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == []
    posted.in_order()


def test_a_card_about_a_receipt_names_the_entry_that_an_undo_brings_back(
    posted: Workspace, paid: dict[str, Any]
) -> None:
    drop_receipt(posted, "scan.txt", DEPOT.replace(b"01/19/2025", paid["date"].encode()))
    posted.ok("receipt", "add")
    posted.ok("queue", "correct", paid["entry_id"], "--account", "5070")
    posted.ok("queue", "undo")
    [again] = [e["entry_id"] for e in posted.entries() if e["amount"] == "45.10" and e["status"] != "voided"]
    posted.ok("queue", "answer", receipt_cards(posted)[0]["id"], "link")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [again]
    posted.in_order()


def free_number(ws: Workspace, file: Path, *words: str) -> str:
    """An entry that has the receipt, and that git takes back: its number."""
    entry = str(ws.json("journal", "add", *words)["entry_id"])
    made = ws.head()
    ws.ok("receipt", "add", str(file), "--entry", entry)
    ws.git("revert", "--no-edit", made)
    ws.ok("accept", "HEAD", "--reason", "meant so")
    return entry


@pytest.mark.parametrize("by_run", [True, False])
def test_who_gets_a_number_gets_no_receipt_of_another(posted: Workspace, tmp_path: Path, by_run: bool) -> None:
    """Git took back the entry that had the number and the receipt. That stays, and a check says what to do of it."""
    (tmp_path / "scan.txt").write_bytes(DEPOT)
    entry = free_number(posted, tmp_path / "scan.txt", "2025-01-15", "Depreciation", "5220=10", "1590=-10")
    assert "cleared receipt unlink" in posted("check").out
    if by_run:
        posted.script('journal_add_double("2025-01-31", "RENT", 5150, 3100, 1200)')
    else:
        posted.ok("journal", "add", "2025-01-31", "RENT", "5150=1200", "3100=-1200")
    assert posted.json("why", entry)["receipts"] == []
    [kept] = posted.json("receipt", "list", "--loose")["receipts"]
    assert kept["entries"] == []
    name, told = f"{kept['sha256'][:8]} {entry}", posted("check").out
    assert f"'scan.txt' was given to another entry than {entry} is now ('RENT')" in told
    assert f"cleared receipt unlink {name}; where it proves this one: cleared receipt link {name}" in told
    if by_run:
        posted.ok("receipt", "unlink", *name.split())
        posted.in_order()
    posted.ok("receipt", "link", "scan.txt", entry)
    posted.ok("journal", "add", "2025-01-31", "more", "5150=1", "3100=-1")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [entry]
    posted.in_order()


def test_the_record_of_an_earlier_version_is_carried_on(
    posted: Workspace, paid: dict[str, Any], tmp_path: Path
) -> None:
    """Its rows do not say which entry of a number they mean."""
    path = "books/bank/receipts.csv"
    (tmp_path / "scan.txt").write_bytes(DEPOT)
    posted.ok("receipt", "add", str(tmp_path / "scan.txt"), "--entry", paid["entry_id"])
    posted.put(path, re.sub(r",linked:[0-9a-f]{16},", ",linked,", posted.read(path)))
    posted.ok("accept", posted.commit(path), "--reason", "as it was")
    posted.ok("receipt", "link", "scan.txt", "2025-01-001")
    assert posted.json("receipt", "list")["receipts"][0]["entries"] == [paid["entry_id"], "2025-01-001"]
    posted.in_order()


def test_an_entry_that_a_merge_brings_under_a_freed_number_gets_no_receipt(posted: Workspace, tmp_path: Path) -> None:
    """Nor on the other side, once both have the same history."""
    ws, other, _ = follow(posted, tmp_path)
    (tmp_path / "scan.txt").write_bytes(DEPOT)
    entry = free_number(ws, tmp_path / "scan.txt", "2025-02-04", "Depreciation", "5220=10", "1590=-10")
    assert other.json("journal", "add", "2025-02-04", "Hammer", "5060=45.10", "1010=-45.10")["entry_id"] == entry
    other.ok("sync")
    ws.git("pull", "-q", "--no-rebase", "--no-edit")
    ws.ok("sync")
    other.ok("sync")
    for each in (ws, other):
        [kept] = each.json("receipt", "list")["receipts"]
        assert kept["entries"] == [] and each.json("why", entry)["receipts"] == []
        assert f"'scan.txt' was given to another entry than {entry} is now ('Hammer')" in each("check").out
        assert f"cleared receipt unlink {kept['sha256'][:8]} {entry}" in each("doctor").out
    ws.ok("receipt", "unlink", "scan.txt", entry)
    ws.in_order()


def test_an_entry_that_an_undo_brings_back_has_its_receipt_alone(
    posted: Workspace, paid: dict[str, Any], tmp_path: Path
) -> None:
    """What comes back gets the number of an entry that git took back."""
    for name in ("scan.txt", "other.txt"):
        (tmp_path / name).write_bytes(DEPOT + name.encode())
    posted.ok("receipt", "add", str(tmp_path / "scan.txt"), "--entry", paid["entry_id"])
    posted.ok("queue", "reject", paid["entry_id"], "--reason", "unclear", "--outcome", "suspense")
    later = free_number(posted, tmp_path / "other.txt", "2025-01-31", "later", "5220=10", "1590=-10")
    posted.ok("queue", "undo", "--older")
    assert later in {entry["entry_id"] for entry in posted.entries()}
    [again] = [e["entry_id"] for e in posted.entries() if e["amount"] == "45.10" and e["status"] != "voided"]
    found = {each["name"]: each["entries"] for each in posted.json("receipt", "list")["receipts"]}
    assert found == {"scan.txt": [paid["entry_id"], again], "other.txt": []}
    posted.ok("receipt", "unlink", "other.txt", later)
    posted.in_order()


@pytest.mark.parametrize("keep", ["git", "local"])
def test_b29_killed_while_receipts_are_kept(posted: Workspace, keep: str, tmp_path: Path) -> None:
    """B29: SIGKILL at each step: the next command keeps each file of the inbox once, and loses none."""
    if keep == "local":
        posted.ok("config", "set", "receipts.keep", keep)
    contents = {"a.txt": DEPOT, "b.txt": b"Total 1.00"}
    for name, data in contents.items():
        drop_receipt(posted, name, data)
    with Forks() as forks:
        for step in STEPS:
            ws = Workspace(copy_books(posted.root, tmp_path / step))
            assert forks.killed_at(ws.root, ["receipts"], step), step
            ws.ok("receipt", "add")
            listed = ws.json("receipt", "list")
            assert sorted(each["name"] for each in listed["receipts"]) == sorted(contents) and not listed["inbox"], step
            files = [path.read_bytes() for path in (ws.root / "receipts").rglob("*") if path.is_file()]
            assert sorted(files) == sorted(contents.values()), step
            assert ws.read("books/bank/receipts.csv").count(",kept,") == len(contents), step
            assert ws.git("rev-list", "--count", f"{posted.head()}..HEAD").strip() == "1", step
            ws.in_order()


def test_what_lies_in_the_inbox_is_hostile(posted: Workspace, tmp_path: Path) -> None:
    """Links, pipes, empty and large files stay there, and are named; the others are kept."""
    secret = tmp_path / "secret.txt"
    secret.write_text("password")
    good = drop_receipt(posted, "-rf $(x)\n‮.tXt", b"Total 1.23")
    inbox = good.parent
    (inbox / "link.txt").symlink_to(secret)
    os.mkfifo(inbox / "pipe")
    (inbox / "empty.txt").touch()
    (inbox / ".hidden").write_text("x")
    (inbox / "folder").mkdir()
    posted.ok("config", "set", "receipts.max_bytes", "100")
    (inbox / "large.txt").write_bytes(b"x" * 101)
    done = posted("receipt", "add", "--json")
    assert done.code == 1 and {r["name"] for r in done.json["refused"]} == {
        "link.txt",
        "pipe",
        "empty.txt",
        "large.txt",
    }
    [filed] = done.json["receipts"]
    assert filed["file"].endswith(".txt") and "\n" not in posted.ok("receipt", "list").out.splitlines()[1]
    assert b"password" not in b"".join(
        p.read_bytes() for p in (posted.root / "receipts").rglob("*.txt") if p.is_file() and not p.is_symlink()
    )
    posted.in_order()


def test_a_receipt_that_stays_on_this_machine(posted: Workspace, paid: dict[str, Any], tmp_path: Path) -> None:
    """``receipts.keep: local``: git has the record, not the file; a clone names what it has not got."""
    posted.ok("config", "set", "receipts.keep", "local")
    file = tmp_path / "paper.pdf"
    file.write_bytes(make_pdf("one"))
    filed = posted.json("receipt", "add", str(file), "--entry", paid["entry_id"])["receipts"][0]
    assert (posted.root / filed["file"]).read_bytes() == make_pdf("one") and file.exists()
    assert posted.git("ls-files", "receipts").strip() == "" and posted.git("status", "--porcelain").strip() == ""
    assert not list((posted.root / "receipts/inbox").iterdir())
    clone = Workspace(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", str(posted.root), str(clone.root)], check=True)
    take_ok(clone, "trust", "--yes")
    assert not clone.json("receipt", "list")["receipts"][0]["is_here"]
    package = clone.json("export", "package", "2025", "--draft")
    assert any("1 receipt is not in this clone" in line for line in package["warnings"])
    posted.in_order()
    clone.in_order()


def test_a_receipt_that_was_changed_is_found(posted: Workspace, paid: dict[str, Any], tmp_path: Path) -> None:
    """``check`` compares what git keeps with the digest, and a forged place is damage."""
    file = tmp_path / "paper.txt"
    file.write_bytes(b"Total 45.10")
    filed = posted.json("receipt", "add", str(file), "--entry", paid["entry_id"])["receipts"][0]
    (posted.root / filed["file"]).write_bytes(b"Total 99.10")
    posted.git("commit", "-qam", "forged")
    assert "is not the file that was kept" in posted("check").out
    record = posted.root / "books/bank/receipts.csv"
    record.write_text(record.read_text().replace(filed["file"], "../../etc/passwd"))
    posted.git("commit", "-qam", "forged more")
    refused(posted("receipt", "list"), 4, "a receipt is not readable", "books/bank/receipts.csv:2")


@pytest.mark.parametrize("how", ["removed", "a link"])
def test_a_receipt_that_a_commit_took_away_is_named(
    posted: Workspace, paid: dict[str, Any], tmp_path: Path, how: str
) -> None:
    file = tmp_path / "paper.txt"
    file.write_bytes(b"Total 45.10")
    filed = posted.json("receipt", "add", str(file), "--entry", paid["entry_id"])["receipts"][0]
    kept, before = posted.root / filed["file"], posted.git("log", "-1", "--format=%h").strip()
    kept.write_bytes(b"altered")
    posted.git("commit", "-qam", "alter")
    kept.unlink()
    if how == "a link":
        kept.symlink_to("/etc/hostname")
    posted.git("commit", "-qam", "tidy up")
    commit = posted.head()[:10]
    checked = posted("check")
    assert checked.code == 1 and f"the receipt 'paper.txt' was taken away by the commit {commit}" in checked.out
    assert f"git checkout {before} -- {filed['file']}, and commit that" in checked.out
    posted.git("checkout", before, "--", filed["file"])
    posted.git("commit", "-qm", "restore it")
    posted.in_order()
    kept.unlink()
    posted.git("commit", "-qam", "tidy up again")
    posted.ok("receipt", "remove", filed["sha256"][:8])
    posted.in_order()


def test_a_link_by_hand_settles_the_card_that_proposes_it(posted: Workspace, paid: dict[str, Any]) -> None:
    text = DEPOT.replace(b"01/19/2025", paid["date"].encode())
    path = drop_receipt(posted, "scan.txt", text)
    posted.ok("receipt", "add")
    assert len(receipt_cards(posted)) == 1
    again = path.parent / "again.txt"
    again.write_bytes(text)
    posted.ok("receipt", "add", str(again), "--entry", paid["entry_id"])
    assert receipt_cards(posted) == []


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("Subtotal 40.00\nTax 5.10\nTotal $45.10", ["45.10", "40.00", "5.10"]),
        ("Gesamt: 1.234,56 EUR\ndavon MwSt 197,11", ["1234.56", "197.11"]),
        ("Total 1,234,567.89", ["1234567.89"]),
        ("1 234,50 kr", ["1234.50"]),
        ("version 1.2.34, 10.0.0.12, 3.141", []),
        ("0.00", []),
    ],
)
def test_amounts_as_they_are_written(text: str, amounts: list[str]) -> None:
    assert [str(amount) for amount in find_amounts(text)] == amounts


def test_days_as_they_are_written() -> None:
    for text in ("2025-03-04", "20250304", "04.03.2025", "March 4, 2025", "4 Mar 2025", "4th March 2025", "03/04/2025"):
        assert "2025-03-04" in map(str, find_days(text)), text
    assert find_days("2025-13-45 99.99.2025 Foo 4, 2025") == []


def test_what_is_read_of_other_files() -> None:
    """HTML and mail count by their text, PDF by its text where the library is there; nothing fails."""
    html = b"<style>p{top:9.99px}</style><script>1.11</script><table><tr><td>Total<td><b>12.50</b></tr></table>"
    assert list(map(str, read_receipt("r.html", html)[0])) == ["12.50"]
    mail = b"Subject: Paid\r\nDate: Tue, 4 Mar 2025 10:00:00 +0000\r\nContent-Type: text/html\r\n\r\n<p>Total 7.25</p>"
    amounts, days = read_receipt("r.eml", mail)
    assert (str(amounts[0]), str(days[0])) == ("7.25", "2025-03-04")
    assert list(map(str, read_receipt("r.pdf", make_pdf("Total 45.10"))[0])) == ["45.10"]
    for name, data in (
        ("r.pdf", b"%PDF-1.7 damaged"),
        ("r.eml", b"\xff\x00"),
        ("r.html", b"<![CDATA[<" * 99),
        ("r", b"x"),
    ):
        assert read_receipt(name, data) == ((), ())


def test_a_receipt_is_proposed_again_for_what_came_again(
    posted: Workspace, paid: dict[str, Any], tmp_path: Path
) -> None:
    """Its entry was voided with its import; of other months no entry is read for it."""
    year, month, day = paid["date"].split("-")
    (tmp_path / "scan.txt").write_bytes(DEPOT.replace(b"01/19/2025", f"{month}/{day}/{year}".encode()))
    posted.ok("receipt", "add", str(tmp_path / "scan.txt"), "--entry", paid["entry_id"])
    posted.ok("import", "undo", "january.csv", "--reason", "a test")
    posted.drop("january.csv")
    posted.run("ingest")
    (card,) = [card for card in posted.cards() if card["kind"] == "receipt"]
    again = next(e for e in posted.entries() if e["amount"] == "45.10" and e["status"] != "voided")
    assert card["details"]["entry"] == again["entry_id"]

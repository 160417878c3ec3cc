"""Decisions of two clones about the same records, and commits that git has made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import asks
from harness import Workspace, chase, refused, unchanged
from synced import follow

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace]
ENTRY = "2025-02-001"


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> Iterator[Two]:
    """Two clones of books with two entries that wait."""
    ws.drop("shop.csv", chase(("02/03/2025", "CORNER SHOP", "-5.00"), ("01/04/2025", "CAFE", "-6.00")))
    ws.run("ingest")
    own, other, _ = follow(ws, tmp_path)
    yield own, other


def do_both(two: Two, *commands: tuple[str, ...]) -> None:
    """The other clone does it and pushes; then this one does the same."""
    for each in reversed(two):
        for command in commands:
            each.ok(*command)
        if each is two[1]:
            each.ok("sync")


@pytest.mark.parametrize(
    "act",
    [
        ("journal", "void", ENTRY, "--reason", "no"),
        ("queue", "correct", ENTRY, "--account", "5060"),
        ("queue", "reject", ENTRY, "--reason", "no", "--outcome", "personal"),
        ("split", ENTRY, "5060=2", "5070=3"),
        ("import", "undo", "shop.csv", "--reason", "no"),
        ("reconcile", "1010", "--date", "2025-01-31", "--balance", "-6.00"),
    ],
    ids=lambda act: act[1] if act[0] != "split" else "split",
)
def test_the_same_decision_of_both_counts_once(two: Two, act: tuple[str, ...]) -> None:
    ws, other = two
    do_both(two, act)
    (step,) = ws.json("sync")["steps"]
    assert step["now"] is None and not step["left_out"], step
    assert ws.head() == other.head()
    ws.in_order()


def test_what_both_took_back_is_booked_once(two: Two) -> None:
    """The one clone took back its approval; its entry was posted anew. So did the other."""
    ws, _ = two
    do_both(two, ("queue", "approve", ENTRY), ("queue", "undo"))
    ws.ok("sync")
    assert [e["entry_id"] for e in ws.entries() if e["status"] == "pending-review"] == ["2025-01-001", "2025-02-003"]
    assert len([card for card in ws.cards() if card["kind"] == "entry"]) == 2
    ws.in_order()


def test_another_correction_is_left_out(two: Two) -> None:
    ws, other = two
    other.ok("queue", "correct", ENTRY, "--account", "5060")
    other.ok("sync")
    ws.ok("queue", "correct", ENTRY, "--account", "5070")
    ws.ok("journal", "add", "2025-02-09", f"beside {ENTRY}", "5070=8", "1010=-8")
    done = ws.json("sync")
    assert [bool(step["left_out"]) for step in done["steps"]] == [True, False], done
    assert {leg["account_id"] for e in ws.entries() if e["status"] == "user-corrected" for leg in e["lines"]} == {
        1010,
        5030,
        5060,
    }
    ws.in_order()


def test_corrections_of_two_entries_of_one_run_are_both_done(two: Two) -> None:
    """Both are recorded in the same test: that of others stays as it was approved, and no decision rests on it."""
    ws, other = two
    other.drop("more.csv", chase(*((f"02/0{day}/2025", f"KIOSK {day}", f"-{day}.00") for day in (4, 5, 6))))
    other.run("ingest")
    other.ok("sync")
    ws.ok("sync")
    first, second, third = [entry["entry_id"] for entry in ws.entries() if entry["description"].startswith("KIOSK")]
    other.ok("queue", "correct", first, "--account", "5060")
    other.ok("sync")
    ws.ok("queue", "correct", second, "--account", "5070")
    ws.ok("split", third, "5060=2", "5070=4")
    done = ws.json("sync")
    assert [step["left_out"] for step in done["steps"]] == [None, None], done
    for each in (ws, other):
        each.ok("sync")
        status = {entry["entry_id"]: entry["status"] for entry in each.entries()}
        assert [status[entry] for entry in (first, second, third)] == ["user-corrected"] * 3
        each.in_order()
    other.ok("queue", "correct", first, "--account", "5070")  # the test goes on being one


def test_what_was_left_out_may_name_what_has_another_id(two: Two) -> None:
    ws, other = two
    other.ok("queue", "approve", "2025-01-001")
    other.ok("period", "close", "2025-01")
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "mine", "5070=9", "1010=-9")
    ws.ok("journal", "add", "2025-01-05", "see 2025-02-002", "5070=9", "1010=-9")
    assert [bool(step["left_out"]) for step in ws.json("sync")["steps"]] == [False, True]
    ws.in_order()


@pytest.mark.parametrize("how", [("journal", "void", "2025-02-002"), ("import", "undo", "theirs.csv")])
def test_a_line_that_others_took_back(two: Two, how: tuple[str, ...]) -> None:
    """It was voided there: that stands. Or its file was taken back: then the file of this clone brings it."""
    ws, other = two
    other.drop("theirs.csv", chase(("02/06/2025", "ROW", "-8.00")))
    other.run("ingest")
    other.ok(*how, "--reason", "no")
    other.ok("sync")
    ws.drop("mine.csv", chase(("02/06/2025", "ROW", "-8.00")))
    ws.run("ingest")
    ws.ok("queue", "approve", "2025-02-002")
    ws.ok("sync")
    standing = [e["entry_id"] for e in ws.entries() if e["description"] == "ROW" and e["status"] != "voided"]
    assert standing == (["2025-02-004"] if how[0] == "import" else [])
    ws.in_order()


def test_an_account_of_the_same_number_is_another_one(two: Two) -> None:
    ws, other = two
    for each, name in ((other, "Horses"), (ws, "Boats")):
        each.ok("accounts", "add", "5999", name, "--type", "expense")
        if each is other:
            each.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "a boat", "5999=9", "1010=-9")
    steps = ws.json("sync")["steps"]
    assert "5999, which was left out" in steps[1]["left_out"], steps
    assert "a boat" not in [e["description"] for e in ws.entries()]
    ws.in_order()


def test_a_commit_that_was_pushed_and_amended_is_not_done_twice(two: Two) -> None:
    ws, other = two
    ws.ok("journal", "add", "2025-02-05", "mine", "5070=2", "1010=-2")
    ws.ok("sync")
    ws.git("commit", "-q", "--amend", "-m", ws.git("log", "-1", "--format=%B").replace("mine", "mine, said better"))
    assert [step["now"] for step in ws.json("sync")["steps"]] == [None]
    assert [e["description"] for e in ws.entries()].count("mine") == 1
    other.ok("sync")
    assert other.head() == ws.head()
    ws.in_order()


def test_rebased_work_is_done_again(two: Two) -> None:
    ws, other = two
    other.ok("journal", "add", "2025-03-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "mine", "5070=2", "1010=-2")
    ws.git("pull", "-q", "--rebase")
    other.ok("journal", "add", "2025-02-07", "more", "5070=4", "1010=-4")
    other.ok("sync")
    assert ws.json("sync")["renamed"] == {"2025-02-002": "2025-02-003"}
    ws.in_order()


def test_commits_by_hand_without_files_and_of_programs(two: Two) -> None:
    ws, other = two
    other.git("commit", "-q", "--allow-empty", "-m", "nothing")
    other.ok("sync")
    ws.ok("sync")
    assert other.head() == ws.head()
    other.ok("journal", "add", "2025-03-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    ws.put("tool.sh", "#!/bin/sh\n").chmod(0o755)
    ws.git("add", "tool.sh")
    ws.git("commit", "-q", "-m", "a tool")
    ws.ok("sync")
    assert ws.git("ls-tree", "HEAD", "tool.sh").startswith("100755")
    ws.in_order()


def test_an_import_that_does_not_fit_is_left_out_with_what_rests_on_it(two: Two) -> None:
    """Its file waits; when the cause is gone, it is imported as any other."""
    ws, other = two
    other.ok("queue", "approve", "2025-01-001")
    other.ok("period", "close", "2025-01")
    other.ok("sync")
    feb = ("02/09/2025", "FEB", "-3.00")
    ws.drop("late.csv", chase(("01/07/2025", "LATE", "-8.00"), feb))
    ws.run("ingest")
    (name,) = [entry["entry_id"] for entry in ws.entries() if entry["description"] == "FEB"]
    ws.ok("queue", "reject", name, "--reason", "no", "--outcome", "personal")
    ws.drop("late.csv", chase(feb, ("02/10/2025", "MORE", "-4.00")))
    ws.run("ingest")
    ws.drop("other.csv", chase(("02/11/2025", "OTHER", "-5.00")))
    ws.run("ingest")
    done = ws.json("sync")
    assert [bool(step["left_out"]) for step in done["steps"]] == [True, True, True, False]
    for number, why in enumerate(("closed", f"{name}, which was left out", "whose import was left out")):
        assert why in done["steps"][number]["left_out"], done
    ws.in_order()
    other.ok("sync")
    other.in_order()
    cards = [other.ok("queue", "show", card["id"]).out for card in other.cards() if card["kind"] == "left_out"]
    files = sorted((other.root / "import/failed").glob("late*.csv"))
    assert len(cards) == 3 and len(files) == 2
    assert all(any(path.name in card for card in cards) for path in files)
    other.ok("period", "reopen", "2025-01", "--reason", "late")
    for path in files:
        path.rename(other.root / "import" / path.name)
    assert other.run("ingest")["status"] == "succeeded"
    texts = [e["description"] for e in other.entries()]
    assert sorted(texts) == ["CAFE", "CORNER SHOP", "FEB", "LATE", "MORE", "OTHER"], texts
    other.ok("sync")
    other.in_order()


def test_rows_that_were_known_and_are_taken_back_there_come_again(two: Two) -> None:
    """The import of this clone took none, as shop.csv had them; now no file would have them any more."""
    ws, other = two
    shop = (other.root / "import/processed/shop.csv").read_bytes()
    other.ok("import", "undo", "shop.csv", "--reason", "no")
    other.ok("sync")
    ws.drop("again.csv", shop)
    ws.run("ingest")
    (step,) = ws.json("sync")["steps"]
    assert "whose import was taken back there" in step["left_out"], step
    (ws.root / "import/failed/again.csv").rename(ws.root / "import/again.csv")
    ws.run("ingest")
    assert [e["description"] for e in ws.entries() if e["status"] == "pending-review"] == ["CAFE", "CORNER SHOP"]
    ws.in_order()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_row_of_two_files_stays_when_one_of_them_is_taken_back(two: Two, is_there: bool) -> None:
    """Both clones have brought it. ``is_there``: who takes their file back knows of the other one."""
    ws, other = two
    tea = ("02/07/2025", "TEA", "-2.00")
    for each, name, more in ((other, "theirs.csv", "CAKE"), (ws, "mine.csv", "BUN")):
        each.drop(name, chase(tea, ("02/08/2025", more, "-3.00")))
        each.run("ingest")
        each.ok("sync")
    if is_there:
        other.ok("sync")
    other.ok("import", "undo", "theirs.csv", "--reason", "no")
    done = other.json("sync")
    assert [bool(step["left_out"]) for step in done["steps"]] == ([] if is_there else [True])
    standing = [e["description"] for e in other.entries() if e["status"] == "pending-review"]
    assert sorted(standing) == sorted(["BUN", "CAFE", *([] if is_there else ["CAKE"]), "CORNER SHOP", "TEA"])
    other.in_order()


def test_an_import_that_was_taken_back_leaves_no_file_to_wait(two: Two) -> None:
    ws, other = two
    other.ok("queue", "approve", "2025-01-001")
    other.ok("period", "close", "2025-01")
    other.ok("sync")
    ws.drop("late.csv", chase(("01/07/2025", "LATE", "-8.00")))
    ws.ok("revert", ws.run("ingest")["run_id"], "--reason", "the month is closed", "-y")
    assert all(step["left_out"] for step in ws.json("sync")["steps"])
    assert not (ws.root / "import/failed").exists()
    ws.in_order()


@pytest.mark.parametrize(
    "what", ["books/2025/02/journal.csv", "queue/2025-02.jsonl", "logs/attestations-2025-02.jsonl"]
)
@pytest.mark.parametrize("has_work", [False, True])
def test_what_others_take_away_is_not_forgotten(two: Two, what: str, has_work: bool) -> None:
    ws, other = two
    other.git("rm", "-q", what)
    other.git("commit", "-q", "-m", "tidy up")
    other.git("push", "-q")
    if has_work:
        ws.ok("queue", "approve", ENTRY)
    with unchanged(ws):
        refused(ws("sync"), 4, "taken away", "origin/main")
    ws.in_order()


def test_a_remote_that_refuses_is_not_taken_for_a_faster_one(two: Two, tmp_path: Path) -> None:
    ws, _ = two
    hook = tmp_path / "shared.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'fatal: no [rejected] room' >&2; exit 1\n")
    hook.chmod(0o755)
    ws.ok("journal", "add", "2025-02-05", "mine", "5070=2", "1010=-2")
    refused(ws("sync"), 4, "did not take it", "pre-receive hook declined", "it says: fatal: no [rejected] room")


def test_a_question_that_both_answered_otherwise(two: Two) -> None:
    ws, other = two
    card = asks(ws)["id"]
    ws.ok("sync")
    other.ok("sync")
    other.ok("queue", "answer", card, "yes")
    other.ok("sync")
    ws.ok("queue", "answer", card, "no")
    whys = [step["left_out"] for step in ws.json("sync")["steps"]]
    assert "answered there: yes" in whys[0] and "others have had its event" in whys[1]
    assert [e["description"] for e in ws.entries()][-1] == "for yes"
    ws.in_order()


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_decision_is_not_about_another_booking_of_the_line(two: Two, is_decided: bool) -> None:
    """The other clone has learned where the vendor goes, and booked the line there."""
    ws, other = two
    for each in two:
        if each is other:
            known = '("GITHUB", "GitHub", 5020, 0.98),'
            script = other.read("agents/ingest.py").replace(known, f'{known}\n    ("CAKES", "Cakes", 5070, 0.9),')
            other.put("agents/ingest.py", script)
            other.commit("agents/ingest.py", *other.approve("agents/ingest.py"))
        each.drop("cakes.csv", chase(("02/06/2025", "CAKES", "-8.00")))
        each.run("ingest")
        if each is ws or is_decided:
            each.ok("queue", "approve", "2025-02-002")
    other.ok("sync")
    before = [e for e in other.entries() if e["entry_id"] == "2025-02-002"]
    assert 5070 in [leg["account_id"] for leg in before[0]["lines"]]
    steps = ws.json("sync")["steps"]
    assert "booked on other accounts there" in steps[-1]["left_out"], steps
    assert [e for e in ws.entries() if e["entry_id"] == "2025-02-002"] == before
    ws.in_order()


def test_a_transfer_that_both_imported_is_asked_about_once(two: Two) -> None:
    ws, other = two
    text, at = ws.read("config.yaml"), "\n  # A second account"
    savings = "  - {id: savings, name: Savings, type: savings, ledger_account: 1020, format: chase_checking,"
    ws.put_config(text.replace(at, f"\n{savings} match: {{folder: savings}}}}\n{at}", 1))
    ws.ok("sync")
    other.ok("sync")
    other.ok("journal", "add", "2025-01-05", "theirs", "5070=1", "1010=-1")
    for each in (other, ws):
        each.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
        each.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
        each.run("ingest")
    other.ok("sync")
    (card,) = (card for card in ws.cards() if card["kind"] == "transfer")
    ws.ok("queue", "answer", card["id"], "pair")
    ws.ok("sync")
    assert len(ws.json("transfers")["pairs"]) == 1
    assert [card for card in ws.cards() if card["kind"] == "transfer"] == []
    ws.in_order()


def test_what_was_taken_back_in_part_is_not_taken_back_twice(two: Two) -> None:
    """The other clone took back one file of a run and handed it in again; this one did so with the whole run."""
    ws, other = two
    files = {"a.csv": chase(("02/06/2025", "CAKES", "-8.00")), "b.csv": chase(("02/07/2025", "TEA", "-9.00"))}
    for name, data in files.items():
        ws.drop(name, data)
    run = ws.run("ingest")["run_id"]
    ws.ok("sync")
    other.ok("sync")
    other.ok("import", "undo", "a.csv", "--reason", "no")
    other.drop("a.csv", files["a.csv"])
    other.run("ingest")
    other.ok("sync")
    ws.ok("revert", run, "--reason", "no", "-y")
    for name, data in files.items():
        ws.drop(name, data)
    ws.run("ingest")
    ws.ok("sync")
    standing = [e["description"] for e in ws.entries() if e["status"] == "pending-review"]
    assert sorted(standing) == ["CAFE", "CAKES", "CORNER SHOP", "TEA"], standing
    ws.in_order()


def test_what_is_said_of_an_entry_that_others_have_voided_is_left_out(two: Two) -> None:
    """The second time it moves no money, and adds a note to the entry."""
    ws, other = two
    other.ok("journal", "void", "2025-02-001", "--reason", "twice")
    other.ok("sync")
    voided = other.entries()
    ws.ok("queue", "reject", "2025-02-001", "--reason", "mine", "--outcome", "personal")
    ws.ok("queue", "correct", "2025-02-001", "--note", "a present")
    steps = ws.json("sync")["steps"]
    assert ["voided there" in (step["left_out"] or "") for step in steps] == [True, True], steps
    assert ws.entries() == voided
    ws.in_order()


@pytest.mark.parametrize("is_undone", [False, True])
def test_a_card_that_was_put_off_is_put_off_in_the_other_clone(two: Two, *, is_undone: bool) -> None:
    """Fault: it was said to be dropped as others had done it, and nobody had."""
    ws, other = two
    first, second = (str(card["id"]) for card in ws.cards())
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=9", "1010=-9")
    other.ok("sync")
    ws.ok("queue", "skip", first)
    if is_undone:
        ws.ok("queue", "undo")
    assert "dropped" not in ws.ok("sync").out
    other.ok("sync")
    for each in two:
        assert [card["id"] for card in each.cards()] == ([first, second] if is_undone else [second, first])
        each.in_order()


def test_a_card_that_was_put_off_and_has_another_id_there_is_put_off_still(two: Two) -> None:
    ws, other = two
    for each, day, texts in ((other, "05", ["THEIRS"]), (ws, "06", ["TEA", "PLUMS"])):
        each.drop("more.csv", chase(*((f"02/{day}/2025", text, f"-{len(text)}.00") for text in texts)))
        each.run("ingest")
    other.ok("sync")
    tea = next(card["id"] for card in ws.cards() if "TEA" in card["title"])
    ws.ok("queue", "skip", tea)
    ws.ok("sync")
    last = ws.cards()[-1]
    assert "TEA" in last["title"] and last["id"] != tea and ws.trailers()["Later"] == last["id"]
    ws.in_order()


def test_a_card_that_was_put_off_here_and_settled_there_is_settled(two: Two) -> None:
    ws, other = two
    other.ok("queue", "approve", ENTRY)
    other.ok("sync")
    ws.ok("queue", "skip", ENTRY)
    ws.ok("sync")
    assert [card["kind"] for card in ws.cards()] == ["entry"]
    ws.in_order()

"""Approving, correcting, rejecting and answering by the command line: one commit each, nothing edited in place."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged
from patience import PATIENCE

MORE = chase(("02/03/2025", "COFFEE", "-4.50"), ("02/04/2025", "COFFEE", "-3.00"), ("02/05/2025", "BOOKS", "-9.00"))


def card(ws: Workspace, entry: str) -> str:
    return str(next(c["id"] for c in ws.cards() if c["entry_id"] == entry))


def entry(ws: Workspace, name: str) -> dict[str, Any]:
    return next(e for e in ws.entries() if e["entry_id"] == name)


def commits(ws: Workspace) -> int:
    return int(ws.git("rev-list", "--count", "HEAD"))


def balances(ws: Workspace) -> dict[int, Decimal]:
    found: dict[int, Decimal] = {}
    for each in ws.entries():
        for leg in each["lines"]:
            moved = Decimal(leg["debit"]) - Decimal(leg["credit"])
            found[leg["account_id"]] = found.get(leg["account_id"], Decimal(0)) + moved
    return {account: amount for account, amount in found.items() if amount}


def moved(each: dict[str, Any]) -> dict[int, Decimal]:
    return {x["account_id"]: Decimal(x["debit"]) - Decimal(x["credit"]) for x in each["lines"]}


def held(ws: Workspace, reason: str = "whose is it?") -> str:
    """Reject COFFEE into suspense; the held line's card."""
    done = ws.json("queue", "reject", "2025-01-004", "--outcome", "suspense", "--reason", reason)
    assert done["entries"] == ["2025-01-004"]
    (found,) = [c for c in ws.cards() if c["kind"] == "line"]
    return str(found["id"])


# -- approve ----------------------------------------------------------------------------------------------------------


def test_confirms_one(posted: Workspace) -> None:
    before = commits(posted)
    found = posted.json("queue", "approve", card(posted, "2025-01-004")[:5])
    assert found["entries"] == ["2025-01-004"] and len(found["cards"]) == 1 and found["posted"] == []
    assert commits(posted) == before + 1
    assert posted.git("log", "-1", "--format=%s").strip() == "confirm: 2025-01-004 COFFEE"
    said = posted.trailers()
    assert said["By"] and said["Clock"] == "2025-02-10T06:00:00Z" and said["Cards"].endswith(" 2025-01-004")
    assert entry(posted, "2025-01-004")["status"] == "user-confirmed"
    (settled,) = posted.cards("--status", "resolved")
    assert (settled["resolution"], settled["resolved_by"]) == ("confirmed", said["By"])
    posted.in_order()


def test_confirms_many_in_one_commit(posted: Workspace) -> None:
    before = commits(posted)
    found = posted.json("queue", "approve", "2025-01-002", card(posted, "2025-01-004"), "2025-01-001", "2025-01-002")
    assert found["entries"] == ["2025-01-002", "2025-01-004", "2025-01-001"], "each once, also one without a card"
    assert commits(posted) == before + 1 and posted.cards() == []
    assert posted.git("log", "-1", "--format=%s").strip() == "confirm: 3 entries"
    posted.in_order()


def test_the_queue_survives_without_the_cache(posted: Workspace) -> None:
    """B12: cards and decisions are in git: deleting ``.cleared/`` loses none of them."""
    import shutil

    before, name = posted.cards(), card(posted, "2025-01-004")
    shutil.rmtree(posted.root / ".cleared")
    assert posted.cards() == before
    posted.ok("queue", "approve", name)
    shutil.rmtree(posted.root / ".cleared")
    assert [c["entry_id"] for c in posted.cards()] == ["2025-01-002"]


def test_refuses_what_it_does_not_know(posted: Workspace) -> None:
    with unchanged(posted):
        refused(posted("queue", "approve", "zzzzzzzz"), 2, "there is no card, entry or row 'zzzzzzzz'")
        refused(posted("queue", "approve", ""), 2, "there is no card, entry or row")
        refused(posted("queue", "approve", "2025-01-002", "2025-01-099"), 2, "2025-01-099")
        refused(posted("queue", "correct", "zzzzzzzz", "--account", "5060"), 2, "there is no card")
        refused(
            posted("queue", "answer", card(posted, "2025-01-004"), "seen"),
            2,
            "queue approve",
            "queue correct",
            "reject",
        )


def test_an_ambiguous_beginning(posted: Workspace) -> None:
    """Enough cards that two begin alike."""
    rows = [("02/03/2025", f"SHOP {n:02d}", f"-{n + 1}.00") for n in range(40)]
    posted.drop("february.csv", chase(*rows))
    posted.run("ingest")
    first = [c["id"][0] for c in posted.cards()]
    twice = next(letter for letter in first if first.count(letter) > 1)
    with unchanged(posted):
        refused(posted("queue", "approve", twice), 2, f"is the beginning of {first.count(twice)} cards", "Write more")


def test_decided_already(posted: Workspace) -> None:
    """D13: the second of two decisions about a card is told what the first was, and by whom."""
    name = card(posted, "2025-01-004")
    posted.ok("queue", "approve", name)
    by = posted.trailers()["By"]
    with unchanged(posted):
        refused(posted("queue", "approve", name), 3, "is settled: confirmed", f"by {by}", "cleared queue undo")
        refused(posted("queue", "approve", "2025-01-004"), 3)


def test_two_at_once(posted: Workspace) -> None:
    """D13: two processes approve the same card: one commit, and the other is told."""
    name, before = card(posted, "2025-01-004"), commits(posted)
    processes = [posted.start("queue", "approve", name) for _ in range(2)]
    ended = [(p.communicate(timeout=PATIENCE)[1].decode(), p.returncode) for p in processes]
    assert sorted(code for _, code in ended) == [0, 3], ended
    assert "is settled: confirmed" in next(text for text, code in ended if code == 3)
    assert commits(posted) == before + 1
    posted.in_order()


# -- correct ----------------------------------------------------------------------------------------------------------


def test_another_account(posted: Workspace) -> None:
    """The bank's leg is untouched: one further entry moves the amount, and says what it corrects."""
    old = entry(posted, "2025-01-004")
    found = posted.json("queue", "correct", card(posted, "2025-01-004"), "--account", "5060", "--note", "beans")
    assert found["posted"] == ["2025-01-005"]
    new = entry(posted, "2025-01-005")
    assert moved(new) == {5060: Decimal("4.50"), 5030: Decimal("-4.50")}
    assert new["tags"] == ["@corrects=2025-01-004"] and new["date"] == old["date"] and new["notes"] == "beans"
    assert entry(posted, "2025-01-004") == {**old, "status": "user-corrected"}
    assert new["status"] == "user-corrected"
    assert posted.git("log", "-1", "--format=%s").strip() == "correct: 2025-01-004 COFFEE"
    assert card_ids(posted) == ["2025-01-002"]
    posted.in_order()


def card_ids(ws: Workspace) -> list[str]:
    return [c["entry_id"] for c in ws.cards()]


def test_in_a_closed_month(posted: Workspace) -> None:
    """Dated on the first open day, with the date it would have had."""
    posted.ok("queue", "approve", "2025-01-002", "2025-01-004")
    posted.ok("period", "close", "2025-01", "--with-pending")
    found = posted.json("queue", "correct", "2025-01-004", "--account", "5060")
    (name,) = found["posted"]
    new = entry(posted, name)
    assert new["date"] == "2025-02-01" and "@orig_date=2025-01-10" in new["tags"]
    assert balances(posted)[5060] == Decimal("4.50")
    posted.in_order()


def test_a_split_says_who_it_was_and_the_entry_in_its_place_is_named(posted: Workspace) -> None:
    posted.ok("split", "2025-01-004", "5060=3.00", "5070=1.50", "--counterparty", "The corner shop")
    split = [e["entry_id"] for e in posted.entries() if e["counterparty"] == "The corner shop"]
    assert split == ["2025-01-004", "2025-01-005"] and entry(posted, "2025-01-004")["status"] == "user-corrected"
    posted.ok("queue", "correct", "2025-01-004", "--date", "2025-01-11")
    (new,) = (e for e in posted.entries() if e["date"] == "2025-01-11" and e["status"] != "voided")
    assert new["counterparty"] == "The corner shop"
    with unchanged(posted):
        refused(posted("split", "2025-01-004", "5060=4.50"), 3, f"Decide about {new['entry_id']}, which took its place")
    posted.ok("queue", "correct", new["entry_id"], "--date", "2025-01-12")
    (newest,) = (e for e in posted.entries() if e["date"] == "2025-01-12")
    refused(posted("split", "2025-01-004", "5060=4.50"), 3, f"Decide about {newest['entry_id']},")
    posted.in_order()


def test_a_split(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--line", "5060=3.00", "--line", "5010=1.50")
    found = balances(posted)
    assert (found[5060], found[5010]) == (Decimal("3.00"), Decimal("1.50")) and 5030 not in found
    refused(posted("queue", "correct", "2025-01-004", "--account", "5030"), 2, "2 legs", "--line ACCOUNT=AMOUNT")
    posted.ok("queue", "correct", "2025-01-004", "--line", "5040=4.50")
    assert balances(posted)[5040] == Decimal("4.50") and 5060 not in balances(posted)
    posted.in_order()


@pytest.mark.parametrize("words", [["split", "2025-01-004"], ["queue", "correct", "2025-01-004", "--line"]])
def test_a_mistyped_split_is_refused_unless_it_is_meant(posted: Workspace, words: list[str]) -> None:
    """A part larger than the whole leaves a rest of the other sign: it moves money that the bank never moved."""
    line = [words.pop()] if words[-1] == "--line" else []
    lines = [*line, "5060=9999", *line, "5070=-9994.50"]
    with unchanged(posted):
        refused(posted(*words, *lines), 2, "5060=9999 is more than the 4.50 to be split", "--mixed")
        turned = [*line, "5070=-9994.50", *line, "5060=9999"]
        refused(posted(*words, *turned), 2, "5070=-9994.50 goes the other way than the 4.50 to be split")
    posted.ok(*words, *lines, "--mixed")
    assert balances(posted)[5060] == Decimal(9999)
    posted.in_order()


def test_a_mistyped_split_of_a_held_line(posted: Workspace) -> None:
    posted.ok("queue", "reject", "2025-01-004", "--outcome", "suspense", "--reason", "whose?")
    (card,) = [c["id"] for c in posted.cards() if c["kind"] == "line"]
    with unchanged(posted):
        refused(posted("split", card, "5060=9999", "5070=-9994.50"), 2, "is more than the 4.50 to be split")
    posted.ok("split", card, "5060=9999", "5070=-9994.50", "--mixed")
    posted.in_order()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--line", "5060=3.00"], 1, "sum is 3.00, and must be 4.50"),
        (["--account", "5060", "--line", "5060=4.50"], 2, "either"),
        (["--account", "9999"], 1, "9999"),
        (["--account", "5030"], 2, "is like that already"),
        ([], 2, "already"),
        (["--line", "5060=x"], 2, "ACCOUNT=AMOUNT"),
        (["--date", "yesterday"], 2, "yesterday"),
        (["--tag", "@rev=1"], 2, "without @"),
        (["--line", "5060=4.505", "--line", "5010=-0.005"], 2, "4.505"),
        (["--line", "5060=NaN"], 2, "NaN"),
        (["--line", "5060=1e400"], 2, "is not ACCOUNT=AMOUNT"),
        (["--line", "5060=0"], 2, "money"),
    ],
)
def test_refuses_to_correct(posted: Workspace, words: list[str], code: int, said: str) -> None:
    with unchanged(posted):
        refused(posted("queue", "correct", "2025-01-004", *words), code, said)


def test_a_closed_account(posted: Workspace) -> None:
    path = "accounts/chart-of-accounts.csv"
    names = [p for p in posted.git("ls-files", "accounts").split() if p.endswith(".csv")]
    path = names[0]
    lines = posted.read(path).splitlines()
    header = lines[0].split(",")
    if "status" not in header:
        lines = [f"{lines[0]},code,currency,status,closed_on", *(f"{x},,,," for x in lines[1:])]
    at = next(i for i, x in enumerate(lines) if x.startswith("5060,"))
    lines[at] = lines[at].rsplit(",", 2)[0] + ",closed,2024-12-31"
    posted.put(path, "\n".join(lines) + "\n")
    posted.commit(path)
    with unchanged(posted):
        refused(posted("queue", "correct", "2025-01-004", "--account", "5060"), 1, "5060", "closed")


def test_posted_anew(posted: Workspace) -> None:
    """Another date voids the entry and posts it again, with its bank line."""
    before, old = balances(posted), entry(posted, "2025-01-004")
    found = posted.json("queue", "correct", "2025-01-004", "--date", "2025-01-20")
    new = entry(posted, found["posted"][-1])
    assert new["reference"] == old["reference"] and new["status"] == "user-corrected"
    assert "@replaces=2025-01-004" in new["tags"] and entry(posted, "2025-01-004")["status"] == "voided"
    assert new["date"] == "2025-01-20"
    assert balances(posted) == before
    posted.in_order()


def test_several_and_those_like_them(posted: Workspace) -> None:
    """Several ids are one commit; what looks like them is offered, and left alone."""
    posted.drop("february.csv", MORE)
    posted.run("ingest")
    before = commits(posted)
    found = posted.json("queue", "correct", "2025-01-004", "2025-02-001", "--account", "5060")
    assert commits(posted) == before + 1 and found["entries"] == ["2025-01-004", "2025-02-001"]
    assert found["siblings"] == [card(posted, "2025-02-002")]
    assert card_ids(posted) == ["2025-01-002", "2025-02-002", "2025-02-003"]
    said = posted("queue", "correct", "2025-02-002", "--account", "5060")
    assert "more like it" not in said.err
    posted.in_order()


def test_again_and_after_confirming(posted: Workspace) -> None:
    posted.ok("queue", "approve", "2025-01-004")
    posted.ok("queue", "correct", "2025-01-004", "--account", "5060")
    posted.ok("queue", "correct", "2025-01-004", "--account", "5010")
    found = balances(posted)
    assert found[5010] == Decimal("4.50") and 5060 not in found and 5030 not in found
    posted.in_order()


def test_a_held_line_is_posted(posted: Workspace) -> None:
    name = held(posted)
    with unchanged(posted):
        refused(posted("queue", "correct", name), 2, "which account is it?")
    (new,) = posted.json("queue", "correct", name, "--account", "5060", "--counterparty", "Cafe")["posted"]
    found = entry(posted, new)
    assert moved(found) == {1010: Decimal("-4.50"), 5060: Decimal("4.50")}
    assert found["reference"] == entry(posted, "2025-01-004")["reference"] and found["counterparty"] == "Cafe"
    assert found["status"] == "user-confirmed"
    posted.in_order()


# -- what is learned --------------------------------------------------------------------------------------------------


def test_a_correction_becomes_a_case(posted: Workspace) -> None:
    """N7: told until the agent meets it; a proposal that breaks it afterwards is blocked. A run has one case."""
    found = posted.json("queue", "correct", "2025-01-004", "--account", "5060")
    assert (posted.root / found["case"]).is_file()
    again = posted.json("queue", "correct", "2025-01-002", "--account", "4020")
    assert again["case"] == found["case"]
    assert len(list((posted.root / "tests/cases").glob("*.json"))) == 1
    path = "agents/ingest.py"
    good = posted.read(path).replace("UNKNOWN_EXPENSE = 5030", "UNKNOWN_EXPENSE = 5060")
    good = good.replace("UNKNOWN_INCOME = 4010", "UNKNOWN_INCOME = 4020")
    posted.put(path, posted.read(path).replace("0.96", "0.955"))
    told = posted("agent", "propose", "ingest", "--json")
    assert told.code == 0, "what the live version does not meet either keeps nobody from proposing"
    posted.ok("agent", "reject", told.json["id"], "--reason", "no")
    posted.put(path, good)
    take_ok(posted, "agent", "approve", posted.json("agent", "propose", "ingest")["id"])
    posted.put(path, good.replace("UNKNOWN_EXPENSE = 5060", "UNKNOWN_EXPENSE = 5040"))
    blocked = posted("agent", "propose", "ingest", "--json")
    assert blocked.code == 1, blocked


def test_an_undone_correction_is_forgotten(posted: Workspace) -> None:
    """N7: so is what it taught."""
    case = posted.json("queue", "correct", "2025-01-004", "--account", "5060")["case"]
    posted.ok("queue", "undo")
    assert not (posted.root / case).exists()
    posted.in_order()


# -- reject -----------------------------------------------------------------------------------------------------------


def test_a_bank_line_needs_an_outcome(posted: Workspace) -> None:
    with unchanged(posted):
        words = ["queue", "reject", "2025-01-004", "--reason", "no"]
        refused(posted(*words), 2, "--outcome duplicate --of ENTRY", "personal", "suspense")
        refused(posted("queue", "reject", "2025-01-004", "--outcome", "personal"), 2, "needs a reason")
        refused(posted(*words, "--outcome", "duplicate"), 2, "a duplicate of which entry?")
        refused(posted(*words, "--outcome", "duplicate", "--of", "2025-01-004"), 2, "a duplicate of which entry?")


def test_an_entry_is_not_booked_to_its_own_bank_account(posted: Workspace) -> None:
    with unchanged(posted):
        for words in (["split", "2025-01-004", "1010=4.50"], ["queue", "correct", "2025-01-004", "--account", "1010"]):
            refused(posted(*words), 2, "1010 is the bank account of this entry itself", "clearing account, 1090")


def test_a_duplicate(posted: Workspace) -> None:
    twice = ["queue", "reject", "2025-01-004", "--outcome", "duplicate", "--reason", "twice", "--of"]
    with unchanged(posted):
        refused(posted(*twice, "2025-01-003"), 2, "-4.50 on 1010, and that one -45.10 on 1010", "--outcome personal")
    posted.ok("journal", "add", "2025-01-10", "Coffee, by hand", "5070=4.50", "1010=-4.50")
    posted.ok(*twice, "2025-01-005")
    assert entry(posted, "2025-01-004")["status"] == "voided" and 5030 not in balances(posted)
    assert card_ids(posted) == ["2025-01-002"]
    posted.in_order()
    posted.drop("again.csv", chase(("01/10/2025", "COFFEE", "-4.50", "2446.40")))
    assert posted.run("ingest")["entries"] == [], "the line does not come back"


def test_personal(posted: Workspace) -> None:
    posted.ok("queue", "reject", "2025-01-004", "--outcome", "personal", "--reason", "my own")
    assert balances(posted)[3200] == Decimal("4.50") and 5030 not in balances(posted)
    with unchanged(posted):  # said again it is not written twice, with another reason neither
        for reason in ("my own", "mine"):
            again = posted("queue", "reject", "2025-01-004", "--outcome", "personal", "--reason", reason)
            refused(again, 2, "2025-01-004 is personal already", "cleared why 2025-01-004")
    posted.in_order()


def test_suspense(posted: Workspace) -> None:
    name = held(posted)
    assert balances(posted)[1010] == Decimal("1450.90")
    with unchanged(posted):
        refused(
            posted("queue", "answer", name, "different"),
            2,
            f"cleared queue correct {name} --account … or cleared queue answer {name} ignore",
        )
    posted.ok("queue", "answer", name, "ignore")
    assert card_ids(posted) == ["2025-01-002"]
    posted.in_order()


def test_an_entry_without_a_line_is_voided(ws: Workspace) -> None:
    ws.script(
        'journal_add_double(date="2025-01-10", description="A", debit_account=5020, credit_account=2100, amount=1,'
        ' confidence=0.5, evidence="e", status="pending-review")\n'
        'queue_add_review(entry_id="pending", description="A")\n'
        'git_commit("x")\n'
    )
    name = ws.cards()[0]["id"]
    ws.ok("queue", "reject", name, "--reason", "not ours")
    assert entry(ws, "2025-01-001")["status"] == "voided" and balances(ws) == {}
    assert ws.git("log", "-1", "--format=%s").strip() == "void: 2025-01-001: not ours"
    ws.in_order()


# -- answer, and what scripts can read --------------------------------------------------------------------------------


def test_a_failed_run_is_asked_no_more_once_its_agent_went_through(ws: Workspace) -> None:
    ws.script("1 // len(importer_scan())", code=1)
    assert [c["kind"] for c in ws.cards()] == ["failed_run"]
    ws.drop("january.csv")
    ws.run("probe")
    assert "failed_run" not in [c["kind"] for c in ws.cards()]
    ws.in_order()


def test_answers_what_is_not_about_entries(ws: Workspace) -> None:
    ws.drop("broken.csv", "Details,Posting Date\n\x00\x01")
    ws("agent", "run", "ingest")
    ws.drop("broken.csv", "")
    ws.script("1 / 0", code=1)
    kinds = {c["kind"]: c["id"] for c in ws.cards()}
    assert "failed_run" in kinds
    for name in kinds.values():
        refused(ws("queue", "answer", name, "perhaps"), 2, f"Say cleared queue answer {name} seen")
        refused(ws("queue", "approve", name), 2, "is not about an entry", "seen")
        ws.ok("queue", "answer", name, "seen")
        refused(ws("queue", "answer", name, "seen"), 3, "is settled: seen")
    assert ws.cards() == []


def test_scripts_read_what_was_decided(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5060")
    posted.ok("queue", "approve", "2025-01-002")
    first, second = posted.script("queue_decisions()")["result"]
    decisions = {d["entry_id"]: d for d in (first, second)}
    found = decisions["2025-01-004"]
    assert found["decision"] == "corrected" and decisions["2025-01-002"]["decision"] == "confirmed"
    assert {x["account_id"] for x in found["before"]} == {5030, 1010}
    assert {x["account_id"] for x in found["after"]} == {5060, 1010}
    assert len(posted.script('queue_decisions(since="2025-02-10")', name="today")["result"]) == 2
    assert posted.script('queue_decisions(since="2025-02-11")', name="later")["result"] == []


def test_a_card_that_is_skipped_waits_behind_all_others(posted: Workspace) -> None:
    first, second = [c["id"] for c in posted.cards()]
    done = posted.ok("queue", "skip", first)
    assert done.out.startswith(f"Skipped: {first}")
    assert [c["id"] for c in posted.cards()] == [second, first]
    assert "Decision" in posted.trailers() and posted.entries("--status", "pending-review")
    posted.ok("queue", "skip", second, first)
    assert [c["id"] for c in posted.cards()] in ([second, first], [first, second])
    refused(posted("queue", "skip", "zzzz"), 2, "there is no card")
    posted.ok("queue", "approve", first)
    refused(posted("queue", "skip", first), 3, "is settled")
    posted.in_order()


def test_a_clone_that_is_not_trusted_yet_decides_nothing(posted: Workspace, tmp_path: Path) -> None:
    posted.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone, card = Workspace(tmp_path / "clone"), posted.cards()[0]["id"]
    refused(clone("queue", "approve", card), 3, "not trusted on this machine yet", "cleared trust")
    take_ok(clone, "trust", "--yes")
    clone.ok("queue", "approve", card)
    posted.git("pull", "-q", "--ff-only", str(clone.root), "HEAD")
    posted.in_order()

"""What only confirms persons' decisions becomes live by itself, where a person's own key has said so. Row D6."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from harness import Workspace, chase
from terminals import run_on_terminal

from cleared.books.teaching.book_lessons import put_row
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.improving import improve_agents

PATH = "agents/ingest.py"
WORDS = "BLUEBIRD HOLDINGS"
COFFEE = '    ("COFFEE 1", "Coffee", 5020, 0.99),\n'


def decide(ws: Workspace, account: int = 5020, count: int = 3, text: str = WORDS, month: int = 1) -> None:
    """So many bank lines of this text, all of which a person books so; and two that wait."""
    rows = [(f"{month:02}/{n:02}/2025", f"{text} {month}{n}{n}", "-50.00") for n in range(1, count + 1)]
    known = {e["entry_id"] for e in ws.entries()}
    others = ((f"{month:02}/20/2025", f"{each} {month}", "-3.00") for each in ("COFFEE", "TEA"))
    ws.drop(f"{len(known)}.csv", chase(*rows, *others))
    ws.run("ingest")
    ids = [e["entry_id"] for e in ws.entries() if e["entry_id"] not in known and text in str(e["description"])]
    ws.ok("queue", "correct", *ids, "--account", str(account))


def let_approve(ws: Workspace, value: str = "additive") -> None:
    ws.config(f"self_improvement.approve={value}")


def improve(ws: Workspace) -> dict[str, Any]:
    found = ws.json("improve")
    assert isinstance(found, dict)
    return found


def waits(ws: Workspace, why: str) -> None:
    """Nothing becomes live, and it is said why; the proposal waits as ever."""
    before = ws.git("show", f"HEAD:{PATH}")
    done = improve(ws)
    assert done["approved"] == [] and any(why in each for each in done["held"]), done
    assert ws.git("show", f"HEAD:{PATH}") == before


def test_what_confirms_decisions_is_live_the_next_morning(ws: Workspace) -> None:
    before = ws.read(PATH)
    let_approve(ws)
    decide(ws)
    done = improve(ws)
    assert (done["approved"], done["proposals"]) == (["P1"], [])
    row = f'    ("{WORDS}", "Bluebird Holdings", 5020, 0.99, {{"money": "out", "min": 20, "max": 100}}),\n'
    assert ws.read(PATH).replace(row, "") == before
    subject, *_ = ws.git("log", "-1", "--format=%B").splitlines()
    title = f"{WORDS} (money out, from 20, up to 100) → 5020 from now on, as you decided 3 of 3 times"
    assert subject == f"agent: P1 approved itself: {title}"
    ws.drop("next.csv", chase(("02/08/2025", f"{WORDS} 9", "-60.00")))
    ws.run("ingest")
    assert ws.entries("--month", "2025-02")[-1]["status"] == "auto-confirmed"
    ws.in_order()
    assert "P1 approved itself" in ws.ok("queue", "undo").err
    assert ws.read(PATH) == before
    assert "approved itself" not in ws.ok("queue", "undo", "--dry-run").err, "the next one is a person's"
    decide(ws, month=3)
    assert improve(ws)["approved"] == improve(ws)["proposed"] == [], "what was taken back stays so"
    ws.drop("large.csv", chase(("04/08/2025", f"{WORDS} 9", "-700.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", ws.entries("--month", "2025-04")[-1]["entry_id"], "--account", "5020")
    assert improve(ws)["approved"] == improve(ws)["proposed"] == [], "nor as a row for other amounts"
    ws.in_order()


def test_a_correction_that_nothing_is_learned_from_yet_is_not_in_the_way(ws: Workspace) -> None:
    """It is a test that the version of now fails, and the new one nothing more of it; so does one that is mended
    in part, as its other line came with those that are learned from."""
    let_approve(ws)
    decide(ws)
    tea = next(e for e in ws.entries() if "TEA" in str(e["description"]))
    ws.ok("queue", "correct", tea["entry_id"], "--account", "5060")
    ws.drop("once.csv", chase(("02/08/2025", "HARBOR TOOLS 1", "-60.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", ws.entries("--month", "2025-02")[-1]["entry_id"], "--account", "5060")
    assert "is broken" in ws("agent", "check", "ingest").out
    assert improve(ws)["approved"] == ["P1"]
    ws.in_order()


def test_it_is_off_until_the_settings_that_the_own_key_signed_say_so(ws: Workspace) -> None:
    decide(ws)
    ws.put("config.yaml", ws.read("config.yaml") + "\nself_improvement:\n  approve: additive\n")
    assert improve(ws)["proposals"] == ["P1"], "what config.yaml says counts for nothing"


def test_somebody_elses_settings_let_nothing_approve_itself_here(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    let_approve(ws)
    decide(ws)
    theirs = "ed25519:" + "A" * 43 + "="
    monkeypatch.setattr("cleared.gate.proposals.additive_approval.own_key", lambda _: type("K", (), {"public": theirs}))
    waits(ws, "with another key than yours")


@pytest.mark.parametrize(
    ("account", "why"), [(5060, ""), (5020, "2025-01-004 would differ, and no person decided it so")]
)
def test_what_it_would_do_beyond_that_waits(ws: Workspace, account: int, why: str) -> None:
    """An account that the script does not name; a version that would have done otherwise with another entry."""
    let_approve(ws)
    decide(ws, account)
    if why:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "cleared.books.teaching.book_lessons.put_row",
                lambda text, row: put_row(text.replace("VENDORS = [\n", f"VENDORS = [\n{COFFEE}"), row),
            )
            done = improve(ws)
        assert done["approved"] == [] and any("no person decided it so" in each for each in done["held"]), done["held"]
        return
    done = improve(ws)
    assert (done["approved"], done["proposals"]) == ([], ["P1"])
    assert done["held"] == [f"{done['proposed'][0]['change']} waits for a person: {PATH} does not name 5060 yet"]


def test_a_line_that_nobody_has_decided_about_is_in_the_way(ws: Workspace) -> None:
    let_approve(ws)
    decide(ws)
    ws.drop("waits.csv", chase(("02/08/2025", f"{WORDS} 9", "-60.00")))
    ws.run("ingest")
    waits(ws, "of its past lines, 1 still waiting for you")
    assert ws.cards()[-1]["kind"] == "proposal"
    ws.ok("teach", "HARBOR", "5020", "--yes")
    ws.drop("taught.csv", chase(("02/09/2025", f"HARBOR {WORDS}", "-60.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", ws.entries("--month", "2025-02")[0]["entry_id"], "--account", "5020")
    waits(ws, "of its past lines, 1 booked so by no person")
    assert "5 past lines, 4 as you did and 1 booked so by no person" in improve(ws)["proposed"][0]["says"]


@pytest.mark.parametrize("text", ["PAYMENT", "ACH DEBIT", "DEBIT CARD PURCHASE", "INC"])
def test_words_that_stand_in_anybodys_text_are_no_row(ws: Workspace, text: str) -> None:
    """Also where a text has no others: the row would take the lines of whoever comes next."""
    let_approve(ws)
    decide(ws, text=text)
    done = improve(ws)
    assert done["approved"] == done["proposed"] == []


def test_words_of_another_payee_wait(ws: Workspace) -> None:
    """A line of the other one, of an amount that the row is not about: the next one may be."""
    let_approve(ws)
    decide(ws)
    ws.drop("other.csv", chase(("02/08/2025", f"{WORDS} ABROAD", "-6000.00")))
    ws.run("ingest")
    waits(ws, f"its words stand in lines of “{WORDS} ABROAD”, too")


def test_decisions_that_differ_are_never_confirmed_by_a_row(ws: Workspace) -> None:
    """Also where a person has said that the others were exceptions."""
    let_approve(ws)
    decide(ws)
    decide(ws, 5010, count=1, month=2)
    assert improve(ws)["approved"] == []
    card = next(c for c in ws.cards() if c["kind"] == "contradiction")
    ws.ok("queue", "answer", card["id"], "most")
    done = improve(ws)
    assert (done["approved"], done["proposals"]) == ([], ["P1"])


def test_nothing_approves_itself_inside_a_job(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    let_approve(ws)
    decide(ws)
    monkeypatch.setenv("CLEARED_JOB", "improve")
    done = improve_agents(open_workspace(ws.root), is_asked=False)
    assert done.approved == [] and "inside a job" in done.held[0]


def test_a_key_with_a_passphrase_signs_nothing_while_nobody_is_there(ws: Workspace) -> None:
    let_approve(ws)
    decide(ws)
    words = "a phrase of some words"
    code, shown = run_on_terminal(ws.root, ["key", "protect"], [("New passphrase: ", words), ("again: ", words)])
    assert code == 0, shown
    done = improve_agents(open_workspace(ws.root), is_asked=False)
    assert done.approved == [] and "signs only while you are there" in done.held[0], done.held


def test_budgets_hold_what_approves_itself(ws: Workspace) -> None:
    let_approve(ws)
    decide(ws)
    assert len(improve_agents(open_workspace(ws.root), is_asked=False).approved) == 1
    decide(ws, text="HARBOR TOOLS", month=2)
    done = improve_agents(open_workspace(ws.root), is_asked=False)
    assert done.approved == [] and "programs leave it alone until" in done.held[0]


# -- whoever can push -------------------------------------------------------------------------------------------------


def forge_decisions(ws: Workspace) -> None:
    """Statuses and accounts by plain git, in a commit that calls itself a decision."""
    let_approve(ws)
    lines = [(f"01/0{n}/2025", f"{WORDS} {n}{n}", "-50.00") for n in (1, 2, 3)]
    ws.drop("a.csv", chase(*lines, ("01/09/2025", "TEA", "-3.00")))
    ws.run("ingest")
    journal = "books/2025/01/journal.csv"
    rows = ws.read(journal).splitlines(keepends=True)
    forged = (row.replace("pending-review", "user-confirmed").replace(",5030,", ",5020,") for row in rows)
    ws.put(journal, "".join(new if WORDS in row else row for row, new in zip(rows, forged, strict=True)))
    ws.git("add", "-A")
    ws.git(
        "commit",
        "-qm",
        "correct: x\n\nDecision: 20250210T060000Z-aaaaaa\nBy: ana\nCards: 2025-01-001 2025-01-002 2025-01-003",
    )


def test_forged_decisions_confirm_nothing(ws: Workspace) -> None:
    """No card says *as you decided* of them, either; not even where a person has answered for the commit."""
    forge_decisions(ws)
    done = improve(ws)
    assert done["approved"] == done["proposed"] == []
    ws.ok("accept", "HEAD", "--reason", "I did that")
    done = improve(ws)
    assert done["approved"] == done["proposed"] == []


def test_they_would_if_only_the_books_themselves_were_read(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_decisions(ws)
    teaching, approval = "cleared.books.teaching.book_lessons", "cleared.gate.proposals.additive_approval"
    monkeypatch.setattr(f"{teaching}.list_decided_records", lambda _host, _snapshot, wanted: frozenset(wanted))
    waits(ws, "the books are not in order")
    monkeypatch.setattr(f"{approval}.check_committed_records", lambda *_: [])
    assert improve(ws)["approved"]


def test_a_rejection_that_was_taken_away_is_noticed(ws: Workspace) -> None:
    decide(ws)
    ws.ok("agent", "reject", improve(ws)["proposals"][0], "--reason", "it depends")
    let_approve(ws)
    (folder,) = os.listdir(ws.root / "queue/proposals")
    ws.git("rm", "-q", f"queue/proposals/{folder}/decision.json")
    ws.git("commit", "-qm", "agent: x\n\nDecision: 20250210T060000Z-aaaaaa\nBy: ana")
    waits(ws, "the books are not in order")


def test_a_decision_against_it_that_was_taken_away_is_noticed(ws: Workspace) -> None:
    decide(ws)
    let_approve(ws)
    ws.ok("queue", "correct", "2025-01-003", "--account", "5060")
    ws.git("reset", "-q", "--hard", "HEAD~1")
    done = ws("improve")
    assert done.code == 4 and "1 attested decision" in done.err and "cleared recover" in done.err, done
    assert WORDS not in ws.read(PATH)


def test_a_proposal_that_calls_itself_learned_is_not_read(ws: Workspace) -> None:
    """An open proposal of the same author, with another text in it: what becomes live is made here."""
    decide(ws)
    improve(ws)
    (folder,) = os.listdir(ws.root / "queue/proposals")
    where = f"queue/proposals/{folder}/proposal.json"
    data = json.loads(ws.read(where))
    data["title"] = "Nothing of note"
    ws.put(where, json.dumps(data))
    ws.git("commit", "-qam", "x")
    let_approve(ws)
    waits(ws, "the books are not in order")

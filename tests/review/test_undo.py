"""Taking decisions back by the command line: one more commit that restores the state; what was pushed stays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from harness import Workspace, chase, refused, take_ok, unchanged

TWO = "2025-01-002"
FOUR = "2025-01-004"


def balances(ws: Workspace) -> dict[int, Decimal]:
    found: dict[int, Decimal] = {}
    for each in ws.entries():
        for leg in each["lines"]:
            moved = Decimal(leg["debit"]) - Decimal(leg["credit"])
            found[leg["account_id"]] = found.get(leg["account_id"], Decimal(0)) + moved
    return {account: amount for account, amount in found.items() if amount}


def asked(ws: Workspace) -> list[tuple[str, str]]:
    return sorted((c["kind"], c["title"]) for c in ws.cards())


def test_one_after_the_other(posted: Workspace) -> None:
    """As often as there are decisions, also across a run in between; then there is nothing more."""
    states = []
    for words in (
        ["approve", TWO],
        ["correct", FOUR, "--account", "5060"],
        ["correct", FOUR, "--date", "2025-01-20"],
        ["reject", "2025-01-001", "--outcome", "personal", "--reason", "no"],
    ):
        states.append((balances(posted), asked(posted)))
        posted.ok("queue", *words)
    posted.drop("more.csv", chase(("02/03/2025", "GITHUB", "-4.00")))
    posted.run("ingest")
    states = [({**s, 5020: s[5020] + 4, 1010: s[1010] - 4}, cards) for s, cards in states]
    for state in reversed(states):
        before = int(posted.git("rev-list", "--count", "HEAD"))
        posted.ok("queue", "undo")
        assert (balances(posted), asked(posted)) == state
        assert int(posted.git("rev-list", "--count", "HEAD")) == before + 1
        assert posted.git("log", "-1", "--format=%s").startswith("correct: undo: ")
        posted.in_order()
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "there is no decision to take back")


def test_a_large_batch_whole(ws: Workspace) -> None:
    """Every card of it is asked again."""
    ws.drop("many.csv", chase(*((f"01/{1 + n % 28:02d}/2025", f"SHOP {n:03d}", "-1.00") for n in range(250))))
    ws.run("ingest")
    before = asked(ws)
    assert len(before) == 250
    ws.ok("queue", "approve", *(c["id"] for c in ws.cards()))
    assert ws.cards() == []
    ws.ok("queue", "undo")
    assert asked(ws) == before
    ws.in_order()


def test_refused_when_pushed(posted: Workspace, tmp_path: Path) -> None:
    posted.ok("queue", "approve", TWO)
    posted.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    posted.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    posted.git("push", "-q", "-u", "origin", "HEAD")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "was pushed already", "correct it with a new decision")
    posted.ok("queue", "approve", FOUR)
    posted.ok("queue", "undo")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "was pushed already")


def test_voided_in_between(posted: Workspace) -> None:
    """What a script voided since is not brought back by taking back an older decision."""
    posted.ok("queue", "approve", FOUR)
    posted.script(f'journal_void("{FOUR}", "wrong")')
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "was voided since")


def test_an_ignored_line_waits_again(posted: Workspace) -> None:
    posted.ok("queue", "reject", FOUR, "--outcome", "suspense", "--reason", "whose?")
    (card,) = [c for c in posted.cards() if c["kind"] == "line"]
    posted.ok("queue", "answer", card["id"], "ignore")
    posted.ok("queue", "undo")
    assert [c["kind"] for c in posted.cards()] == ["entry", "line"]
    posted.ok("queue", "undo")
    assert [c["kind"] for c in posted.cards()] == ["entry", "entry"], "the line is posted again: nothing is held"
    posted.in_order()


def test_the_last_act_whichever_command_did_it(posted: Workspace) -> None:
    """Fault 14: after correct X and journal void Y it is Y that comes back, and it is named, before and after."""
    posted.ok("queue", "correct", FOUR, "--account", "5060")
    posted.ok("journal", "void", TWO, "--reason", "wrong")
    with unchanged(posted):
        assert f"would take back: void: {TWO}: wrong" in posted.ok("queue", "undo", "--dry-run").err
    done = posted.ok("queue", "undo")
    assert TWO in done.out and f"took back: void: {TWO}: wrong" in done.err
    standing = {e["description"]: e["status"] for e in posted.entries() if e["status"] != "voided"}
    assert standing["ACME INVOICE 12"] == "pending-review" and standing["COFFEE"] == "user-corrected"
    assert [c["kind"] for c in posted.cards()] == ["entry"], "it is asked about again, and its line is not held"
    posted.ok("queue", "undo")
    assert {e["status"] for e in posted.entries("--text", "COFFEE")} == {"voided", "pending-review"}
    posted.in_order()


def test_not_across_a_close(posted: Workspace) -> None:
    """Fault 14: what lies in a closed period is not moved into another one."""
    posted.ok("queue", "correct", FOUR, "--account", "5060")
    posted.ok("period", "close", "2025-01", "--with-pending")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "close: through 2025-01-31", "cleared period reopen")
    posted.ok("queue", "approve", TWO)
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, TWO, "lies in a period that is closed", "2025-02-01")
    posted.ok("period", "reopen", "2025-01", "--reason", "again")
    posted.ok("queue", "undo")
    posted.ok("queue", "undo")
    assert {e["date"][:7] for e in posted.entries()} == {"2025-01"}
    posted.in_order()


def test_an_act_that_cannot_be_taken_back_is_named(posted: Workspace) -> None:
    """Fault 14: it does not take back an older one instead."""
    posted.ok("queue", "approve", TWO)
    config = posted.read("config.yaml")
    opening = "    # opening: { date: 2024-12-31, balance: 1250.00 }"
    assert opening in config
    posted.put_config(config.replace(opening, opening.replace("# ", "")))
    posted.ok("journal", "open")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "bootstrap: opening balances", "cleared journal void")


def test_voiding_a_corrected_entry_takes_its_corrections_along(posted: Workspace) -> None:
    """And taking that back brings both."""
    posted.ok("queue", "correct", FOUR, "--account", "5060")
    posted.ok("journal", "void", FOUR, "--reason", "wrong")
    assert {r["account_id"]: r["balance"] for r in posted.json("journal", "balance")}.get(5060, "0.00") == "0.00"
    assert posted.json("journal", "balance", "5030")[0]["balance"] == "0.00"
    posted.ok("queue", "undo")
    assert posted.json("journal", "balance", "5060")[0]["balance"] == "4.50"
    assert posted.json("journal", "balance", "5030")[0]["balance"] == "0.00"
    posted.in_order()


def test_later_is_an_act_of_its_own(posted: Workspace) -> None:
    """What was put behind the others comes forward again; the decision before it stays."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import skip_cards

    posted.ok("queue", "approve", FOUR)
    posted.ok("queue", "undo")
    first, second = (c["id"] for c in posted.cards())
    posted.ok("queue", "approve", second)
    before = posted.entries()
    posted.drop("more.csv", chase(("02/03/2025", "NOBODY KNOWS", "-4.00")))
    posted.run("ingest")
    order = [c["id"] for c in posted.cards()]
    skip_cards(open_workspace(posted.root), [first])
    assert [c["id"] for c in posted.cards()] == order[::-1]
    assert f"would take back: log: skipped {first}" in posted.ok("queue", "undo", "--dry-run").err
    posted.ok("queue", "undo")
    assert [c["id"] for c in posted.cards()] == order
    assert posted.entries()[: len(before)] == before
    posted.ok("queue", "undo")
    assert second not in [c["id"] for c in posted.cards()] and len(posted.cards()) == 3
    posted.in_order()


def test_an_approval_is_rolled_back_and_nothing_older_instead(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    script = posted.read("agents/ingest.py")
    posted.put("agents/ingest.py", script + "\n# the same\n")
    posted.ok("agent", "propose", "ingest", "-m", "a comment")
    take_ok(posted, "agent", "approve", "P1")
    decided = posted.entries()
    done = posted.ok("queue", "undo")
    assert "took back: agent: P1 approved" in done.err and posted.read("agents/ingest.py") == script
    assert posted.entries() == decided
    assert f"would take back: confirm: {TWO}" in posted.ok("queue", "undo", "--dry-run").err
    posted.ok("queue", "undo")
    assert {e["status"] for e in posted.entries() if e["description"] == "ACME INVOICE 12"} >= {"pending-review"}
    posted.in_order()


def test_a_setting_is_not_passed_over_unless_it_is_said(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    posted.ok("config", "set", "review.remind_after", "1h")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "config: review.remind_after = 1h", "cleared config set", "--older")
    posted.ok("queue", "undo", "--older")
    assert "1h" in posted.read("config.yaml") and len(posted.cards()) == 2
    posted.in_order()


def test_a_terminal_is_asked_first(posted: Workspace) -> None:
    import os
    import pty
    import subprocess
    import sys

    posted.ok("queue", "approve", TWO)
    for answer, changes in ((b"n\n", False), (b"y\n", True)):
        before = posted.head()
        mine, theirs = pty.openpty()
        argv = [sys.executable, "-m", "cleared", "-C", str(posted.root), "queue", "undo"]
        os.write(mine, answer)
        done = subprocess.run(argv, stdin=theirs, capture_output=True, text=True, check=False)
        os.close(mine), os.close(theirs)
        assert done.returncode == 0, done
        assert f"it would take back: confirm: {TWO} ACME INVOICE 12" in done.stderr and "Take it back?" in done.stderr
        assert (posted.head() != before) == changes
    posted.in_order()


def test_a_reconciliation_that_was_withdrawn_stands_no_more(posted: Workspace) -> None:
    """So what was decided before it is the last act again; one of another day still stands."""
    words = ("reconcile", "1010", "--balance", "1446.40", "--date")
    posted.ok("queue", "approve", TWO)
    posted.ok(*words, "2025-01-31")
    posted.ok(*words, "2025-02-01")
    posted.ok("reconcile", "1010", "--date", "2025-02-01", "--withdraw", "too early")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "1010 reconciled on 2025-01-31", "--withdraw REASON", "--older")
    posted.ok("reconcile", "1010", "--date", "2025-01-31", "--withdraw", "the bank corrected it")
    assert f"took back: confirm: {TWO}" in posted.ok("queue", "undo").err
    posted.in_order()


def test_undo_moves_no_month_that_the_decision_did_not_move(posted: Workspace) -> None:
    """Fault 1: a correction that takes the place of one of a month that was closed then, and says the same as one
    before, leaves the chain as it was on its day; taking it back is dated by that day all the same."""

    def months(account: str) -> list[str]:
        found = [posted.json("journal", "balance", account, "--month", month) for month in ("2025-01", "2025-02")]
        return [rows[0]["balance"] if rows else "0.00" for rows in found]

    posted.ok("queue", "correct", "2025-01-003", "--account", "5060")
    posted.ok("period", "close", "2025-01", "--with-pending")
    posted.ok("queue", "correct", "2025-01-003", "--account", "5040")
    posted.ok("period", "reopen", "2025-01", "--reason", "again")
    before = [months(account) for account in ("5020", "5040", "5060")]
    posted.ok("queue", "correct", "2025-01-003", "--account", "5060")
    posted.ok("queue", "undo")
    assert [months(account) for account in ("5020", "5040", "5060")] == before
    posted.in_order()


def test_a_correction_comes_back_to_the_entry_that_stands(posted: Workspace) -> None:
    """Fault 1: the entry was voided and restored since, under another id."""
    for account in ("5060", "5040"):
        posted.ok("queue", "correct", "2025-01-003", "--account", account)
    posted.ok("journal", "void", "2025-01-003", "--reason", "wrong")
    posted.ok("queue", "undo")
    posted.ok("queue", "undo")
    assert posted.json("journal", "balance", "5060")[0]["balance"] == "45.10"
    (entry,) = (e for e in posted.entries() if e["description"] == "AWS EMEA" and e["status"] != "voided")
    posted.ok("queue", "correct", entry["entry_id"], "--account", "5010")
    assert posted.json("journal", "balance", "5060")[0]["balance"] == "0.00"
    assert posted.json("journal", "balance", "5010")[0]["balance"] == "45.10"
    posted.in_order()


def test_the_entry_that_an_undo_brought_back_is_named_for_the_old_one(posted: Workspace) -> None:
    """By whatever refuses the voided one, by its card, and where it is explained; whatever came before the undo."""
    (card,) = (c["id"] for c in posted.cards() if c["entry_id"] == FOUR)
    old = FOUR
    for words in (["--account", "5060"], ["--date", "2025-01-20"]):  # the second brings back what the first had
        posted.ok("queue", "correct", old, *words)
        posted.ok("queue", "undo")
        (waiting,) = (c["entry_id"] for c in posted.cards() if c["title"].endswith("COFFEE"))
        remedy = f"Decide about {waiting}, which took its place."
        for decision in (
            ["queue", "correct", FOUR, "--account", "5060"],
            ["queue", "approve", FOUR],
            ["split", FOUR, "5060=3.00", "5070=1.50"],
            ["transfers", "pair", FOUR, TWO],
        ):
            refused(posted(*decision), 3, f"{FOUR} is voided", remedy)
        assert f"in its place  {waiting}\n" in posted.ok("why", FOUR).out
        assert posted.json("why", FOUR)["replaced_by"] == waiting
        assert posted.json("why", waiting)["replaced_by"] is None
        assert posted.json("queue", "show", card)["replaced_by"] == waiting
        assert f"in its place  {waiting}\n" in posted.ok("queue", "show", FOUR).out
        old = waiting
    posted.ok("journal", "void", old, "--reason", "no")
    refused(posted("queue", "approve", FOUR), 3, "No entry took its place.")
    assert posted.json("queue", "show", card)["replaced_by"] is None
    posted.in_order()


def test_a_line_that_is_held_again_says_what_to_do(posted: Workspace) -> None:
    posted.ok("queue", "reject", "2025-01-004", "--reason", "unclear", "--outcome", "suspense")
    for words in (["answer", "ignore"], ["correct", "--account", "5070"]):
        (card,) = (c for c in posted.cards() if c["kind"] == "line")
        posted.ok("queue", words[0], card["id"], *words[1:])
        posted.ok("queue", "undo")
        (again,) = (c for c in posted.cards() if c["kind"] == "line")
        assert "cleared queue correct posts it" in again["title"] and "answer with ignore" in again["title"]
    posted.in_order()

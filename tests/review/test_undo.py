"""Taking decisions back by the command line: one more commit that restores the state; what was pushed stays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from harness import Workspace, chase, refused, unchanged

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
        ["approve", TWO], ["correct", FOUR, "--account", "5060"], ["correct", FOUR, "--date", "2025-01-20"],
        ["reject", "2025-01-001", "--outcome", "personal", "--reason", "no"],
    ):  # fmt: skip
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
    posted.put("config.yaml", config.replace(opening, opening.replace("# ", "")))
    posted.commit("config.yaml")
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

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
    """What somebody voided since is not brought back by taking back an older decision."""
    posted.ok("queue", "approve", FOUR)
    posted.ok("journal", "void", FOUR, "--reason", "wrong")
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
